//! The protocol of JetStream on top of NATS (<https://docs.nats.io/reference/reference-protocols/nats_api_reference>): requests
//! in JSON, acknowledgements of messages published and of messages delivered.

use serde::{Deserialize, Serialize};

use super::END;

/// Header with which a server detects duplicates (`Nats-Msg-Id`).
pub const MESSAGE_ID: &str = "Nats-Msg-Id";
/// Bytes of an id of three words of eight hexadecimal digits.
pub const ID_BYTES: usize = 26;
/// What acknowledges a delivery.
pub const ACK: &[u8] = b"+ACK";

/// Start of the subjects to which deliveries are acknowledged.
pub const ACK_SUBJECTS: &str = "$JS.ACK.";

/// Start of the subjects on which a server reports that a consumer was deleted.
pub const CONSUMER_DELETED: &str = "$JS.EVENT.ADVISORY.CONSUMER.DELETED.";

/// A stream: what is published to its subjects is stored until every consumer has acknowledged it.
#[derive(Clone, Debug, Serialize)]
pub struct Stream<'a> {
    /// Its name: no dots, no blanks.
    pub name: &'a str,
    /// The subjects that it stores.
    pub subjects: &'a [String],
    /// `interest`: as long as a consumer wants it.
    pub retention: &'a str,
    /// `file` or `memory`.
    pub storage: &'a str,
}

impl Stream<'_> {
    /// Where it is created; the same again changes nothing.
    pub fn create_subject(&self) -> String {
        format!("$JS.API.STREAM.CREATE.{}", self.name)
    }
}

/// A consumer that the server sends messages to.
#[derive(Clone, Debug, Serialize)]
pub struct Consumer<'a> {
    /// Durable name: the consumer remains without a subscriber; `None` for one that is deleted with its subscriber.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub durable_name: Option<&'a str>,
    /// Where its messages are sent.
    pub deliver_subject: &'a str,
    /// What it wants of the stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter_subject: Option<&'a str>,
    /// The same where it is more than one (nats-server 2.10).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter_subjects: Option<&'a [String]>,
    /// `new`: nothing from before.
    pub deliver_policy: &'a str,
    /// `explicit`: every message is acknowledged; `none`: no message is.
    pub ack_policy: &'a str,
    /// Time after which a message that was not acknowledged is sent again, ns, where they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack_wait: Option<u64>,
    /// Messages on their way at most, where they are acknowledged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_ack_pending: Option<u32>,
}

/// What creates a consumer.
#[derive(Clone, Debug, Serialize)]
pub struct CreateConsumer<'a> {
    /// Its stream.
    pub stream_name: &'a str,
    /// What it is.
    pub config: Consumer<'a>,
}

impl CreateConsumer<'_> {
    /// Where it is created; the same again changes nothing.
    pub fn create_subject(&self) -> String {
        create_consumer_subject(self.stream_name, self.config.durable_name)
    }
}

/// A server's response.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct ApiResponse {
    /// Why not.
    pub error: Option<ApiError>,
    /// A message published: its number in the stream.
    pub seq: Option<u64>,
    /// A stream: when it was made. (`did_create` is true for one that was there before, too.)
    #[serde(default)]
    pub created: Option<String>,
    /// A consumer: its name, which the server generates for one that is not durable.
    #[serde(default)]
    pub name: Option<String>,
}

/// Why a request was refused.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ApiError {
    /// As in HTTP.
    pub code: u16,
    /// The server's own number.
    #[serde(default)]
    pub err_code: u32,
    /// Its words.
    #[serde(default)]
    pub description: String,
}

impl ApiResponse {
    /// Decodes the JSON; the error is the reason.
    pub fn read(json: &[u8]) -> Result<ApiResponse, String> {
        serde_json::from_slice(json).map_err(|error| error.to_string())
    }
}

/// Subject to create a consumer, with its name if it is durable.
pub fn create_consumer_subject(stream: &str, durable: Option<&str>) -> String {
    match durable {
        Some(name) => format!("$JS.API.CONSUMER.DURABLE.CREATE.{stream}.{name}"),
        None => format!("$JS.API.CONSUMER.CREATE.{stream}"),
    }
}

/// Subject for information about a consumer.
pub fn consumer_info_subject(stream: &str, consumer: &str) -> String {
    format!("$JS.API.CONSUMER.INFO.{stream}.{consumer}")
}

