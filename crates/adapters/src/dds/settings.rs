//! The endpoint of DDS: `dds://ADDRESS[:PORT][?NAME=VALUE&…]`.
//!
//! The address is that of the network interface, the loopback one for this machine alone. A domain has a port on the network,
//! 7400 + 250 × its number (DDSI-RTPS 2.5 §9.6.2.3); `domain=3` means the same as `:8150`.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::net::IpAddr;
use std::time::Duration;

use pubmark_cyclone::qos::{History, Qos};
use pubmark_model::qos::Qos as Level;
use pubmark_model::units;
use pubmark_protocol::endpoint::Endpoint;

use super::LARGEST_PAYLOAD_BYTES;

/// Port of domain 0.
pub(super) const FIRST_PORT: u16 = 7400;
/// Ports between those of two domains.
const PORTS_PER_DOMAIN: u16 = 250;
/// Highest domain whose ports exist.
const LAST_DOMAIN: u16 = 232;
/// Participants that can be found on one address, a port each: as many as fit into a domain's ports.
const PARTICIPANTS: u16 = 119;
/// Largest history depth.
const DEEPEST: u16 = 10_000;
/// Bytes for a sample's topic and lengths.
const HEAD_BYTES: u32 = 1_024;

/// How topics of a workload become topics of DDS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Topics {
    /// One for all, without a key: PSMark's way. All samples are one instance, and a history is shared by all devices.
    Single,
    /// One for each type of devices.
    PerType,
    /// One for each topic.
    #[default]
    PerTopic,
    /// One for all, whose key is the topic: each has a history of its own.
    Keyed,
}

/// Settings of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Number of the domain.
    pub domain: u16,
    /// Address of the interface.
    pub interface: IpAddr,
    /// Other addresses to look for participants at.
    pub peers: Vec<IpAddr>,
    /// Participants are looked for by multicast, on the interface's network.
    pub multicast: bool,
    /// How topics are mapped.
    pub topics: Topics,
    /// How many samples writers and readers store.
    pub history: History,
    /// Those who come later get the last N samples.
    pub durable: bool,
    /// Liveliness lease.
    pub lease: Option<Duration>,
    /// Lifespan.
    pub lifespan: Option<Duration>,
}

/// Checks what stands behind the port of an endpoint.
pub(super) fn check(text: &str) -> Result<(), String> {
    Settings::parse(text).map(drop)
}

/// Participants at these addresses look for each other there.
pub(super) fn peers(addresses: &[IpAddr]) -> String {
    addresses.iter().map(|address| format!("peer={address}")).collect::<Vec<_>>().join("&")
}

impl Settings {
    /// The settings of an endpoint.
    pub(super) fn of(endpoint: &Endpoint) -> Result<Settings, String> {
        Settings::read(endpoint.address.port(), endpoint.address.ip(), endpoint.settings.as_deref().unwrap_or(""))
    }

    /// What stands behind a port, whatever that is.
    pub(super) fn parse(text: &str) -> Result<Settings, String> {
        Settings::read(FIRST_PORT, IpAddr::from([127, 0, 0, 1]), text)
    }

