//! Distributes a fleet over shards. Which shard runs a device has no effect on what the device does.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use pubmark_model::connection_groups::ConnectionGroups;
use pubmark_model::fleet::{Device, StreamSource, Subscriber};
use pubmark_model::identity::GroupIdentity;
use pubmark_model::qos::Qos;
use pubmark_model::random::Stream;
use pubmark_model::requests;
use pubmark_model::schedule::Rules;
use pubmark_model::token::ClientToken;
use pubmark_model::workload::{DeviceGroup, SessionKind};
use pubmark_protocol::body::Body;
use pubmark_protocol::clients::{
    Publication, RequestTarget, SessionConfig, SessionOptions, ShardConfig, Subscription, Will,
};
use pubmark_protocol::clock;
use pubmark_protocol::log_in::SessionToken;
use pubmark_protocol::token::TokenSigner;
use pubmark_protocol::transform::ShardTransformer;

use crate::announced::Announced;
use crate::bodies::{self, Bodies};
use crate::content::broker::BrokerFilters;
use crate::content::counts::ContentFilter;
use crate::content::matches::{self, MatchNotes, Matching};
use crate::due_times::sample::{self, DueSample};
use crate::endpoints::Endpoints;
use crate::fault_targets;
use crate::faults::log::FaultLog;
use crate::pacing::Pacing;
use crate::plan::RunPlan;
use crate::probes;
use crate::progress::Progress;
use crate::ramp;
use crate::realtime::RealtimeThreads;
use crate::requests::ShardRequests;
use crate::shard::presence::Presence;
use crate::shard::publisher::Publisher;
use crate::shard::reactions::{Link, Reactions};
use crate::shard::receiver::{Audience, Receiver};
use crate::shard::requester::Requester;
use crate::shard::responder::Responder;
use crate::shard::setup::{SessionSetup, Setup};
use crate::shard::slowing::Slowing;
use crate::shared_connections::SharedConnections;
use crate::shares::{self, IsolationDomains, NodeOfClient, Share, Side};
use crate::transform::{PublisherSteps, Reversal};

/// First levels of the topics on which replies arrive; the requester's client identifier follows.
const REPLIES: &str = "pubmark/answers";

/// Number of the random stream for the pauses before a shard reconnects. No device uses this stream.
const BACKOFF: u64 = 0x0bac;

/// What all shards have in common.
struct Common<'a> {
    plan: &'a RunPlan,
    rules: Arc<[Rules]>,
    groups: Arc<[u16]>,
    /// Where clients run.
    places: NodeOfClient,
    /// Node of each publisher of the fleet, in a run on several nodes.
    nodes: Option<Arc<[u16]>>,
    /// Names of the device groups.
    types: Vec<Arc<str>>,
    /// User properties of the messages of each device group.
    properties: Vec<Arc<[(String, String)]>>,
    /// Signers of the tokens of device groups, and of subscriber groups.
    signers: [Vec<Option<Arc<TokenSigner>>>; 2],
    /// By subscriber: the publishers that it receives from.
    streams: Vec<Arc<[StreamSource]>>,
    /// By subscriber: its audience.
    audiences: Vec<u32>,
    /// By requester: its responder.
    responders: HashMap<u32, RequestTarget>,
    /// By publisher: notes of which messages the predicates match, still empty; none if no subscriber has a predicate.
    matches: Vec<Vec<MatchNotes>>,
    /// By publisher: audiences that receive its messages.
    fan_out: Vec<u32>,
    /// Filters by message content that the system applies.
    filters: BrokerFilters,
    /// Which devices share a connection.
    shared_connections: SharedConnections<'a>,
    /// The shared connections by group.
    connection_groups: ConnectionGroups,
    /// By publisher that reacts or sends less: numbers of the publishers that trigger it.
    triggers: HashMap<u32, Vec<u32>>,
    /// Settings of publishers' shards and of subscribers' shards.
    configs: [ShardConfig; 2],
    /// Generates payloads.
    bodies: Bodies,
    /// How far each publisher of this process has sent.
    announced: Arc<Announced>,
    progress: Arc<Progress>,
    /// The isolation domain of each client.
    domains: IsolationDomains,
    /// The shards.
    shares: Vec<Share>,
    /// How long publishers' sessions and subscribers' sessions take to start connecting.
    ramp_up: [Duration; 2],
}

