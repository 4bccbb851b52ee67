//! The shape of what changes the rate of devices: by the time of day, from state to state, after a received message.

use schemars::JsonSchema;
use serde::Deserialize;

use super::shape::{ChanceText, DurationText, Named, NumberText, RateText, Spanned, Text, ThinkText};

/// Removes a profile that a type or the defaults set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ProfileWord {
    /// The same rate at all times.
    None,
}

/// Rate by time of day.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping with `curve`")]
pub(crate) struct RawProfile {
    /// Length of a day of the devices in the run: `60s` makes an hour 2.5 s; `24h` by default.
    pub day: Option<Text<DurationText>>,
    /// Time of day at which the measured window begins, such as `06:00`; `00:00` by default.
    pub start: Option<Spanned<String>>,
    /// Multipliers of the rate by time of day, such as `{"00:00": 0.2, "08:00": 1, "18:00": 1.5}`; linear between two
    /// points, and between the last point and the first.
    pub curve: Spanned<Named<Text<NumberText>>>,
}

/// A state of a device.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping with `name`, a rate, and `for`")]
pub(crate) struct RawState {
    /// Name of the state, unique in the group.
    pub name: Spanned<String>,
    /// Messages per second in this state, such as `10/s`; `0/s` for none.
    pub rate: Option<Text<RateText>>,
    /// Time between two messages in this state; instead of `rate`.
    pub every: Option<Text<DurationText>>,
    /// Length of a visit to this state: `30s`, `exponential 30s`.
    pub r#for: Text<ThinkText>,
    /// The next states with their chances, such as `{active: 30%, idle: 70%}`; by default the next one in the list, and the
    /// first one after the last.
    pub next: Option<Spanned<Named<Text<ChanceText>>>>,
}

/// A lower rate after a received message.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping with `receives`, a rate, and `for`")]
pub(crate) struct RawWhen {
    /// Topics of the messages, in the syntax of filters, with the device's placeholders.
    pub receives: Spanned<String>,
    /// Most messages per second of a device in that time, such as `1/s`; `0/s` for none.
    pub rate: Option<Text<RateText>>,
    /// Least time between two messages of a device in that time; instead of `rate`.
    pub every: Option<Text<DurationText>>,
    /// How long it lasts, such as `30s`; each further message begins it anew.
    pub r#for: Text<DurationText>,
}
