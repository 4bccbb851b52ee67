//! Tokens: a token names the request of its response, so that no search is needed.
//!
//! The upper three bits of the first byte have the kind. Tokens are not secret: a connected socket receives only from its
//! server.

/// Largest window of confirmable publications: their indices have 13 bits.
pub const MOST_IN_FLIGHT: u16 = 1 << 13;

/// `application/octet-stream` among content formats (RFC 7252 §12.3): the format of a FETCH body.
pub const OCTET_STREAM: u32 = 42;

const KIND_SHIFT: u32 = 5;
const LOWER: u8 = (1 << KIND_SHIFT) - 1;
const ONCE: u8 = 0;
const ONCE_WIDE: u8 = 1;
const PUBLISH: u8 = 2;
const TRANSFER: u8 = 3;
const OBSERVE: u8 = 4;
const FETCH: u8 = 5;
const OBSERVE_WIDE: u8 = 6;

/// A request that pubmark sent, as its token names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// A message without an awaited response: its name in events.
    Once {
        /// Index in the session's publications.
        publication: u16,
        /// The publisher's sequence number.
        sequence: u32,
    },
    /// A message in flight.
    Publish {
        /// Its index, below [`MOST_IN_FLIGHT`].
        place: u16,
        /// Distinguishes successive messages with the same index.
        salt: u16,
    },
    /// A message that goes in blocks.
    Transfer {
        /// Distinguishes one from the next.
        salt: u16,
    },
    /// A subscription, by its index.
    Observe {
        /// Index in the session's subscriptions.
        index: u16,
        /// Distinguishes the session from one that had its port before: a server may still notify that one.
        salt: u16,
    },
    /// The rest of a notification.
    Fetch {
        /// Index of the subscription.
        index: u16,
        /// Distinguishes one from the next.
        salt: u16,
    },
}

/// A token with its length.
#[derive(Clone, Copy, Debug)]
pub struct RequestToken {
    bytes: [u8; 8],
    length: usize,
}

impl RequestToken {
    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    fn push(&mut self, bytes: &[u8]) {
        self.bytes[self.length..self.length + bytes.len()].copy_from_slice(bytes);
        self.length += bytes.len();
    }

    /// The kind and an index: in one byte if the index fits beside the narrow kind, behind the wide one otherwise.
    fn push_index(&mut self, (narrow, wide): (u8, u8), index: u16) {
        match u8::try_from(index) {
            Ok(index) if index <= LOWER => self.push(&[narrow << KIND_SHIFT | index]),
            _ => {
                self.push(&[wide << KIND_SHIFT]);
                self.push(&index.to_be_bytes());
            }
        }
    }
}

impl Request {
    /// Its token.
    pub fn token(self) -> RequestToken {
        let mut token = RequestToken { bytes: [0; 8], length: 0 };
        let kind = |kind: u8, lower: u8| [kind << KIND_SHIFT | lower];
        match self {
            Request::Once { publication, sequence } => {
                token.push_index((ONCE, ONCE_WIDE), publication);
                // As few bytes as the number takes, at least one.
                token.push(&sequence.to_be_bytes()[(sequence.leading_zeros() as usize / 8).min(3)..]);
            }
            Request::Publish { place, salt } => {
                let [high, low] = place.to_be_bytes();
                token.push(&kind(PUBLISH, high & LOWER));
                token.push(&[low]);
                token.push(&salt.to_be_bytes());
            }
            Request::Transfer { salt } => {
                token.push(&kind(TRANSFER, 0));
                token.push(&salt.to_be_bytes());
            }
            Request::Observe { index, salt } => {
                token.push_index((OBSERVE, OBSERVE_WIDE), index);
                token.push(&salt.to_be_bytes());
            }
            Request::Fetch { index, salt } => {
                token.push(&kind(FETCH, 0));
                token.push(&index.to_be_bytes());
                token.push(&salt.to_be_bytes());
            }
        }
        token
    }

    /// The request of a response; `None` for a token that is not ours.
    pub fn of(token: &[u8]) -> Option<Request> {
        let (&first, rest) = token.split_first()?;
        let lower = first & LOWER;
        match (first >> KIND_SHIFT, rest) {
            (ONCE, sequence) => Some(Request::Once { publication: lower.into(), sequence: number(sequence)? }),
            (ONCE_WIDE, [high, low, sequence @ ..]) => {
                Some(Request::Once { publication: u16::from_be_bytes([*high, *low]), sequence: number(sequence)? })
            }
            (PUBLISH, [low, salt @ ..]) => {
                Some(Request::Publish { place: u16::from_be_bytes([lower, *low]), salt: pair(salt)? })
            }
            (TRANSFER, salt) => Some(Request::Transfer { salt: pair(salt)? }),
            (OBSERVE, salt) => Some(Request::Observe { index: lower.into(), salt: pair(salt)? }),
            (OBSERVE_WIDE, [high, low, salt @ ..]) => {
                Some(Request::Observe { index: u16::from_be_bytes([*high, *low]), salt: pair(salt)? })
            }
            (FETCH, [high, low, salt @ ..]) => {
                Some(Request::Fetch { index: u16::from_be_bytes([*high, *low]), salt: pair(salt)? })
            }
            _ => None,
        }
    }
}

fn pair(bytes: &[u8]) -> Option<u16> {
    bytes.try_into().ok().map(u16::from_be_bytes)
}

fn number(bytes: &[u8]) -> Option<u32> {
    let fits = (1..=4).contains(&bytes.len());
    fits.then(|| bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_found_again_from_its_token() {
        let publications = [0, 31, 32, 65_535].into_iter();
        let once = publications
            .flat_map(|publication| [0, 255, 256, u32::MAX].map(|sequence| Request::Once { publication, sequence }));
        let others = [
            Request::Publish { place: 0, salt: 0 },
            Request::Publish { place: MOST_IN_FLIGHT - 1, salt: 65_535 },
            Request::Transfer { salt: 300 },
            Request::Observe { index: 31, salt: 0 },
            Request::Observe { index: 32, salt: 65_535 },
            Request::Observe { index: 65_535, salt: 9 },
            Request::Fetch { index: 258, salt: 7 },
        ];
        for request in once.chain(others) {
            assert_eq!(Request::of(request.token().as_bytes()), Some(request));
        }
        assert_eq!(Request::Once { publication: 0, sequence: 9 }.token().as_bytes().len(), 2, "small ones are short");
    }

    #[test]
    fn other_tokens_are_none_of_ours() {
        for token in [&[][..], &[0], &[0, 1, 2, 3, 4, 5], &[0x40, 1, 2], &[0x80, 1, 2, 3], &[0xe0, 1, 2, 3]] {
            assert_eq!(Request::of(token), None, "{token:?}");
        }
    }
}
