//! The shape of requesters and responders in a file.

use schemars::JsonSchema;
use serde::Deserialize;

use super::raw::{ArrivalWord, BodyWord, IsolateWord, PhaseWord, RawArrival, RawBody, RawPayload};
use super::raw_credentials::RawCredentials;
use super::shape::{
    CountText, DurationText, Form, OneOrMany, QosText, RateText, ShareText, SizeText, Spanned, Text, Word,
};

/// A group of requesters with the same settings: each sends requests on a schedule, whatever the result of earlier ones,
/// and waits for the replies.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping")]
pub(crate) struct RawRequester {
    /// Name in reports, unique among requesters and devices.
    pub name: Spanned<String>,
    /// Number of requesters, each with its own connection, multiplied by `--scale`; 1 by default.
    pub count: Option<Text<ShareText>>,
    /// Time between two requests of one requester, such as `100ms`.
    pub every: Option<Text<DurationText>>,
    /// Requests per second of one requester, such as `10/s`; instead of `every`.
    pub rate: Option<Text<RateText>>,
    /// When requests are due: `periodic` (default), `poisson`, `flood` (as many as `in_flight` allows), or a mapping.
    pub arrival: Option<Form<Word<ArrivalWord>, Spanned<RawArrival>>>,
    /// Time of a periodic requester's first request: `spread` (default) over the interval, or `aligned` with all others.
    pub phase: Option<Word<PhaseWord>>,
    /// Each periodic due time is moved by up to this much in either direction; below half the interval.
    pub jitter: Option<Text<DurationText>>,
    /// Size of a request's payload, header included: one size, or a distribution. Without it, a body with fields determines
    /// the size.
    pub payload: Option<Form<Text<SizeText>, Spanned<RawPayload>>>,
    /// Content of a payload after its header: `random` (default), `text`, or a mapping with a JSON document.
    pub body: Option<Form<Word<BodyWord>, RawBody>>,
    /// Topic of the requests, with the same placeholders as a device's; exactly one responder, or shared group, must
    /// receive it.
    pub topic: Option<Spanned<String>>,
    /// QoS of the requests: `0` (default), `1`, `2`.
    pub qos: Option<Text<QosText>>,
    /// Time from passing a request to the system until the requester gives up; 5s by default.
    pub timeout: Option<Text<DurationText>>,
    /// Requests of one requester that wait for replies at the same time, at most; 10 by default.
    pub in_flight: Option<Text<CountText>>,
    /// User name and password.
    pub credentials: Option<Spanned<RawCredentials>>,
    /// Emulated network between the group and the system: one of `links`, a preset such as `lte`, or `none`.
    pub link: Option<Spanned<String>>,
    /// Where its clients run: `none` (default) with all others, or `process`: in a separate process.
    pub isolate: Option<Word<IsolateWord>>,
}

/// A group of responders with the same settings: each replies to the requests that it receives.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping")]
pub(crate) struct RawResponder {
    /// Name, unique among responders and subscribers.
    pub name: Spanned<String>,
    /// Number of responders, each with its own connection; 1 by default.
    pub count: Option<Text<ShareText>>,
    /// Multiply the count by `--scale`; `false` by default.
    pub scales: Option<Word<bool>>,
    /// Topic filters for the requests of each responder, in MQTT's syntax; `{index}` becomes the responder's number in its
    /// group, from 0.
    pub filters: Spanned<OneOrMany<Spanned<String>>>,
    /// QoS of its subscriptions and of its replies: `0` (default), `1`, `2`.
    pub qos: Option<Text<QosText>>,
    /// Name of a shared group: each request is delivered to one of the group's responders.
    pub shared: Option<Spanned<String>>,
    /// Size of a reply's payload, header included; 1KiB by default, at least 24B.
    pub reply: Option<Text<SizeText>>,
    /// Processing time of a request: one time such as `5ms`, or a distribution; none by default.
    pub processing: Option<Form<Text<DurationText>, Spanned<RawProcessing>>>,
    /// Requests that a responder processes at the same time; 1 by default.
    pub concurrency: Option<Text<CountText>>,
    /// Maximum number of requests that wait at a responder; further ones are dropped and counted. 1000 by default.
    pub queue: Option<Text<CountText>>,
    /// User name and password.
    pub credentials: Option<Spanned<RawCredentials>>,
    /// Emulated network between the group and the system: one of `links`, a preset such as `lte`, or `none`.
    pub link: Option<Spanned<String>>,
    /// Where its clients run: `none` (default) with all others, or `process`: in a separate process.
    pub isolate: Option<Word<IsolateWord>>,
}

/// A distribution of processing times: `mean` alone is exponential, with `sd` lognormal; `min` and `max` are uniform.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping")]
pub(crate) struct RawProcessing {
    /// Mean.
    pub mean: Option<Text<DurationText>>,
    /// Standard deviation.
    pub sd: Option<Text<DurationText>>,
    /// Shortest time.
    pub min: Option<Text<DurationText>>,
    /// Longest time.
    pub max: Option<Text<DurationText>>,
}
