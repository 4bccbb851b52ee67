//! The header of a message (§4.2.6.1).

use super::error::DecodeError;
use super::reader::Reader;

/// Class `basic`, the only one whose methods have a message behind them.
const BASIC: u16 = 60;

/// Bytes of the message whose header this payload is. Its properties are not looked at.
///
/// # Errors
/// It is none, or another class's.
#[inline]
pub fn read_content_header(payload: &[u8]) -> Result<u64, DecodeError> {
    let mut reader = Reader::new(payload);
    let parts = (reader.short(), reader.short(), reader.long_long(), reader.short());
    match parts {
        (Some(BASIC), Some(0), Some(body_bytes), Some(_flags)) => Ok(body_bytes),
        _ => Err(DecodeError::ContentHeader),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_tells_the_bodys_bytes() {
        let header = b"\x00\x3c\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x10\x00\x02";
        assert_eq!(read_content_header(header), Ok(256));
        assert_eq!(read_content_header(&header[..14]), Ok(256));
        assert_eq!(read_content_header(&header[..13]), Err(DecodeError::ContentHeader));
        assert_eq!(
            read_content_header(b"\x00\x3d\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x10\x00"),
            Err(DecodeError::ContentHeader)
        );
    }
}
