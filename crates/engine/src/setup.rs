//! Deals a fleet out over shards. Where a device runs changes nothing about what it does.

use std::collections::HashMap;
use std::sync::Arc;

use pubmark_model::fleet::{Device, Heard, Subscriber};
use pubmark_model::payload::Body;
use pubmark_model::qos::Qos;
use pubmark_model::random::Stream;
use pubmark_model::schedule::{ChurnCursor, Rules};
use pubmark_model::workload::SessionKind;
use pubmark_protocol::clients::{self, Publication, SessionConfig, SessionOptions, ShardConfig, Subscription, Will};

use crate::places::Places;
use crate::plan::RunPlan;
use crate::progress::Progress;
use crate::shard::publisher::Publisher;
use crate::shard::receiver::{Audience, Receiver};
use crate::shard::{SessionSetup, Setup};

/// Bytes that fill payloads: as large as the largest payload's need for not repeating within a message of usual size.
const BODY_POOL_BYTES: usize = 1 << 20;

/// Words that fill text payloads: about 64 KB.
const TEXT_POOL_WORDS: u64 = 13_000;

/// Draws of this run that no device makes.
mod purpose {
    pub const BODY: u64 = 0x0b0d;
    pub const BACKOFF: u64 = 0x0bac;
    pub const TEXT: u64 = 0x07e7;
}

/// What all shards have in common.
struct Common<'a> {
    plan: &'a RunPlan,
    rules: Arc<[Rules]>,
    groups: Arc<[u16]>,
    /// By subscriber: whom it hears.
    streams: Vec<Arc<[Heard]>>,
    /// By subscriber: its audience.
    audiences: Vec<u32>,
    /// By publisher: audiences that hear it.
    fan_out: Vec<u32>,
    /// Of publishers' shards and of subscribers'.
    configs: [ShardConfig; 2],
    /// Words that fill text payloads.
    text: Arc<[u8]>,
    progress: Arc<Progress>,
}

/// Devices that are planned to be online when the schedule begins.
pub fn online_at_start(plan: &RunPlan) -> u64 {
    let rules = Rules::all(&plan.workload, plan.seed, &plan.timeline);
    let online = |device: &&Device| {
        let group = usize::from(device.group);
        plan.workload.devices[group].churn.is_none() || ChurnCursor::new(&rules[group], device).online_at_start()
    };
    plan.fleet.devices().iter().filter(online).count() as u64
}

/// The shards of a run: first those of publishers, then those of subscribers.
pub fn shards(plan: &RunPlan, progress: &Arc<Progress>) -> Vec<Setup> {
    let streams = plan.fleet.streams(&plan.workload);
    let audiences = plan.fleet.audiences(&plan.workload);
    let mut fan_out = vec![0u32; plan.fleet.devices().len()];
    let mut counted = 0;
    for (heard, audience) in streams.iter().zip(&audiences) {
        // They are numbered in the order of their first members.
        if *audience == counted {
            heard.iter().for_each(|entry| fan_out[entry.publisher as usize] += 1);
            counted += 1;
        }
    }
    let common = Common {
        plan,
        rules: Rules::all(&plan.workload, plan.seed, &plan.timeline).into(),
        groups: plan.fleet.devices().iter().map(|device| device.group).collect(),
        streams,
        audiences,
        fan_out,
        configs: [&plan.publish_at, &plan.subscribe_at].map(|places| shard_config(plan, places)),
        text: text_pool(plan.seed),
        progress: Arc::clone(progress),
    };
    let publishers = (0..plan.publisher_shards).map(|shard| common.publisher_shard(shard));
    let subscribers = (0..plan.subscriber_shards).map(|shard| common.subscriber_shard(shard));
    publishers.chain(subscribers).collect()
}

fn shard_config(plan: &RunPlan, places: &Places) -> ShardConfig {
    let draws = Stream::new(plan.seed, purpose::BODY);
    let words = (0..BODY_POOL_BYTES as u64 / 8).flat_map(|index| draws.bits(index).to_le_bytes());
    ShardConfig {
        endpoints: Arc::clone(places.endpoints()),
        sources: Arc::clone(&plan.sources),
        run: plan.run_id,
        body_pool: words.collect(),
        maximum_packet_bytes: plan.maximum_packet_bytes,
        receive_stamps: plan.receive_stamps,
        keep_alive_s: plan.keep_alive_s,
    }
}

/// Printable text: words in a seeded order.
fn text_pool(seed: u64) -> Arc<[u8]> {
    const WORDS: [&str; 16] = [
        "sensor", "reads", "a", "value", "of", "the", "room", "and", "sends", "it", "to", "every", "listener", "on",
        "time", "again",
    ];
    let draws = Stream::new(seed, purpose::TEXT);
    let words = (0..TEXT_POOL_WORDS).map(|index| WORDS[(draws.bits(index) % WORDS.len() as u64) as usize]);
    words.flat_map(|word| word.bytes().chain([b' '])).collect()
}

