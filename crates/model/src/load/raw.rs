//! The shape of a workload file. Values are validated later; the comments here are the descriptions in its JSON Schema.

use schemars::JsonSchema;
use serde::Deserialize;

use super::raw_credentials::RawCredentials;
use super::raw_faults::RawFault;
use super::raw_links::RawLink;
use super::raw_policies::{ProfileWord, RawProfile, RawState, RawWhen};
use super::raw_requests::{RawRequester, RawResponder};
use super::shape::{
    AnyText, CheckText, CountText, DurationText, Form, Named, NumberText, OneOrMany, PlacementText, QosText, RateText,
    ShareText, SizeText, Spanned, SpreadText, Text, ThinkText, Word,
};
use crate::metric::MetricProgram;
use crate::workload::FilterPlace;

/// A pubmark workload: who publishes what, and who subscribes.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping with `name`, `devices`, `subscribers`")]
#[schemars(title = "pubmark workload")]
#[allow(dead_code, reason = "defaults and types are read to check them; groups carry the merged values")]
pub(crate) struct RawWorkload {
    /// Name in records and topics: letters, digits, `-` and `_`.
    pub name: Spanned<String>,
    /// One sentence for `pubmark list workloads`.
    #[serde(default)]
    pub description: String,
    /// Where the figures come from: a paper, a data set.
    pub source: Option<String>,
    /// Values that can be set with `--set NAME=VALUE` and are used as `${NAME}`.
    #[serde(default)]
    pub parameters: Named<Form<Text<AnyText>, RawParameter>>,
    /// Fields of every device group that does not set them.
    pub defaults: Option<RawTraits>,
    /// Types of devices, named `domain/type`, that groups refer to.
    #[serde(default)]
    pub device_types: Named<RawTraits>,
    /// Groups of devices with the same settings.
    pub devices: Vec<RawGroup>,
    /// Groups of subscribers with the same settings; an empty list for none.
    pub subscribers: Vec<RawSubscriber>,
    /// Groups of clients that send requests and wait for the replies.
    #[serde(default)]
    pub requesters: Vec<RawRequester>,
    /// Groups of clients that reply to requests.
    #[serde(default)]
    pub responders: Vec<RawResponder>,
    /// Emulated networks by name, which groups use with `link`; presets (`pubmark list links`) need no definition.
    #[serde(default)]
    pub links: Named<RawLink>,
    /// What is broken during a run: the system, connections, links.
    #[serde(default)]
    pub faults: Vec<Spanned<RawFault>>,
    /// Limits that a run has to meet, such as `p99 < 50ms`: `pubmark run` reports for each whether it was met.
    #[serde(default)]
    pub objectives: Vec<Spanned<String>>,
    /// Metrics of your own: programs that read the message log of a run and print a value; limits refer to them as
    /// `custom.NAME`.
    #[serde(default)]
    pub metrics: Vec<Spanned<MetricProgram>>,
    /// Placement of groups when there are several nodes, by the name of a group or of the clients that groups share;
    /// `devices` and `subscribers` stand for those that are not named, `default` for both. `split` (or `once`): each client
    /// exists once, distributed over all nodes; `replicate` (or `every-node`): every node has a copy of the group; a label
    /// such as `site=edge-1`: distributed over the nodes that have it; `each site`, for subscribers: a copy of the group
    /// for each value of the label.
    #[serde(default)]
    pub placement: Named<Text<PlacementText>>,
    /// What differs when the workload is run as published (`--variant published`): each field given here replaces that field.
    pub published: Option<RawPublished>,
}

/// A parameter in full.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping")]
pub(crate) struct RawParameter {
    /// Default value, used without `--set`.
    pub default: Text<AnyText>,
    /// Description in a few words.
    #[serde(default)]
    pub about: String,
}

