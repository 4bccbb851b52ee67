//! Messages on a socket: four bytes of length, little-endian, and as many bytes of postcard.

use std::io::{self, Read, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Longest message, bytes: the books of about ten million streams.
const LONGEST: usize = 1 << 30;

/// Writes a message.
///
/// # Errors
/// The other end is gone, or it is too long.
pub(super) fn write<T: Serialize>(to: &mut impl Write, message: &T) -> io::Result<()> {
    let body = postcard::to_allocvec(message).map_err(io::Error::other)?;
    let length = u32::try_from(body.len()).ok().filter(|_| body.len() <= LONGEST);
    let length = length.ok_or_else(|| io::Error::other(format!("a message of {} bytes", body.len())))?;
    to.write_all(&length.to_le_bytes())?;
    to.write_all(&body)
}

/// Reads a message; `None` where the other end has closed between two.
///
/// # Errors
/// The other end broke off within a message, or sent something else.
pub(super) fn read<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<Option<T>> {
    let mut length = [0; 4];
    match from.read(&mut length)? {
        0 => return Ok(None),
        some => from.read_exact(&mut length[some..])?,
    }
    let length = u32::from_le_bytes(length) as usize;
    if length > LONGEST {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("a message of {length} bytes")));
    }
    // Memory grows with what comes, not with what is announced.
    let mut body = Vec::new();
    from.take(length as u64).read_to_end(&mut body)?;
    if body.len() < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    postcard::from_bytes(&body).map(Some).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn messages_come_back_one_by_one_and_a_broken_one_is_an_error() {
        let mut bytes = Vec::new();
        write(&mut bytes, &(7u32, "seven".to_owned())).unwrap();
        write(&mut bytes, &(8u32, String::new())).unwrap();
        let mut rest = bytes.as_slice();
        assert_eq!(read(&mut rest).unwrap(), Some((7u32, "seven".to_owned())));
        assert_eq!(read(&mut rest).unwrap(), Some((8u32, String::new())));
        assert_eq!(read::<(u32, String)>(&mut rest).unwrap(), None);
        for cut in 1..9 {
            assert!(read::<(u32, String)>(&mut &bytes[..cut]).is_err(), "cut after {cut}");
        }
        assert!(read::<u8>(&mut &[255u8; 8][..]).is_err());
    }

    proptest! {
        #[test]
        fn whatever_comes_is_an_outcome_or_an_error(body in proptest::collection::vec(any::<u8>(), 0..400)) {
            let mut bytes = (body.len() as u32).to_le_bytes().to_vec();
            bytes.extend(body);
            let _ = read::<super::super::messages::FromWorker>(&mut bytes.as_slice());
            let _ = read::<super::super::messages::ToWorker>(&mut bytes.as_slice());
        }
    }
}
