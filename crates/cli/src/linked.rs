//! Emulated links of a run: networks of their own for the groups behind links, probed before the run, counted while it
//! measures. The system runs in the core's network, and so does everything that reaches it without a link.

use std::net::IpAddr;
use std::sync::Arc;

use pubmark_engine::plan::Networks;
use pubmark_links::addresses;
use pubmark_links::direction::Counters;
use pubmark_links::error::LinkError;
use pubmark_links::namespace::Namespace;
use pubmark_links::network::{Network, Settings};
use pubmark_links::star::{Lateness, Snapshot};
use pubmark_links::verify::{self, Outcome, Verification};
use pubmark_links::watch::{Orders, Seen, Watch};
use pubmark_links::{Way, sockets};
use pubmark_metrics::distribution::{Distribution, Precision};
use pubmark_model::fault::Fault;
use pubmark_model::link::{Link, Step};
use pubmark_model::workload::Workload;
use pubmark_protocol::network;
use pubmark_record::distribution;
use pubmark_record::efficiency::PacketCounts;
use pubmark_record::links::{LinkCheck, LinkDirection, LinkFigures, LinkGroup, LinkTraffic};

use crate::exit_code::ExitCode;
use crate::failure::Failure;

/// Groups that are behind a link together: one group, or those that share their clients.
struct Member<'a> {
    /// The clients' name, or the group's.
    name: &'a str,
    link: &'a Link,
}

/// Who is behind which link, and where each group is in that list.
struct Behind<'a> {
    members: Vec<Member<'a>>,
    devices: Vec<Option<u16>>,
    subscribers: Vec<Option<u16>>,
}

impl<'a> Behind<'a> {
    fn of(workload: &'a Workload) -> Behind<'a> {
        let mut behind = Behind { members: vec![], devices: vec![], subscribers: vec![] };
        for group in &workload.devices {
            let place = behind.place(workload, &group.name, group.client.as_deref(), group.link.as_deref());
            behind.devices.push(place);
        }
        for group in &workload.subscribers {
            let place = behind.place(workload, &group.name, group.client.as_deref(), group.link.as_deref());
            behind.subscribers.push(place);
        }
        behind
    }

    /// Is the member of this number the group, or the clients, called so?
    fn is_of(&self, workload: &Workload, number: usize, name: &str) -> bool {
        let devices = workload.devices.iter().map(|group| &group.name).zip(&self.devices);
        let mut groups = devices.chain(workload.subscribers.iter().map(|group| &group.name).zip(&self.subscribers));
        self.members[number].name == name
            || groups.any(|(group, place)| group == name && *place == u16::try_from(number).ok())
    }

    fn place(
        &mut self,
        workload: &'a Workload,
        group: &'a str,
        client: Option<&'a str>,
        link: Option<&str>,
    ) -> Option<u16> {
        let link = workload.links.iter().find(|known| Some(known.name.as_str()) == link)?;
        let name = client.unwrap_or(group);
        // Names of groups and of clients are one set.
        let known = self.members.iter().position(|member| member.name == name);
        let place = known.unwrap_or_else(|| {
            self.members.push(Member { name, link });
            self.members.len() - 1
        });
        u16::try_from(place).ok()
    }
}

/// Addresses of a workload's networks.
pub struct Places {
    /// Of the core, and of each network.
    pub all: Vec<IpAddr>,
    /// Which of them is that of each device group.
    pub devices: Vec<u16>,
    /// And of each subscriber group.
    pub subscribers: Vec<u16>,
}

impl Places {
    /// That of all subscriber groups, if they have one in common.
    pub fn of_all_subscribers(&self) -> Option<u16> {
        let first = *self.subscribers.first()?;
        self.subscribers.iter().all(|place| *place == first).then_some(first)
    }

