//! One direction of a link on virtual time: what happens to each packet, and when. No clock is read and nothing is sent here;
//! the owner of a [`OneWayLink`] passes in packets with the time and takes out those that are due.
//!
//! In this order: down or lost → duplicated → queued for the rate → delayed, or sent ahead.

mod bottleneck;
mod counters;
mod draws;
#[cfg(test)]
mod tests;

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use pubmark_model::link::{Conditions, Step};

use bottleneck::Bottleneck;
pub use counters::{Counters, SharedCounters, Tally};
pub(crate) use draws::Draws;

use crate::Direction;

/// What a packet held costs in memory besides its bytes; an estimate, so that tiny packets count too.
const HELD_OVERHEAD_BYTES: u64 = 128;

/// A packet on the link.
#[derive(Clone, Debug)]
struct Queued<P> {
    packet: P,
    bytes: u64,
    /// Twice the packet's number, and one more for the copy that duplication made.
    copy: u64,
    in_ns: u64,
}

/// A packet in flight, ordered by due time, then by arrival.
#[derive(Debug)]
struct UnderWay<P> {
    due_ns: u64,
    held: Queued<P>,
}

impl<P> UnderWay<P> {
    fn key(&self) -> (u64, u64) {
        (self.due_ns, self.held.copy)
    }
}

impl<P> PartialEq for UnderWay<P> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<P> Eq for UnderWay<P> {}

impl<P> PartialOrd for UnderWay<P> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<P> Ord for UnderWay<P> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

/// Result of passing a packet to a direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputResult {
    /// Nothing holds it up: this many copies leave now. They are counted as delivered.
    Through(u8),
    /// It is on the link and comes out of [`OneWayLink::pop`].
    Queued,
    /// It is lost or was dropped; the counters have the reason.
    Dropped,
}

/// A packet that leaves the link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Departure<P> {
    /// The packet.
    pub packet: P,
    /// Its IP bytes.
    pub bytes: u64,
    /// When it came, ns.
    pub in_ns: u64,
    /// Its departure time, ns; never after the time of the call.
    pub due_ns: u64,
}

/// One direction of a link.
#[derive(Debug)]
pub struct OneWayLink<P> {
    steps: Vec<Step>,
    /// The step that comes next.
    next_step: usize,
    /// When step times start to count, ns.
    origin_ns: Option<u64>,
    /// When the high water begins to count anew, ns, if that is to come.
    high_water_from_ns: Option<u64>,
    conditions: Conditions,
    cut: bool,
    draws: Draws,
    bottleneck: Bottleneck<P>,
    under_way: BinaryHeap<Reverse<UnderWay<P>>>,
    /// When the last packet is due that was not sent ahead, ns.
    last_due_ns: u64,
    /// When the conditions last changed, ns: nothing is computed for times before it.
    changed_ns: u64,
    counters: Counters,
    /// Copies below this have left.
    newest_copy: u64,
    held_bytes: u64,
    /// Lost with the link from its queue, for [`take_broken`](Self::take_broken).
    broken: Vec<Queued<P>>,
}

impl<P: Clone> OneWayLink<P> {
    /// A direction under the first of `steps` (untouched packets if there are none) until [`start`](Self::start).
    /// `seed` and `name` choose the draws.
    pub fn new(steps: Vec<Step>, seed: u64, name: &str, direction: Direction) -> OneWayLink<P> {
        let conditions = steps.first().map(|step| step.conditions).unwrap_or_default();
        OneWayLink {
            steps,
            next_step: 1,
            origin_ns: None,
            high_water_from_ns: None,
            conditions,
            cut: false,
            draws: Draws::new(seed, name, direction),
            bottleneck: Bottleneck::new(conditions.rate),
            under_way: BinaryHeap::new(),
            last_due_ns: 0,
            changed_ns: 0,
            counters: Counters::default(),
            newest_copy: 0,
            held_bytes: 0,
            broken: Vec::new(),
        }
    }

