//! RustDDS, all in Rust. What it carries less of than Cyclone DDS was measured (docs/explanation/dds.md), and more is refused before a
//! run: large samples, high rates, many sessions. Keys, durability, leases and lifespans are not offered over it.

mod entities;
mod sample;

use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::net::IpAddr;

use pubmark_cyclone::entities::Intake;
use pubmark_cyclone::qos::{History, Qos};
use pubmark_cyclone::sample::{Kind, PLAIN_NAME};
use pubmark_protocol::capabilities::{Capabilities, EndpointSettings, Features};
use rustdds::policy::{History as RustHistory, Reliability, ResourceLimits};
use rustdds::{
    DomainParticipant, DomainParticipantBuilder, Publisher, QosPolicies, QosPolicyBuilder, Subscriber, Timestamp,
    Topic, TopicKind,
};

use self::entities::{Discovery, RustReader, RustWriter};
use super::binding::{Binding, Wake};
use super::settings::{Settings, Topics};
use super::{CAPABILITIES, DdsClients};

/// Sessions over RustDDS.
pub type RustClients = DdsClients<Rust>;

/// Its version; Cargo.lock has the same, a test looks.
const VERSION: &str = "0.15.1";
/// Largest payload that arrives at both levels with the kernel's usual receive buffer of 208 KiB.
const LARGEST_PAYLOAD_BYTES: u32 = 128 << 10;
/// Most devices and subscribers that were found to lose nothing.
const MOST_SESSIONS: u32 = 200;
/// Most messages a second into one participant that arrived without loss from that many writers.
const MOST_MESSAGES_PER_S: u32 = 5_000;
/// Samples that a topic's reader stores, taken or not; the oldest are dropped beyond, even of a reliable writer's. The
/// library's default is 64, which is full when that many devices send at once.
const SAMPLES_OF_ONE: i32 = 512;
/// The same where all devices share a topic.
const SAMPLES_OF_ALL: i32 = 2_048;

/// The library.
pub enum Rust {}

/// A participant with what sessions make on it.
pub struct Participant {
    publisher: Publisher,
    subscriber: Subscriber,
    topics: BTreeMap<CString, Topic>,
    /// Samples that a topic stores.
    samples: i32,
    /// Its threads end when it is dropped, after all that is in it.
    participant: DomainParticipant,
}

impl Binding for Rust {
    const CAPABILITIES: Capabilities = Capabilities {
        title: "DDS by RustDDS (OMG DDS 1.4, RTPS 2.4)",
        maximum_payload_bytes: LARGEST_PAYLOAD_BYTES,
        features: Features {
            brokerless: true,
            chooses_addresses: true,
            settings: Some(EndpointSettings { begins_with: '?', check, finds: Some(by_multicast) }),
            maximum_sessions: Some(MOST_SESSIONS),
            maximum_messages_per_s: Some(MOST_MESSAGES_PER_S),
            ..Features::NONE
        },
        ..CAPABILITIES
    };
    // Its own thread matches.
    const MATCH_NS: u64 = 250_000_000;
    type Domain = Participant;
    type Writer = RustWriter;
    type Reader = RustReader;
    type Discovered = Discovery;

    fn missing() -> Option<String> {
        None
    }

    fn version() -> String {
        format!("RustDDS {VERSION}")
    }

    fn join(settings: &Settings) -> Result<Participant, String> {
        offers(settings)?;
        let at = || format!("domain {} at {}", settings.domain, settings.interface);
        let failed = |what: &str, error: &dyn std::fmt::Display| format!("failed to {what} DDS {}: {error}", at());
        let builder = DomainParticipantBuilder::new(settings.domain).with_only_networks([settings.interface]);
        let participant = without_signals(|| builder.build()).map_err(|error| failed("join", &error))?;
        let none = QosPolicyBuilder::new().build();
        let publisher = participant.create_publisher(&none).map_err(|error| failed("publish in", &error))?;
        let subscriber = participant.create_subscriber(&none).map_err(|error| failed("subscribe in", &error))?;
        let samples = if settings.topics.is_shared() { SAMPLES_OF_ALL } else { SAMPLES_OF_ONE };
        Ok(Participant { publisher, subscriber, topics: BTreeMap::new(), samples, participant })
    }

    fn writer(joined: &mut Participant, topic: &CStr, kind: Kind, qos: &Qos, _: Wake) -> Result<RustWriter, String> {
        let topic = joined.topic(topic, kind)?;
        let writer = joined.publisher.create_datawriter_no_key(&topic, Some(policies(qos, joined.samples)));
        writer.map(RustWriter::new).map_err(|error| format!("failed to make a DDS writer: {error}"))
    }

