//! The receiving side: readers of all sessions of a shard.

use std::collections::BTreeSet;
use std::ffi::{CStr, CString};

use pubmark_cyclone::qos::Qos;
use pubmark_cyclone::sample::Sample;
use pubmark_model::topic::TopicFilter;
use pubmark_protocol::clients::{SessionId, Subscription};
use pubmark_protocol::events::{Delivery, Event, Sink};
use pubmark_protocol::{clock, header};

use super::binding::{Binding, Reading};
use super::network::Network;

/// One subscription of a session.
struct Subscribed<R> {
    session: SessionId,
    network: u16,
    filter: TopicFilter,
    qos: Qos,
    /// Its messages have several names on the network: readers are added as they are found.
    grows: bool,
    /// Names that it has readers of.
    names: BTreeSet<CString>,
    readers: Vec<Listening<R>>,
}

/// One reader.
struct Listening<R> {
    reader: R,
    /// Samples of other topics come through it, too.
    chooses: bool,
    /// When it was made; `None` where no sample is stored for readers that join late: then none is a replay.
    joined: Option<Joined>,
    /// A time at which nothing was waiting in it.
    empty_at_ns: u64,
}

/// When a reader was made: samples written before were stored for it.
#[derive(Clone, Copy, Debug)]
struct Joined {
    /// On the run's clock, which all nodes share within a bound.
    run_ns: u64,
    /// On the wall clock of this machine.
    wall_ns: i64,
}

impl Joined {
    fn now() -> Joined {
        Joined { run_ns: clock::monotonic_ns(), wall_ns: i64::try_from(clock::realtime_ns()).unwrap_or(i64::MAX) }
    }

    /// Was a sample that is taken at this time written before? Its header has the time on the run's clock. Without one (below 24 B,
    /// or of another program) only the wall clock of its writer's machine remains, and it may differ from that of this machine.
    fn is_after(self, sample: &Sample<'_>, now_ns: u64) -> bool {
        let header = header::read(sample.payload, now_ns);
        match header.filter(|header| header.write_start_us.is_some_and(|us| us < u32::MAX)) {
            Some(header) => header.earliest_write_start_ns() < self.run_ns,
            None => sample.source_ns < self.wall_ns,
        }
    }
}

/// All subscriptions of a shard.
pub(super) struct Readers<B: Binding> {
    subscribed: Vec<Subscribed<B::Reader>>,
    /// A reader had more samples than were taken.
    pub(super) unread: bool,
}

impl<B: Binding> Default for Readers<B> {
    fn default() -> Readers<B> {
        Readers { subscribed: vec![], unread: false }
    }
}

impl<B: Binding> Readers<B> {
    /// Makes the readers of a subscription, as far as their topics are known.
    pub(super) fn add(
        &mut self,
        session: SessionId,
        network: &mut Network<B>,
        index: u16,
        subscription: &Subscription,
    ) -> Result<(), String> {
        let name = network.settings.topics.name_for(&subscription.filter);
        let mut subscribed = Subscribed {
            session,
            network: index,
            filter: TopicFilter(subscription.filter.as_ref().to_owned()),
            qos: network.settings.qos(subscription.qos),
            grows: name.is_none(),
            names: BTreeSet::new(),
            readers: vec![],
        };
        match name {
            Some(name) => subscribed.listen(network, &name)?,
            None => {
                network.watch()?;
                network.discover()?;
                subscribed.grow(network)?;
            }
        }
        self.subscribed.push(subscribed);
        Ok(())
    }

    /// Deletes a session's readers.
    pub(super) fn remove(&mut self, session: SessionId) {
        self.subscribed.retain(|subscribed| subscribed.session != session);
    }

    /// Makes readers of topics that were discovered; returns the session that failed.
    pub(super) fn grow(&mut self, network: &mut Network<B>, index: u16) -> Result<(), (SessionId, String)> {
        for subscribed in self.subscribed.iter_mut().filter(|subscribed| subscribed.network == index) {
            subscribed.grow(network).map_err(|why| (subscribed.session, why))?;
        }
        Ok(())
    }

    /// Takes what has arrived; returns the session whose reader failed.
    pub(super) fn take(&mut self, sink: &mut impl Sink) -> Result<(), (SessionId, String)> {
        let polled_ns = clock::monotonic_ns();
        self.unread = false;
        for subscribed in &mut self.subscribed {
            for listening in &mut subscribed.readers {
                if listening.reader.take_signal() {
                    self.unread |= listening.take(subscribed.session, &subscribed.filter, sink)?;
                } else {
                    listening.empty_at_ns = polled_ns;
                }
            }
        }
        Ok(())
    }
}

impl<R> Subscribed<R> {
    fn grow<B: Binding<Reader = R>>(&mut self, network: &mut Network<B>) -> Result<(), String> {
        if !self.grows {
            return Ok(());
        }
        let topics = network.settings.topics;
        let fits =
            |name: &&CString| !self.names.contains(*name) && topics.may_hold(name, |topic| self.filter.matches(topic));
        let names: Vec<CString> = network.known().filter(fits).cloned().collect();
        names.iter().try_for_each(|name| self.listen(network, name))
    }

    fn listen<B: Binding<Reader = R>>(&mut self, network: &mut Network<B>, name: &CStr) -> Result<(), String> {
        let reader = network.reader(name, &self.qos)?;
        self.names.insert(name.to_owned());
        self.readers.push(Listening::new(reader, network.settings.topics.is_shared(), &self.qos));
        Ok(())
    }
}