    fn read(port: u16, interface: IpAddr, text: &str) -> Result<Settings, String> {
        let mut settings = Settings {
            domain: domain_of(port)?,
            interface,
            peers: vec![],
            multicast: false,
            topics: Topics::default(),
            history: History::KeepAll,
            durable: false,
            lease: None,
            lifespan: None,
        };
        if interface.is_unspecified() || interface.is_multicast() {
            return Err(format!("{interface} is not the address of an interface"));
        }
        let text = text.strip_prefix('/').unwrap_or(text);
        let text = text.strip_prefix('?').unwrap_or(text);
        let mut said = BTreeSet::new();
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').ok_or_else(|| format!("`{pair}` has no `=`"))?;
            if !said.insert(name) && name != "peer" {
                return Err(format!("`{name}` is there twice"));
            }
            settings.set(name, value, port)?;
        }
        match settings.history {
            History::KeepAll if settings.durable => {
                Err("`durability=transient-local` keeps samples for later readers: `history=5` says how many"
                    .to_owned())
            }
            _ => Ok(settings),
        }
    }

    fn set(&mut self, name: &str, value: &str, port: u16) -> Result<(), String> {
        match name {
            "domain" => {
                let domain = value.parse().ok().filter(|domain| *domain <= LAST_DOMAIN);
                let domain =
                    domain.ok_or_else(|| format!("`domain={value}` is not a number from 0 to {LAST_DOMAIN}"))?;
                if port != FIRST_PORT && self.domain != domain {
                    return Err(format!("port {port} is that of domain {}, not {domain}", self.domain));
                }
                self.domain = domain;
            }
            "topic" => {
                self.topics = match value {
                    "single" => Topics::Single,
                    "per-type" => Topics::PerType,
                    "per-topic" => Topics::PerTopic,
                    "keyed" => Topics::Keyed,
                    _ => return Err(format!("`topic={value}` is not single, per-type, per-topic or keyed")),
                }
            }
            "history" => {
                let depth = || value.parse().ok().filter(|depth| (1..=DEEPEST).contains(depth)).map(History::KeepLast);
                let history = if value == "all" { Some(History::KeepAll) } else { depth() };
                self.history = history
                    .ok_or_else(|| format!("`history={value}` is neither all nor a number from 1 to {DEEPEST}"))?;
            }
            "durability" => {
                self.durable = match value {
                    "volatile" => false,
                    "transient-local" => true,
                    "transient" | "persistent" => {
                        return Err(format!(
                            "`durability={value}` needs a service that no client here has: `transient-local`"
                        ));
                    }
                    _ => return Err(format!("`durability={value}` is not volatile or transient-local")),
                }
            }
            "lease" => self.lease = Some(time(name, value)?),
            "lifespan" => self.lifespan = Some(time(name, value)?),
            "discovery" => {
                self.multicast = match value {
                    "multicast" => true,
                    "unicast" => false,
                    _ => return Err(format!("`discovery={value}` is not unicast or multicast")),
                }
            }
            "peer" => {
                let peer = value.parse::<IpAddr>().ok().filter(|peer| peer.is_ipv4() == self.interface.is_ipv4());
                self.peers.push(peer.ok_or_else(|| format!("`peer={value}` is not an address like the interface's"))?);
            }
            _ => {
                let known = "domain, topic, history, durability, lease, lifespan, discovery, peer";
                return Err(format!("`{name}` is none of {known}"));
            }
        }
        Ok(())
    }

    /// The quality of a writer or reader at a level.
    pub(super) fn qos(&self, level: Level) -> Qos {
        let late_joiners_get = match self.history {
            History::KeepLast(depth) if self.durable => Some(depth),
            _ => None,
        };
        Qos {
            reliable: level != Level::BestEffort,
            history: self.history,
            late_joiners_get,
            liveliness_lease: self.lease,
            lifespan: self.lifespan,
        }
    }

    /// The settings as Cyclone DDS reads them. Nothing of a user's text gets into it, only numbers and addresses.
    pub(super) fn cyclone(&self) -> String {
        let largest = LARGEST_PAYLOAD_BYTES + HEAD_BYTES;
        let mut peers = String::new();
        for peer in std::iter::once(&self.interface).chain(&self.peers) {
            // Writing to a string does not fail.
            let _ = write!(peers, "<Peer address=\"{peer}\"/>");
        }
        let last = PARTICIPANTS - 1;
        // With unicast alone, whom it does not know by its address it does not find, nor they it; by multicast, announcements go
        // to 239.255.0.1 (DDSI-RTPS 2.5 §9.6.2.4), samples still to each reader. A writer that is deleted does not wait for
        // acknowledgements, as the deletion would block the shard: the engine has waited before.
        let multicast = if self.multicast { "spdp" } else { "false" };
        format!(
            "<CycloneDDS><Domain Id=\"any\">\
             <General><Interfaces><NetworkInterface address=\"{}\"/></Interfaces>\
             <AllowMulticast>{multicast}</AllowMulticast></General>\
             <Discovery><ExternalDomainId>{}</ExternalDomainId><ParticipantIndex>auto</ParticipantIndex>\
             <MaxAutoParticipantIndex>{last}</MaxAutoParticipantIndex><Peers>{peers}</Peers></Discovery>\
             <Internal><MaxSampleSize>{largest} B</MaxSampleSize>\
             <WriterLingerDuration>0 s</WriterLingerDuration></Internal>\
             <Tracing><Verbosity>none</Verbosity></Tracing></Domain></CycloneDDS>",
            self.interface, self.domain
        )
    }
}

