//! The shape of links in a file; the comments here are the descriptions in the JSON Schema.

use schemars::JsonSchema;
use serde::Deserialize;

use super::shape::{DurationText, Form, SizeText, Spanned, Text, TextKind, Word, text_kinds};

text_kinds! {
    /// `250kbit/s`, `1.5Mbit/s`, `12kB/s`, `none`.
    LinkRateText = "LinkRate", "a rate such as `1Mbit/s` or `12kB/s`, or `none`",
        r"^(none|[0-9]*\.?[0-9]+([kMG]?bit/s|[kKMG]?B/s)|.*\$\{.+\}.*)$", &["string"];
    /// `1%`, `0.01`.
    ChanceText = "Chance", "a chance such as `1%`",
        r"^([0-9]*\.?[0-9]+%?|.*\$\{.+\}.*)$", &["string", "number"];
}

/// Declares a struct with the fields for conditions of packets after its own fields, so that they are written only once.
macro_rules! with_conditions {
    ($(#[$about:meta])* $name:ident { $($(#[$own_about:meta])* $own:ident: $own_type:ty,)* }) => {
        $(#[$about])*
        #[derive(Clone, Debug, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, expecting = "a mapping")]
        pub(crate) struct $name {
            $($(#[$own_about])* pub $own: $own_type,)*
            /// Delay of a packet, without the time in the queue of the rate limit: `20ms`; none by default, 10m at most.
            pub delay: Option<Text<DurationText>>,
            /// How much the delay varies: half the width of a uniform distribution, the standard deviation of a normal one.
            pub jitter: Option<Text<DurationText>>,
            /// Shape of the jitter: `uniform` (default), or `normal`, cut off at zero.
            pub distribution: Option<Word<DistributionWord>>,
            /// Let jitter reorder packets; `false` by default.
            pub jitter_reorders: Option<Word<bool>>,
            /// Loss of packets: independent with a chance such as `1%`, or in bursts, as a mapping (Gilbert–Elliott).
            pub loss: Option<Form<Text<ChanceText>, Spanned<RawBursts>>>,
            /// Bits or bytes of IP packets per second: `1Mbit/s`, `12kB/s`, or `none` (default) for no limit.
            pub rate: Option<Text<LinkRateText>>,
            /// Size of the queue for the rate limit; a packet that does not fit is dropped. 64KB by default, at least
            /// 1500B.
            pub queue: Option<Text<SizeText>>,
            /// Chance that a packet arrives twice.
            pub duplicate: Option<Text<ChanceText>>,
            /// Chance that a packet is sent ahead of those before it, without its delay.
            pub reorder: Option<Text<ChanceText>>,
        }

        impl $name {
            /// The fields for conditions of packets.
            pub(crate) fn conditions(&self) -> Keys<'_> {
                Keys {
                    delay: self.delay.as_ref(),
                    jitter: self.jitter.as_ref(),
                    distribution: self.distribution.as_ref().map(|word| word.value),
                    jitter_reorders: self.jitter_reorders.as_ref().map(|word| word.value),
                    loss: self.loss.as_ref(),
                    rate: self.rate.as_ref(),
                    queue: self.queue.as_ref(),
                    duplicate: self.duplicate.as_ref(),
                    reorder: self.reorder.as_ref(),
                    down: None,
                }
            }
        }
    };
}

with_conditions! {
    /// A link: what happens to packets in both directions, and what differs in one direction.
    RawLink {
        /// Source of the figures: a paper, a measurement.
        source: Option<String>,
        /// What differs from the group to the system.
        up: Option<Spanned<RawDirection>>,
        /// `true`: no packet passes, in both directions. A mapping: what differs from the system to the group.
        down: Option<Form<Spanned<Word<bool>>, Spanned<RawDirection>>>,
        /// Changes, each at its time; a step changes only the values that it gives.
        series: Option<Spanned<Vec<RawStep>>>,
    }
}

with_conditions! {
    /// A change of a link.
    RawStep {
        /// Time of the change since the start of the measured window; later than the step before.
        at: Text<DurationText>,
        /// What changes from the group to the system.
        up: Option<Spanned<RawDirection>>,
        /// `true`, `false`: no packet passes, or packets pass again, in both directions. A mapping: what changes from the
        /// system to the group.
        down: Option<Form<Spanned<Word<bool>>, Spanned<RawDirection>>>,
    }
}

with_conditions! {
    /// What happens to packets in one direction.
    RawDirection {
        /// No packet passes in this direction.
        down: Option<Word<bool>>,
    }
}

/// Losses in bursts: a good and a bad state, which may change before each packet (Gilbert 1960, Elliott 1963).
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping with `to_bad`, `to_good`")]
pub(crate) struct RawBursts {
    /// Chance of a change from good to bad before a packet.
    pub to_bad: Text<ChanceText>,
    /// Chance of a change from bad to good before a packet: bursts last 1/chance packets on average.
    pub to_good: Text<ChanceText>,
    /// Chance that a packet is lost in the bad state; `100%` by default (Gilbert's model without his h).
    pub loss_bad: Option<Text<ChanceText>>,
    /// Chance that a packet is lost in the good state; none by default.
    pub loss_good: Option<Text<ChanceText>>,
}

/// How a delay varies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum DistributionWord {
    /// Uniform within delay ± jitter.
    Uniform,
    /// Normal, with the jitter as standard deviation.
    Normal,
}

/// The values that one mapping gives; `None` for those it does not give.
#[derive(Clone, Copy, Default)]
pub(crate) struct Keys<'a> {
    pub delay: Option<&'a Text<DurationText>>,
    pub jitter: Option<&'a Text<DurationText>>,
    pub distribution: Option<DistributionWord>,
    pub jitter_reorders: Option<bool>,
    pub loss: Option<&'a Form<Text<ChanceText>, Spanned<RawBursts>>>,
    pub rate: Option<&'a Text<LinkRateText>>,
    pub queue: Option<&'a Text<SizeText>>,
    pub duplicate: Option<&'a Text<ChanceText>>,
    pub reorder: Option<&'a Text<ChanceText>>,
    pub down: Option<bool>,
}

impl Keys<'_> {
    /// Whether it gives no value at all.
    pub(crate) fn is_empty(&self) -> bool {
        let words = [self.jitter_reorders.is_some(), self.distribution.is_some(), self.down.is_some()];
        let times = [self.delay.is_some(), self.jitter.is_some()];
        let chances = [self.loss.is_some(), self.duplicate.is_some(), self.reorder.is_some()];
        let rates = [self.rate.is_some(), self.queue.is_some()];
        !words.into_iter().chain(times).chain(chances).chain(rates).any(|is_said| is_said)
    }
}
