//! The receiving side: readers of all sessions of a shard.

use std::collections::BTreeSet;
use std::ffi::{CStr, CString};

use pubmark_cyclone::qos::Qos;
use pubmark_model::topic::TopicFilter;
use pubmark_protocol::clients::{SessionId, Subscription};
use pubmark_protocol::clock;
use pubmark_protocol::events::{Delivery, Event, Sink};

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
    /// Samples written before this were stored for late joiners, ns of `CLOCK_REALTIME`.
    since_ns: i64,
    /// A time at which nothing was waiting in it.
    empty_at_ns: u64,
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
        self.readers.push(Listening {
            reader,
            chooses: network.settings.topics.is_shared(),
            since_ns: i64::try_from(clock::realtime_ns()).unwrap_or(i64::MAX),
            empty_at_ns: clock::monotonic_ns(),
        });
        Ok(())
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
        let (chooses, since_ns, empty_at_ns) = (self.chooses, self.since_ns, self.empty_at_ns);
        let mut at_ns = 0;
        let more = self.reader.take(|sample| {
            if at_ns == 0 {
                at_ns = clock::monotonic_ns();
            }
            // A topic that is not text is not ours, and is counted as foreign.
            let wanted = || std::str::from_utf8(sample.topic).map_or(true, |topic| filter.matches(topic));
            if !chooses || wanted() {
                let retained = sample.source_ns < since_ns;
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
