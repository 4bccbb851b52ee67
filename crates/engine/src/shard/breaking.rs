//! Faults on a shard: connections are broken here, and what follows is noted.

use pubmark_protocol::clients::{Break, Clients, SessionId};
use pubmark_protocol::events::{Cause, Delivery};
use pubmark_protocol::header::Header;

use super::Shard;
use super::timers::Task;
use crate::faults::What;
use crate::outcome::Counters;

/// A first copy that takes longer from when it was due is overdue, ns.
const OVERDUE_AFTER_NS: i64 = 2_000_000_000;

/// Counters that a delivery may change, as they were before it.
#[derive(Clone, Copy)]
pub(super) struct CopyCounts {
    duplicated: u64,
    out_of_order: u64,
}

impl CopyCounts {
    pub(super) fn of(counters: &Counters) -> CopyCounts {
        CopyCounts { duplicated: counters.duplicated, out_of_order: counters.out_of_order }
    }
}

impl Shard {
    /// Plans the faults of the run; each begins on every shard, whoever breaks what.
    pub(super) fn plan_faults(&mut self) {
        let Some(log) = &self.faults else { return };
        for (number, fault) in (0u16..).zip(log.planned.iter()) {
            let absolute = |ns: u64| self.window.absolute(i64::try_from(ns).unwrap_or(i64::MAX));
            self.timers.add(absolute(fault.at_ns), Task::Fault(number));
            if let (Some(length_ns), Some(_)) = (fault.length_ns, &fault.connections) {
                self.timers.add(absolute(fault.at_ns.saturating_add(length_ns)), Task::FaultEnd(number));
            }
        }
    }

    /// A fault begins: connections that it breaks are broken now.
    pub(super) fn begin_fault<C: Clients>(&mut self, clients: &mut C, number: u16, now_ns: u64) {
        let Some(log) = self.faults.as_mut().filter(|_| !self.closed) else { return };
        log.begin(number);
        let place = usize::from(number);
        let Some(breaks) = log.planned[place].connections.clone() else { return };
        let until_ns = now_ns.saturating_add(log.planned[place].length_ns.unwrap_or(0));
        let chosen = log.chosen[place].clone();
        log.notes.chosen[place] += chosen.len() as u64;
        if !breaks.silent {
            chosen.iter().for_each(|session| log.hold(*session, until_ns));
        }
        let how = if breaks.silent { Break::Silence } else { Break::Reset };
        chosen.iter().for_each(|session| clients.break_connection(SessionId(*session), how, &mut self.at(now_ns)));
        if let Some(log) = self.faults.as_mut().filter(|_| !chosen.is_empty()) {
            log.notes.broken_at_ns[place] = Some((now_ns, now_ns));
        }
    }

    /// All connections that a fault breaks were broken by this time.
    pub(super) fn note_broken_until(&mut self, number: u16, until_ns: u64) {
        let Some(log) = &mut self.faults else { return };
        if let Some((_, last_ns)) = &mut log.notes.broken_at_ns[usize::from(number)] {
            *last_ns = until_ns;
        }
    }

    /// A fault that breaks connections ends: clients whose connections were cut give them up.
    pub(super) fn end_fault<C: Clients>(&mut self, clients: &mut C, number: u16, now_ns: u64) {
        let Some(log) = &self.faults else { return };
        let place = usize::from(number);
        if !log.planned[place].connections.as_ref().is_some_and(|breaks| breaks.silent) {
            return;
        }
        for session in log.chosen[place].clone() {
            clients.break_connection(SessionId(session), Break::GiveUp, &mut self.at(now_ns));
        }
    }

    /// A session that a fault does not let through has tried.
    pub(super) fn turn_away(&mut self, index: u32, now_ns: u64) {
        self.counters.attempted += 1;
        self.note_failure(now_ns, index, &Cause::Unreachable("held off by a fault of the run".to_owned()));
    }

    /// Notes what became of a session, in a run with faults.
    pub(super) fn note_fault(&mut self, now_ns: u64, session: u32, what: What) {
        if let Some(log) = self.faults.as_mut().filter(|_| !self.finishing) {
            log.note(session, what, now_ns);
        }
    }

    /// Counts a message that its device could not send, at the publisher's level.
    pub(super) fn tally_skipped(&mut self, index: u32, measured: bool) {
        let Some(log) = self.faults.as_mut().filter(|_| measured) else { return };
        let group = usize::from(self.publishers[index as usize].book.group);
        log.tally(usize::from(self.workload.devices[group].qos.level())).skipped_disconnected += 1;
    }

    /// Counts a delivery by its level, and its latency.
    pub(super) fn tally_delivery(
        &mut self,
        session: SessionId,
        delivery: &Delivery<'_>,
        header: Option<&Header>,
        before: CopyCounts,
    ) {
        let Some(log) = &mut self.faults else { return };
        let (duplicated, out_of_order) =
            (self.counters.duplicated - before.duplicated, self.counters.out_of_order - before.out_of_order);
        let overdue = header.is_some_and(|header| {
            let due_ns = self.window.relative(header.due_ns);
            let latency_ns = self.window.relative(delivery.at_ns) - due_ns;
            if self.window.is_plausible(header.due_ns, delivery.at_ns) {
                log.notes.fine.enter(due_ns, latency_ns);
            }
            self.window.measures(header.chain_due_ns()) && latency_ns > OVERDUE_AFTER_NS
        });
        if duplicated + out_of_order + u64::from(overdue) == 0 {
            return;
        }
        // A copy has no header here: its payload tells whose it is.
        let read = || pubmark_protocol::header::read(delivery.payload, delivery.at_ns);
        let Some(header) = header.copied().or_else(read) else { return };
        let heard = self.sessions[session.0 as usize].asked.map_or(0, |qos| usize::from(qos.level()));
        let group = usize::from(self.receiver.group_of(header.publisher));
        let level = heard.min(usize::from(self.workload.devices[group].qos.level()));
        let tally = log.tally(level);
        tally.duplicated += duplicated;
        tally.out_of_order += out_of_order;
        tally.overdue += u64::from(overdue);
    }
}
