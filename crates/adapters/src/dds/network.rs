//! What the sessions of a shard share: domains, topics, and what is known of writers elsewhere.

use std::collections::BTreeSet;
use std::ffi::{CStr, CString};
use std::net::UdpSocket;
use std::sync::Arc;

use pubmark_cyclone::entities::Intake;
use pubmark_cyclone::qos::{History, Qos};
use pubmark_cyclone::sample::{KEYED_NAME, Kind, PLAIN_NAME};
use pubmark_protocol::clock;

use super::binding::{Binding, Discovering, Wake, Writing};
use super::deletion_queue::DeletionQueue;
use super::settings::Settings;

/// Topic by which a shard learns that its writers are known where readers of pubmark's are. Readers elsewhere have none, and are
/// not troubled.
const PRESENCE: &CStr = c"pubmark_presence";
const PRESENCE_QOS: Qos = Qos {
    reliable: true,
    history: History::KeepLast(1),
    late_joiners_get: None,
    liveliness_lease: None,
    lifespan: None,
};

/// A writer that was made after others. Writers are announced in their order and over a reliable channel, so a reader that
/// acknowledges its sample knows those others.
pub(super) struct Presence<B: Binding> {
    writer: B::Writer,
    /// Until then it waits for readers before it writes: without any, everything is acknowledged.
    match_until_ns: u64,
    is_written: bool,
}

impl<B: Binding> Presence<B> {
    /// Does every reader of pubmark's know of the writers made before?
    pub(super) fn is_known(&mut self, now_ns: u64) -> Result<bool, String> {
        if !self.is_written {
            if now_ns < self.match_until_ns && !self.writer.has_matched() {
                return Ok(false);
            }
            self.writer.write(c"", &[])?;
            self.is_written = true;
        }
        self.writer.all_acknowledged()
    }

    /// The writer, to be deleted.
    pub(super) fn into_writer(self) -> B::Writer {
        self.writer
    }
}

/// The network of one endpoint, as a shard sees it.
pub(super) struct Network<B: Binding> {
    /// The settings of the endpoint.
    pub(super) settings: Settings,
    wake: Wake,
    /// Writers that are being deleted; ended before their domain.
    deletion_queue: DeletionQueue<B::Writer>,
    // Each is joined when it is first needed.
    writing: Option<B::Domain>,
    /// Dropped before the domain that it is in.
    discovered: Option<B::Discovered>,
    /// The reader for every [`Presence`]; made before any other reader.
    present: Option<B::Reader>,
    reading: Option<B::Domain>,
    /// Names of topics that have writers somewhere, as far as they are of our types.
    known: BTreeSet<CString>,
    /// Some of them are news for the readers of other subscriptions.
    has_news: bool,
}

impl<B: Binding> Network<B> {
    pub(super) fn new(settings: Settings, wake: Wake) -> Network<B> {
        Network {
            settings,
            wake,
            deletion_queue: DeletionQueue::default(),
            writing: None,
            discovered: None,
            present: None,
            reading: None,
            known: BTreeSet::new(),
            has_news: false,
        }
    }

    pub(super) fn writer(&mut self, name: &CStr, qos: &Qos) -> Result<B::Writer, String> {
        let kind = self.settings.topics.kind();
        B::writer(join::<B>(&mut self.writing, &self.settings)?, name, kind, qos, Arc::clone(&self.wake))
    }

    pub(super) fn reader(&mut self, name: &CStr, qos: &Qos) -> Result<B::Reader, String> {
        let joined = join::<B>(&mut self.reading, &self.settings)?;
        become_present::<B>(&mut self.present, joined)?;
        let intake = match qos.history {
            // No sample is dropped until it is taken, and taking many at once costs least.
            History::KeepAll => Intake::WhenAsked,
            History::KeepLast(_) => Intake::AtOnce(clock::monotonic_ns),
        };
        B::reader(joined, name, self.settings.topics.kind(), qos, Arc::clone(&self.wake), intake)
    }

