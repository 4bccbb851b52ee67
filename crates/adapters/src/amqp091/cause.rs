//! What it means that a server closes a connection or a channel.

use pubmark_protocol::events::{Cause, Reason};
use pubmark_wire::amqp091::{CloseReason, DecodeError, Method, Version, code, reply_name};

use crate::connection::Phase;

/// The server's words, with the name of its code ahead where they do not begin with it (RabbitMQ's do).
pub(super) fn words(closing: &CloseReason<'_>) -> Reason {
    let name = reply_name(closing.code).map_or_else(|| format!("code {}", closing.code), str::to_owned);
    Reason::words(match closing.text {
        "" => name,
        text if text.starts_with(&name) => text.to_owned(),
        text => format!("{name} - {text}"),
    })
}

/// Why the connection ends, if it ends because of this.
pub(super) fn of(phase: Phase, closing: &CloseReason<'_>) -> Cause {
    let reason = words(closing);
    match (phase, closing.code) {
        // RabbitMQ refuses a message above its limit as a condition that does not hold.
        (Phase::Open, code) => Cause::Server {
            reason,
            too_large: code == code::CONTENT_TOO_LARGE
                || (code == code::PRECONDITION_FAILED && closing.text.contains("larger than")),
        },
        (_, code::ACCESS_REFUSED) => Cause::NotAuthorized(reason),
        _ => Cause::Refused(reason),
    }
}

/// Bytes that are no AMQP.
pub(super) fn broken(error: DecodeError) -> Cause {
    Cause::Protocol(error.to_string())
}

/// A method that the server may not send there and then.
pub(super) fn unexpected(phase: Phase, channel: u16, method: &Method<'_>) -> Cause {
    let when = if phase == Phase::Open { "in an open session" } else { "before the session is open" };
    Cause::Protocol(format!("{} on channel {channel} {when}", method.name()))
}

/// The server does not support our version.
pub(super) fn other_version(phase: Phase, version: Version) -> Cause {
    match phase {
        Phase::Open => Cause::Protocol("a protocol header in an open session".to_owned()),
        _ => Cause::Refused(Reason::words(format!("it answers AMQP 0-9-1 with {version}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn closing(code: u16, text: &str) -> CloseReason<'_> {
        CloseReason { code, text, method: (0, 0) }
    }

    #[test]
    fn a_code_is_named_once() {
        for (code, text, shown) in [
            (403, "ACCESS_REFUSED - no", "ACCESS_REFUSED - no"),
            (530, "not this one", "NOT_ALLOWED - not this one"),
            (541, "", "INTERNAL_ERROR"),
            (999, "what", "code 999 - what"),
        ] {
            assert_eq!(words(&closing(code, text)).text, shown);
        }
    }

    #[test]
    fn refusals_of_a_log_in_a_session_and_a_message_are_distinguished() {
        assert!(matches!(of(Phase::Opening, &closing(403, "no")), Cause::NotAuthorized(_)));
        assert!(matches!(of(Phase::Opening, &closing(530, "no such virtual host")), Cause::Refused(_)));
        assert!(matches!(of(Phase::Open, &closing(403, "no")), Cause::Server { too_large: false, .. }));
        let too_large = closing(406, "message size 100 is larger than configured max size 99");
        assert!(matches!(of(Phase::Open, &too_large), Cause::Server { too_large: true, .. }));
        assert!(matches!(of(Phase::Open, &closing(311, "no")), Cause::Server { too_large: true, .. }));
    }
}