/// By publisher that reacts (only the twin for measured roots) or sends less: numbers of the publishers that trigger it,
/// both twins of each.
fn triggers(plan: &RunPlan) -> HashMap<u32, Vec<u32>> {
    let mut triggers: HashMap<u32, Vec<u32>> = HashMap::new();
    for link in plan.fleet.links() {
        let group = plan.fleet.devices()[link.trigger as usize].group;
        let twins = 1 + u32::from(plan.workload.devices[usize::from(group)].reaction().is_some());
        triggers.entry(link.reacts).or_default().extend((0..twins).map(|twin| link.trigger + twin));
    }
    // Twins have links of their own here.
    for link in plan.fleet.slowdowns() {
        triggers.entry(link.reacts).or_default().push(link.trigger);
    }
    triggers
}

/// The shards of a run for which `is_wanted` holds, in order of their index: first those of publishers, then those of
/// subscribers. Other shards are not computed, so that each of a thousand nodes computes only a thousandth of the
/// fleet. The exception is a fault that selects from all connections: then all shards are computed.
pub fn shards(plan: &RunPlan, progress: &Arc<Progress>, is_wanted: impl Fn(usize) -> bool) -> Vec<Setup> {
    let streams = plan.fleet.streams(&plan.workload);
    let audiences = plan.fleet.audiences(&plan.workload);
    let mut fan_out = vec![0u32; plan.fleet.devices().len()];
    let mut counted = 0;
    for (sources, audience) in streams.iter().zip(&audiences) {
        // Audiences are numbered in the order of their first members.
        if *audience == counted {
            sources.iter().for_each(|entry| fan_out[entry.publisher as usize] += 1);
            counted += 1;
        }
    }
    let filters = BrokerFilters::of(plan, &streams, &audiences);
    let matches = matches::notes_of_publishers(&plan.workload, &plan.fleet, &streams);
    let shared_connections = SharedConnections::new(&plan.workload, &plan.fleet);
    let places = NodeOfClient::of(plan, &shared_connections, &audiences);
    let common = Common {
        plan,
        rules: Rules::all(&plan.workload, plan.seed, &plan.timeline).into(),
        groups: plan.fleet.devices().iter().map(|device| device.group).collect(),
        nodes: plan.reports_pairs().then(|| of_publishers(plan, &shared_connections, &places).into()),
        types: plan.workload.devices.iter().map(|group| group.name.as_str().into()).collect(),
        properties: plan.workload.devices.iter().map(|group| group.properties.clone().into()).collect(),
        signers: [
            plan.workload.devices.iter().map(|group| signer(&group.identity)).collect(),
            plan.workload.subscribers.iter().map(|group| signer(&group.identity)).collect(),
        ],
        matches,
        responders: responders(plan, &streams, &places),
        places,
        streams,
        audiences,
        fan_out,
        filters,
        shared_connections,
        connection_groups: ConnectionGroups::of(&plan.workload),
        triggers: triggers(plan),
        configs: [&plan.publish_at, &plan.subscribe_at].map(|endpoints| shard_config(plan, endpoints)),
        bodies: Bodies::new(plan.seed),
        announced: Arc::new(Announced::new(plan.fleet.devices().len())),
        progress: Arc::clone(progress),
        domains: IsolationDomains::of(plan),
        shares: shares::shares(plan),
        ramp_up: [Side::Publish, Side::Subscribe].map(|side| plan.ramp_up(ramp::sessions_at_start(plan, side))),
    };
    let chooses = plan.faults.iter().any(|fault| fault.connections.is_some());
    let needed = (0..common.shares.len()).filter(|index| chooses || is_wanted(*index));
    let mut setups: Vec<Setup> = needed.map(|index| common.shard(index)).collect();
    fault_targets::choose(&mut setups, &plan.workload, &plan.faults, plan.seed);
    setups.retain(|setup| is_wanted(setup.index));
    setups
}

/// Name of a shard, by its index.
pub fn name(plan: &RunPlan, shares: &[Share], index: usize) -> String {
    let name = match shares[index].side {
        Side::Publish => format!("publisher {index}"),
        Side::Subscribe => format!("subscriber {}", index - shares::count(shares, Side::Publish)),
    };
    if plan.nodes > 1 { format!("{name} of node {}", shares[index].node + 1) } else { name }
}