/// Declares a struct with the fields of a device after its own fields, so that they are written only once.
macro_rules! with_device_fields {
    ($(#[$about:meta])* $name:ident { $($(#[$own_about:meta])* $own:ident: $own_type:ty,)* }) => {
        $(#[$about])*
        #[derive(Clone, Debug, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, expecting = "a mapping")]
        #[allow(dead_code, reason = "defaults, types and changes are read to check them; groups carry the merged values")]
        pub(crate) struct $name {
            $($(#[$own_about])* pub $own: $own_type,)*
            /// Time between two messages, such as `5s`.
            pub every: Option<Text<DurationText>>,
            /// Messages per second of one device, such as `10/s`; instead of `every`.
            pub rate: Option<Text<RateText>>,
            /// When messages are due: `periodic` (default), `poisson`, `flood`, or a mapping for on-off, states, recorded times and
            /// reactions.
            pub arrival: Option<Form<Word<ArrivalWord>, Spanned<RawArrival>>>,
            /// Time of a periodic device's first message: `spread` (default) over the interval, or `aligned` with all
            /// others.
            pub phase: Option<Word<PhaseWord>>,
            /// Each periodic due time is moved by up to this much in either direction; below half the interval.
            pub jitter: Option<Text<DurationText>>,
            /// How the rate of a periodic or Poisson device follows the time of day: a mapping with its `curve`, or `none` (default).
            pub profile: Option<Form<Word<ProfileWord>, Spanned<RawProfile>>>,
            /// Size of a message's payload, header included unless it is a user property: one size, or a distribution.
            /// Without it, a body with fields determines the size.
            pub payload: Option<Form<Text<SizeText>, Spanned<RawPayload>>>,
            /// Content of a payload after its header: `random` (default), `text`, or a mapping with a JSON document.
            pub body: Option<Form<Word<BodyWord>, RawBody>>,
            /// Position of a message's header: at the front of its `payload` (default), or in a `user-property`, so that
            /// the payload contains only the body.
            pub header: Option<Word<HeaderWord>>,
            /// User properties of its messages, such as `{site: hall-3}`: texts, for protocols that support them.
            pub properties: Option<Named<Text<AnyText>>>,
            /// Steps that a publisher applies to the body of each message, in this order, and that subscribers reverse: a
            /// list such as `[compress: zstd, encrypt: aes-256-gcm, sign: ed25519]`, or `none` (default). The header is not
            /// changed.
            pub transform: Option<RawSteps>,
            /// Topic, with `{workload}`, `{group}`, `{domain}`, `{type}`, `{qos}`, `{device}`, `{index}`, `{copy}`,
            /// `{trigger}` replaced for each device; `{index%NAME}` is the index modulo the number of devices, subscribers
            /// or clients with this name.
            pub topic: Option<Spanned<String>>,
            /// QoS: `0` (default), `1`, `2`.
            pub qos: Option<Text<QosText>>,
            /// Send with the retain flag.
            pub retain: Option<Word<bool>>,
            /// What the system retains of a session when its connection ends: `clean` (default, nothing) or `persistent`.
            pub session: Option<Word<SessionWord>>,
            /// Planned disconnects and reconnects.
            pub churn: Option<Form<Word<ChurnWord>, Spanned<RawChurn>>>,
            /// Message that the system publishes when a device's connection ends without a DISCONNECT: a mapping with its
            /// `topic`, such as `{topic: "{workload}/gone/{device}", qos: 1}`, or `none`.
            pub will: Option<Form<Word<WillWord>, Spanned<RawWill>>>,
            /// Settings that only MQTT has, such as `{message_expiry: 10s, topic_alias: true}`.
            pub mqtt: Option<RawMqtt>,
            /// In-flight window: messages sent and not acknowledged, at most (QoS 1, 2); 20 by default.
            pub in_flight_window: Option<Text<CountText>>,
            /// User name and password.
            pub credentials: Option<Spanned<RawCredentials>>,
            /// Emulated network between the group and the system: one of `links`, a preset such as `lte`, or `none`.
            pub link: Option<Spanned<String>>,
            /// Where its clients run: `none` (default) with all others, or `process`: in a separate process, so that their
            /// cost is measured separately. Groups that share a `client` are isolated together.
            pub isolate: Option<Word<IsolateWord>>,
        }
    };
}

with_device_fields! {
    /// Settings of a device.
    RawTraits {}
}

with_device_fields! {
    /// A group of devices with the same settings. Fields not given here are inherited from its type, then from `defaults`.
    RawGroup {
        /// Name in reports, unique; its type's if not given.
        name: Option<Spanned<String>>,
        /// One of `device_types`.
        r#type: Option<Spanned<String>>,
        /// Devices, multiplied by `--scale` and rounded up: `0.2` is one for every five; 1 by default.
        count: Option<Text<ShareText>>,
        /// Multiply the count by `--scale`; `true` by default.
        scales: Option<Word<bool>>,
        /// Name of the clients that carry the group. All groups of devices and subscribers with the same name share their
        /// connections: the first device uses the first client, and so on. Without it each device has its own connection.
        client: Option<Spanned<String>>,
        /// A lower rate for some time after the group's `client` received a message, such as
        /// `{receives: "busy/#", rate: 1/s, for: 30s}`. The client must have a group of subscribers that receives them.
        when: Option<Spanned<RawWhen>>,
    }
}

/// Arrival process, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ArrivalWord {
    /// At fixed intervals.
    Periodic,
    /// With independent exponential intervals.
    Poisson,
    /// As fast as the system accepts messages.
    Flood,
}

/// Arrival process, with its settings.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping")]
pub(crate) struct RawArrival {
    /// Mean length of an on period, in which messages are sent at `every` or `rate`.
    pub on: Option<Text<DurationText>>,
    /// Mean length of an off period.
    pub off: Option<Text<DurationText>>,
    /// Recorded send times, counted from the start, ascending.
    pub trace: Option<Vec<Text<DurationText>>>,
    /// The trace starts again after this time.
    pub repeat: Option<Text<DurationText>>,
    /// A message is sent whenever the device's `client` receives a message with a matching topic; in the syntax of filters,
    /// with the device's placeholders. The client must have a group of subscribers that receives them. `{trigger}` in the
    /// device's `topic` is the number of the device that sent the received message.
    pub reaction_to: Option<Spanned<String>>,
    /// Time between the receipt and the reaction: `20ms`, `exponential 20ms`; none by default.
    pub think: Option<Text<ThinkText>>,
    /// With `reaction_to`: each received message triggers messages at the device's `every` or `rate` for this long, the
    /// first one immediately.
    pub r#for: Option<Text<DurationText>>,
    /// States of a device, at least two, each with a rate: the device changes from one to another.
    pub states: Option<Spanned<Vec<Spanned<RawState>>>>,
}

/// Time of the first message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PhaseWord {
    /// At a seeded random point of the interval.
    Spread,
    /// All at the same time.
    Aligned,
}

/// A distribution of sizes: normal (`mean` with `sd` or `variance`), lognormal, uniform (`min`, `max`), or `sizes` observed.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping")]
pub(crate) struct RawPayload {
    /// Mean.
    pub mean: Option<Text<SizeText>>,
    /// Standard deviation: a share of the mean or a size.
    pub sd: Option<Text<SpreadText>>,
    /// Variance in bytes squared, instead of `sd`.
    pub variance: Option<Text<NumberText>>,
    /// `normal` (default) or `lognormal`.
    pub shape: Option<Word<ShapeWord>>,
    /// Smallest size of a normal distribution; smaller draws become this size.
    pub floor: Option<Text<SizeText>>,
    /// Smallest size of a uniform distribution.
    pub min: Option<Text<SizeText>>,
    /// Largest size of a uniform distribution.
    pub max: Option<Text<SizeText>>,
    /// Observed sizes, drawn with equal chances: a list, or `{file: PATH}` with one size in each line.
    pub sizes: Option<Form<Vec<Text<SizeText>>, RawFile>>,
}

/// A file that the workload names.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping with `file`")]
pub(crate) struct RawFile {
    /// Path of the file; a relative path starts from the folder of the workload's file.
    pub file: Spanned<String>,
}

/// Shape of a distribution with mean and spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ShapeWord {
    /// Normal.
    Normal,
    /// Lognormal.
    Lognormal,
}

/// Content of a payload, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum BodyWord {
    /// Bytes that cannot be compressed.
    Random,
    /// Printable text.
    Text,
}