    /// That of a subscriber group.
    pub fn of_subscribers(&self, group: u16) -> IpAddr {
        let place = self.subscribers.get(usize::from(group)).copied().unwrap_or(0);
        self.all[usize::from(place)]
    }
}

/// Where groups will be; `None` where none is behind a link.
pub fn places(workload: &Workload) -> Option<Places> {
    let behind = Behind::of(workload);
    if behind.members.is_empty() {
        return None;
    }
    let groups = (0..behind.members.len()).map(|group| addresses::group_v4(group, 0));
    let numbered = |networks: &[Option<u16>]| networks.iter().map(|network| network.map_or(0, |own| own + 1)).collect();
    Some(Places {
        all: std::iter::once(addresses::CORE_V4).chain(groups).map(IpAddr::from).collect(),
        devices: numbered(&behind.devices),
        subscribers: numbered(&behind.subscribers),
    })
}

/// Is any group behind a link?
pub fn any(workload: &Workload) -> bool {
    !Behind::of(workload).members.is_empty()
}

/// The links of a run, at work.
pub struct Linked {
    network: Network,
    names: Vec<String>,
    networks: Networks,
    found: Vec<Verification>,
    /// What probes had carried before anything else came.
    probed: Snapshot,
    congestion_control: String,
    watch: Watch,
}

/// What a run's links came to.
pub struct Carried {
    /// For the record.
    pub figures: LinkFigures,
    /// By group: packets of the measured window, and of what was before it; none where it was not lived through.
    pub packets: Vec<(String, PacketCounts, PacketCounts)>,
    /// Messages on their way.
    pub seen: Seen,
}

fn failed(error: &LinkError) -> Failure {
    Failure::from_error(ExitCode::Usage, error)
        .during("failed to make the workload's links")
        .hint("`pubmark doctor` says what is missing for them; `--link none` runs the workload without")
}

impl Linked {
    /// Makes the networks of a workload and probes its links, about two seconds long; `None` where no group is behind one.
    ///
    /// # Errors
    /// What this machine lacks.
    pub fn start(workload: &Workload, seed: u64) -> Result<Option<Linked>, Failure> {
        let behind = Behind::of(workload);
        if behind.members.is_empty() {
            return Ok(None);
        }
        let settings = Settings::new(behind.members.iter().map(|member| member.link.clone()).collect(), seed);
        let watch = Watch::new();
        let network = Network::start_observed(settings, watch.watcher()).map_err(|error| failed(&error))?;
        let congestion_control = sockets::default_congestion_control(network.core()).map_err(|error| failed(&error))?;
        let found = verify::verify(&network).map_err(|error| failed(&error))?;
        let all = (0..network.groups()).filter_map(|group| {
            network.group(group).map(|namespace| Arc::new(namespace.clone()) as Arc<dyn network::Network>)
        });
        Ok(Some(Linked {
            networks: Networks { all: all.collect(), devices: behind.devices, subscribers: behind.subscribers },
            probed: network.snapshot(),
            names: behind.members.iter().map(|member| member.name.to_owned()).collect(),
            network,
            found,
            congestion_control,
            watch,
        }))
    }

    /// Namespaces of the groups, in the order of [`Linked::networks`].
    pub fn namespaces(&self) -> Vec<Namespace> {
        (0..self.network.groups()).filter_map(|group| self.network.group(group).cloned()).collect()
    }

    /// Networks of the groups.
    pub fn networks(&self) -> Networks {
        self.networks.clone()
    }

    /// Does `work` where the system runs: what it starts and connects belongs there.
    ///
    /// # Errors
    /// The kernel does not let this thread in, or not back.
    pub fn within<T>(&self, work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
        self.network.core().enter(work).map_err(|error| failed(&error))?
    }

    /// What messages to look for on their way.
    pub fn follow(&self, orders: Orders) {
        self.watch.order(orders);
    }

    /// Steps of series count from this time of `CLOCK_MONOTONIC`, the start of the measured window.
    pub fn begin(&self, start_ns: u64) {
        // An emulator that is gone carries nothing: the run shows it, and `figures` says why.
        let _ = self.network.begin(start_ns);
        self.watch.begin(start_ns);
    }

    /// Cuts those off that a fault means, or lets them back: a group, or all behind a link.
    pub fn cut(&self, workload: &Workload, fault: &Fault, cut: bool) -> Result<(), String> {
        let behind = Behind::of(workload);
        for (number, member) in behind.members.iter().enumerate() {
            let is_group = fault.group.as_deref().is_some_and(|group| behind.is_of(workload, number, group));
            if is_group || fault.link.as_ref() == Some(&member.link.name) {
                self.network.cut(number, cut).map_err(|error| error.to_string())?;
            }
        }
        Ok(())
    }

    /// What they have carried by now.
    pub fn snapshot(&self) -> Snapshot {
        self.network.snapshot()
    }

