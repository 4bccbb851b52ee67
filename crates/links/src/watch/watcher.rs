//! The observer: finds followed messages in packets and notes when they passed.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use pubmark_protocol::header::Header;

use super::find::Headers;
use super::flow::Flow;
use super::packet::{Segment, segment};
use super::{Shared, Sighting, WatchResult, WatchSpec};
use crate::Direction;
use crate::star::{Observer, Passage};

/// Connections followed at most, each direction by itself; messages of others are not seen.
const MOST_FLOWS: usize = 1 << 17;
/// Most messages stored of which only the loss of their first packet is known.
const MOST_LOST: usize = 1 << 16;

/// One direction of a connection: group, direction, port at the group's side, port at the other.
type FlowKey = (u16, Direction, u16, u16);

/// Sees every packet of the links, in the emulator's thread.
#[derive(Debug)]
pub struct Watcher {
    shared: Arc<Shared>,
    /// Once they are known.
    spec: Option<WatchSpec>,
    flows: HashMap<FlowKey, Flow<Sighting>>,
    /// When the front of a message first came to a link that lost it.
    lost: HashMap<(u32, u32, FlowKey), u64>,
    seen: WatchResult,
}

impl Watcher {
    pub(super) fn new(shared: Arc<Shared>) -> Watcher {
        Watcher { shared, spec: None, flows: HashMap::new(), lost: HashMap::new(), seen: WatchResult::default() }
    }

    /// Start of the window, if there is something to look for.
    fn start_ns(&mut self) -> Option<u64> {
        let start_ns = self.shared.start_ns.load(Ordering::Acquire);
        if start_ns == 0 {
            return None;
        }
        if self.spec.is_none() {
            self.spec = self.shared.spec.get().cloned();
        }
        Some(start_ns)
    }
}

/// Does the run follow this message?
fn is_followed(spec: &WatchSpec, header: &Header, start_ns: u64) -> bool {
    let due_ns = header.chain_due_ns();
    (start_ns..start_ns.saturating_add(spec.duration_ns)).contains(&due_ns)
        && (header.publisher as usize) < spec.payload_bytes.len()
        && spec.sampling.includes(header.publisher, header.sequence)
}

fn key(group: usize, direction: Direction, segment: &Segment<'_>) -> FlowKey {
    let [source, destination] = segment.ports;
    let (own, other) = if direction == Direction::Up { (source, destination) } else { (destination, source) };
    (group as u16, direction, own, other)
}

/// Stores a sighting, if the list is not full.
fn store(seen: &mut WatchResult, most: usize, sighting: Sighting) {
    if seen.sightings.len() < most {
        seen.sightings.push(sighting);
    } else {
        seen.dropped += 1;
    }
}

impl Observer for Watcher {
    fn passed(&mut self, passage: Passage<'_>) {
        let Some(start_ns) = self.start_ns() else { return };
        let Some(spec) = &self.spec else { return };
        let Some(segment) = segment(passage.packet) else { return };
        let key = key(passage.group, passage.direction, &segment);
        let mut flow = match segment.tcp {
            Some((sequence, begins)) => {
                let has_room = self.flows.len() < MOST_FLOWS || self.flows.contains_key(&key);
                if begins || !has_room {
                    self.flows.remove(&key);
                    return;
                }
                if segment.data.is_empty() {
                    return;
                }
                Some(self.flows.entry(key).or_insert_with(|| Flow::from(sequence)))
            }
            None => None,
        };
        let mut headers = Headers::of(segment.data, spec.run, passage.out_ns);
        while let Some((at, header)) = headers.next() {
            let known = spec.payload_bytes.get(header.publisher as usize).copied().unwrap_or(0);
            if known > 0 {
                headers.pass_over((known as usize).saturating_sub(pubmark_protocol::header::COMPACT));
            }
            if !is_followed(spec, &header, start_ns) {
                continue;
            }
            let (publisher, sequence) = (header.publisher, header.sequence);
            let lost_ns = self.lost.remove(&(publisher, sequence, key));
            let here = (segment.data.len() - at) as u32;
            let bytes = if known > 0 && flow.is_some() { known } else { here };
            let sighting = Sighting {
                publisher,
                sequence,
                group: key.0,
                direction: key.1,
                port: key.2,
                bytes,
                // A packet of the queue that a break lost is shown after a later copy of it.
                in_ns: lost_ns.map_or(passage.in_ns, |lost_ns: u64| lost_ns.min(passage.in_ns)),
                out_ns: passage.out_ns,
            };
            match (&mut flow, segment.tcp) {
                (Some(flow), Some((first, _))) => {
                    let end = first.wrapping_add(at as u32).wrapping_add(bytes);
                    self.seen.dropped += u64::from(!flow.add(end, sighting));
                }
                _ => store(&mut self.seen, spec.most, sighting),
            }
        }
        if let (Some(flow), Some((first, _))) = (flow, segment.tcp) {
            let seen = &mut self.seen;
            seen.dropped += flow.pass(first, first.wrapping_add(segment.data.len() as u32));
            flow.complete(|sighting| store(seen, spec.most, Sighting { out_ns: passage.out_ns, ..sighting }));
        }
    }

    fn lost(&mut self, packet: &[u8], group: usize, direction: Direction, at_ns: u64) {
        let Some(start_ns) = self.start_ns() else { return };
        let Some(spec) = &self.spec else { return };
        let Some(segment) = segment(packet) else { return };
        let key = key(group, direction, &segment);
        for (_, header) in Headers::of(segment.data, spec.run, at_ns) {
            if is_followed(spec, &header, start_ns) && self.lost.len() < MOST_LOST {
                let first_ns = self.lost.entry((header.publisher, header.sequence, key)).or_insert(at_ns);
                *first_ns = at_ns.min(*first_ns);
            }
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        *self.shared.seen.lock().unwrap_or_else(PoisonError::into_inner) = std::mem::take(&mut self.seen);
    }
}
