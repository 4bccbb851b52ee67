//! Messages on a socket: a length of four bytes, little-endian, and as many bytes of postcard.

use std::io::{self, Read, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Longest message, bytes: the message accounting of about ten million streams. The limit for a worker process is lower
/// and depends on its plan: [`super::allowance`].
pub(super) const LONGEST: usize = 1 << 30;
/// Additional memory of a message that waits to be processed, bytes, so that many empty messages count as well.
const QUEUED: u64 = 64;

/// Writes a message.
///
/// # Errors
/// The other end is closed, or the message is too long.
pub(super) fn write<T: Serialize>(to: &mut impl Write, message: &T) -> io::Result<()> {
    write_within(to, message, LONGEST)
}

/// Writes a message of at most `longest` bytes.
///
/// # Errors
/// The other end is closed, or the message is too long; nothing of such a message is written.
pub(super) fn write_within<T: Serialize>(to: &mut impl Write, message: &T, longest: usize) -> io::Result<()> {
    write_body(to, &body(message)?, longest)
}

/// The bytes of a message behind its length.
///
/// # Errors
/// The message cannot be encoded.
pub(super) fn body<T: Serialize>(message: &T) -> io::Result<Vec<u8>> {
    postcard::to_allocvec(message).map_err(io::Error::other)
}

/// Writes the bytes of a message of at most `longest` bytes, behind their number.
///
/// # Errors
/// The other end is closed, or the message is too long; nothing of such a message is written.
pub(super) fn write_body(to: &mut impl Write, body: &[u8], longest: usize) -> io::Result<()> {
    let length = u32::try_from(body.len()).ok().filter(|_| body.len() <= longest);
    let too_long =
        || io::Error::other(format!("a message of {} bytes where at most {longest} are allowed", body.len()));
    let length = length.ok_or_else(too_long)?;
    to.write_all(&length.to_le_bytes())?;
    to.write_all(body)
}

/// Reads a message; `None` if the other end closed the socket between two messages. Its bytes are subtracted from what
/// the other end may still send.
///
/// # Errors
/// The other end closed within a message, sent something else, or sent more than it may.
pub(super) fn read<T: DeserializeOwned>(from: &mut impl Read, allowed: &mut u64) -> io::Result<Option<T>> {
    let mut length = [0; 4];
    match from.read(&mut length)? {
        0 => return Ok(None),
        some => from.read_exact(&mut length[some..])?,
    }
    let length = u32::from_le_bytes(length) as usize;
    let Some(left) = allowed.checked_sub(length as u64 + QUEUED) else {
        let why = format!("a message of {length} bytes where {allowed} more are allowed");
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    };
    *allowed = left;
    // Memory grows with the bytes received, not with the announced length.
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
        let mut allowed = 10 + 3 * QUEUED;
        assert_eq!(read(&mut rest, &mut allowed).unwrap(), Some((7u32, "seven".to_owned())));
        assert_eq!(allowed, 3 + 2 * QUEUED);
        assert_eq!(read(&mut rest, &mut allowed).unwrap(), Some((8u32, String::new())));
        assert_eq!(read::<(u32, String)>(&mut rest, &mut allowed).unwrap(), None);
        for cut in 1..9 {
            assert!(read::<(u32, String)>(&mut &bytes[..cut], &mut 999).is_err(), "cut after {cut}");
        }
        assert!(read::<u8>(&mut &[255u8; 8][..], &mut 999).is_err());
    }

    #[test]
    fn a_process_that_exceeds_its_allowance_is_no_longer_read() {
        let mut bytes = Vec::new();
        write(&mut bytes, &vec![7u8; 99]).unwrap();
        write(&mut bytes, &vec![7u8; 99]).unwrap();
        let mut rest = bytes.as_slice();
        let mut allowed = 150 + QUEUED;
        assert_eq!(read(&mut rest, &mut allowed).unwrap(), Some(vec![7u8; 99]));
        let error = read::<Vec<u8>>(&mut rest, &mut allowed).unwrap_err().to_string();
        assert_eq!(error, "a message of 100 bytes where 50 more are allowed");
        assert_eq!(rest.len(), 100, "nothing of it was taken in");
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_outcome_or_an_error(body in proptest::collection::vec(any::<u8>(), 0..400)) {
            let mut bytes = (body.len() as u32).to_le_bytes().to_vec();
            bytes.extend(body);
            let _ = read::<super::super::messages::FromWorker>(&mut bytes.as_slice(), &mut 999);
            let _ = read::<super::super::messages::ToWorker>(&mut bytes.as_slice(), &mut 999);
        }
    }
}
