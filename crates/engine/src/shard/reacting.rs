//! Reactions: a device of this shard publishes, or sends less, because its client received a message.

use pubmark_model::schedule::Due;
use pubmark_protocol::clients::{Clients, SessionId};
use pubmark_protocol::events::Delivery;
use pubmark_protocol::header::{Header, Root};

use super::publishing::Publishing;
use super::reactions::{KEPT_LIMIT, Planned};
use super::sending::{Message, Sending, Step};
use super::timers::Task;
use super::timetable::Timetable;
use super::totals::Totals;
use crate::message_log::row::RowKind;

impl Publishing {
    /// A session received the first copy of a message. Plans the reactions that the message triggers, and slows devices down.
    #[inline]
    pub fn react_to(
        &mut self,
        session: SessionId,
        header: &Header,
        delivery: &Delivery<'_>,
        timetable: &mut Timetable,
        totals: &mut Totals,
    ) {
        let Some(links) = self.reactions.links(session.0, header.publisher) else { return };
        let root_ns = header.chain_due_ns();
        // The chain's lag so far: that of the messages before, plus the lateness in reading this one.
        let before_ns = header.root.map_or(0, |root| root.lag_ns);
        let lag_ns =
            before_ns.saturating_add(header.lag_ns).saturating_add(delivery.late_ns(header.earliest_write_start_ns()));
        let twin = u32::from(!timetable.window.measures(root_ns));
        for link in links {
            let link = self.reactions.link(link);
            let slowed = &mut self.publishers[link.publisher as usize];
            if slowed.slowing.is_some() {
                slowed.slow_down(timetable.window.relative(delivery.at_ns));
                continue;
            }
            let publisher = link.publisher + twin;
            let rules = timetable.rules(self.publishers[publisher as usize].book.group);
            let Some(answer) = rules.reaction(link.key, header.sequence, link.device_bytes) else { continue };
            let due_ns = timetable.window.relative(delivery.at_ns.saturating_add(answer.think_ns));
            let reaction = Planned {
                publisher,
                due_ns,
                root: Root { due_ns: root_ns, lag_ns },
                lag_ns: 0,
                payload_bytes: answer.payload_bytes,
                size_raised: answer.size_raised,
                draw: answer.draw,
                left: answer.left,
                device_bytes: link.device_bytes,
            };
            self.plan_reaction(reaction, timetable, totals);
        }
    }

    fn plan_reaction(&mut self, reaction: Planned, timetable: &mut Timetable, totals: &mut Totals) {
        match self.reactions.add(reaction) {
            Some(number) => timetable.plan(reaction.due_ns, Task::React(number)),
            None => {
                totals.count_cause(format!("reaction given up: {KEPT_LIMIT} others wait"));
                self.give_up(reaction, timetable, totals);
            }
        }
    }

    /// Counts a reaction that never became due, and the rest of its burst, as offered and not sent.
    fn give_up(&mut self, reaction: Planned, timetable: &Timetable, totals: &mut Totals) {
        let mut reaction = Some(reaction);
        while let Some(message) = reaction {
            self.count_offer(message.publisher, &message.due(), message.root.due_ns, timetable);
            self.count_unsent(message.publisher, &message.due(), timetable, totals);
            reaction = message.next(timetable.rules(self.publishers[message.publisher as usize].book.group));
        }
    }

    /// A reaction is due. Returns the session that the caller must flush, if the reaction was passed to the adapter.
    pub fn react<C: Clients>(&mut self, sending: &mut Sending<'_, C>, number: u32) -> Option<SessionId> {
        let mut reaction = self.reactions.take(number)?;
        let rules = sending.timetable.rules(self.publishers[reaction.publisher as usize].book.group);
        if let Some(next) = reaction.next(rules) {
            self.plan_reaction(next, sending.timetable, sending.totals);
        }
        let ready_ns = sending.now_ns;
        let root_ns = Some(reaction.root.due_ns);
        reaction.lag_ns = ready_ns.saturating_sub(sending.timetable.window.absolute(reaction.due_ns));
        self.offer(reaction.publisher, &reaction.due(), root_ns, ready_ns, sending.timetable, sending.totals);
        let session = self.publishers[reaction.publisher as usize].session;
        let step = match self.reactions.is_waited_for(session) {
            true => Step::Waits,
            false => self.step_reaction(sending, &reaction, ready_ns),
        };
        if matches!(step, Step::Waits) {
            self.reactions.wait(session, reaction, ready_ns);
            self.backlog += 1;
        }
        matches!(step, Step::Submitted).then_some(SessionId(session))
    }

    fn step_reaction<C: Clients>(&mut self, sending: &mut Sending<'_, C>, reaction: &Planned, ready_ns: u64) -> Step {
        let Planned { root, lag_ns, .. } = *reaction;
        let message = Message { due: reaction.due(), root: Some(root), ready_ns, lag_ns };
        self.step(sending, reaction.publisher, &message)
    }

    /// Sends the waiting reactions of a session, in order, until one must wait again.
    pub(super) fn catch_up_reactions<C: Clients>(
        &mut self,
        sending: &mut Sending<'_, C>,
        session: u32,
        free_since_ns: Option<u64>,
    ) {
        self.reactions.count_wait(session, free_since_ns, sending.now_ns);
        while let Some(reaction) = self.reactions.first_waiting(session) {
            let ready_ns = sending.timetable.window.absolute(reaction.due_ns);
            if matches!(self.step_reaction(sending, &reaction, ready_ns), Step::Waits) {
                return;
            }
            self.reactions.end_wait(session);
            self.backlog -= 1;
        }
    }

    fn count_unsent(&mut self, publisher: u32, due: &Due, timetable: &Timetable, totals: &mut Totals) {
        let publisher = &mut self.publishers[publisher as usize];
        if !publisher.warm_up {
            publisher.book.unsent += 1;
            publisher.note_unsent(RowKind::Unsent, due, timetable, totals);
        }
    }

    /// Completes the accounting of reactions: those triggered and not passed to the adapter count as not sent.
    pub fn settle_reactions(&mut self, timetable: &Timetable, totals: &mut Totals) {
        let (not_due, waiting) = self.reactions.take_all();
        for reaction in not_due {
            self.give_up(reaction, timetable, totals);
        }
        for reaction in waiting {
            self.count_unsent(reaction.publisher, &reaction.due(), timetable, totals);
        }
    }
}