    /// What the record says of them: what they carried between the edges of the window. Ends them.
    ///
    /// # Errors
    /// The emulator had stopped before.
    pub fn figures(self, carried: [Option<Snapshot>; 2]) -> Result<Carried, Failure> {
        let links = self.network.links().to_vec();
        let [before, after] = carried;
        let packets = match (&before, &after) {
            (Some(before), Some(after)) => self.packets([&self.probed, before, after]),
            _ => vec![],
        };
        let end = self.network.stop().map_err(|error| Failure::from_error(ExitCode::Internal, &error))?;
        // A run that was stopped before its window has measured nothing.
        let before = before.as_ref().unwrap_or(&end.snapshot);
        let after = after.as_ref().unwrap_or(&end.snapshot);
        let group = |number: usize| LinkGroup {
            group: self.names[number].clone(),
            link: links[number].name.clone(),
            source: links[number].source.clone(),
            up: direction(&links[number].up, number, Way::Up, &self.found, [before, after]),
            down: direction(&links[number].down, number, Way::Down, &self.found, [before, after]),
        };
        let all = end.snapshot.links.iter().flat_map(|link| [&link.up, &link.down]);
        let overflowed = all.map(|counters| counters.overflowed.packets).sum();
        let strays = &end.snapshot.strays;
        let figures = LinkFigures {
            back_end: "user space".to_owned(),
            realtime: end.snapshot.realtime,
            congestion_control: self.congestion_control.clone(),
            groups: (0..links.len()).map(group).collect(),
            lateness_us: distribution::summary(&times(&after.lateness.since(&before.lateness))),
            cpu_s: (after.cpu_ns - before.cpu_ns) as f64 / 1e9,
            queue_drops: end.unasked_drops() - overflowed,
            overflowed,
            strays: strays.unroutable + strays.malformed,
        };
        Ok(Carried { figures, packets, seen: self.watch.take() })
    }

    /// By group: packets between the second and the third of these, and between the first and the second. What a group sent counts
    /// where it came to the link, what it received where that left it.
    fn packets(&self, [start, before, after]: [&Snapshot; 3]) -> Vec<(String, PacketCounts, PacketCounts)> {
        let counts = |from: &Snapshot, to: &Snapshot, group: usize| {
            let up = to.links[group].up.since(&from.links[group].up).arrived;
            let down = to.links[group].down.since(&from.links[group].down).delivered;
            PacketCounts {
                sent_packets: up.packets,
                sent_bytes: up.bytes,
                received_packets: down.packets,
                received_bytes: down.bytes,
            }
        };
        let groups = self.names.iter().enumerate();
        groups.map(|(group, name)| (name.clone(), counts(before, after, group), counts(start, before, group))).collect()
    }
}

fn direction(
    steps: &[Step],
    group: usize,
    way: Way,
    found: &[Verification],
    [before, after]: [&Snapshot; 2],
) -> LinkDirection {
    let counters = after.links[group].of(way).since(before.links[group].of(way));
    let found = found.iter().find(|found| (found.group, found.way) == (group, way));
    LinkDirection {
        asked: steps.iter().map(step).collect(),
        checks: found.map(|found| found.checks.iter().map(check).collect()).unwrap_or_default(),
        traffic: traffic(&counters),
    }
}

fn step(step: &Step) -> String {
    let words = step.conditions.words();
    if step.at_ns == 0 { words } else { format!("from {} s: {words}", step.at_ns as f64 / 1e9) }
}

fn check(found: &verify::Check) -> LinkCheck {
    let [name, asked, measured] = found.words();
    let (measured, kept) = match &found.outcome {
        Outcome::Met => (measured, Some(true)),
        Outcome::Missed => (measured, Some(false)),
        Outcome::Unverified(why) => (why.clone(), None),
    };
    LinkCheck { name, asked, measured, kept }
}

fn traffic(counters: &Counters) -> LinkTraffic {
    LinkTraffic {
        entered_packets: counters.arrived.packets,
        entered_bytes: counters.arrived.bytes,
        lost: counters.lost.packets,
        lost_down: counters.lost_down.packets,
        queue_full: counters.queue_dropped.packets,
        duplicated: counters.duplicated.packets,
        sent_ahead: counters.sent_ahead,
        out_of_order: counters.out_of_order,
        left_packets: counters.delivered.packets,
        left_bytes: counters.delivered.bytes,
        queue_peak_bytes: counters.queue_high_water_bytes,
    }
}

/// The emulator's own histogram as the record's figures are made from: a value of a bucket is at most 1/32 too large.
fn times(lateness: &Lateness) -> Distribution {
    let mut times = Distribution::new(Precision::Total);
    for (ns, count) in lateness.buckets() {
        times.record_many(ns, count);
    }
    times
}