/// Content of a payload, with its settings.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping")]
pub(crate) struct RawBody {
    /// A JSON document, truncated or padded to the size. With fields such as `{{normal 21 0.5}}` it is a template: the
    /// fields are drawn for each message, and it is never truncated.
    pub json: Spanned<String>,
}

/// Position of a message's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum HeaderWord {
    /// At the front of the payload.
    Payload,
    /// In a user property.
    UserProperty,
}

/// Steps as written in a file.
pub(crate) type RawSteps = Spanned<OneOrMany<Form<Word<TransformWord>, Spanned<RawStep>>>>;

/// Removes steps that a type or the defaults set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum TransformWord {
    /// Bodies are sent unchanged.
    None,
}

/// A step of `transform`: one of its keys.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping with `compress`, `encrypt` or `sign`")]
pub(crate) struct RawStep {
    /// `zstd` (level 3) or `zlib` (level 6), or with a level: `{zstd: 1}` to 19, `{zlib: 1}` to 9.
    pub compress: Option<Form<Word<CompressWord>, RawCompress>>,
    /// Cipher, with a key for each device that is derived from the seed; it adds 28 B.
    pub encrypt: Option<Word<CipherWord>>,
    /// Signature with a key for each device that is derived from the seed: `hmac-sha256` adds 32 B, `ed25519` 64 B.
    pub sign: Option<Word<SignWord>>,
}

