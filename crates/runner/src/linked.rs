//! Emulated links of a run: networks of their own for the groups behind links, probed before the run, counted while it
//! measures. The system runs in the core's network, and so does everything that reaches it without a link.

use std::net::IpAddr;
use std::sync::Arc;

use pubmark_engine::plan::Networks;
use pubmark_links::addresses;
use pubmark_links::direction::Counters;
use pubmark_links::error::LinkError;
use pubmark_links::namespace::Namespace;
use pubmark_links::netem;
use pubmark_links::network::{BackEnd, Network, Settings};
use pubmark_links::relay::Counts;
use pubmark_links::star::Snapshot;
use pubmark_links::verify::{self, Outcome, Verification};
use pubmark_links::watch::{Orders, Seen, Watch};
use pubmark_links::{Way, privilege, sockets};
use pubmark_model::fault::Fault;
use pubmark_model::link::{Link, Step};
use pubmark_model::workload::Workload;
use pubmark_protocol::network;
use pubmark_record::distribution;
use pubmark_record::efficiency::PacketCounts;
use pubmark_record::links::{LinkBackEnd, LinkCheck, LinkDirection, LinkFigures, LinkGroup, LinkTraffic};

use crate::error::{ErrorKind, RunError};
use crate::nodes;
use crate::relayed::{Relayed, times};

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
    /// Of the groups of one node; networks are numbered through these, then through nodes.
    names: Vec<String>,
    nodes: u16,
    networks: Networks,
    found: Vec<Verification>,
    /// What probes had carried before anything else came.
    probed: Snapshot,
    congestion_control: String,
    watch: Watch,
    /// The way to a system that runs already.
    relayed: Option<Relayed>,
}

/// What links, and the relay behind them, have carried by now.
pub struct CarriedNow {
    links: Snapshot,
    relay: Option<Result<Counts, String>>,
}

impl CarriedNow {
    /// The longest that a relay held a byte since it was asked before, ns; 0 without one, and `u64::MAX` where it is gone.
    pub fn held_ns(&self) -> u64 {
        match &self.relay {
            None => 0,
            Some(Ok(counts)) => counts.longest_held_ns,
            Some(Err(_)) => u64::MAX,
        }
    }
}

/// What a run's links came to.
pub struct Carried {
    /// For the record.
    pub figures: LinkFigures,
    /// By group: packets of the measured window, and of what was before it; none where it was not lived through.
    pub packets: Vec<(String, PacketCounts, PacketCounts)>,
    /// Messages on their way; `None` where the back end shows no packets.
    pub seen: Option<Seen>,
}

fn failed(error: &LinkError) -> RunError {
    RunError::from_error(ErrorKind::Input, error)
        .during("failed to make the workload's links")
        .hint("`pubmark doctor` says what is missing for them; `--link none` runs the workload without")
}

/// The links' own failure, with what to type where only the kernel's emulation is missing or cannot do something.
fn not_made(error: &LinkError, back_end: BackEnd) -> RunError {
    match (error, back_end) {
        (LinkError::Impossible { .. } | LinkError::NotByKernel { .. }, BackEnd::KernelNetem) => {
            RunError::from_error(ErrorKind::Unsupported, error)
                .hint("leave `--netem kernel` out: links are then emulated in user space, which needs no netem")
        }
        _ => failed(error),
    }
}

/// Refuses what the kernel's emulation cannot do, and a kernel that does not have it, before anything starts.
///
/// # Errors
/// What is missing, and what to type instead.
pub fn by_kernel(workload: &Workload) -> Result<(), RunError> {
    let behind = Behind::of(workload);
    let links: Vec<Link> = behind.members.iter().map(|member| member.link.clone()).collect();
    let not_made = |error| not_made(&error, BackEnd::KernelNetem);
    netem::refuse(&links).map_err(not_made)?;
    privilege::probe().kernel_netem.map_err(|missing| not_made(LinkError::Impossible { missing }))
}

/// Would making the links of a workload take this process off the machine's network?
pub fn leaves_network(workload: &Workload) -> bool {
    any(workload) && !privilege::is_administrator()
}