impl Common<'_> {
    fn publisher_shard(&self, shard: usize) -> Setup {
        let shards = self.plan.publisher_shards;
        let devices = self.plan.fleet.devices().iter().skip(shard).step_by(shards);
        let mut sessions = vec![];
        let mut publishers = vec![];
        for device in devices {
            let index = publishers.len() as u32;
            let group = &self.plan.workload.devices[usize::from(device.group)];
            publishers.push(Publisher::new(
                device,
                &self.rules[usize::from(device.group)],
                sessions.len() as u32,
                group.qos > Qos::BestEffort,
                self.fan_out[device.publisher as usize],
                group.churn.is_some(),
            ));
            sessions.push(SessionSetup {
                config: self.device_session(device),
                publishers: index..index + 1,
                subscriber: None,
            });
        }
        self.setup(format!("publisher {shard}"), shard, shards, sessions, publishers, &[])
    }

    fn device_session(&self, device: &Device) -> SessionConfig {
        let workload = &self.plan.workload;
        let group = &workload.devices[usize::from(device.group)];
        SessionConfig {
            client_id: self.plan.fleet.client_id(self.plan.run_id, device).into(),
            endpoint: self.plan.publish_at.of_device(device),
            credentials: group.credentials.clone(),
            persistent: group.session == SessionKind::Persistent,
            in_flight_window: group.in_flight_window,
            publications: vec![Publication {
                publisher: device.publisher,
                topic: self.plan.fleet.topic(workload, device).into(),
                qos: group.qos,
                retain: group.retain,
                body: self.body(&group.body),
            }],
            subscriptions: vec![],
            options: self.device_options(device),
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
        }
    }

    /// The random pool is every shard's own default.
    fn body(&self, body: &Body) -> Option<clients::Body> {
        match body {
            Body::Random => None,
            Body::Text => Some(clients::Body::Pool(Arc::clone(&self.text))),
            Body::Json(document) => Some(clients::Body::Document(Arc::clone(document).into())),
        }
    }

    fn subscriber_shard(&self, shard: usize) -> Setup {
        let (plan, shards) = (self.plan, self.plan.subscriber_shards);
        let mut sessions = vec![];
        let mut audiences: Vec<Audience> = vec![];
        // By number in the books: index on this shard.
        let mut known: HashMap<u32, u32> = HashMap::new();
        for subscriber in plan.fleet.subscribers() {
            let audience = self.audiences[subscriber.number as usize];
            // Members of a shared group are on one shard: see docs/design/shared-subscriptions.md.
            if audience as usize % shards != shard {
                continue;
            }
            let streams = &self.streams[subscriber.number as usize];
            for (nth, place) in (0u32..).zip(plan.subscribe_at.of_subscriber(subscriber)) {
                // Sessions on independent brokers come and go apart from each other and hear different publishers, so each
                // broker's part of an audience has a number of its own in the books.
                let number = audience * plan.subscribe_at.sessions_per_subscriber() as u32 + nth;
                let index = *known.entry(number).or_insert_with(|| {
                    let heard = plan.subscribe_at.heard_at(place, streams);
                    let shared = plan.workload.subscribers[usize::from(subscriber.group)].shared.is_some();
                    audiences.push(Audience { number, heard, shared });
                    audiences.len() as u32 - 1
                });
                sessions.push(SessionSetup {
                    config: self.listener_session(subscriber, place),
                    publishers: 0..0,
                    subscriber: Some(index),
                });
            }
        }
        let index = plan.publisher_shards + shard;
        self.setup(format!("subscriber {shard}"), index, shards, sessions, vec![], &audiences)
    }

    fn listener_session(&self, subscriber: &Subscriber, place: u16) -> SessionConfig {
        let plan = self.plan;
        let group = &plan.workload.subscribers[usize::from(subscriber.group)];
        let mut client_id = plan.fleet.subscriber_client_id(plan.run_id, subscriber);
        if plan.subscribe_at.sessions_per_subscriber() > 1 {
            client_id.push_str(&format!("b{place}"));
        }
        let filters = plan.fleet.filters(&plan.workload, subscriber);
        SessionConfig {
            client_id: client_id.into(),
            endpoint: place,
            credentials: group.credentials.clone(),
            persistent: group.session == SessionKind::Persistent,
            in_flight_window: u16::MAX,
            publications: vec![],
            subscriptions: filters
                .into_iter()
                .map(|filter| Subscription { filter: filter.into(), qos: group.qos })
                .collect(),
            options: SessionOptions { shared: group.shared.as_deref().map(Into::into), ..SessionOptions::default() },
        }
    }

    fn setup(
        &self,
        name: String,
        index: usize,
        shards_of_its_side: usize,
        sessions: Vec<SessionSetup>,
        publishers: Vec<Publisher>,
        audiences: &[Audience],
    ) -> Setup {
        let plan = self.plan;
        Setup {
            name,
            index,
            config: self.configs[usize::from(index >= plan.publisher_shards)].clone(),
            workload: Arc::clone(&plan.workload),
            rules: Arc::clone(&self.rules),
            sessions,
            publishers,
            receiver: Receiver::new(audiences, Arc::clone(&self.groups), plan.run_id),
            series_start_ns: plan.timeline.start_ns(),
            duration_ns: plan.timeline.duration_ns,
            connects_per_s: plan.connects_per_s / shards_of_its_side as f64,
            realtime: plan.realtime,
            handicap: plan.handicap,
            pause: plan.pause(),
            backoff: Stream::new(plan.seed ^ index as u64, purpose::BACKOFF),
            progress: Arc::clone(&self.progress),
        }
    }
}
