//! Methods that a server sends (§1.3 to §1.8 of the reference; `connection.blocked`, `basic.nack` and `confirm` are
//! RabbitMQ's, <https://www.rabbitmq.com/docs/extensions>).

use super::error::DecodeError;
use super::reader::Reader;

/// What a server begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start<'a> {
    /// Version, major and minor: 0 and 9.
    pub version: (u8, u8),
    /// Names of the ways to log in, blanks between them.
    pub mechanisms: &'a [u8],
}

/// Limits of a connection; 0 is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tune {
    /// Highest number of a channel.
    pub channel_max: u16,
    /// Largest frame, bytes.
    pub frame_max: u32,
    /// Seconds between heartbeats.
    pub heartbeat_s: u16,
}

/// Why a connection or a channel is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CloseReason<'a> {
    /// A reply code, see [`super::code`].
    pub code: u16,
    /// The server's words.
    pub text: &'a str,
    /// Class and number of the method that it responds to; zeros if to none.
    pub method: (u16, u16),
}

/// A message for a consumer; its header and body follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deliver {
    /// Its number on the channel, for the acknowledgement.
    pub tag: u64,
    /// It was sent before.
    pub redelivered: bool,
}

/// Confirm or refusal of published messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Confirm {
    /// The message's number on the channel: the first one after `confirm.select` is 1.
    pub tag: u64,
    /// All up to that one.
    pub multiple: bool,
}

/// A method of the server's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the specification's")]
pub enum Method<'a> {
    ConnectionStart(Start<'a>),
    ConnectionSecure,
    ConnectionTune(Tune),
    ConnectionOpenOk,
    ConnectionClose(CloseReason<'a>),
    ConnectionCloseOk,
    /// The server accepts no messages, for this reason.
    ConnectionBlocked(&'a str),
    ConnectionUnblocked,
    ChannelOpenOk,
    /// May we send messages on the channel?
    ChannelFlow(bool),
    ChannelFlowOk,
    ChannelClose(CloseReason<'a>),
    ChannelCloseOk,
    /// The queue's name.
    QueueDeclareOk(&'a str),
    QueueBindOk,
    QueueUnbindOk,
    QueueDeleteOk,
    BasicQosOk,
    BasicConsumeOk,
    /// The server ends our consumer.
    BasicCancel,
    BasicReturn,
    BasicDeliver(Deliver),
    BasicAck(Confirm),
    BasicNack(Confirm),
    ConfirmSelectOk,
}

impl<'a> Method<'a> {
    /// Reads the payload of a frame of method.
    ///
    /// # Errors
    /// What is wrong with it.
    #[inline]
    pub fn read(payload: &'a [u8]) -> Result<Method<'a>, DecodeError> {
        let mut reader = Reader::new(payload);
        let (class, number) = match (reader.short(), reader.short()) {
            (Some(class), Some(number)) => (class, number),
            _ => return Err(DecodeError::Field { method: "a method", field: "number" }),
        };
        let method = match class {
            60 => basic(number, &mut reader)?,
            10 => connection(number, &mut reader)?,
            20 => channel(number, &mut reader)?,
            50 => queue(number, &mut reader)?,
            85 if number == 11 => Some(Method::ConfirmSelectOk),
            _ => None,
        };
        let method = method.ok_or(DecodeError::Method { class, method: number })?;
        match reader.left() {
            0 => Ok(method),
            bytes => Err(DecodeError::TrailingBytes { method: method.name(), bytes }),
        }
    }

    /// Its name in the specification.
    pub fn name(&self) -> &'static str {
        match self {
            Method::ConnectionStart(_) => "connection.start",
            Method::ConnectionSecure => "connection.secure",
            Method::ConnectionTune(_) => "connection.tune",
            Method::ConnectionOpenOk => "connection.open-ok",
            Method::ConnectionClose(_) => "connection.close",
            Method::ConnectionCloseOk => "connection.close-ok",
            Method::ConnectionBlocked(_) => "connection.blocked",
            Method::ConnectionUnblocked => "connection.unblocked",
            Method::ChannelOpenOk => "channel.open-ok",
            Method::ChannelFlow(_) => "channel.flow",
            Method::ChannelFlowOk => "channel.flow-ok",
            Method::ChannelClose(_) => "channel.close",
            Method::ChannelCloseOk => "channel.close-ok",
            Method::QueueDeclareOk(_) => "queue.declare-ok",
            Method::QueueBindOk => "queue.bind-ok",
            Method::QueueUnbindOk => "queue.unbind-ok",
            Method::QueueDeleteOk => "queue.delete-ok",
            Method::BasicQosOk => "basic.qos-ok",
            Method::BasicConsumeOk => "basic.consume-ok",
            Method::BasicCancel => "basic.cancel",
            Method::BasicReturn => "basic.return",
            Method::BasicDeliver(_) => "basic.deliver",
            Method::BasicAck(_) => "basic.ack",
            Method::BasicNack(_) => "basic.nack",
            Method::ConfirmSelectOk => "confirm.select-ok",
        }
    }
}

/// Names a method's argument that cannot be read.
fn wrong(method: &'static str, field: &'static str) -> impl FnOnce() -> DecodeError {
    move || DecodeError::Field { method, field }
}

fn connection<'a>(number: u16, reader: &mut Reader<'a>) -> Result<Option<Method<'a>>, DecodeError> {
    Ok(Some(match number {
        10 => {
            let wrong = |field| wrong("connection.start", field);
            let major = reader.octet().ok_or_else(wrong("version"))?;
            let minor = reader.octet().ok_or_else(wrong("version"))?;
            reader.long_bytes().ok_or_else(wrong("server-properties"))?;
            let mechanisms = reader.long_bytes().ok_or_else(wrong("mechanisms"))?;
            reader.long_bytes().ok_or_else(wrong("locales"))?;
            Method::ConnectionStart(Start { version: (major, minor), mechanisms })
        }
        20 => {
            reader.long_bytes().ok_or_else(wrong("connection.secure", "challenge"))?;
            Method::ConnectionSecure
        }
        30 => {
            let wrong = |field| wrong("connection.tune", field);
            Method::ConnectionTune(Tune {
                channel_max: reader.short().ok_or_else(wrong("channel-max"))?,
                frame_max: reader.long().ok_or_else(wrong("frame-max"))?,
                heartbeat_s: reader.short().ok_or_else(wrong("heartbeat"))?,
            })
        }
        41 => {
            reader.skip_short_text().ok_or_else(wrong("connection.open-ok", "reserved argument"))?;
            Method::ConnectionOpenOk
        }
        50 => Method::ConnectionClose(closing("connection.close", reader)?),
        51 => Method::ConnectionCloseOk,
        60 => Method::ConnectionBlocked(reader.short_text().ok_or_else(wrong("connection.blocked", "reason"))?),
        61 => Method::ConnectionUnblocked,
        _ => return Ok(None),
    }))
}

fn channel<'a>(number: u16, reader: &mut Reader<'a>) -> Result<Option<Method<'a>>, DecodeError> {
    Ok(Some(match number {
        11 => {
            reader.long_bytes().ok_or_else(wrong("channel.open-ok", "reserved argument"))?;
            Method::ChannelOpenOk
        }
        20 => Method::ChannelFlow(reader.octet().ok_or_else(wrong("channel.flow", "active"))? & 1 != 0),
        21 => {
            reader.octet().ok_or_else(wrong("channel.flow-ok", "active"))?;
            Method::ChannelFlowOk
        }
        40 => Method::ChannelClose(closing("channel.close", reader)?),
        41 => Method::ChannelCloseOk,
        _ => return Ok(None),
    }))
}