fn domain_of(port: u16) -> Result<u16, String> {
    let above = port.checked_sub(FIRST_PORT).filter(|above| above % PORTS_PER_DOMAIN == 0);
    above
        .map(|above| above / PORTS_PER_DOMAIN)
        .filter(|domain| *domain <= LAST_DOMAIN)
        .ok_or_else(|| format!("port {port} is no domain's: those are 7400 + 250 × domain"))
}

fn time(name: &str, value: &str) -> Result<Duration, String> {
    let time = units::duration(value).map_err(|error| format!("`{name}={value}`: {error}"))?;
    if time.is_zero() { Err(format!("`{name}={value}` is no time")) } else { Ok(time) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn read(port: u16, text: &str) -> Result<Settings, String> {
        Settings::read(port, IpAddr::from([127, 0, 0, 1]), text)
    }

    #[test]
    fn every_setting_is_read() {
        let plain = read(7400, "").unwrap();
        assert_eq!((plain.domain, plain.topics, plain.history), (0, Topics::PerTopic, History::KeepAll));
        let text =
            "?topic=single&history=5&durability=transient-local&lease=1s&lifespan=5s&peer=127.0.0.2&peer=127.0.0.3";
        let high = read(8150, text).unwrap();
        assert_eq!((high.domain, high.topics, high.history), (3, Topics::Single, History::KeepLast(5)));
        assert_eq!((high.lease, high.lifespan), (Some(Duration::from_secs(1)), Some(Duration::from_secs(5))));
        assert_eq!(high.peers.len(), 2);
        assert_eq!(read(7400, &format!("?{}", peers(&high.peers))).unwrap().peers, high.peers);
        let qos = high.qos(Level::AtLeastOnce);
        assert_eq!((qos.reliable, qos.late_joiners_get), (true, Some(5)));
        assert!(!high.qos(Level::BestEffort).reliable);
        assert_eq!(read(7400, "/?domain=3").unwrap().domain, 3);
    }

    #[test]
    fn invalid_settings_are_refused_with_a_reason() {
        for (port, text, words) in [
            (7401, "", "port 7401 is no domain's"),
            (1883, "", "port 1883 is no domain's"),
            (7400, "?domain=233", "from 0 to 232"),
            (7650, "?domain=2", "port 7650 is that of domain 1, not 2"),
            (7400, "?topic=device", "single, per-type, per-topic or keyed"),
            (7400, "?history=0", "neither all nor a number"),
            (7400, "?durability=transient&history=5", "no client here has"),
            (7400, "?durability=transient-local", "`history=5` says how many"),
            (7400, "?lease=soon", "lease=soon"),
            (7400, "?peer=broker.example", "not an address"),
            (7400, "?peer=::1", "not an address like the interface's"),
            (7400, "?colour=red", "`colour` is none of domain"),
            (7400, "?history", "has no `=`"),
            (7400, "?history=1&history=2", "twice"),
        ] {
            let error = read(port, text).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
        assert!(Settings::read(7400, IpAddr::from([0, 0, 0, 0]), "").unwrap_err().contains("0.0.0.0 is not"));
    }

    #[test]
    fn cyclone_uses_the_configured_interface_and_domain() {
        let text = read(7650, "?peer=127.0.0.2").unwrap().cyclone();
        for part in [
            "address=\"127.0.0.1\"/></Interfaces>",
            "<ExternalDomainId>1<",
            "<AllowMulticast>false<",
            "<Peer address=\"127.0.0.1\"/><Peer address=\"127.0.0.2\"/>",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
