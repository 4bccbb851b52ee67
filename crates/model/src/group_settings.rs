//! Settings of groups that the schedule hash of a workload does not include, in words. Two runs of one schedule may differ in
//! them, and then in their figures.

use std::collections::BTreeMap;

use crate::arrival::Arrival;
use crate::identity::GroupIdentity;
use crate::payload::{Body, HeaderPlace};
use crate::random::{self, RandomTime};
use crate::requests::{ProcessingTime, Requests, Responds};
use crate::units::written;
use crate::workload::{DeviceGroup, MqttSettings, SessionKind, SubscriberGroup, Will, Workload};

/// Names of the settings.
pub const NAMES: [&str; 28] = [
    "QoS of devices",
    "QoS of subscribers",
    "retained messages",
    "session of devices",
    "session of subscribers",
    "in-flight window",
    "message expiry",
    "topic aliases",
    "will",
    "payload content",
    "header",
    "user properties",
    "reactions",
    "requests",
    "replies",
    "processing time",
    "shared subscription",
    "where",
    "filtered at",
    "authentication of devices",
    "authentication of subscribers",
    "connections of devices",
    "connections of subscribers",
    "isolation of devices",
    "isolation of subscribers",
    "placement of devices",
    "placement of subscribers",
    TOPICS,
];

/// A hash of all topics and topic filters, because they are too many to list.
const TOPICS: &str = "hash of topics and filters";

/// Most values, and most groups of a value, that a text lists. Of more it has their number and a hash, so that a record of a
/// workload of 10,000 groups stays small and texts of different settings differ.
const MOST_LISTED: usize = 8;

/// The settings of one group.
type OfGroup = Vec<(&'static str, String)>;

/// Value of each setting by name: one value if all groups have the same, otherwise each with its groups. Contains no secret.
pub fn group_settings(workload: &Workload) -> BTreeMap<String, String> {
    let devices = workload.devices.iter().map(|group| (group.name.as_str(), of_devices(workload, group)));
    let subscribers = workload.subscribers.iter().map(|group| (group.name.as_str(), of_subscribers(workload, group)));
    // Groups by value, so that the order of the file does not matter.
    let mut settings: BTreeMap<&str, BTreeMap<String, Vec<&str>>> = BTreeMap::new();
    for (group, of_group) in devices.chain(subscribers) {
        for (name, value) in of_group {
            settings.entry(name).or_default().entry(value).or_default().push(group);
        }
    }
    let in_words = |(name, values): (&str, BTreeMap<String, Vec<&str>>)| (name.to_owned(), values_in_words(values));
    let topics = (TOPICS.to_owned(), format!("{:016x}", hash_of_topics(workload)));
    settings.into_iter().map(in_words).chain([topics]).collect()
}

fn values_in_words(mut values: BTreeMap<String, Vec<&str>>) -> String {
    if values.len() == 1 {
        return values.into_keys().collect();
    }
    values.values_mut().for_each(|groups| groups.sort_unstable());
    let texts = values.iter().flat_map(|(value, groups)| [value.as_str()].into_iter().chain(groups.iter().copied()));
    let hash = format!("hash {:016x}", hash_of(texts));
    if values.len() > MOST_LISTED {
        return format!("{} values, {hash}", values.len());
    }
    let is_short = values.values().all(|groups| groups.len() <= MOST_LISTED);
    let who = |groups: &[&str]| match groups.len() {
        ..=MOST_LISTED => groups.join(", "),
        more => format!("{more} groups"),
    };
    let mut words: Vec<String> = values.iter().map(|(value, groups)| format!("{value} for {}", who(groups))).collect();
    words.extend((!is_short).then_some(hash));
    words.join("; ")
}

fn of_devices(workload: &Workload, group: &DeviceGroup) -> OfGroup {
    // Without `..`, so that a new setting is not forgotten here.
    let DeviceGroup {
        // Included in the schedule hash.
        name: _,
        count: _,
        size: _,
        churn: _,
        transform: _,
        slowdown: _,
        // The record has each link with its groups.
        link: _,
        // Hashed together.
        topic: _,
        arrival,
        body,
        header,
        properties,
        qos,
        retain,
        session,
        will,
        mqtt: MqttSettings { message_expiry, topic_alias },
        in_flight_window,
        identity,
        client,
        isolate,
        requests,
    } = group;
    vec![
        ("QoS of devices", qos.level().to_string()),
        ("retained messages", yes_no(*retain)),
        ("session of devices", session_kind(*session)),
        ("in-flight window", in_flight_window.to_string()),
        ("message expiry", message_expiry.map_or_else(none, written)),
        ("topic aliases", yes_no(*topic_alias)),
        ("will", will.as_ref().map_or_else(none, of_will)),
        ("payload content", content(body)),
        ("header", header_place(*header)),
        ("user properties", of_properties(properties)),
        ("reactions", of_reaction(arrival, group.mean_payload_bytes())),
        ("requests", requests.as_ref().map_or_else(none, of_requests)),
        ("authentication of devices", authentication(identity)),
        ("connections of devices", connections(client.as_deref())),
        ("isolation of devices", isolation(*isolate)),
        ("placement of devices", workload.placement_of_devices(group).to_string()),
    ]
}

fn of_subscribers(workload: &Workload, group: &SubscriberGroup) -> OfGroup {
    let SubscriberGroup {
        name: _,
        // The record has the number of subscribers.
        count: _,
        // The record has each link with its groups.
        link: _,
        // Hashed together.
        filters: _,
        qos,
        session,
        identity,
        shared,
        processing,
        client,
        isolate,
        responds,
        predicate,
        filtered_at,
    } = group;
    vec![
        ("QoS of subscribers", qos.level().to_string()),
        ("session of subscribers", session_kind(*session)),
        ("shared subscription", yes_no(shared.is_some())),
        ("processing time", written(*processing)),
        ("replies", responds.as_ref().map_or_else(none, of_replies)),
        ("where", predicate.as_ref().map_or_else(none, |predicate| predicate.text().to_owned())),
        ("filtered at", filtered_at.as_str().to_owned()),
        ("authentication of subscribers", authentication(identity)),
        ("connections of subscribers", connections(client.as_deref())),
        ("isolation of subscribers", isolation(*isolate)),
        ("placement of subscribers", workload.placement_of_subscribers(group).to_string()),
    ]
}

fn hash_of_topics(workload: &Workload) -> u64 {
    let devices = workload.devices.iter().map(|group| vec![group.name.as_str(), group.topic.0.as_str()]);
    let subscribers = workload.subscribers.iter().map(|group| {
        let filters = group.filters.iter().map(|filter| filter.0.as_str());
        [group.name.as_str()].into_iter().chain(filters).collect::<Vec<&str>>()
    });
    let mut texts: Vec<Vec<&str>> = devices.chain(subscribers).collect();
    texts.sort_unstable();
    hash_of(texts.into_iter().flatten())
}

fn hash_of<'a>(texts: impl Iterator<Item = &'a str>) -> u64 {
    texts.fold(0, |key, text| random::fold(key, text.as_bytes()))
}