fn queue<'a>(number: u16, reader: &mut Reader<'a>) -> Result<Option<Method<'a>>, DecodeError> {
    Ok(Some(match number {
        11 => {
            let wrong = |field| wrong("queue.declare-ok", field);
            let name = reader.short_text().ok_or_else(wrong("queue"))?;
            reader.long().ok_or_else(wrong("message-count"))?;
            reader.long().ok_or_else(wrong("consumer-count"))?;
            Method::QueueDeclareOk(name)
        }
        21 => Method::QueueBindOk,
        51 => Method::QueueUnbindOk,
        41 => {
            reader.long().ok_or_else(wrong("queue.delete-ok", "message-count"))?;
            Method::QueueDeleteOk
        }
        _ => return Ok(None),
    }))
}

#[inline]
fn basic<'a>(number: u16, reader: &mut Reader<'a>) -> Result<Option<Method<'a>>, DecodeError> {
    Ok(Some(match number {
        60 => {
            let wrong = |field| wrong("basic.deliver", field);
            reader.skip_short_text().ok_or_else(wrong("consumer-tag"))?;
            let tag = reader.long_long().ok_or_else(wrong("delivery-tag"))?;
            let redelivered = reader.octet().ok_or_else(wrong("redelivered"))? & 1 != 0;
            reader.skip_short_text().ok_or_else(wrong("exchange"))?;
            reader.skip_short_text().ok_or_else(wrong("routing-key"))?;
            Method::BasicDeliver(Deliver { tag, redelivered })
        }
        80 => Method::BasicAck(confirm("basic.ack", reader)?),
        120 => Method::BasicNack(confirm("basic.nack", reader)?),
        11 => Method::BasicQosOk,
        21 => {
            reader.skip_short_text().ok_or_else(wrong("basic.consume-ok", "consumer-tag"))?;
            Method::BasicConsumeOk
        }
        30 => {
            reader.skip_short_text().ok_or_else(wrong("basic.cancel", "consumer-tag"))?;
            reader.octet().ok_or_else(wrong("basic.cancel", "no-wait"))?;
            Method::BasicCancel
        }
        50 => {
            let wrong = |field| wrong("basic.return", field);
            reader.short().ok_or_else(wrong("reply-code"))?;
            reader.skip_short_text().ok_or_else(wrong("reply-text"))?;
            reader.skip_short_text().ok_or_else(wrong("exchange"))?;
            reader.skip_short_text().ok_or_else(wrong("routing-key"))?;
            Method::BasicReturn
        }
        _ => return Ok(None),
    }))
}

