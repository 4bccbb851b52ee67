//! Maps a server's errors to causes of the end of a connection.

use pubmark_protocol::events::{Cause, Reason};
use pubmark_wire::amqp10::{Condition, DecodeError};

/// Error of a client that may not do what it requests (part 2, §2.8.15).
const UNAUTHORIZED: &str = "amqp:unauthorized-access";
/// A message larger than its link accepts (part 2, §2.8.18).
const TOO_LARGE: &str = "amqp:link:message-size-exceeded";

/// Bytes that are no AMQP 1.0.
pub fn broken(error: DecodeError) -> Cause {
    Cause::Protocol(error.to_string())
}

/// The words of an error, or those for an end without one.
pub fn words(error: Option<Condition<'_>>, otherwise: &str) -> Reason {
    Reason::words(error.map_or_else(|| otherwise.to_owned(), |error| error.to_string()))
}

/// The server ends something before the session was open.
pub fn refused(error: Option<Condition<'_>>, otherwise: &str) -> Cause {
    let reason = words(error, otherwise);
    if error.is_some_and(|error| error.name == UNAUTHORIZED) {
        Cause::NotAuthorized(reason)
    } else {
        Cause::Refused(reason)
    }
}

/// The server ends something of an open session.
pub fn ended(error: Option<Condition<'_>>, otherwise: &str) -> Cause {
    let too_large = error.is_some_and(|error| error.name == TOO_LARGE);
    Cause::Server { reason: words(error, otherwise), too_large }
}