fn of_reaction(arrival: &Arrival, payload_bytes: f64) -> String {
    match arrival {
        Arrival::Reaction(reaction) => {
            let think = random_time(&reaction.think);
            format!("to {} after {think}, {payload_bytes} B on average", reaction.to.0)
        }
        _ => none(),
    }
}

fn content(body: &Body) -> String {
    let hashed = |document: &str| format!("JSON with hash {:016x}", random::fold(0, document.as_bytes()));
    match body {
        Body::Random => "random".to_owned(),
        Body::Text => "text".to_owned(),
        Body::Json(document) => hashed(document),
        Body::Template(template) => hashed(template.text()),
    }
}

fn header_place(place: HeaderPlace) -> String {
    let word = match place {
        HeaderPlace::Payload => "in the payload",
        HeaderPlace::UserProperty => "in a user property",
    };
    word.to_owned()
}

/// Only the keys and the size: a value may be a secret.
fn of_properties(properties: &[(String, String)]) -> String {
    if properties.is_empty() {
        return none();
    }
    let keys: Vec<&str> = properties.iter().map(|(key, _)| key.as_str()).collect();
    let bytes: usize = properties.iter().map(|(key, value)| key.len() + value.len()).sum();
    format!("{} ({bytes} B)", keys.join(", "))
}

fn of_will(will: &Will) -> String {
    let Will { topic, payload_bytes, qos, retain, delay } = will;
    let retained = if *retain { ", retained" } else { "" };
    format!("{payload_bytes} B at QoS {} on {}, delay {}{retained}", qos.level(), topic.0, written(*delay))
}

fn of_requests(requests: &Requests) -> String {
    let Requests { timeout, in_flight } = requests;
    format!("{in_flight} in flight, timeout {}", written(*timeout))
}

fn of_replies(responds: &Responds) -> String {
    let Responds { reply_bytes, processing, concurrency, queue } = responds;
    let time = match processing {
        ProcessingTime::Fixed(time) => written(*time),
        ProcessingTime::Exponential { mean } => format!("{} (exponential)", written(*mean)),
        ProcessingTime::Lognormal { mean, sd } => format!("{} (lognormal, sd {})", written(*mean), written(*sd)),
        ProcessingTime::Uniform { min, max } => format!("{} to {}", written(*min), written(*max)),
    };
    format!("{reply_bytes} B after {time}, {concurrency} at once, queue of {queue}")
}

fn authentication(identity: &GroupIdentity) -> String {
    let has_token = identity.token.is_some();
    let ways = [
        (has_token, "token"),
        (!has_token && identity.logs_in(), "password"),
        (identity.has_nkeys(), "NKey"),
        (identity.has_certificates(), "certificate of each client"),
    ];
    let used: Vec<&str> = ways.into_iter().filter(|(is_used, _)| *is_used).map(|(_, way)| way).collect();
    if used.is_empty() { none() } else { used.join(", ") }
}

fn random_time(time: &RandomTime) -> String {
    match time {
        RandomTime::Fixed(time) => written(*time),
        RandomTime::Exponential(mean) => format!("{} (exponential)", written(*mean)),
    }
}