    /// The series of steps counts from `origin_ns`; steps whose time has passed follow each other at once. What waited for
    /// the rate before, such as probes, is no part of the high water.
    pub fn start(&mut self, origin_ns: u64) {
        self.origin_ns = Some(origin_ns);
        self.bottleneck.forget_high_water();
        self.high_water_from_ns = Some(origin_ns);
    }

    /// Other conditions from `now_ns` on, until the next step.
    pub fn set(&mut self, now_ns: u64, conditions: Conditions) {
        self.advance(now_ns);
        self.change(now_ns, conditions);
    }

    /// While cut, nothing gets through, whatever the conditions are.
    pub fn cut(&mut self, now_ns: u64, cut: bool) {
        self.advance(now_ns);
        self.cut = cut;
        self.change(now_ns, self.conditions);
    }

    /// Accepts a packet of `bytes` at `now_ns`. `free_bytes` is the free buffer space of all directions together.
    /// `packet` is called if it is to be held.
    pub fn input(&mut self, now_ns: u64, bytes: u64, free_bytes: u64, packet: impl FnOnce() -> P) -> InputResult {
        self.advance(now_ns);
        let number = self.counters.arrived.packets;
        self.counters.arrived.add(bytes);
        if self.is_down() {
            self.counters.lost_down.add(bytes);
            return InputResult::Dropped;
        }
        if self.draws.is_lost(number, self.conditions.loss) {
            self.counters.lost.add(bytes);
            return InputResult::Dropped;
        }
        let twice = self.draws.is_duplicated(number, self.conditions.duplicate);
        if twice {
            self.counters.duplicated.add(bytes);
        }
        let copies = 1 + u8::from(twice);
        if self.is_clear() {
            (0..copies).for_each(|_| self.counters.delivered.add(bytes));
            self.newest_copy = 2 * number + 1;
            return InputResult::Through(copies);
        }
        if (bytes + HELD_OVERHEAD_BYTES) * u64::from(copies) > free_bytes {
            (0..copies).for_each(|_| self.counters.overflowed.add(bytes));
            return InputResult::Dropped;
        }
        let now_ns = now_ns.max(self.changed_ns);
        let held = Queued { packet: packet(), bytes, copy: 2 * number, in_ns: now_ns };
        let duplicate = twice.then(|| Queued { copy: held.copy + 1, ..held.clone() });
        let mut result = InputResult::Dropped;
        for held in [Some(held), duplicate].into_iter().flatten() {
            if self.queue(now_ns, held) {
                result = InputResult::Queued;
            }
        }
        result
    }

    /// The next packet that is due by `now_ns`, in the order of their due times.
    pub fn pop(&mut self, now_ns: u64) -> Option<Departure<P>> {
        self.advance(now_ns);
        if self.under_way.peek()?.0.due_ns > now_ns {
            return None;
        }
        let Reverse(UnderWay { due_ns, held }) = self.under_way.pop()?;
        self.release(held.bytes);
        self.counters.delivered.add(held.bytes);
        // A packet and its copy are one packet: neither of them overtakes the other.
        if held.copy / 2 < self.newest_copy / 2 {
            self.counters.out_of_order += 1;
        }
        self.newest_copy = self.newest_copy.max(held.copy);
        Some(Departure { packet: held.packet, bytes: held.bytes, in_ns: held.in_ns, due_ns })
    }

    /// Packets that were lost from the queue when the link broke, each with when it came, ns; those since the last call.
    pub fn take_broken(&mut self) -> Vec<(P, u64)> {
        std::mem::take(&mut self.broken).into_iter().map(|held| (held.packet, held.in_ns)).collect()
    }

    /// When there is something to do next, ns: a packet is due, a service ends, the conditions change, a high water that is not 0
    /// begins to count anew.
    pub fn next_ns(&self) -> Option<u64> {
        let due = self.under_way.peek().map(|entry| entry.0.due_ns);
        // Planned for all links, it would have all of them called at once, at the start of the window.
        let high_water_ns = self.high_water_from_ns.filter(|_| self.bottleneck.high_water_bytes() > 0);
        [due, self.bottleneck.end_ns(), self.step_ns(), high_water_ns].into_iter().flatten().min()
    }

    /// Conditions now.
    pub fn conditions(&self) -> &Conditions {
        &self.conditions
    }