/// A compression, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum CompressWord {
    /// Zstandard, level 3.
    Zstd,
    /// zlib, level 6.
    Zlib,
}

/// A compression with its level.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping such as `{zstd: 3}`")]
pub(crate) struct RawCompress {
    /// Level of Zstandard, 1 to 19.
    pub zstd: Option<Text<CountText>>,
    /// Level of zlib, 1 to 9.
    pub zlib: Option<Text<CountText>>,
}

/// A cipher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub(crate) enum CipherWord {
    /// AES-GCM, keys of 128 bits.
    #[serde(rename = "aes-128-gcm")]
    Aes128Gcm,
    /// AES-GCM, keys of 256 bits.
    #[serde(rename = "aes-256-gcm")]
    Aes256Gcm,
    /// ChaCha20-Poly1305.
    #[serde(rename = "chacha20-poly1305")]
    ChaCha20Poly1305,
}

/// A signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub(crate) enum SignWord {
    /// HMAC with SHA-256.
    #[serde(rename = "hmac-sha256")]
    HmacSha256,
    /// Ed25519.
    #[serde(rename = "ed25519")]
    Ed25519,
}

/// What the system retains of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SessionWord {
    /// Nothing.
    Clean,
    /// Subscriptions and unacknowledged messages.
    Persistent,
}

/// Where clients run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum IsolateWord {
    /// With all others.
    None,
    /// In a separate process.
    Process,
}

/// Whether a group runs in a separate process.
pub(crate) fn is_isolated(word: Option<&Word<IsolateWord>>) -> bool {
    word.is_some_and(|word| word.value == IsolateWord::Process)
}

/// Removes churn that a type or the defaults set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ChurnWord {
    /// Always online.
    None,
}

/// Disconnect and reconnect checks.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping")]
pub(crate) struct RawChurn {
    /// Chance to disconnect at each check, and the time between checks: `5% every 1s`.
    pub disconnect: Text<CheckText>,
    /// Chance to reconnect at each check while offline: `80% every 1s`.
    pub reconnect: Option<Text<CheckText>>,
    /// Time of the checks: at a `random` phase of each device (default), or `together` at the same time as in PSMark.
    pub checks: Option<Word<ChecksWord>>,
    /// How a device disconnects: `graceful` (default) with the protocol's disconnect packet, or `cut` without one.
    pub leave: Option<Word<LeaveWord>>,
}

/// Time of the checks of churn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ChecksWord {
    /// Each at a seeded random phase.
    Random,
    /// Both at the same time.
    Together,
}

/// How a device disconnects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum LeaveWord {
    /// With the protocol's disconnect packet.
    Graceful,
    /// Without a packet.
    Cut,
}

/// Removes a will that a type or the defaults set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum WillWord {
    /// Nothing is published.
    None,
}

/// A will: published for a device when its connection ends without a DISCONNECT, as with `leave: cut`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping with `topic`")]
pub(crate) struct RawWill {
    /// Topic, with the placeholders of `topic`.
    pub topic: Spanned<String>,
    /// Size of its payload: `16B` by default, at least `8B`, at most `65535B`.
    pub payload: Option<Text<SizeText>>,
    /// QoS of the will: `0` (default), `1`, `2`.
    pub qos: Option<Text<QosText>>,
    /// Publish the will with the retain flag.
    pub retain: Option<Word<bool>>,
    /// Will delay: the will is not published if the device reconnects within this time (MQTT 5, `session: persistent`);
    /// none by default.
    pub delay: Option<Text<DurationText>>,
}

/// Settings of MQTT 5.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping")]
pub(crate) struct RawMqtt {
    /// A message that could not be delivered within this time, in whole seconds, is dropped by the system.
    pub message_expiry: Option<Text<DurationText>>,
    /// On each connection only the first message contains the topic; the others have a topic alias instead, as far as the
    /// system allows.
    pub topic_alias: Option<Word<bool>>,
}