/// Lets a plain user make the links of a workload, as root of a user namespace: from then on this process and what it starts are in a
/// network of their own, where the system has to be, too. To be called before any thread is started; does nothing for root, and for a
/// workload without links.
///
/// # Errors
/// What this machine lacks.
pub fn claim(workload: &Workload) -> Result<(), RunError> {
    match any(workload) {
        true => privilege::claim().map(|_| ()).map_err(|error| failed(&error)),
        false => Ok(()),
    }
}

impl Linked {
    /// Makes the networks of a workload, those of each of so many nodes, and probes its links, about two seconds long; `None` where
    /// no group is behind one.
    ///
    /// # Errors
    /// What this machine lacks.
    pub fn start(workload: &Workload, seed: u64, back_end: BackEnd, nodes: u16) -> Result<Option<Linked>, RunError> {
        let behind = Behind::of(workload);
        if behind.members.is_empty() {
            return Ok(None);
        }
        let of_node = || behind.members.iter().map(|member| member.link.clone());
        let links = (0..nodes).flat_map(|_| of_node()).collect();
        let settings = Settings { back_end, ..Settings::new(links, seed) };
        let watch = Watch::new();
        let network = Network::start_observed(settings, watch.watcher()).map_err(|error| not_made(&error, back_end))?;
        let congestion_control = sockets::default_congestion_control(network.core()).map_err(|error| failed(&error))?;
        let found = verify::verify(&network).map_err(|error| failed(&error))?;
        let all = (0..network.groups()).filter_map(|group| {
            network.group(group).map(|namespace| Arc::new(namespace.clone()) as Arc<dyn network::Network>)
        });
        Ok(Some(Linked {
            networks: Networks { all: all.collect(), devices: behind.devices, subscribers: behind.subscribers },
            probed: network.snapshot(),
            names: behind.members.iter().map(|member| member.name.to_owned()).collect(),
            nodes,
            network,
            found,
            congestion_control,
            watch,
            relayed: None,
        }))
    }

    /// Namespaces of the groups, in the order of [`Linked::networks`], those of the first node first.
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
    pub fn within<T>(&self, work: impl FnOnce() -> Result<T, RunError>) -> Result<T, RunError> {
        self.network.core().enter(work).map_err(|error| failed(&error))?
    }

    /// Where the system runs, and the relay to one that runs elsewhere listens.
    pub fn core(&self) -> &Namespace {
        self.network.core()
    }

    /// Leads the links to a system that runs already.
    pub fn lead_to(&mut self, relayed: Relayed) {
        self.relayed = Some(relayed);
    }

    /// The way to a system that runs already.
    pub fn relayed(&self) -> Option<&Relayed> {
        self.relayed.as_ref()
    }

