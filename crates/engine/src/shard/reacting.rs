//! Reactions: a device of this shard publishes because its client received a message.
//!
//! A schedule is a cursor and never a queue; what follows from a receipt has to be kept until it is sent. What is kept is
//! bounded, and a reaction for which there is no room is counted as offered and unsent.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;

use pubmark_model::schedule::Due;
use pubmark_protocol::clients::{Clients, SessionId};
use pubmark_protocol::header::Header;

use super::Shard;
use super::sending::{Message, Step};
use super::timers::Task;

/// Reactions of one shard that are thought about or wait for their session, at most: 40 MB.
pub const KEPT_LIMIT: usize = 1 << 20;

/// What a publisher's message triggers on a session.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// Index on this shard of the publisher for messages with a measured root; the next is its twin for the warm-up.
    pub publisher: u32,
    /// Key of its draws.
    pub key: u64,
}

/// A reaction that was triggered and is not handed over.
#[derive(Clone, Copy, Debug)]
struct Thought {
    publisher: u32,
    /// Relative to the start of the window, ns.
    due_ns: i64,
    root_ns: u64,
    payload_bytes: u32,
    size_raised: bool,
}

impl Thought {
    fn due(&self) -> Due {
        Due {
            due_ns: self.due_ns,
            payload_bytes: self.payload_bytes,
            configured_bytes: self.payload_bytes,
            size_raised: self.size_raised,
            planned_online: true,
        }
    }
}

/// The reactions of a shard.
#[derive(Debug, Default)]
pub struct Reacting {
    /// Which of the links, by session and number of the triggering publisher.
    triggers: HashMap<(u32, u32), Range<u32>>,
    links: Vec<Link>,
    /// Not due yet, by number; `None` where a number is free.
    thoughts: Vec<Option<Thought>>,
    free: Vec<u32>,
    /// Due, by session, in the order in which they became so.
    waiting: HashMap<u32, VecDeque<Thought>>,
    waiting_count: usize,
}

impl Reacting {
    /// With these links, by session and number of the triggering publisher.
    pub fn new(by_trigger: HashMap<(u32, u32), Vec<Link>>) -> Reacting {
        let mut reacting = Reacting::default();
        for (trigger, links) in by_trigger {
            let first = reacting.links.len() as u32;
            reacting.links.extend(links);
            reacting.triggers.insert(trigger, first..reacting.links.len() as u32);
        }
        reacting
    }

    /// Not due yet.
    pub fn thinking(&self) -> usize {
        self.thoughts.len() - self.free.len()
    }

    fn add(&mut self, thought: Thought) -> Option<u32> {
        if self.thinking() + self.waiting_count >= KEPT_LIMIT {
            return None;
        }
        let number = self.free.pop().unwrap_or_else(|| {
            self.thoughts.push(None);
            self.thoughts.len() as u32 - 1
        });
        self.thoughts[number as usize] = Some(thought);
        Some(number)
    }

    fn take(&mut self, number: u32) -> Option<Thought> {
        let thought = self.thoughts.get_mut(number as usize)?.take()?;
        self.free.push(number);
        Some(thought)
    }
}

impl Shard {
    /// A session received the first copy of a message: what it triggers is planned.
    pub(super) fn react_to(&mut self, session: SessionId, header: &Header, at_ns: u64) {
        let Some(links) = self.reacting.triggers.get(&(session.0, header.publisher)).cloned() else { return };
        let root_ns = header.chain_due_ns();
        let twin = u32::from(!self.window.measures(root_ns));
        for link in links {
            let link = self.reacting.links[link as usize];
            let publisher = link.publisher + twin;
            let rules = &self.rules[usize::from(self.publishers[publisher as usize].book.group)];
            let Some(answer) = rules.answer(link.key, header.sequence) else { continue };
            let due_ns = self.window.relative(at_ns.saturating_add(answer.think_ns));
            let thought = Thought {
                publisher,
                due_ns,
                root_ns,
                payload_bytes: answer.payload_bytes,
                size_raised: answer.size_raised,
            };
            match self.reacting.add(thought) {
                Some(number) => self.timers.add(self.window.absolute(due_ns), Task::React(number)),
                None => {
                    self.count_offer(publisher, &thought.due(), root_ns);
                    self.counters.count_cause(format!("reaction given up: {KEPT_LIMIT} others wait"));
                    self.count_unsent(publisher);
                }
            }
        }
    }

    /// A reaction is due.
    pub(super) fn react<C: Clients>(&mut self, clients: &mut C, number: u32, ready_ns: u64) {
        let Some(thought) = self.reacting.take(number) else { return };
        self.offer(thought.publisher, &thought.due(), Some(thought.root_ns), ready_ns);
        let session = self.publishers[thought.publisher as usize].session;
        let waits = self.reacting.waiting.get(&session).is_some_and(|queue| !queue.is_empty());
        let step = if waits { Step::Waits } else { self.step_thought(clients, &thought, ready_ns, ready_ns) };
        match step {
            Step::Handed => clients.flush(SessionId(session), &mut self.at(ready_ns)),
            Step::Settled => {}
            Step::Waits => {
                self.reacting.waiting.entry(session).or_default().push_back(thought);
                self.reacting.waiting_count += 1;
                self.backlog += 1;
            }
        }
    }

    fn step_thought<C: Clients>(&mut self, clients: &mut C, thought: &Thought, ready_ns: u64, now_ns: u64) -> Step {
        let message = Message { due: thought.due(), root_ns: Some(thought.root_ns), ready_ns };
        self.step(clients, thought.publisher, &message, now_ns)
    }

    /// Sends the reactions that wait for a session, in order, until one must wait again.
    pub(super) fn catch_up_reactions<C: Clients>(&mut self, clients: &mut C, session: u32, now_ns: u64) {
        while let Some(thought) = self.reacting.waiting.get(&session).and_then(VecDeque::front).copied() {
            let ready_ns = self.window.absolute(thought.due_ns);
            if matches!(self.step_thought(clients, &thought, ready_ns, now_ns), Step::Waits) {
                return;
            }
            self.reacting.waiting.get_mut(&session).and_then(VecDeque::pop_front);
            self.reacting.waiting_count -= 1;
            self.backlog -= 1;
        }
    }

    fn count_unsent(&mut self, publisher: u32) {
        let publisher = &mut self.publishers[publisher as usize];
        publisher.book.unsent += u64::from(!publisher.warm_up);
    }

    /// Ends the books: what was triggered and not handed over was not sent.
    pub(super) fn settle_reactions(&mut self) {
        let reacting = std::mem::take(&mut self.reacting);
        for thought in reacting.thoughts.into_iter().flatten() {
            self.count_offer(thought.publisher, &thought.due(), thought.root_ns);
            self.count_unsent(thought.publisher);
        }
        for thought in reacting.waiting.into_values().flatten() {
            self.count_unsent(thought.publisher);
        }
    }
}
