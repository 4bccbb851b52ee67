//! The subscriptions that the system holds for the sessions' subscribers.

use pubmark_model::qos::Qos;
use pubmark_protocol::clients::SessionId;
use pubmark_protocol::events::Reason;

use super::session::NotHeld;
use super::sessions::Sessions;
use super::timetable::Timetable;
use super::totals::Totals;
use crate::faults::log::SessionChange;

impl Sessions {
    /// The system responded to a subscription, or revoked one that it had granted. If it was the last response of a session that
    /// was not subscribed, returns whether all were granted.
    pub fn subscribed(
        &mut self,
        id: SessionId,
        index: usize,
        granted: Result<Qos, Reason>,
        timetable: &Timetable,
        totals: &mut Totals,
        now_ns: u64,
    ) -> Option<bool> {
        let session = &mut self[id];
        let (requested_qos, filter) = session.requested_qos.zip(session.filters.get_mut(index))?;
        // A session that the server still had gets no responses again: what it holds is not settled on this connection.
        let was_granted = filter.granted && (filter.settled || session.subscribed);
        (filter.settled, filter.granted) = (true, granted.is_ok());
        match granted {
            Ok(level) if level < requested_qos => {
                let was_counted = std::mem::replace(&mut filter.counted_lower, true);
                totals.figures.counters.granted_lower += u64::from(!was_counted);
            }
            Ok(_) => {}
            Err(reason) => {
                let was_counted = filter.counted_not_held.is_some();
                let kind = if was_granted { NotHeld::Revoked } else { NotHeld::Refused };
                let counters = &mut totals.figures.counters;
                let (count, what) = match *filter.counted_not_held.get_or_insert(kind) {
                    NotHeld::Revoked => (&mut counters.subscriptions_revoked, "revoked"),
                    NotHeld::Refused => (&mut counters.subscriptions_refused, "refused"),
                };
                *count += u64::from(!was_counted);
                totals.count_cause(format!("subscription {what}: {reason}"));
            }
        }
        if session.subscribed {
            // The system revoked a subscription, or granted one that it had refused before.
            self.settle_presence(id, timetable, now_ns);
            return None;
        }
        if !session.filters.iter().all(|filter| filter.settled) {
            return None;
        }
        let are_granted = session.filters.iter().all(|filter| filter.granted);
        self.subscriber_present(id, timetable, now_ns);
        Some(are_granted)
    }

    /// All filters of a session are settled, or the system still holds them. Those that were granted are held from now
    /// on.
    pub(super) fn subscriber_present(&mut self, id: SessionId, timetable: &Timetable, now_ns: u64) {
        let session = &mut self[id];
        if session.subscriber.is_none() || session.subscribed {
            return;
        }
        session.subscribed = true;
        self.subscribed += 1;
        self.settle_presence(id, timetable, now_ns);
        self.note_fault(now_ns, id.0, SessionChange::Connected);
    }

    /// A session's connection has ended, and its subscriptions with it unless the session is persistent. Returns the first epoch
    /// after them, if they ended.
    pub(super) fn subscriber_lost(&mut self, id: SessionId, timetable: &Timetable, now_ns: u64) -> Option<u32> {
        let finishing = self.finishing;
        let session = &mut self[id];
        session.filters.iter_mut().for_each(|filter| filter.settled = false);
        if session.subscriber.is_none() || !session.subscribed {
            return None;
        }
        session.subscribed = false;
        let ends = !session.persistent && !finishing;
        if ends {
            session.filters.iter_mut().for_each(|filter| filter.granted = false);
        }
        self.subscribed -= 1;
        if ends { self.settle_presence(id, timetable, now_ns) } else { None }
    }

    /// Records changes of the filters that the system holds for a session. Returns the first epoch without those that it no
    /// longer holds.
    fn settle_presence(&mut self, id: SessionId, timetable: &Timetable, now_ns: u64) -> Option<u32> {
        let session = &mut self.all[id.0 as usize];
        let audience = session.subscriber?;
        let (mut begins, mut ends) = (None, None);
        for (number, filter) in (0u16..).zip(&mut session.filters) {
            match (filter.held, filter.granted) {
                (false, true) => {
                    let epoch = *ends.get_or_insert_with(|| timetable.absence_ends(now_ns));
                    self.presence.held_from(audience, number, epoch);
                }
                (true, false) => {
                    let epoch = *begins.get_or_insert_with(|| timetable.absence_begins(now_ns));
                    self.presence.absent_from(audience, number, epoch);
                }
                _ => continue,
            }
            filter.held = filter.granted;
        }
        begins
    }
}