    /// Can messages be found on their way? Not where the kernel carries the packets.
    pub fn shows_packets(&self) -> bool {
        self.network.back_end() == BackEnd::UserSpace
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
                let mut of_nodes = (number..self.network.groups()).step_by(self.names.len());
                of_nodes.try_for_each(|number| self.network.cut(number, cut)).map_err(|error| error.to_string())?;
            }
        }
        Ok(())
    }

    /// What they have carried by now.
    pub fn carried(&self) -> CarriedNow {
        CarriedNow { links: self.network.snapshot(), relay: self.relayed.as_ref().map(Relayed::counts) }
    }

    /// What the record says of them: what they carried between the edges of the window; the relay held a byte `held_ns` at most. Ends
    /// them.
    ///
    /// # Errors
    /// The emulator had stopped before.
    pub fn figures(self, carried: [Option<CarriedNow>; 2], held_ns: u64) -> Result<Carried, RunError> {
        let links = self.network.links().to_vec();
        let emulated = self.network.back_end() == BackEnd::UserSpace;
        let counts = |now: &Option<CarriedNow>| now.as_ref().and_then(|now| now.relay.clone());
        let relay = match (&self.relayed, counts(&carried[0]), counts(&carried[1])) {
            (Some(relayed), Some(before), Some(after)) => Some(relayed.figures(&before, &after, held_ns)),
            _ => None,
        };
        let [before, after] = carried.map(|now| now.map(|now| now.links));
        let packets = match (&before, &after) {
            (Some(before), Some(after)) => self.packets([&self.probed, before, after]),
            _ => vec![],
        };
        let end = self.network.stop().map_err(|error| RunError::from_error(ErrorKind::Internal, &error))?;
        // A run that was stopped before its window has measured nothing.
        let before = before.as_ref().unwrap_or(&end.snapshot);
        let after = after.as_ref().unwrap_or(&end.snapshot);
        let traffic: fn(&Counters) -> LinkTraffic = if emulated { traffic } else { traffic_of_kernel };
        let group = |number: usize| LinkGroup {
            group: name(&self.names, self.nodes, number),
            link: links[number].name.clone(),
            source: links[number].source.clone(),
            up: direction(&links[number].up, number, Way::Up, &self.found, [before, after], traffic),
            down: direction(&links[number].down, number, Way::Down, &self.found, [before, after], traffic),
        };
        let all = end.snapshot.links.iter().flat_map(|link| [&link.up, &link.down]);
        let overflowed: u64 = all.map(|counters| counters.overflowed.packets).sum();
        let strays = &end.snapshot.strays;
        let figures = LinkFigures {
            back_end: if emulated { LinkBackEnd::UserSpace } else { LinkBackEnd::KernelNetem },
            realtime: end.snapshot.realtime,
            congestion_control: self.congestion_control.clone(),
            groups: (0..links.len()).map(group).collect(),
            differences: if emulated { vec![] } else { differences(&links) },
            relay,
            lateness: distribution::summary(&times(&after.lateness.since(&before.lateness))),
            cpu_s: emulated.then(|| (after.cpu_ns - before.cpu_ns) as f64 / 1e9),
            queue_drops: end.unasked_drops() - overflowed,
            overflowed: emulated.then_some(overflowed),
            strays: emulated.then_some(strays.unroutable + strays.malformed),
        };
        Ok(Carried { figures, packets, seen: emulated.then(|| self.watch.take()) })
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
        // A group's own, whichever nodes its clients are on.
        let sum = |from: &Snapshot, to: &Snapshot, group: usize| {
            let of_nodes = (group..self.network.groups()).step_by(self.names.len());
            let mut sum = PacketCounts::default();
            of_nodes.for_each(|number| sum.add(&counts(from, to, number)));
            sum
        };
        let groups = self.names.iter().enumerate();
        groups.map(|(group, name)| (name.clone(), sum(before, after, group), sum(start, before, group))).collect()
    }
}

/// Name of a network, from those of one node.
fn name(names: &[String], nodes: u16, number: usize) -> String {
    let name = &names[number % names.len()];
    match nodes {
        1 => name.clone(),
        _ => format!("{name} at {}", nodes::local_name((number / names.len()) as u16)),
    }
}

fn direction(
    steps: &[Step],
    group: usize,
    way: Way,
    found: &[Verification],
    [before, after]: [&Snapshot; 2],
    traffic: fn(&Counters) -> LinkTraffic,
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
    LinkCheck { name, asked, measured, as_asked: kept }
}

fn traffic(counters: &Counters) -> LinkTraffic {
    LinkTraffic {
        entered_packets: counters.arrived.packets,
        entered_bytes: counters.arrived.bytes,
        lost: counters.lost.packets,
        lost_down: Some(counters.lost_down.packets),
        queue_full: Some(counters.queue_dropped.packets),
        duplicated: Some(counters.duplicated.packets),
        sent_ahead: Some(counters.sent_ahead),
        out_of_order: Some(counters.out_of_order),
        left_packets: counters.delivered.packets,
        left_bytes: counters.delivered.bytes,
        queue_peak_bytes: Some(counters.queue_high_water_bytes),
    }
}

/// The same of the kernel's netem, which does not tell more.
fn traffic_of_kernel(counters: &Counters) -> LinkTraffic {
    LinkTraffic {
        entered_packets: counters.arrived.packets,
        entered_bytes: counters.arrived.bytes,
        lost: counters.lost.packets,
        left_packets: counters.delivered.packets,
        left_bytes: counters.delivered.bytes,
        ..LinkTraffic::default()
    }
}

/// What the kernel's netem does in another way, each once.
fn differences(links: &[Link]) -> Vec<String> {
    let steps = links.iter().flat_map(|link| link.up.iter().chain(&link.down));
    let mut found: Vec<&str> = steps.flat_map(|step| netem::differences(&step.conditions)).collect();
    found.sort_unstable();
    found.dedup();
    found.into_iter().map(str::to_owned).collect()
}
