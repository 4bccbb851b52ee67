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
                network.refresh()?;
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

    /// Makes readers of topics that were discovered; returns the subscriptions that failed, by their sessions.
    pub(super) fn grow(&mut self, network: &mut Network<B>, index: u16) -> Vec<(SessionId, String)> {
        let of_network = self.subscribed.iter_mut().filter(|subscribed| subscribed.network == index);
        of_network
            .filter_map(|subscribed| subscribed.grow(network).err().map(|why| (subscribed.session, why)))
            .collect()
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
        let more = self.reader.take(|sample| {
            // Read for each sample: a library may take the next one out of its reader only after this one was handled.
            let at_ns = sample.taken_ns.unwrap_or_else(clock::monotonic_ns);
            // A topic that is not text is not ours, and is counted as foreign.
            let wanted = || std::str::from_utf8(sample.topic).map_or(true, |topic| filter.matches(topic));
            if !chooses || wanted() {
                let retained = joined.is_some_and(|joined| joined.is_after(&sample, at_ns));
                // A sample taken as it arrived did not wait for us.
                let empty_at_ns = sample.taken_ns.unwrap_or(empty_at_ns);
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
    use std::collections::VecDeque;

    use std::sync::Arc;

    use pubmark_cyclone::qos::History;
    use pubmark_model::qos::Qos as Level;
    use pubmark_protocol::timing::Timing;
    use pubmark_testing::assert_count_eq;

    use super::*;
    use crate::dds::memory::{self, Memory};
    use crate::dds::settings::Settings;

    /// A reader with samples: their payloads, and when they were written on their writer's wall clock. It takes each one out when the
    /// one before was handled, as RustDDS does.
    #[derive(Default)]
    struct OneByOne {
        samples: RefCell<VecDeque<(Vec<u8>, i64)>>,
        /// When each was taken out.
        taken_ns: RefCell<Vec<u64>>,
    }

    impl Reading for OneByOne {
        fn take_signal(&self) -> bool {
            !self.samples.borrow().is_empty()
        }

        fn keep_signal(&self) {}

        fn take(&self, mut each: impl FnMut(Sample<'_>)) -> Result<bool, String> {
            // The queue is not borrowed while a sample is handled.
            let next = || self.samples.borrow_mut().pop_front();
            while let Some((payload, source_ns)) = next() {
                self.taken_ns.borrow_mut().push(clock::monotonic_ns());
                each(Sample { topic: b"a", payload: &payload, source_ns, taken_ns: None });
            }
            Ok(false)
        }
    }

    /// Of each message, whether it was a replay, when it was received, and a time at which nothing was waiting.
    #[derive(Default)]
    struct Deliveries(Vec<(bool, u64, Option<u64>)>);

    impl Sink for Deliveries {
        fn event(&mut self, _: SessionId, event: Event<'_>) {
            if let Event::Delivered(delivery) = event {
                self.0.push((delivery.retained, delivery.at_ns, delivery.empty_at_ns));
            }
        }
    }

    fn qos(late_joiners_get: Option<u16>) -> Qos {
        let history = History::KeepLast(5);
        Qos { reliable: true, history, late_joiners_get, liveliness_lease: None, lifespan: None }
    }

    fn take(listening: &mut Listening<OneByOne>) -> Deliveries {
        let mut deliveries = Deliveries::default();
        let more = listening.take(SessionId(0), &TopicFilter("a".to_owned()), &mut deliveries);
        assert_eq!(more, Ok(false));
        deliveries
    }

    /// Does a new reader take a sample for a replay? Its write began so long after the reader was made, ns, on the run's clock and
    /// on the wall clock of its writer's machine; a payload of 16 B has no write start.
    fn is_replay(late_joiners_get: Option<u16>, payload_bytes: usize, on_run_ns: i64, on_wall_ns: i64) -> bool {
        let mut listening = Listening::new(OneByOne::default(), false, &qos(late_joiners_get));
        let now = Joined::now();
        let timing = Timing::on_time(now.run_ns.saturating_add_signed(on_run_ns));
        let mut payload = vec![];
        header::write(&mut payload, payload_bytes, 1, 2, 3, timing.due_ns);
        header::patch_write_start(&mut payload, &timing, timing.due_ns);
        listening.reader.samples.borrow_mut().push_back((payload, now.wall_ns + on_wall_ns));
        let Deliveries(found) = take(&mut listening);
        assert_eq!(found.len(), 1);
        found[0].0
    }

    const EARLIER_NS: i64 = -60_000_000_000;
    const LATER_NS: i64 = 60_000_000_000;

    /// Otherwise the upper bound of a latency could be below the latency.
    #[test]
    fn no_sample_is_received_before_it_was_taken_out_of_its_reader() {
        const SAMPLES: usize = 64;
        let mut listening = Listening::new(OneByOne::default(), false, &qos(None));
        let empty_at_ns = listening.empty_at_ns;
        listening.reader.samples.borrow_mut().extend((0..SAMPLES).map(|_| (vec![0; 24], 0)));
        let Deliveries(found) = take(&mut listening);
        let taken_ns = listening.reader.taken_ns.borrow();
        assert_eq!((found.len(), taken_ns.len()), (SAMPLES, SAMPLES));
        for ((_, at_ns, empty), taken_ns) in found.iter().zip(taken_ns.iter()) {
            assert!(at_ns >= taken_ns, "received at {at_ns} ns, taken out at {taken_ns} ns");
            assert_eq!(*empty, Some(empty_at_ns), "the lower bound is that of the whole reader");
        }
    }

    /// Sessions with a subscription to all topics each.
    fn subscribers(sessions: u32) -> (Readers<Memory>, Network<Memory>) {
        let settings = Settings::parse("").expect("the settings are right");
        let (mut readers, mut network) = (Readers::default(), Network::new(settings, Arc::new(|| {})));
        (0..sessions).for_each(|session| subscribe(&mut readers, &mut network, session));
        (readers, network)
    }

    fn subscribe(readers: &mut Readers<Memory>, network: &mut Network<Memory>, session: u32) {
        let subscription = Subscription { filter: "#".into(), qos: Level::BestEffort };
        assert_eq!(readers.add(SessionId(session), network, 0, &subscription), Ok(()));
    }

    fn announce(network: &Network<Memory>, topic: &str) {
        memory::announce(network.settings.topics.name(topic, None));
    }

    /// How many readers each subscription has.
    fn readers_of(readers: &Readers<Memory>) -> Vec<usize> {
        readers.subscribed.iter().map(|subscribed| subscribed.readers.len()).collect()
    }

    #[test]
    fn a_topic_that_a_new_subscription_finds_is_found_for_the_earlier_ones() {
        let (mut readers, mut network) = subscribers(1);
        announce(&network, "t");
        subscribe(&mut readers, &mut network, 1);
        assert_count_eq!(readers_of(&readers), [0, 1]);
        assert_eq!(network.discover_at_ns(), Some(0), "the shard does not wait");
        assert_eq!(network.discover(), Ok(true));
        assert_eq!(readers.grow(&mut network, 0), []);
        assert_count_eq!(readers_of(&readers), [1, 1]);
        assert_eq!((network.discover(), network.discover_at_ns()), (Ok(false), None), "it is no news any more");
    }

    #[test]
    fn a_reader_that_cannot_be_made_is_not_missing_from_other_sessions() {
        let (mut readers, mut network) = subscribers(2);
        // Both have a reader of a topic found before.
        announce(&network, "t");
        assert_eq!((network.discover(), readers.grow(&mut network, 0)), (Ok(true), vec![]));
        announce(&network, "u");
        memory::refuse_readers(1);
        assert_eq!(network.discover(), Ok(true));
        assert_eq!(readers.grow(&mut network, 0), [(SessionId(0), "refused".to_owned())]);
        assert_count_eq!(readers_of(&readers), [1, 2]);
    }

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
