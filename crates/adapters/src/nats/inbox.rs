//! Subjects for replies to a session's requests: one subscription for all of them, and a subject for each request, whose last
//! token names it. Clients of NATS do so, too; a subscription for each request would cost the server one.

use pubmark_protocol::events::Token;
use pubmark_protocol::requests;
use pubmark_wire::nats::Message;

/// Prefix of an inbox's subjects, with its last dot.
#[derive(Debug)]
pub(super) struct Inbox(Box<str>);

impl Inbox {
    /// The inbox below a subject.
    pub(super) fn new(subject: &str) -> Inbox {
        Inbox(format!("{subject}.").into())
    }

    /// The subject of its subscription.
    pub(super) fn filter(&self) -> String {
        format!("{}*", self.0)
    }

    /// Writes the subject of one request's reply into `subject`.
    pub(super) fn of(&self, request: Token, subject: &mut String) {
        subject.clear();
        subject.push_str(&self.0);
        requests::correlation_as_text(request, subject);
    }

    /// The request that a subject names, if it is one of this inbox.
    pub(super) fn request(&self, subject: &str) -> Option<Token> {
        requests::correlated_by_text(subject.strip_prefix(&*self.0)?)
    }
}

/// Does the server report that a request has no responder? Such a message has no payload and one line of headers, its status.
pub(super) fn is_unserved(message: &Message<'_>) -> bool {
    message.payload.is_empty() && message.headers.starts_with(b"NATS/1.0 503")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_names_its_request() {
        let inbox = Inbox::new("a.b");
        let request = Token { publication: 2, sequence: 4_000_000_000 };
        let mut subject = "x".repeat(3);
        inbox.of(request, &mut subject);
        assert_eq!((subject.as_str(), inbox.filter().as_str()), ("a.b.2-4000000000", "a.b.*"));
        assert_eq!(inbox.request(&subject), Some(request));
        for other in ["", "a.b", "a.b.", "a.b.2", "a.b2-1", "a.c.2-1", "a.b.x-1"] {
            assert_eq!(inbox.request(other), None, "{other}");
        }
    }
}
