//! Cyclone DDS, through its C library.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString};

use pubmark_cyclone::domain::Domain;
use pubmark_cyclone::entities::{DiscoveredWriters, Intake, Reader, Topic, Writer, Written};
use pubmark_cyclone::library::{CallError, library};
use pubmark_cyclone::qos::Qos;
use pubmark_cyclone::sample::{Kind, Sample};
use pubmark_cyclone::signal::Signal;
use pubmark_protocol::capabilities::Capabilities;

use super::binding::{Binding, Discovering, Reading, Wake, Writing};
use super::settings::Settings;
use super::{CAPABILITIES, DdsClients};

/// Sessions over Cyclone DDS.
pub type CycloneClients = DdsClients<Cyclone>;

/// The library.
pub enum Cyclone {}

/// A domain with the topics made in it.
pub struct DomainTopics {
    // Dropped before the domain that they are in.
    topics: BTreeMap<CString, Topic>,
    domain: Domain,
}

impl Binding for Cyclone {
    const CAPABILITIES: Capabilities = CAPABILITIES;
    const MATCH_NS: u64 = 0;
    type Domain = DomainTopics;
    type Writer = Writer;
    type Reader = Reader;
    type Discovered = DiscoveredWriters;

    fn missing() -> Option<String> {
        library().err().map(ToString::to_string)
    }

    fn version() -> String {
        library().map(|cyclone| format!("Cyclone DDS {}", cyclone.version())).unwrap_or_default()
    }

    fn join(settings: &Settings) -> Result<DomainTopics, String> {
        let cyclone = library().map_err(ToString::to_string)?;
        let text = CString::new(settings.cyclone()).map_err(|error| error.to_string())?;
        let domain = Domain::open(cyclone, &text).map_err(|error| {
            let (domain, address) = (settings.domain, settings.interface);
            format!(
                "{error} (domain {domain} at {address}: are there 119 participants already, or are its ports taken?)"
            )
        })?;
        Ok(DomainTopics { topics: BTreeMap::new(), domain })
    }

    fn writer(joined: &mut DomainTopics, topic: &CStr, kind: Kind, qos: &Qos, wake: Wake) -> Result<Writer, String> {
        let made = joined.topic(topic, kind).and_then(|(domain, topic)| domain.writer(topic, qos, Signal::new(wake)));
        made.map_err(|error| error.to_string())
    }

    fn reader(
        joined: &mut DomainTopics,
        topic: &CStr,
        kind: Kind,
        qos: &Qos,
        wake: Wake,
        intake: Intake,
    ) -> Result<Reader, String> {
        let (domain, topic) = joined.topic(topic, kind).map_err(|error| error.to_string())?;
        domain.reader(topic, qos, Signal::new(wake), intake).map_err(|error| error.to_string())
    }

    fn discovered(joined: &mut DomainTopics, wake: Wake) -> Result<DiscoveredWriters, String> {
        joined.domain.discovered_writers(Signal::new(wake)).map_err(|error| error.to_string())
    }
}

impl DomainTopics {
    fn topic(&mut self, name: &CStr, kind: Kind) -> Result<(&Domain, &Topic), CallError> {
        if !self.topics.contains_key(name) {
            let topic = self.domain.topic(name, kind)?;
            self.topics.insert(name.to_owned(), topic);
        }
        Ok((&self.domain, &self.topics[name]))
    }
}

impl Writing for Writer {
    fn has_matched(&self) -> bool {
        self.matched() > 0
    }

    fn write(&self, topic: &CStr, payload: &[u8]) -> Result<Written, String> {
        Writer::write(self, topic, payload).map_err(|error| error.to_string())
    }

    fn all_acknowledged(&self) -> Result<bool, String> {
        Writer::all_acknowledged(self).map_err(|error| error.to_string())
    }
}

impl Reading for Reader {
    fn take_signal(&self) -> bool {
        Reader::take_signal(self)
    }

    fn keep_signal(&self) {
        Reader::keep_signal(self);
    }

    fn take(&self, each: impl FnMut(Sample<'_>)) -> Result<bool, String> {
        Reader::take(self, each).map_err(|error| error.to_string())
    }

    fn take_missed(&self) -> u64 {
        Reader::take_missed(self)
    }
}

impl Discovering for DiscoveredWriters {
    fn take_signal(&self) -> bool {
        DiscoveredWriters::take_signal(self)
    }

    fn next_check_ns(&self) -> Option<u64> {
        None
    }

    fn take(&self, each: impl FnMut(&CStr, &CStr)) -> Result<(), String> {
        DiscoveredWriters::take(self, each).map_err(|error| error.to_string())
    }
}
