//! Entries of streams: requested, delivered, acknowledged.

use pubmark_model::qos::Qos;
use pubmark_protocol::events::{Cause, Event, Sink};
use pubmark_wire::resp::{Value, Values, encode_command};

use super::session::{Awaited, PAYLOAD, READ_BYTES, RedisStreams, TOPIC};
use crate::connection::{Link, Shared, Times};
use crate::redis::opening;

/// Most entries in one response, over all streams; the parser accepts 1,024 values, an entry has seven.
pub(super) const MOST_ENTRIES: usize = 100;

/// An entry of a stream.
struct Entry<'a> {
    id: &'a [u8],
    /// None if it was trimmed away.
    message: Option<(&'a [u8], &'a [u8])>,
}

impl RedisStreams {
    /// Requests entries: those read before and not acknowledged if `again`, otherwise new ones, for which the server waits.
    pub(super) fn read(&mut self, link: &mut Link, shared: &mut Shared, again: bool) {
        let granted: Vec<&String> = (0..self.read)
            .filter(|index| self.refused.iter().all(|(refused, _)| refused != index))
            .map(|index| &self.streams[index])
            .collect();
        if granted.is_empty() {
            return;
        }
        let most = entries_of_each(granted.len(), shared.config.connections.maximum_packet_bytes);
        let entries = most.to_string();
        let block_ms = opening::wait_ms(shared).to_string();
        let mut words: Vec<&[u8]> = vec![b"XREADGROUP", b"GROUP", self.group.as_bytes(), self.group.as_bytes()];
        words.extend([&b"COUNT"[..], entries.as_bytes()]);
        if !again {
            words.extend([&b"BLOCK"[..], block_ms.as_bytes()]);
        }
        if !self.acknowledges() {
            words.push(b"NOACK");
        }
        words.push(b"STREAMS");
        words.extend(granted.iter().map(|key| key.as_bytes()));
        words.extend(granted.iter().map(|_| if again { &b"0"[..] } else { b">" }));
        // A response leads to the next request: a server that reads none of them would fill the memory.
        link.respond(shared, |out| encode_command(&words, out));
        self.awaited.push_back(Awaited::Read { again, most });
    }

    fn acknowledges(&self) -> bool {
        self.listeners.iter().any(|listener| listener.qos > Qos::BestEffort)
    }

    /// Delivers and acknowledges the entries of a response; returns how many there are of the stream with the most.
    pub(super) fn on_entries(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        values: &[u8],
        times: Times,
        sink: &mut impl Sink,
    ) -> Result<usize, Cause> {
        let broken = || Cause::Protocol("an invalid response to XREADGROUP".to_owned());
        let mut values = Values::new(values);
        let streams = values.open().filter(|parts| parts % 2 == 0).ok_or_else(broken)? / 2;
        let mut chosen: Vec<&[u8]> = vec![];
        let mut most: usize = 0;
        for _ in 0..streams {
            let key = values.text().ok_or_else(broken)?;
            let stream = self.streams[..self.read].iter().position(|stream| stream.as_bytes() == key);
            let stream = stream.ok_or_else(broken)?;
            let entries = values.open().ok_or_else(broken)?;
            let mut ids: Vec<&[u8]> = Vec::with_capacity(entries);
            for _ in 0..entries {
                let entry = entry(&mut values).ok_or_else(broken)?;
                ids.push(entry.id);
                let message = entry.message.filter(|(topic, _)| self.chooses(stream, topic));
                chosen.extend(message.map(|(_, payload)| payload));
            }
            most = most.max(ids.len());
            if self.acknowledges() && !ids.is_empty() {
                let words: Vec<&[u8]> = [&b"XACK"[..], key, self.group.as_bytes()].into_iter().chain(ids).collect();
                link.respond(shared, |out| encode_command(&words, out));
                self.awaited.push_back(Awaited::Acknowledged);
            }
        }
        let times = if chosen.len() == 1 { times } else { times.of_one_of_many() };
        for payload in chosen {
            sink.event(link.id, Event::Delivered(times.delivery(payload, false)));
        }
        Ok(most)
    }

    /// Does a filter of the session choose an entry of a stream?
    fn chooses(&self, stream: usize, topic: &[u8]) -> bool {
        let Ok(topic) = std::str::from_utf8(topic) else { return false };
        let mut listeners = self.listeners.iter().filter(|listener| listener.stream == stream);
        listeners.any(|listener| listener.filter.matches(topic))
    }
}

/// Most entries of each of N streams in one response (`COUNT`).
fn entries_of_each(streams: usize, maximum_packet_bytes: usize) -> usize {
    let entries = (READ_BYTES / maximum_packet_bytes.max(1)).min(MOST_ENTRIES);
    (entries / streams.max(1)).max(1)
}

/// `id` and its fields; `None` if it is something else. Entries of others may have other fields.
fn entry<'a>(values: &mut Values<'a>) -> Option<Entry<'a>> {
    let parts = values.open().filter(|parts| *parts == 2);
    parts?;
    let id = values.text()?;
    let fields = match values.next()? {
        Value::Open(fields) => fields,
        Value::Null => return Some(Entry { id, message: None }),
        Value::Text(_) => return None,
    };
    let (mut topic, mut payload) = (None, None);
    for _ in 0..fields / 2 {
        match (values.text()?, values.text()?) {
            (TOPIC, value) => topic = Some(value),
            (PAYLOAD, value) => payload = Some(value),
            _ => {}
        }
    }
    Some(Entry { id, message: topic.zip(payload) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::Dialect;

    #[test]
    fn the_most_entries_of_a_response_are_the_delivery_window_of_each_level() {
        let window = |qos: Qos| RedisStreams::CAPABILITIES.features.delivery_window_of(std::iter::once(qos));
        assert_eq!([Qos::BestEffort, Qos::AtLeastOnce].map(window), [Some(100); 2]);
    }

    #[test]
    fn a_response_has_as_many_entries_as_the_delivery_window_unless_messages_are_large() {
        for (streams, maximum_packet_bytes, entries) in [
            (1, 1 << 20, 100),
            (1, 64 << 10, 100),
            (3, 1 << 20, 33),
            (1, 8 << 20, 12),
            (1, 512 << 20, 1),
            (101, 1 << 20, 1),
        ] {
            let found = entries_of_each(streams, maximum_packet_bytes);
            assert_eq!(found, entries, "{streams} streams, {maximum_packet_bytes} B");
        }
    }
}