/// A group of subscribers with the same settings.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping")]
pub(crate) struct RawSubscriber {
    /// Name, unique; `subscriber-1`, `subscriber-2`, … if not given.
    pub name: Option<Spanned<String>>,
    /// Number of subscribers, each with its own connection unless they name a `client`; 1 by default. With `scales` it may
    /// be a fraction, which is rounded up.
    pub count: Option<Text<ShareText>>,
    /// Multiply the count by `--scale`; `false` by default.
    pub scales: Option<Word<bool>>,
    /// Topic filters of each subscriber, in MQTT's syntax; `{index}` becomes the subscriber's number in its group, from 0;
    /// `{index%NAME}` as in topics.
    pub filters: Spanned<OneOrMany<Spanned<String>>>,
    /// Selects messages by their JSON content: `payload.temperature > 30 && payload.room == "hall"`. Each client filters
    /// the messages that it received; the message accounting does not change. In full, `{filter: …, at: broker}`: the
    /// broker filters, if protocol and system can, and only matching messages are expected.
    pub r#where: Option<Form<Spanned<String>, RawWhere>>,
    /// QoS requested: `0` (default), `1`, `2`.
    pub qos: Option<Text<QosText>>,
    /// What the system retains of the session: `clean` (default) or `persistent`.
    pub session: Option<Word<SessionWord>>,
    /// User name and password.
    pub credentials: Option<Spanned<RawCredentials>>,
    /// Name of a shared group: each message is delivered to one of the group's subscribers, not to all of them.
    pub shared: Option<Spanned<String>>,
    /// Time that a subscriber processes a message before it reads the next; none by default.
    pub processing: Option<Text<DurationText>>,
    /// Name of the clients that carry the group, as in a group of devices.
    pub client: Option<Spanned<String>>,
    /// Emulated network between the group and the system: one of `links`, a preset such as `lte`, or `none`.
    pub link: Option<Spanned<String>>,
    /// Where its clients run, as in a group of devices: `none` (default) or `process`.
    pub isolate: Option<Word<IsolateWord>>,
}

/// A content filter in full.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping with `filter`")]
pub(crate) struct RawWhere {
    /// The expression, as in the short form.
    pub filter: Spanned<String>,
    /// Where messages are filtered: by the `client` (default), after it received them, or by the `broker`.
    pub at: Option<Word<FilterPlace>>,
}

/// Changes to a group of subscribers.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping")]
#[allow(dead_code, reason = "read to check its keys; the change itself is made in the tree")]
pub(crate) struct RawSubscriberChange {
    /// See `subscribers`.
    pub count: Option<Text<CountText>>,
    /// See `subscribers`.
    pub scales: Option<Word<bool>>,
    /// See `subscribers`.
    pub filters: Option<OneOrMany<Spanned<String>>>,
    /// See `subscribers`.
    pub r#where: Option<Form<Spanned<String>, RawWhere>>,
    /// See `subscribers`.
    pub qos: Option<Text<QosText>>,
    /// See `subscribers`.
    pub session: Option<Word<SessionWord>>,
    /// See `subscribers`.
    pub credentials: Option<Spanned<RawCredentials>>,
    /// See `subscribers`.
    pub shared: Option<Spanned<String>>,
    /// See `subscribers`.
    pub processing: Option<Text<DurationText>>,
    /// See `subscribers`.
    pub link: Option<Spanned<String>>,
    /// See `subscribers`.
    pub isolate: Option<Word<IsolateWord>>,
}

/// Changes of the published variant.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping")]
#[allow(dead_code, reason = "read to check its keys; the changes themselves are made in the tree")]
pub(crate) struct RawPublished {
    /// Changes to `defaults`.
    pub defaults: Option<RawTraits>,
    /// Changes to device types, by name.
    #[serde(default)]
    pub device_types: Named<RawTraits>,
    /// Changes to device groups, by name.
    #[serde(default)]
    pub devices: Named<RawGroup>,
    /// Changes to subscriber groups, by name.
    #[serde(default)]
    pub subscribers: Named<RawSubscriberChange>,
    /// Changes to `placement`.
    #[serde(default)]
    pub placement: Named<Text<PlacementText>>,
}