/// The signer of the tokens of a group. A key that cannot sign was refused before the run.
fn signer(identity: &GroupIdentity) -> Option<Arc<TokenSigner>> {
    identity.token.as_ref().and_then(|token| TokenSigner::new(&token.rules).ok()).map(Arc::new)
}

/// Node of each publisher of the fleet.
pub fn nodes_of_publishers(plan: &RunPlan, audiences: &[u32]) -> Vec<u16> {
    let shared_connections = SharedConnections::new(&plan.workload, &plan.fleet);
    of_publishers(plan, &shared_connections, &NodeOfClient::of(plan, &shared_connections, audiences))
}

fn of_publishers(plan: &RunPlan, shared_connections: &SharedConnections<'_>, places: &NodeOfClient) -> Vec<u16> {
    let mut nodes = vec![0; plan.fleet.devices().len()];
    for (place, members) in shared_connections.sending().enumerate() {
        members.iter().for_each(|device| nodes[device.publisher as usize] = places.of_sender(place));
    }
    for subscriber in plan.fleet.subscribers() {
        let (node, _) = places.of_subscriber(subscriber);
        shared_connections.beside(subscriber).iter().for_each(|device| nodes[device.publisher as usize] = node);
    }
    nodes
}

/// By requester: its responder, and the node of that responder.
fn responders(plan: &RunPlan, streams: &[Arc<[StreamSource]>], places: &NodeOfClient) -> HashMap<u32, RequestTarget> {
    let place = |number: u32| {
        let subscriber = &plan.fleet.subscribers()[number as usize];
        let (node, _) = places.of_subscriber(subscriber);
        plan.subscribe_at.of_subscriber(subscriber, node).start
    };
    let responders = requests::responders(&plan.workload, &plan.fleet, streams);
    let target = |one: requests::ResponderRef| RequestTarget { endpoint: place(one.subscriber), filter: one.filter };
    responders.into_iter().map(|(publisher, one)| (publisher, target(one))).collect()
}

fn shard_config(plan: &RunPlan, endpoints: &Endpoints) -> ShardConfig {
    ShardConfig {
        endpoints: Arc::clone(endpoints.endpoints()),
        sources: Arc::clone(&plan.sources),
        networks: Arc::clone(&plan.networks.all),
        run: plan.run_id,
        wall_ahead_ns: clock::realtime_ns() as i64 - clock::monotonic_ns() as i64,
        body_pool: bodies::random_pool(plan.seed),
        connections: plan.connections.clone(),
    }
}