fn closing<'a>(method: &'static str, reader: &mut Reader<'a>) -> Result<CloseReason<'a>, DecodeError> {
    let wrong = |field| wrong(method, field);
    Ok(CloseReason {
        code: reader.short().ok_or_else(wrong("reply-code"))?,
        text: reader.short_text().ok_or_else(wrong("reply-text"))?,
        method: (reader.short().ok_or_else(wrong("class-id"))?, reader.short().ok_or_else(wrong("method-id"))?),
    })
}

fn confirm(method: &'static str, reader: &mut Reader<'_>) -> Result<Confirm, DecodeError> {
    let wrong = |field| wrong(method, field);
    Ok(Confirm {
        tag: reader.long_long().ok_or_else(wrong("delivery-tag"))?,
        multiple: reader.octet().ok_or_else(wrong("multiple"))? & 1 != 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_read() {
        let start =
            b"\x00\x0a\x00\x0a\x00\x09\x00\x00\x00\x04\x01at\x01\x00\x00\x00\x0ePLAIN AMQPLAIN\x00\x00\x00\x05en_US";
        let expected = Start { version: (0, 9), mechanisms: b"PLAIN AMQPLAIN" };
        assert_eq!(Method::read(start), Ok(Method::ConnectionStart(expected)));
        let tune = b"\x00\x0a\x00\x1e\x07\xff\x00\x02\x00\x00\x00\x3c";
        let expected = Tune { channel_max: 2_047, frame_max: 131_072, heartbeat_s: 60 };
        assert_eq!(Method::read(tune), Ok(Method::ConnectionTune(expected)));
        let close = b"\x00\x14\x00\x28\x01\x94\x02no\x00\x32\x00\x0a";
        let expected = CloseReason { code: 404, text: "no", method: (50, 10) };
        assert_eq!(Method::read(close), Ok(Method::ChannelClose(expected)));
        let deliver = b"\x00\x3c\x00\x3c\x01c\x00\x00\x00\x00\x00\x00\x00\x07\x01\x09amq.topic\x03a.b";
        assert_eq!(Method::read(deliver), Ok(Method::BasicDeliver(Deliver { tag: 7, redelivered: true })));
        let nack = b"\x00\x3c\x00\x78\x00\x00\x00\x00\x00\x00\x00\x05\x01";
        assert_eq!(Method::read(nack), Ok(Method::BasicNack(Confirm { tag: 5, multiple: true })));
        assert_eq!(Method::read(b"\x00\x55\x00\x0b"), Ok(Method::ConfirmSelectOk));
        assert_eq!(Method::read(b"\x00\x32\x00\x33"), Ok(Method::QueueUnbindOk));
        let declared = b"\x00\x32\x00\x0b\x05queue\x00\x00\x00\x00\x00\x00\x00\x00";
        assert_eq!(Method::read(declared), Ok(Method::QueueDeclareOk("queue")));
    }

    #[test]
    fn bytes_that_are_no_method_are_refused() {
        assert_eq!(Method::read(b"\x00\x5a\x00\x0b"), Err(DecodeError::Method { class: 90, method: 11 }));
        assert_eq!(Method::read(b"\x00\x3c\x00\x28"), Err(DecodeError::Method { class: 60, method: 40 }));
        assert!(Method::read(b"\x00\x0a\x00").is_err());
        let wrong = |field| Err(DecodeError::Field { method: "channel.close", field });
        assert_eq!(Method::read(b"\x00\x14\x00\x28\x01\x94\x05no"), wrong("reply-text"));
        assert_eq!(Method::read(b"\x00\x14\x00\x28\x01\x94\x01\xff\x00\x32\x00\x0a"), wrong("reply-text"));
        let behind = Err(DecodeError::TrailingBytes { method: "queue.bind-ok", bytes: 1 });
        assert_eq!(Method::read(b"\x00\x32\x00\x15\x00"), behind);
    }
}