    /// Memory that its packets take, bytes, estimated.
    pub fn held_bytes(&self) -> u64 {
        self.held_bytes
    }

    /// Its counters.
    pub fn counters(&self) -> Counters {
        Counters { queue_high_water_bytes: self.bottleneck.high_water_bytes(), ..self.counters }
    }

    fn is_down(&self) -> bool {
        self.conditions.down || self.cut
    }

    /// Would a packet leave as it came?
    fn is_clear(&self) -> bool {
        let delay = &self.conditions.delay;
        delay.mean_ns == 0 && delay.jitter_ns == 0 && self.bottleneck.is_absent() && self.under_way.is_empty()
    }

    /// When the next step is due, ns.
    fn step_ns(&self) -> Option<u64> {
        Some(self.origin_ns?.saturating_add(self.steps.get(self.next_step)?.at_ns))
    }

    /// Does all that was to happen by `now_ns`, each at its own time.
    fn advance(&mut self, now_ns: u64) {
        if let Some(from_ns) = self.high_water_from_ns.take_if(|from_ns| *from_ns <= now_ns) {
            self.advance(from_ns);
            self.bottleneck.forget_high_water();
        }
        loop {
            let step = self.step_ns().filter(|time| *time <= now_ns);
            let end = self.bottleneck.end_ns().filter(|time| *time <= now_ns);
            if let Some(step_ns) = step.filter(|step_ns| end.is_none_or(|end_ns| *step_ns < end_ns)) {
                let conditions = self.steps[self.next_step].conditions;
                self.next_step += 1;
                self.change(step_ns.max(self.changed_ns), conditions);
            } else if let Some(end_ns) = end {
                if let Some(held) = self.bottleneck.finish(end_ns) {
                    self.send(end_ns, held);
                }
            } else {
                return;
            }
        }
    }

    fn change(&mut self, now_ns: u64, conditions: Conditions) {
        self.changed_ns = self.changed_ns.max(now_ns);
        self.conditions = conditions;
        if self.is_down() {
            // What waits at a link that breaks is lost with it; what is in flight has already passed it.
            for held in self.bottleneck.empty() {
                self.counters.lost_down.add(held.bytes);
                self.release(held.bytes);
                self.broken.push(held);
            }
        }
        for held in self.bottleneck.change(now_ns, conditions.rate) {
            self.send(now_ns, held);
        }
    }

    /// Puts a packet before the bottleneck. Is it on the link?
    fn queue(&mut self, now_ns: u64, held: Queued<P>) -> bool {
        let bytes = held.bytes;
        if self.counters.waiting.packets == 0 {
            self.counters.waiting_since_ns = now_ns;
        }
        self.counters.waiting.add(bytes);
        self.held_bytes += bytes + HELD_OVERHEAD_BYTES;
        match self.bottleneck.take(now_ns, held) {
            Ok(None) => true,
            Ok(Some(held)) => {
                self.send(now_ns, held);
                true
            }
            Err(_) => {
                self.release(bytes);
                self.counters.queue_dropped.add(bytes);
                false
            }
        }
    }

    /// Sends a packet on its way at `now_ns`, behind the bottleneck.
    fn send(&mut self, now_ns: u64, held: Queued<P>) {
        let Conditions { delay, reorder, .. } = self.conditions;
        let due_ns = if self.draws.is_sent_ahead(held.copy, reorder) {
            self.counters.sent_ahead += 1;
            now_ns
        } else {
            let own_ns = now_ns.saturating_add(self.draws.delay_ns(held.copy, &delay));
            let due_ns = if delay.jitter_reorders { own_ns } else { own_ns.max(self.last_due_ns) };
            self.last_due_ns = self.last_due_ns.max(due_ns);
            due_ns
        };
        self.under_way.push(Reverse(UnderWay { due_ns, held }));
    }

    fn release(&mut self, bytes: u64) {
        self.counters.waiting.remove(bytes);
        if self.counters.waiting.packets == 0 {
            self.counters.waiting_since_ns = 0;
        }
        self.held_bytes -= bytes + HELD_OVERHEAD_BYTES;
    }
}