    /// Takes writers out, without waiting for that.
    pub(super) fn delete(&mut self, writers: Vec<B::Writer>) {
        self.deletion_queue.delete(writers);
    }

    /// Starts to check whether the writers made until now are known.
    pub(super) fn ask(&mut self, now_ns: u64) -> Result<Presence<B>, String> {
        let joined = join::<B>(&mut self.writing, &self.settings)?;
        let writer = B::writer(joined, PRESENCE, Kind::Plain, &PRESENCE_QOS, Arc::new(|| {}))?;
        Ok(Presence { writer, match_until_ns: now_ns + B::MATCH_NS, is_written: false })
    }

    /// From now on, [`Network::discover`] reports writers.
    pub(super) fn watch(&mut self) -> Result<(), String> {
        if self.discovered.is_none() {
            let joined = join::<B>(&mut self.reading, &self.settings)?;
            // Without it, a writer of the first topic would not wait until this shard has discovered it.
            become_present::<B>(&mut self.present, joined)?;
            self.discovered = Some(B::discovered(joined, Arc::clone(&self.wake))?);
        }
        Ok(())
    }

    /// Next time to call [`Network::discover`], if the shard is not woken for it.
    pub(super) fn discover_at_ns(&self) -> Option<u64> {
        if self.has_news { Some(0) } else { self.discovered.as_ref().and_then(Discovering::next_check_ns) }
    }

    /// Were topics found since the last time? They are among [`Network::known`] then.
    pub(super) fn discover(&mut self) -> Result<bool, String> {
        self.refresh()?;
        Ok(std::mem::take(&mut self.has_news))
    }

    /// Brings [`Network::known`] up to date. The next [`Network::discover`] reports what is found here.
    pub(super) fn refresh(&mut self) -> Result<(), String> {
        let Some(discovered) = self.discovered.as_ref().filter(|discovered| discovered.take_signal()) else {
            return Ok(());
        };
        let before = self.known.len();
        let known = &mut self.known;
        let ours = match self.settings.topics.kind() {
            Kind::Plain => PLAIN_NAME,
            Kind::Keyed => KEYED_NAME,
        };
        let taken = discovered.take(|topic, kind| {
            if kind == ours && known.len() < MOST_KNOWN && !known.contains(topic) {
                known.insert(topic.to_owned());
            }
        });
        // It may have failed after some topics.
        self.has_news |= known.len() > before;
        taken
    }

    /// Names of topics that have, or had, writers.
    pub(super) fn known(&self) -> impl Iterator<Item = &CString> {
        self.known.iter()
    }
}

/// Most topics that are stored, as announcements from the network must not use memory without limit.
const MOST_KNOWN: usize = 1 << 20;

/// Makes the reader for every [`Presence`], if there is none.
fn become_present<B: Binding>(present: &mut Option<B::Reader>, joined: &mut B::Domain) -> Result<(), String> {
    if present.is_none() {
        // The result is not used.
        let wake = Arc::new(|| {});
        *present = Some(B::reader(joined, PRESENCE, Kind::Plain, &PRESENCE_QOS, wake, Intake::WhenAsked)?);
    }
    Ok(())
}

fn join<'a, B: Binding>(place: &'a mut Option<B::Domain>, settings: &Settings) -> Result<&'a mut B::Domain, String> {
    if place.is_none() {
        // For a wrong address libraries report only a failed start, or nothing; the kernel reports the reason.
        UdpSocket::bind((settings.interface, 0))
            .map_err(|error| format!("no socket on the interface {}: {error}", settings.interface))?;
        *place = Some(B::join(settings)?);
    }
    place.as_mut().ok_or_else(|| "no domain was joined".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dds::memory::Memory;

    #[test]
    fn a_shard_that_watches_for_topics_acknowledges_presence_before_it_has_found_one() {
        let settings = Settings::parse("").expect("the settings are right");
        let mut network = Network::<Memory>::new(settings, Arc::new(|| {}));
        assert_eq!(network.watch(), Ok(()));
        assert!(network.present.is_some());
    }
}