/// Subject to delete a consumer.
pub fn delete_consumer_subject(stream: &str, consumer: &str) -> String {
    format!("$JS.API.CONSUMER.DELETE.{stream}.{consumer}")
}

/// Subject on which the server reports that a consumer was deleted.
pub fn consumer_deleted_subject(stream: &str, consumer: &str) -> String {
    format!("{CONSUMER_DELETED}{stream}.{consumer}")
}

/// Appends a request without words.
pub fn encode_empty_request(subject: &str, reply: &str, out: &mut Vec<u8>) {
    super::encode_publish(subject, Some(reply), 0, out);
    out.extend_from_slice(END);
}

/// Appends a request: its JSON to `subject`, the response to `reply`.
pub fn encode_request(subject: &str, reply: &str, json: &impl Serialize, out: &mut Vec<u8>) {
    let body = serde_json::to_vec(json).expect("texts and numbers are all JSON has");
    super::encode_publish(subject, Some(reply), body.len(), out);
    out.extend_from_slice(&body);
    out.extend_from_slice(END);
}

/// Appends an acknowledgement of a delivery to the subject that came with it; the server confirms it to `reply`.
pub fn encode_ack(to: &str, reply: Option<&str>, out: &mut Vec<u8>) {
    super::encode_publish(to, reply, ACK.len(), out);
    out.extend_from_slice(ACK);
    out.extend_from_slice(END);
}

/// A message's number in its stream, from the subject of its acknowledgement:
/// `$JS.ACK.stream.consumer.delivered.stream number.consumer number.time.pending`, with domain and account ahead of the stream on
/// servers that have them.
pub fn stream_sequence(ack_subject: &str) -> Option<u64> {
    let words: Vec<&str> = ack_subject.strip_prefix(ACK_SUBJECTS)?.split('.').collect();
    let at = match words.len() {
        7 => 3,
        9.. => 5,
        _ => return None,
    };
    words.get(at)?.parse().ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::front::Front;
    use crate::nats::{Operation, encode_publish_with_headers, next};

    #[test]
    fn a_message_with_an_id_announces_its_headers_and_all() {
        let mut out = Vec::new();
        encode_publish_with_headers("a.b", Some("_INBOX.1"), [(MESSAGE_ID, "7-9")].into_iter(), 5, &mut out);
        out.extend_from_slice(b"hello\r\n");
        assert_eq!(
            String::from_utf8(out.clone()).unwrap(),
            "HPUB a.b _INBOX.1 30 35\r\nNATS/1.0\r\nNats-Msg-Id: 7-9\r\n\r\nhello\r\n"
        );
        // As the server hands it on.
        let text = String::from_utf8(out).unwrap().replacen("HPUB a.b _INBOX.1", "HMSG a.b 1", 1);
        let Ok(Front::Whole { packet: Operation::Message(message), .. }) = next(text.as_bytes(), 1_000) else {
            panic!("{text}");
        };
        assert_eq!((message.headers.len(), message.payload), (30, &b"hello"[..]));
    }

    #[test]
    fn the_number_of_a_message_is_read_from_both_forms() {
        assert_eq!(stream_sequence("$JS.ACK.S.C.1.42.7.1700000000.0"), Some(42));
        assert_eq!(stream_sequence("$JS.ACK._.ACC.S.C.1.42.7.1700000000.0"), Some(42));
        assert_eq!(stream_sequence("$JS.ACK._.ACC.S.C.1.42.7.1700000000.0.token"), Some(42));
        for wrong in ["", "_INBOX.1", "$JS.ACK.S.C.1", "$JS.ACK.S.C.1.x.7.1.0"] {
            assert_eq!(stream_sequence(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn answers_and_errors_are_read() {
        let good = ApiResponse::read(b"{\"stream\":\"S\",\"seq\":12,\"duplicate\":true}").unwrap();
        assert_eq!((good.error, good.seq), (None, Some(12)));
        let made = ApiResponse::read(b"{\"stream_name\":\"S\",\"name\":\"kUqqqqqq\",\"config\":{}}").unwrap();
        assert_eq!(made.name.as_deref(), Some("kUqqqqqq"));
        let bad = b"{\"error\":{\"code\":503,\"err_code\":10077,\"description\":\"maximum messages exceeded\"}}";
        assert_eq!(ApiResponse::read(bad).unwrap().error.unwrap().description, "maximum messages exceeded");
        assert!(ApiResponse::read(b"nothing").is_err());
    }
}