    /// The library has no callback for a new sample, so samples are always taken when the shard polls.
    fn reader(
        joined: &mut Participant,
        topic: &CStr,
        kind: Kind,
        qos: &Qos,
        wake: Wake,
        _: Intake,
    ) -> Result<RustReader, String> {
        let topic = joined.topic(topic, kind)?;
        let since = Timestamp::now();
        let reader = joined.subscriber.create_simple_datareader_no_key(&topic, Some(policies(qos, joined.samples)));
        let reader = reader.map_err(|error| format!("failed to make a DDS reader: {error}"))?;
        Ok(RustReader::new(reader, since, qos.history, wake))
    }

    fn discovered(joined: &mut Participant, _: Wake) -> Result<Discovery, String> {
        Ok(Discovery::new(joined.participant.clone()))
    }
}

/// Runs what starts threads of the library with all signals blocked, which threads inherit: a signal that interrupts one of them
/// ends its loop for good.
fn without_signals<T>(start: impl FnOnce() -> T) -> T {
    // SAFETY: both sets are plain data, filled by the calls before they are read; the mask is this thread's alone.
    let before = unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        before
    };
    let started = start();
    // SAFETY: the mask that was there before.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut()) };
    started
}

/// What of an endpoint's settings is not offered over this library.
fn offers(settings: &Settings) -> Result<(), String> {
    let asked = [
        ("`topic=keyed`", settings.topics == Topics::Keyed),
        ("`durability=transient-local`", settings.durable),
        ("`lease`", settings.lease.is_some()),
        ("`lifespan`", settings.lifespan.is_some()),
        ("`peer`", !settings.peers.is_empty()),
        ("an interface with an IPv6 address", settings.interface.is_ipv6()),
    ];
    let lacks: Vec<&str> = asked.iter().filter(|(_, is_asked)| *is_asked).map(|(what, _)| *what).collect();
    if lacks.is_empty() {
        return Ok(());
    }
    let verb = if lacks.len() == 1 { "is" } else { "are" };
    Err(format!("{} {verb} not offered over RustDDS; `--client cyclone` does that", lacks.join(", ")))
}

/// The library has no setting for a list of peers.
fn by_multicast(_: &[IpAddr]) -> String {
    "discovery=multicast".to_owned()
}

fn check(text: &str) -> Result<(), String> {
    offers(&Settings::parse(text)?)
}

fn policies(qos: &Qos, samples: i32) -> QosPolicies {
    let reliability = match qos.reliable {
        true => Reliability::Reliable { max_blocking_time: rustdds::Duration::ZERO },
        false => Reliability::BestEffort,
    };
    let (history, samples) = match qos.history {
        History::KeepAll => (RustHistory::KeepAll, samples),
        History::KeepLast(depth) => (RustHistory::KeepLast { depth: i32::from(depth) }, samples.max(i32::from(depth))),
    };
    let limits = ResourceLimits { max_samples: samples, max_instances: samples, max_samples_per_instance: samples };
    QosPolicyBuilder::new().reliability(reliability).history(history).resource_limits(limits).build()
}

impl Participant {
    fn topic(&mut self, name: &CStr, kind: Kind) -> Result<Topic, String> {
        if kind == Kind::Keyed {
            return Err("topics with a key are not offered over RustDDS".to_owned());
        }
        if let Some(topic) = self.topics.get(name) {
            return Ok(topic.clone());
        }
        let none = QosPolicyBuilder::new().build();
        let text = name.to_string_lossy().into_owned();
        let kind = PLAIN_NAME.to_string_lossy().into_owned();
        let made = self.participant.create_topic(text, kind, &none, TopicKind::NoKey);
        let topic = made.map_err(|error| format!("failed to make a DDS topic: {error}"))?;
        self.topics.insert(name.to_owned(), topic.clone());
        Ok(topic)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn features_that_the_library_lacks_are_refused() {
        for text in ["?topic=keyed", "?lease=1s", "?lifespan=5s", "?peer=127.0.0.2"] {
            let why = check(text).unwrap_err();
            assert!(why.contains("is not offered over RustDDS; `--client cyclone` does that"), "{text}: {why}");
        }
        let why = check("?topic=single&history=5&durability=transient-local&lease=1s&lifespan=5s").unwrap_err();
        assert!(why.starts_with("`durability=transient-local`, `lease`, `lifespan` are not offered"), "{why}");
        assert_eq!(check("?topic=single&history=5"), Ok(()));
    }

    #[test]
    fn the_version_is_that_of_the_library() {
        let lock = include_str!("../../../../../Cargo.lock");
        assert!(lock.contains(&format!("name = \"rustdds\"\nversion = \"{VERSION}\"\n")));
    }
}