impl<R> Listening<R> {
    /// A reader that was just made.
    fn new(reader: R, chooses: bool, qos: &Qos) -> Listening<R> {
        let joined = qos.late_joiners_get.map(|_| Joined::now());
        Listening { reader, chooses, joined, empty_at_ns: clock::monotonic_ns() }
    }
}

impl<R: Reading> Listening<R> {
    /// Takes some of the samples; true if there may be more, which are read after the other readers.
    fn take(
        &mut self,
        session: SessionId,
        filter: &TopicFilter,
        sink: &mut impl Sink,
    ) -> Result<bool, (SessionId, String)> {
        let before_ns = clock::monotonic_ns();
        let (chooses, joined, empty_at_ns) = (self.chooses, self.joined, self.empty_at_ns);
        let mut at_ns = 0;
        let more = self.reader.take(|sample| {
            if at_ns == 0 {
                at_ns = clock::monotonic_ns();
            }
            // A topic that is not text is not ours, and is counted as foreign.
            let wanted = || std::str::from_utf8(sample.topic).map_or(true, |topic| filter.matches(topic));
            if !chooses || wanted() {
                let retained = joined.is_some_and(|joined| joined.is_after(&sample, at_ns));
                // A sample taken as it arrived did not wait for us.
                let (at_ns, empty_at_ns) =
                    sample.taken_ns.map_or((at_ns, empty_at_ns), |taken_ns| (taken_ns, taken_ns));
                sink.event(
                    session,
                    Event::Delivered(Delivery {
                        payload: sample.payload,
                        retained,
                        at_ns,
                        empty_at_ns: Some(empty_at_ns),
                        ..Delivery::default()
                    }),
                );
            }
        });
        let more = more.map_err(|error| (session, error))?;
        let missed = self.reader.take_missed();
        if missed > 0 {
            sink.event(session, Event::Missed(missed));
        }
        if more {
            self.reader.keep_signal();
        } else {
            self.empty_at_ns = before_ns;
        }
        Ok(more)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use pubmark_cyclone::qos::History;
    use pubmark_protocol::timing::Timing;

    use super::*;

    /// A reader with one sample: its payload, and when it was written on its writer's wall clock.
    struct OneSample(RefCell<Option<(Vec<u8>, i64)>>);

    impl Reading for OneSample {
        fn take_signal(&self) -> bool {
            self.0.borrow().is_some()
        }

        fn keep_signal(&self) {}

        fn take(&self, mut each: impl FnMut(Sample<'_>)) -> Result<bool, String> {
            if let Some((payload, source_ns)) = self.0.take() {
                each(Sample { topic: b"a", payload: &payload, source_ns, taken_ns: None });
            }
            Ok(false)
        }
    }

    /// Whether messages were replays.
    #[derive(Default)]
    struct Retained(Vec<bool>);

    impl Sink for Retained {
        fn event(&mut self, _: SessionId, event: Event<'_>) {
            if let Event::Delivered(delivery) = event {
                self.0.push(delivery.retained);
            }
        }
    }

    /// Does a new reader take a sample for a replay? Its write began so long after the reader was made, ns, on the run's clock and
    /// on the wall clock of its writer's machine; a payload of 16 B has no write start.
    fn is_replay(late_joiners_get: Option<u16>, payload_bytes: usize, on_run_ns: i64, on_wall_ns: i64) -> bool {
        let history = History::KeepLast(5);
        let qos = Qos { reliable: true, history, late_joiners_get, liveliness_lease: None, lifespan: None };
        let mut listening = Listening::new(OneSample(RefCell::new(None)), false, &qos);
        let now = Joined::now();
        let timing = Timing::on_time(now.run_ns.saturating_add_signed(on_run_ns));
        let mut payload = vec![];
        header::write(&mut payload, payload_bytes, 1, 2, 3, timing.due_ns);
        header::patch_write_start(&mut payload, &timing, timing.due_ns);
        *listening.reader.0.borrow_mut() = Some((payload, now.wall_ns + on_wall_ns));
        let mut retained = Retained::default();
        let more = listening.take(SessionId(0), &TopicFilter("a".to_owned()), &mut retained);
        assert_eq!((more, retained.0.len()), (Ok(false), 1));
        retained.0[0]
    }

    const EARLIER_NS: i64 = -60_000_000_000;
    const LATER_NS: i64 = 60_000_000_000;

    #[test]
    fn a_volatile_reader_has_no_replays_whatever_the_clock_of_the_writers_machine() {
        for payload_bytes in [16, 24] {
            assert!(!is_replay(None, payload_bytes, LATER_NS, EARLIER_NS));
            assert!(!is_replay(None, payload_bytes, EARLIER_NS, EARLIER_NS));
        }
    }

    #[test]
    fn a_replay_is_recognised_by_its_write_start_on_the_runs_clock() {
        assert!(!is_replay(Some(5), 24, LATER_NS, EARLIER_NS));
        assert!(is_replay(Some(5), 24, EARLIER_NS, LATER_NS));
        // Without a write start, the wall clocks decide.
        assert!(!is_replay(Some(5), 16, EARLIER_NS, LATER_NS));
        assert!(is_replay(Some(5), 16, LATER_NS, EARLIER_NS));
    }
}
