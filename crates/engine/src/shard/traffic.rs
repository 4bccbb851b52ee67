//! Traffic of a shard's sessions in the measured window: their payloads, and the packets that carried them.
//!
//! Reading a connection's statistics from the kernel takes about a microsecond, so a shard reads those of a few
//! sessions in each turn, instead of delaying its messages for all of them at once. A session's window extends from its
//! first reading to its second, for its payloads as well as its packets.

use pubmark_protocol::clients::{Clients, SessionId};
use pubmark_protocol::traffic::Traffic;

use crate::traffic::{GroupTraffic, sum};

/// Sessions read in a turn.
const READS_PER_TURN: usize = 32;

/// The traffic counters of a shard.
#[derive(Debug)]
pub struct Tally {
    /// By session: its connection group.
    groups: Vec<u16>,
    counted: Vec<GroupTraffic>,
    /// By group: packets up to the second reading.
    until_end: Vec<Option<Traffic>>,
    /// Number of sessions with a first reading, and with a second one.
    begun: usize,
    ended: usize,
    /// Whether the window has begun, and has ended.
    began: bool,
    over: bool,
}

impl Tally {
    /// Counters for sessions of these connection groups.
    pub fn new(groups: Vec<u16>) -> Tally {
        let count = groups.iter().max().map_or(0, |most| usize::from(*most) + 1);
        Tally {
            groups,
            counted: vec![GroupTraffic::default(); count],
            until_end: vec![Some(Traffic::default()); count],
            begun: 0,
            ended: 0,
            began: false,
            over: false,
        }
    }

    /// The window begins. No effect if it was closed before.
    pub fn begin(&mut self) {
        self.began = !self.over;
    }

    /// The window has ended.
    pub fn end(&mut self) {
        self.over = true;
    }

    /// Are there sessions left to read?
    pub fn is_reading(&self) -> bool {
        let sessions = self.groups.len();
        (self.began && self.begun < sessions) || (self.began && self.over && self.ended < sessions)
    }

    /// Reads as many sessions as a turn allows.
    pub fn check<C: Clients>(&mut self, clients: &C) {
        if !self.is_reading() {
            return;
        }
        for _ in 0..READS_PER_TURN {
            if self.begun < self.groups.len() {
                let group = usize::from(self.groups[self.begun]);
                let traffic = clients.traffic(SessionId(self.begun as u32));
                self.counted[group].set_up = sum(self.counted[group].set_up, traffic);
                self.begun += 1;
            } else if self.over && self.ended < self.groups.len() {
                let group = usize::from(self.groups[self.ended]);
                let traffic = clients.traffic(SessionId(self.ended as u32));
                self.until_end[group] = sum(self.until_end[group], traffic);
                self.ended += 1;
            } else {
                return;
            }
        }
    }

    /// Reads all remaining sessions, before their connections end.
    pub fn finish<C: Clients>(&mut self, clients: &C) {
        while self.is_reading() {
            self.check(clients);
        }
    }

    /// A session wrote a message.
    pub fn sent(&mut self, session: SessionId, payload_bytes: u64) {
        if let Some(group) = self.group_in_window(session) {
            group.published += 1;
            group.published_bytes += payload_bytes;
        }
    }

    /// The first copy of a message arrived at a session.
    pub fn received(&mut self, session: SessionId, payload_bytes: u64) {
        if let Some(group) = self.group_in_window(session) {
            group.delivered += 1;
            group.delivered_bytes += payload_bytes;
        }
    }

    fn group_in_window(&mut self, session: SessionId) -> Option<&mut GroupTraffic> {
        let index = session.0 as usize;
        let is_inside = index < self.begun && index >= self.ended;
        is_inside.then(|| &mut self.counted[usize::from(self.groups[index])])
    }

    /// The counts by group. If the window did not run to its end, its packets are unknown.
    pub fn into_groups(self) -> Vec<GroupTraffic> {
        let whole = self.began && self.ended == self.groups.len();
        let mut groups = self.counted;
        for (group, until_end) in groups.iter_mut().zip(self.until_end) {
            let window = group.set_up.zip(until_end).map(|(before, after)| after.since(&before));
            group.window = window.filter(|_| whole);
            group.set_up = group.set_up.filter(|_| self.began);
        }
        groups
    }
}
