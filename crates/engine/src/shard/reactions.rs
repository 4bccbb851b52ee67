//! The reactions of a shard that were not yet passed to the adapter.
//!
//! A schedule is a cursor and never a queue, but a reaction has to be stored until it is sent. The number of stored
//! reactions is bounded; further ones are counted as offered and unsent.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;

use pubmark_model::schedule::{Due, Rules};
use pubmark_model::template::BodyDraw;
use pubmark_protocol::header::Root;

use super::wait::Wait;

/// Largest number of reactions of one shard that are in their thinking time or wait for their session: 80 MB.
pub const KEPT_LIMIT: usize = 1 << 20;

/// A reaction that a publisher's message triggers on a session, or a device that sends less after it.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// Index on this shard of the publisher that sends less, or that reacts to messages with a measured root; then the next
    /// index is its twin for the warm-up.
    pub publisher: u32,
    /// Key of its random draws.
    pub key: u64,
    /// Length of its device's name.
    pub device_bytes: u8,
}

/// A reaction that was triggered and not yet passed to the adapter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Planned {
    pub(super) publisher: u32,
    /// Due time relative to the start of the window, ns.
    pub(super) due_ns: i64,
    pub(super) root: Root,
    /// Upper bound of the generator's part in the time since it was due, so far, ns.
    pub(super) lag_ns: u64,
    pub(super) payload_bytes: u32,
    pub(super) size_raised: bool,
    pub(super) draw: BodyDraw,
    /// Number of messages of its burst after it.
    pub(super) left: u32,
    /// Length of its device's name.
    pub(super) device_bytes: u8,
}

const _: () = assert!(size_of::<(Planned, u64)>() <= 80, "see `KEPT_LIMIT`");

/// The reactions that wait for a session.
#[derive(Debug)]
struct Waiting {
    /// In the order in which they became due, each with the value of `generator_ns` at that moment.
    queue: VecDeque<(Planned, u64)>,
    /// Upper bound of the generator's part in the time since the first began to wait, ns.
    generator_ns: u64,
    wait: Wait,
}

impl Waiting {
    /// An empty queue; a wait begins now at the earliest.
    fn new(now_ns: u64) -> Waiting {
        Waiting { queue: VecDeque::new(), generator_ns: 0, wait: Wait::new(now_ns) }
    }
}

impl Planned {
    /// The next message of its burst; `None` if it is the last.
    pub(super) fn next(&self, rules: &Rules) -> Option<Planned> {
        let next = rules.next_reaction(self.draw, self.left, self.device_bytes)?;
        Some(Planned {
            due_ns: self.due_ns.saturating_add_unsigned(next.think_ns),
            lag_ns: 0,
            payload_bytes: next.payload_bytes,
            size_raised: next.size_raised,
            draw: next.draw,
            left: next.left,
            ..*self
        })
    }

    pub(super) fn due(&self) -> Due {
        Due {
            due_ns: self.due_ns,
            payload_bytes: self.payload_bytes,
            configured_bytes: self.payload_bytes,
            size_raised: self.size_raised,
            draw: self.draw,
            planned_online: true,
        }
    }
}

/// The reactions of a shard.
#[derive(Debug, Default)]
pub struct Reactions {
    /// Range of the links, by session and number of the triggering publisher.
    triggers: HashMap<(u32, u32), Range<u32>>,
    links: Vec<Link>,
    /// Reactions not due yet, by number; `None` for a free number.
    planned: Vec<Option<Planned>>,
    free: Vec<u32>,
    /// Due reactions, by session, in the order in which they became due.
    waiting: HashMap<u32, Waiting>,
    waiting_count: usize,
}

impl Reactions {
    /// Reactions with these links, by session and number of the triggering publisher.
    pub fn new(by_trigger: HashMap<(u32, u32), Vec<Link>>) -> Reactions {
        let mut reactions = Reactions::default();
        for (trigger, links) in by_trigger {
            let first = reactions.links.len() as u32;
            reactions.links.extend(links);
            reactions.triggers.insert(trigger, first..reactions.links.len() as u32);
        }
        reactions
    }

    /// Number of reactions that are not due yet.
    pub fn thinking(&self) -> usize {
        self.planned.len() - self.free.len()
    }

    /// The links that a message of this publisher triggers on a session.
    pub(super) fn links(&self, session: u32, publisher: u32) -> Option<Range<u32>> {
        self.triggers.get(&(session, publisher)).cloned()
    }

    pub(super) fn link(&self, index: u32) -> Link {
        self.links[index as usize]
    }

    /// Stores a reaction until it is due, and returns its number; `None` if the limit is reached. Of a burst, only the
    /// next message is stored.
    pub(super) fn add(&mut self, reaction: Planned) -> Option<u32> {
        if self.thinking() + self.waiting_count >= KEPT_LIMIT {
            return None;
        }
        let number = self.free.pop().unwrap_or_else(|| {
            self.planned.push(None);
            self.planned.len() as u32 - 1
        });
        self.planned[number as usize] = Some(reaction);
        Some(number)
    }

    /// Removes and returns the due reaction of a number.
    pub(super) fn take(&mut self, number: u32) -> Option<Planned> {
        let reaction = self.planned.get_mut(number as usize)?.take()?;
        self.free.push(number);
        Some(reaction)
    }

    /// Are there reactions that wait for a session?
    pub(super) fn is_waited_for(&self, session: u32) -> bool {
        self.waiting.get(&session).is_some_and(|waiting| !waiting.queue.is_empty())
    }

    /// Lets a due reaction wait for its session.
    pub(super) fn wait(&mut self, session: u32, reaction: Planned, now_ns: u64) {
        let waiting = self.waiting.entry(session).or_insert_with(|| Waiting::new(now_ns));
        if waiting.queue.is_empty() {
            (waiting.generator_ns, waiting.wait) = (0, Wait::new(now_ns));
        }
        waiting.queue.push_back((reaction, waiting.generator_ns));
        self.waiting_count += 1;
    }

    /// Adds the generator's part in the wait for a session: see [`Wait::generator_ns`].
    pub(super) fn count_wait(&mut self, session: u32, free_since_ns: Option<u64>, now_ns: u64) {
        let Some(waiting) = self.waiting.get_mut(&session) else { return };
        waiting.generator_ns = waiting.generator_ns.saturating_add(waiting.wait.generator_ns(free_since_ns, now_ns));
    }

    /// The first reaction that waits for a session.
    pub(super) fn first_waiting(&self, session: u32) -> Option<Planned> {
        let waiting = self.waiting.get(&session)?;
        let (reaction, before_ns) = waiting.queue.front()?;
        let generator_ns = waiting.generator_ns.saturating_sub(*before_ns);
        Some(Planned { lag_ns: reaction.lag_ns.saturating_add(generator_ns), ..*reaction })
    }

    /// Removes the first reaction that waits for a session.
    pub(super) fn end_wait(&mut self, session: u32) {
        self.waiting.get_mut(&session).and_then(|waiting| waiting.queue.pop_front());
        self.waiting_count -= 1;
    }

    /// Removes and returns all remaining reactions: those not due yet, and those that waited.
    pub(super) fn take_all(&mut self) -> (Vec<Planned>, Vec<Planned>) {
        let all = std::mem::take(self);
        (
            all.planned.into_iter().flatten().collect(),
            all.waiting.into_values().flat_map(|waiting| waiting.queue).map(|(reaction, _)| reaction).collect(),
        )
    }
}
