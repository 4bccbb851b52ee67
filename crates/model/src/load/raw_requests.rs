//! The shape of requesters and responders in a file.

use schemars::JsonSchema;
use serde::Deserialize;

use super::raw::{ArrivalWord, BodyWord, IsolateWord, PhaseWord, RawArrival, RawBody, RawPayload};
use super::raw_credentials::RawCredentials;
use super::shape::{
    CountText, DurationText, Form, OneOrMany, QosText, RateText, ShareText, SizeText, Spanned, Text, Word,
};

/// A group of like requesters: each sends requests on a schedule, whatever becomes of earlier ones, and waits for the answers.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping")]
pub(crate) struct RawRequester {
    /// Name in reports, unique among requesters and devices.
    pub name: Spanned<String>,
    /// Requesters, each with a connection of its own, multiplied by `--scale`; 1 by default.
    pub count: Option<Text<ShareText>>,
    /// Time between two requests of one requester, such as `100ms`.
    pub every: Option<Text<DurationText>>,
    /// Requests per second of one requester, such as `10/s`; in place of `every`.
    pub rate: Option<Text<RateText>>,
    /// When requests are due: `periodic` (default), `poisson`, `flood` (as many as `in_flight` allows), or a mapping.
    pub arrival: Option<Form<Word<ArrivalWord>, Spanned<RawArrival>>>,
    /// Where a periodic requester's first request falls: `spread` (default) over the interval, or `aligned` with all others.
    pub phase: Option<Word<PhaseWord>>,
    /// Each periodic due time is moved by up to this much either way; below half the interval.
    pub jitter: Option<Text<DurationText>>,
    /// Size of a request's payload, header included: one size, or a distribution. Without it, a body with fields has the size that it
    /// becomes.
    pub payload: Option<Form<Text<SizeText>, Spanned<RawPayload>>>,
    /// What fills a payload behind its header: `random` (default), `text`, or a mapping with a JSON document.
    pub body: Option<Form<Word<BodyWord>, RawBody>>,
    /// Topic of the requests, with the same placeholders as a device's; exactly one responder, or shared group, must hear it.
    pub topic: Option<Spanned<String>>,
    /// Delivery level of the requests: `0` (default), `1`, `2`.
    pub qos: Option<Text<QosText>>,
    /// A request without an answer is given up this long after it was handed to the system; 5s by default.
    pub timeout: Option<Text<DurationText>>,
    /// Requests of one requester that wait for answers at once, at most; 10 by default.
    pub in_flight: Option<Text<CountText>>,
    /// User name and password.
    pub credentials: Option<Spanned<RawCredentials>>,
    /// Emulated network between the group and the system: one of `links`, a preset such as `lte`, or `none`.
    pub link: Option<Spanned<String>>,
    /// Where its clients run: `none` (default) with all others, or `process`: in a process of their own.
    pub isolate: Option<Word<IsolateWord>>,
}

/// A group of like responders: each answers the requests that it hears.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping")]
pub(crate) struct RawResponder {
    /// Name, unique among responders and subscribers.
    pub name: Spanned<String>,
    /// Responders, each with a connection of its own; 1 by default.
    pub count: Option<Text<ShareText>>,
    /// Multiply the count by `--scale`; `false` by default.
    pub scales: Option<Word<bool>>,
    /// Which requests each answers, in MQTT's syntax; `{index}` becomes the responder's number in its group, from 0.
    pub filters: Spanned<OneOrMany<Spanned<String>>>,
    /// Delivery level of its subscriptions and of its answers: `0` (default), `1`, `2`.
    pub qos: Option<Text<QosText>>,
    /// Name of a shared group: each request goes to one of the group's responders.
    pub shared: Option<Spanned<String>>,
    /// Size of an answer's payload, header included; 1KiB by default, at least 24B.
    pub answer: Option<Text<SizeText>>,
    /// Time spent on a request: one time such as `5ms`, or a distribution; none by default.
    pub processing: Option<Form<Text<DurationText>, Spanned<RawProcessing>>>,
    /// Requests that a responder works on at once; 1 by default.
    pub concurrency: Option<Text<CountText>>,
    /// Requests that wait at a responder, at most; one beyond is dropped and counted. 1000 by default.
    pub queue: Option<Text<CountText>>,
    /// User name and password.
    pub credentials: Option<Spanned<RawCredentials>>,
    /// Emulated network between the group and the system: one of `links`, a preset such as `lte`, or `none`.
    pub link: Option<Spanned<String>>,
    /// Where its clients run: `none` (default) with all others, or `process`: in a process of their own.
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