fn session_kind(kind: SessionKind) -> String {
    let word = match kind {
        SessionKind::Clean => "clean",
        SessionKind::Persistent => "persistent",
    };
    word.to_owned()
}

fn connections(client: Option<&str>) -> String {
    client.map_or_else(|| "one for each client".to_owned(), |name| format!("shared as {name}"))
}

fn isolation(isolate: bool) -> String {
    if isolate { "process".to_owned() } else { none() }
}

fn none() -> String {
    "none".to_owned()
}

fn yes_no(value: bool) -> String {
    if value { "yes" } else { "no" }.to_owned()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::load::{LoadOptions, load, parse};
    use crate::template::Template;

    const TEXT: &str = "
name: two
devices:
  - {name: a, count: 2, arrival: periodic, every: 1s, payload: 100B, topic: 'a/{device}', qos: 1}
  - {name: b, count: 2, arrival: periodic, every: 1s, payload: 100B, topic: 'b/{device}', qos: 1}
subscribers:
  - {name: s, filters: ['#']}
";

    fn of(text: &str) -> BTreeMap<String, String> {
        group_settings(&parse("two.yaml", text, &LoadOptions::default()).unwrap())
    }

    #[test]
    fn each_name_has_a_value() {
        let names: Vec<String> = of(TEXT).into_keys().collect();
        let mut known = NAMES.map(str::to_owned);
        known.sort();
        assert_eq!(names, known);
        for workload in ["smart-city", "supermarket", "request-reply"] {
            let settings = group_settings(&load(workload, &LoadOptions::default()).unwrap());
            assert!(settings.values().all(|value| !value.is_empty()), "{settings:?}");
        }
    }

    #[test]
    fn a_setting_outside_the_schedule_changes_its_row_only() {
        let before = of(TEXT);
        assert_eq!(before["in-flight window"], "20");
        for (from, to, name, value) in [
            (
                "'a/{device}', qos: 1}",
                "'a/{device}', qos: 1, in_flight_window: 1}",
                "in-flight window",
                "1 for a; 20 for b",
            ),
            (
                "'b/{device}', qos: 1}",
                "'b/{device}', qos: 1, session: persistent}",
                "session of devices",
                "clean for a; persistent for b",
            ),
            ("filters: ['#']}", "filters: ['#'], processing: 5ms}", "processing time", "5ms"),
            ("filters: ['#']}", "filters: ['#'], qos: 1}", "QoS of subscribers", "1"),
        ] {
            let after = of(&TEXT.replace(from, to));
            let changed: Vec<&String> =
                NAMES.iter().filter(|name| before[**name] != after[**name]).map(|name| &after[*name]).collect();
            assert_eq!(changed, [value], "{name}");
            assert_eq!(after[name], value);
        }
        let topics = of(&TEXT.replace("'a/{device}'", "'c/{device}'"));
        assert_ne!(topics[TOPICS], before[TOPICS]);
    }

    /// A workload with this number of groups. `window` returns the in-flight window of a group by its index.
    fn many(groups: usize, window: impl Fn(usize) -> usize) -> String {
        let group = |index| {
            let window = window(index);
            format!(
                "  - {{name: g{index}, count: 1, arrival: periodic, every: 1s, payload: 100B, topic: 'g{index}/{{device}}', \
                 in_flight_window: {window}}}\n"
            )
        };
        let groups: String = (0..groups).map(group).collect();
        of(&format!("name: many\ndevices:\n{groups}subscribers:\n  - {{name: s, filters: ['#']}}\n"))
            .remove("in-flight window")
            .unwrap()
    }

    #[test]
    fn a_text_lists_few_groups_and_values_and_hashes_the_rest() {
        assert_eq!(many(20, |_| 5), "5");
        let found = many(20, |index| if index == 3 { 1 } else { 5 });
        assert!(found.starts_with("1 for g3; 5 for 19 groups; hash "), "{found}");
        assert_ne!(found, many(20, |index| if index == 4 { 1 } else { 5 }));
        let found = many(20, |index| index + 1);
        assert!(found.starts_with("20 values, hash ") && found.len() < 40, "{found}");
        assert_ne!(found, many(20, |index| index + 2));
    }

    #[test]
    fn templates_are_compared_by_their_text() {
        let of = |body: &str| content(&Body::Template(Template::parse(body).unwrap().into()));
        let body = r#"{"alarm": {{bool 0.000001}}}"#;
        assert_eq!(of(body), of(body));
        // The first messages of both are the same.
        assert_ne!(of(body), of(r#"{"alarm": {{bool 0.000002}}}"#));
    }

    #[test]
    fn no_secret_is_in_the_settings() {
        let text = TEXT.replace("filters: ['#']}", "filters: ['#'], credentials: {user: ann, password: hunter2}}");
        let settings = of(&text);
        assert_eq!(settings["authentication of subscribers"], "password");
        assert!(settings.values().all(|value| !value.contains("hunter2")), "{settings:?}");
    }
}
