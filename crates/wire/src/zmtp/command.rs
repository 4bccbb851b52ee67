//! Commands: of the handshake, of subscriptions, signs of life.

use super::error::DecodeError;
use super::metadata::Metadata;

/// Longest context of a PING that is echoed (37/ZMTP, "Connection Heartbeating").
const LONGEST_CONTEXT_BYTES: usize = 16;

/// How libzmq 4.3.4 begins an ERROR of PLAIN: where the length and the first letter belong stands their digits' value, 0x5E
/// (`"\x05ERROR"` in its plain_server.cpp is read by C as the one character 0x5E and `RROR`).
const MISSPELT_ERROR: &[u8] = b"^RROR";

/// A command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command<'a> {
    /// The last of a handshake: what the peer is.
    Ready(Metadata<'a>),
    /// The handshake is over, in the peer's words.
    Error(&'a [u8]),
    /// PLAIN: a log-in.
    Hello {
        /// User name.
        user: &'a [u8],
        /// Password.
        password: &'a [u8],
    },
    /// PLAIN: the log-in is accepted.
    Welcome,
    /// PLAIN: what the client is.
    Initiate(Metadata<'a>),
    /// Requests a PONG.
    Ping {
        /// What PONG is to repeat; of a longer one than allowed, its front.
        context: &'a [u8],
    },
    /// Response to a PING.
    Pong {
        /// The context of the PING.
        context: &'a [u8],
    },
    /// Subscribes to messages that begin with this.
    Subscribe(&'a [u8]),
    /// Takes one such wish back.
    Cancel(&'a [u8]),
    /// Another one; its name.
    Other(&'a [u8]),
}

impl<'a> Command<'a> {
    /// Decodes the body of a command.
    ///
    /// # Errors
    /// It has no name, or its data do not match its name.
    pub fn read(body: &'a [u8]) -> Result<Command<'a>, DecodeError> {
        let (name, data) = match body.strip_prefix(MISSPELT_ERROR) {
            Some(data) => (&b"ERROR"[..], data),
            None => text(body).ok_or(DecodeError::CommandName)?,
        };
        let wrong = |name| DecodeError::CommandData(name);
        match name {
            b"" => Err(DecodeError::CommandName),
            b"READY" => Metadata::read(data).map(Command::Ready).ok_or(wrong("READY")),
            b"ERROR" => text(data)
                .filter(|(_, rest)| rest.is_empty())
                .map_or(Err(wrong("ERROR")), |(reason, _)| Ok(Command::Error(reason))),
            b"HELLO" => hello(data).ok_or(wrong("HELLO")),
            b"WELCOME" if data.is_empty() => Ok(Command::Welcome),
            b"WELCOME" => Err(wrong("WELCOME")),
            b"INITIATE" => Metadata::read(data).map(Command::Initiate).ok_or(wrong("INITIATE")),
            b"PING" => {
                let (_time_to_live, context) = data.split_first_chunk::<2>().ok_or(wrong("PING"))?;
                Ok(Command::Ping { context: &context[..context.len().min(LONGEST_CONTEXT_BYTES)] })
            }
            b"PONG" => Ok(Command::Pong { context: data }),
            b"SUBSCRIBE" => Ok(Command::Subscribe(data)),
            b"CANCEL" => Ok(Command::Cancel(data)),
            other => Ok(Command::Other(other)),
        }
    }
}

/// A text behind its length of one byte, and what follows.
fn text(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = data.split_first()?;
    rest.split_at_checked(usize::from(*length))
}

fn hello(data: &[u8]) -> Option<Command<'_>> {
    let (user, rest) = text(data)?;
    let (password, rest) = text(rest)?;
    rest.is_empty().then_some(Command::Hello { user, password })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_distinguished() {
        for (body, command) in [
            (&b"\x05ERROR\x03no!"[..], Command::Error(b"no!")),
            (b"^RROR\x03400", Command::Error(b"400")),
            (b"\x05HELLO\x02me\x00", Command::Hello { user: b"me", password: b"" }),
            (b"\x07WELCOME", Command::Welcome),
            (b"\x04PING\0\x0active", Command::Ping { context: b"ctive" }),
            (b"\x04PING\x00\x000123456789abcdefgh", Command::Ping { context: b"0123456789abcdef" }),
            (b"\x04PONG", Command::Pong { context: b"" }),
            (b"\x09SUBSCRIBEa/b", Command::Subscribe(b"a/b")),
            (b"\x06CANCEL", Command::Cancel(b"")),
            (b"\x04JOINx", Command::Other(b"JOIN")),
        ] {
            assert_eq!(Command::read(body), Ok(command), "{}", body.escape_ascii());
        }
    }

    #[test]
    fn data_that_are_none_are_refused() {
        for body in [&b""[..], b"\0", b"\0x", b"\x05READ", b"\xffREADY"] {
            assert_eq!(Command::read(body), Err(DecodeError::CommandName), "{}", body.escape_ascii());
        }
        for body in [
            &b"\x05READY\x01"[..],
            b"\x05ERROR",
            b"\x05ERROR\x05no",
            b"\x05ERROR\x01no",
            b"\x05HELLO\x02me",
            b"\x05HELLO\x02me\x01pw",
            b"\x07WELCOME!",
            b"\x08INITIATE\x00",
            b"\x04PING\0",
        ] {
            let refused = Command::read(body);
            assert!(matches!(refused, Err(DecodeError::CommandData(_))), "{}: {refused:?}", body.escape_ascii());
        }
    }
}