impl Common<'_> {
    fn shard(&self, index: usize) -> Setup {
        match self.shares[index].side {
            Side::Publish => self.publisher_shard(index),
            Side::Subscribe => self.subscriber_shard(index),
        }
    }

    fn publisher_shard(&self, index: usize) -> Setup {
        let share = self.shares[index];
        let mut sessions = vec![];
        let mut publishers = vec![];
        let mut books = vec![];
        let transformer = Arc::default();
        let is_meant = |(place, members): &(usize, Vec<Device>)| {
            share.is_of(self.places.of_sender(*place), self.domains.devices[usize::from(members[0].group)])
        };
        let shared_connections = self.shared_connections.sending().enumerate().filter(is_meant);
        for (_, members) in shared_connections.skip(share.part).step_by(share.of) {
            let session = sessions.len() as u32;
            let (range, publications) =
                self.add_devices(&members, Side::Publish, session, &transformer, &mut publishers);
            for (publisher, device) in publishers[range.start as usize..].iter_mut().zip(members.iter()) {
                let requests = self.plan.workload.devices[usize::from(device.group)].requests;
                publisher.requester =
                    requests.map(|requests| Box::new(Requester::new(requests, device.group, &mut books)));
            }
            let mut config = SessionConfig { publications, ..self.device_session(&members[0], share.node) };
            config.options.selector_fields = self.filters.fields_of(&members);
            let targets = members.iter().map(|device| self.responders.get(&device.publisher).cloned());
            config.options.targets = targets.collect::<Option<_>>().unwrap_or_default();
            let connection_group = self.connection_groups.devices[usize::from(members[0].group)];
            let identity = fault_targets::identity(&self.plan.fleet.client_id(0, &members[0]));
            sessions.push(SessionSetup {
                config,
                publishers: range,
                subscriber: None,
                subscriber_group: None,
                identity,
                responder: None,
                connection_group,
            });
        }
        let setup = self.setup(index, sessions, publishers, &[], Reactions::default());
        Setup { requests: ShardRequests::new(books), ..setup }
    }

    /// Adds the devices of a session to the publishers of its shard. Returns their indices there, and the topics that
    /// they publish on.
    fn add_devices(
        &self,
        members: &[Device],
        side: Side,
        session: u32,
        transformer: &Arc<ShardTransformer>,
        publishers: &mut Vec<Publisher>,
    ) -> (Range<u32>, Vec<Publication>) {
        let config = self.config(side);
        let first = publishers.len() as u32;
        let mut publications = Vec::with_capacity(members.len());
        for device in members {
            let group = &self.plan.workload.devices[usize::from(device.group)];
            let rules = &self.rules[usize::from(device.group)];
            let fan_out = self.fan_out[device.publisher as usize];
            let acknowledged = group.qos > Qos::BestEffort;
            let mut publisher = Publisher::new(device, rules, session, acknowledged, fan_out, group.churn.is_some());
            publisher.publication = u16::try_from(publications.len()).expect("`Fleet::limits` was asked for");
            publisher.slowing = group.slowdown.as_ref().map(|slowdown| Box::new(Slowing::new(slowdown)));
            publisher.book.leads = self.plan.fleet.leads(device.publisher);
            self.add_matching(&mut publisher, device, side);
            let steps = self.bodies.transformed(group, device, &config.body_pool, transformer);
            let body = match &steps {
                Some(steps) => Some(Body::Transformed(Arc::clone(steps))),
                None => self.bodies.plain(&group.body, device),
            };
            let with_clock = |body| Box::new(PublisherSteps::new(body, group.header, config.wall_ahead_ns));
            publisher.steps = steps.map(with_clock);
            publications.push(Publication {
                publisher: device.publisher,
                topic: self.plan.fleet.topic(&self.plan.workload, device).into(),
                qos: group.qos,
                retain: group.retain,
                body,
                header: group.header,
                properties: Arc::clone(&self.properties[usize::from(device.group)]),
            });
            publishers.push(publisher);
        }
        (first..publishers.len() as u32, publications)
    }

    /// Makes a publisher evaluate the predicates of subscribers that receive its messages.
    fn add_matching(&self, publisher: &mut Publisher, device: &Device, side: Side) {
        let Some(notes) = self.matches.get(device.publisher as usize).filter(|notes| !notes.is_empty()) else { return };
        let group = &self.plan.workload.devices[usize::from(device.group)];
        let Some(body) = self.bodies.plain(&group.body, device) else { return };
        let wall_ahead_ns = self.config(side).wall_ahead_ns;
        publisher.book.matches = notes.clone();
        let matching = Matching::new(&self.plan.workload, body, wall_ahead_ns);
        publisher.matching = Some(Box::new(matching.with_filters(self.filters.of_publisher(device.publisher))));
    }

    fn config(&self, side: Side) -> &ShardConfig {
        match side {
            Side::Publish => &self.configs[0],
            Side::Subscribe => &self.configs[1],
        }
    }

    /// The reactions of the devices of a session, by number of the publisher that triggers them.
    fn links(&self, members: &[Device], first: u32) -> Vec<(u32, Link)> {
        let mut links = vec![];
        for (publisher, device) in (first..).zip(members) {
            for number in self.triggers.get(&device.publisher).into_iter().flatten() {
                let trigger = &self.plan.fleet.devices()[*number as usize];
                let rules = |device: &Device| &self.rules[usize::from(device.group)];
                let key = rules(device).reply_key(device, rules(trigger), trigger);
                links.push((*number, Link { publisher, key, device_bytes: device.name_bytes() }));
            }
        }
        links
    }

    /// The tokens of a client of this group. `side` is the index of the side; 0 for devices.
    fn token(&self, side: usize, group: u16, client: Option<ClientToken>) -> Option<SessionToken> {
        client.map(|client| SessionToken { client, signer: self.signers[side][usize::from(group)].clone() })
    }

    /// Configuration of a device's session, without its publications.
    fn device_session(&self, device: &Device, node: u16) -> SessionConfig {
        let group = &self.plan.workload.devices[usize::from(device.group)];
        let identity = self.plan.fleet.device_identity(&self.plan.workload, self.plan.run_id, device);
        let client_id: Box<str> = identity.client_id.into();
        let reply_topic: Option<Box<str>> = group.requests.map(|_| format!("{REPLIES}/{client_id}").into());
        let replies = reply_topic.iter().map(|topic| Subscription { filter: topic.clone(), qos: group.qos });
        SessionConfig {
            subscriptions: replies.collect(),
            client_id,
            endpoint: self.plan.publish_at.of_device(device, node),
            network: self.plan.networks.of_devices(device.group),
            credentials: identity.credentials,
            token: self.token(0, device.group, identity.token),
            nkey: identity.nkey,
            certificate: identity.certificate,
            persistent: group.session == SessionKind::Persistent,
            in_flight_window: group.in_flight_window,
            publications: vec![],
            options: SessionOptions {
                reply_topic,
                gives_up_after: group.requests.map(|requests| requests.timeout),
                ..self.device_options(device)
            },
        }
    }

    fn device_options(&self, device: &Device) -> SessionOptions {
        let workload = &self.plan.workload;
        let group = &workload.devices[usize::from(device.group)];
        let will = group.will.as_ref().zip(self.plan.fleet.will_topic(workload, device)).map(|(will, topic)| {
            Box::new(Will {
                publisher: device.publisher,
                topic: topic.into(),
                qos: will.qos,
                retain: will.retain,
                payload_bytes: u16::try_from(will.payload_bytes).unwrap_or(u16::MAX),
                delay_s: will.delay.as_secs() as u32,
            })
        });
        SessionOptions {
            shared: None,
            will,
            message_expiry_s: group.mqtt.message_expiry.map(|expiry| expiry.as_secs() as u32),
            topic_alias: group.mqtt.topic_alias,
            device_type: Some(Arc::clone(&self.types[usize::from(device.group)])),
            ..SessionOptions::default()
        }
    }

    fn subscriber_shard(&self, index: usize) -> Setup {
        let (plan, share) = (self.plan, self.shares[index]);
        let mut sessions = vec![];
        let mut publishers = vec![];
        let transformer = Arc::default();
        let mut links: HashMap<(u32, u32), Vec<Link>> = HashMap::new();
        let mut audiences: Vec<Audience> = vec![];
        // Index on this shard, by the audience's number in the message accounting.
        let mut known: HashMap<u32, u32> = HashMap::new();
        for subscriber in plan.fleet.subscribers() {
            let audience = self.audiences[subscriber.number as usize];
            // All members of a shared group are on one shard: see docs/explanation/message-accounting.md.
            let (node, number) = self.places.of_subscriber(subscriber);
            let is_meant = share.is_of(node, self.domains.subscribers[usize::from(subscriber.group)]);
            if !is_meant || number % share.of != share.part {
                continue;
            }
            let streams = &self.streams[subscriber.number as usize];
            let members = self.shared_connections.beside(subscriber);
            for (nth, place) in (0u32..).zip(plan.subscribe_at.of_subscriber(subscriber, node)) {
                // Sessions on independent brokers connect and disconnect independently and receive from different
                // publishers. Each broker's part of an audience therefore has a separate number in the message
                // accounting.
                let mut config = self.subscriber_session(subscriber, place);
                let number = plan.subscribe_at.number_of_part(audience, nth);
                let index = *known.entry(number).or_insert_with(|| {
                    let sources = plan.subscribe_at.sources_at(place, streams);
                    let shared = plan.workload.subscribers[usize::from(subscriber.group)].shared.is_some();
                    let filters = config.subscriptions.len() as u16;
                    audiences.push(Audience { number, sources, filters, group: subscriber.group, shared });
                    audiences.len() as u32 - 1
                });
                let session = sessions.len() as u32;
                let (range, publications) =
                    self.add_devices(&members, Side::Subscribe, session, &transformer, &mut publishers);
                if let Some(device) = members.first() {
                    config = SessionConfig { subscriptions: config.subscriptions, ..self.device_session(device, node) };
                    config.endpoint = place;
                    config.options.selector_fields = self.filters.fields_of(&members);
                }
                config.options.selector = self.filters.selectors[usize::from(subscriber.group)].clone();
                config.options.processing = plan.workload.subscribers[usize::from(subscriber.group)].processing;
                config.publications = publications;
                for (trigger, link) in self.links(&members, range.start) {
                    links.entry((session, trigger)).or_default().push(link);
                }
                let responder = self.responder(subscriber);
                let identity =
                    fault_targets::identity(&plan.fleet.subscriber_client_id(0, subscriber)) ^ u64::from(place);
                sessions.push(SessionSetup {
                    config,
                    publishers: range,
                    subscriber: Some(index),
                    subscriber_group: Some(subscriber.group),
                    identity,
                    responder,
                    connection_group: self.connection_groups.subscribers[usize::from(subscriber.group)],
                });
            }
        }
        self.setup(index, sessions, publishers, &audiences, Reactions::new(links))
    }

    fn responder(&self, subscriber: &Subscriber) -> Option<Box<Responder>> {
        let group = &self.plan.workload.subscribers[usize::from(subscriber.group)];
        group.responds.map(|rules| Box::new(Responder::new(rules, group.qos)))
    }

    fn subscriber_session(&self, subscriber: &Subscriber, place: u16) -> SessionConfig {
        let plan = self.plan;
        let group = &plan.workload.subscribers[usize::from(subscriber.group)];
        let identity = plan.fleet.subscriber_identity(&plan.workload, plan.run_id, subscriber);
        let mut client_id = identity.client_id;
        if plan.subscribe_at.sessions_per_subscriber() > 1 && !identity.is_given {
            client_id.push_str(&format!("b{place}"));
        }
        let filters = plan.fleet.filters(&plan.workload, subscriber);
        SessionConfig {
            client_id: client_id.into(),
            endpoint: place,
            network: plan.networks.of_subscribers(subscriber.group),
            credentials: identity.credentials,
            token: self.token(1, subscriber.group, identity.token),
            nkey: identity.nkey,
            certificate: identity.certificate,
            persistent: group.session == SessionKind::Persistent,
            in_flight_window: u16::MAX,
            publications: vec![],
            subscriptions: filters
                .into_iter()
                .map(|filter| Subscription { filter: filter.into(), qos: group.qos })
                .collect(),
            options: SessionOptions {
                shared: group.shared.as_deref().map(Into::into),
                replies_at: group.responds.map(|_| group.qos),
                ..SessionOptions::default()
            },
        }
    }

    fn setup(
        &self,
        index: usize,
        sessions: Vec<SessionSetup>,
        publishers: Vec<Publisher>,
        audiences: &[Audience],
        reactions: Reactions,
    ) -> Setup {
        let plan = self.plan;
        let side = self.shares[index].side;
        let config = self.config(side);
        Setup {
            name: name(plan, &self.shares, index),
            index,
            config: config.clone(),
            workload: Arc::clone(&plan.workload),
            rules: Arc::clone(&self.rules),
            sessions,
            publishers,
            follows: plan.follows,
            log: None,
            reactions,
            receiver: Receiver::new(
                audiences,
                Arc::clone(&self.groups),
                plan.workload.devices.iter().map(DeviceGroup::smallest_sent_bytes).collect(),
                Arc::clone(&self.announced),
                plan.run_id,
            )
            .from_nodes(self.nodes.clone())
            .with_probes(plan.probes.then(|| probes::groups(&plan.workload)))
            .with_content(ContentFilter::new(&plan.workload, audiences.iter().map(|audience| audience.group).collect()))
            .with_transforms(Reversal::new(&plan.workload, plan.seed)),
            presence: Presence::new(audiences.iter().map(|audience| (audience.number, audience.filters))),
            requests: ShardRequests::new(vec![]),
            seed: plan.seed,
            due_times: DueSample::new(sample::unpredictable_key()),
            run: plan.run_id,
            series_start_ns: plan.timeline.start_ns(),
            warmup_ns: plan.timeline.warmup_ns,
            duration_ns: plan.timeline.duration_ns,
            ramp_up: match side {
                Side::Publish => self.ramp_up[0],
                Side::Subscribe => self.ramp_up[1],
            },
            realtime: plan.realtime.then(|| {
                let node = self.shares[index].node;
                let threads = self.shares.iter().filter(|share| share.node == node).count();
                RealtimeThreads { threads, shares_cores: plan.shares_cores }
            }),
            pacing: if plan.is_flood() { Pacing::default() } else { plan.pacing },
            handicap: plan.handicap,
            pause: plan.pause(),
            backoff: Stream::new(plan.seed ^ index as u64, BACKOFF),
            faults: (!plan.faults.is_empty())
                .then(|| Box::new(FaultLog::new(Arc::clone(&plan.faults), vec![], plan.timeline.start_ns()))),
            announced: Arc::clone(&self.announced),
            progress: Arc::clone(&self.progress),
        }
    }
}
