//! Object of a clause: one of [`METRICS`], or a user-defined metric.

use std::cmp::Ordering;

use super::metrics::{METRICS, Metric, is_held_up};
use super::{Interval, MeasuredFigure, Operator};
use crate::custom::{self, PREFIX};
use crate::figures::{BACK_PRESSURE, Better, Figure, ShownOf, Unit};
use crate::quantity::{self, DIGITS};
use crate::record::Record;
use crate::requests::RequestFigures;
use crate::unit;

/// Digits that a number has at most.
const MOST_DIGITS: usize = 17;
/// Why a time was not measured, if nothing that has it arrived.
const NOTHING_ARRIVED: &str = "nothing arrived";

/// Object of a clause.
#[derive(Clone, Debug)]
pub enum Limited {
    /// A metric of pubmark.
    Known(&'static Metric),
    /// A user-defined metric.
    Custom {
        /// Full name, `custom.NAME`.
        name: String,
        /// Symbol of the unit in which the limit is written; empty for the metric's own unit.
        symbol: String,
    },
}

impl Limited {
    /// What limits a figure; `None` if nothing does. `symbol` is the unit of a user-defined metric.
    pub fn of_figure(figure: &Figure<'_>, symbol: &str) -> Option<Limited> {
        if figure.is_custom() {
            return Some(Limited::Custom { name: format!("{PREFIX}{}", figure.name), symbol: symbol.to_owned() });
        }
        let is_it = |metric: &&Metric| metric.figure == figure.name && !metric.is_complement;
        METRICS.iter().find(is_it).map(Limited::Known)
    }

    /// Name, as written in a limit.
    pub fn name(&self) -> &str {
        match self {
            Limited::Known(metric) => metric.name,
            Limited::Custom { name, .. } => name,
        }
    }

    /// Name without `custom.`, for a user-defined metric.
    pub fn custom_name(&self) -> Option<&str> {
        match self {
            Limited::Known(_) => None,
            Limited::Custom { name, .. } => Some(own_name(name)),
        }
    }

    /// Unit of values and limits.
    pub fn unit(&self) -> Unit {
        match self {
            Limited::Known(metric) => metric.unit(),
            Limited::Custom { symbol, .. } => unit::of_symbol(symbol).0,
        }
    }

    /// The corresponding figure. If the metric is what is missing to it, low values are better.
    pub fn figure(&self) -> Figure<'_> {
        match self {
            Limited::Known(metric) => {
                let mut figure = *metric.of_figure();
                if metric.is_complement {
                    figure.better = Better::Lower;
                }
                figure
            }
            Limited::Custom { name, symbol } => Figure::custom(own_name(name), symbol),
        }
    }

    /// The share of messages, or of requests, whose times the metric is of: those that arrived. `None` for other metrics.
    pub fn of_arrived(&self) -> Option<Limited> {
        Limited::of_figure(self.figure().of_arrived()?, "")
    }

    /// Whether a flood makes it worse if pubmark or the machine is the limit.
    pub fn is_worse_in_a_limited_flood(&self) -> bool {
        matches!(self, Limited::Known(metric) if metric.is_worse_in_a_limited_flood())
    }

    /// Value in a record; `None` where it was not measured, or has an incompatible unit.
    pub fn measured(&self, record: &Record) -> Option<MeasuredFigure> {
        match self {
            Limited::Known(metric) => metric.measured(record),
            Limited::Custom { name, symbol } => {
                let metric = custom::find(&record.custom, own_name(name))?;
                let [lower, upper] = metric.bounds(symbol)?;
                let held_up = self.unit() == Unit::Microseconds && is_held_up(record);
                // Rounding must not reverse the order of the bounds.
                let measured = MeasuredFigure::within([lower.min(upper), upper]);
                Some(MeasuredFigure { held_up, partial: metric.partial, ..measured })
            }
        }
    }

    /// Why a time of messages, or of replies, was not measured, if all of them lack it because of the system, and the time, µs, that
    /// it exceeds at least. `None` for another metric or cause.
    pub(super) fn exceeded(&self, record: &Record) -> Option<(f64, &'static str)> {
        let figure = self.figure();
        let messages = &record.delivery.messages;
        match (figure.is_latency, figure.shown_of) {
            (false, _) => None,
            (true, _) if figure.name == BACK_PRESSURE => None,
            (true, ShownOf::Requests) => without_a_reply(record.requests.as_ref()?),
            (true, _) => (messages.expected > 0 && messages.delivered == 0).then_some((f64::INFINITY, NOTHING_ARRIVED)),
        }
    }

    /// Both bounds with their unit; one value if both have the same text.
    pub fn interval(&self, interval: Interval) -> String {
        self.written(interval, DIGITS).0
    }

    /// The same in as many digits as show on which side of a limit each bound is.
    pub(super) fn interval_beside(&self, interval: Interval, limit: f64) -> String {
        let sides = |bounds: Interval| bounds.map(|value| side(value, limit));
        let is_clear = |digits: &usize| sides(self.written(interval, *digits).1) == sides(interval);
        let digits = (DIGITS..MOST_DIGITS).find(is_clear).unwrap_or(MOST_DIGITS);
        self.written(interval, digits).0
    }

    /// A value with its unit, three significant digits. A share is shown as 0 % or 100 % only if it is exactly that.
    pub fn text(&self, value: f64) -> String {
        self.written([value, value], DIGITS).0
    }

    /// Both bounds as text, and the values that the text stands for.
    fn written(&self, [lower, upper]: Interval, digits: usize) -> (String, Interval) {
        if !upper.is_finite() {
            return (quantity::MISSING.to_owned(), [f64::NAN; 2]);
        }
        let is_time = self.unit() == Unit::Microseconds;
        let (size, symbol) = self.scale(upper);
        // Both bounds of a time are in one unit.
        let (lower_size, lower_symbol) = if is_time { (size, symbol.clone()) } else { self.scale(lower) };
        let [low, high] = if is_time && lower < upper {
            quantity::outwards([lower / size, upper / size], digits)
        } else {
            [(lower, lower_size), (upper, size)].map(|(value, size)| self.number(value, size, digits))
        };
        let text = if (&low, &lower_symbol) == (&high, &symbol) {
            format!("{high}{symbol}")
        } else if is_time {
            format!("{low}–{high}{symbol}")
        } else {
            format!("{low}{lower_symbol} to {high}{symbol}")
        };
        let value =
            |text: &str, size: f64| text.replace(',', "").parse::<f64>().map_or(f64::NAN, |number| number * size);
        (text, [value(&low, lower_size), value(&high, size)])
    }

    /// The unit in which a value is shown: its size, and its symbol after a number.
    fn scale(&self, value: f64) -> (f64, String) {
        let spaced = |(size, symbol): (f64, &str)| (size, format!(" {symbol}"));
        match self.unit() {
            Unit::Microseconds => spaced(quantity::time_unit(value)),
            Unit::Share => spaced((0.01, "%")),
            Unit::Count => (1.0, String::new()),
            Unit::PerSecond => (1.0, "/s".to_owned()),
            Unit::Cores => spaced((1.0, "cores")),
            Unit::CpuSecondsPerMillion => spaced((1.0, "s a million")),
            Unit::Bytes => spaced(quantity::size_unit(value)),
            Unit::Number => match self {
                Limited::Custom { symbol, .. } if !symbol.is_empty() => spaced((1.0, symbol.as_str())),
                _ => (1.0, String::new()),
            },
        }
    }

    /// The number of a value in a unit of this size.
    fn number(&self, value: f64, size: f64, digits: usize) -> String {
        match self.unit() {
            _ if !value.is_finite() => quantity::MISSING.to_owned(),
            // Rounded down, so that it is 100 % only if nothing is missing.
            Unit::Share if value < 1.0 && value > 0.99 => {
                let step = 10_f64.powi(digits as i32);
                // A quotient may be the least bit below what it stands for, and must not become a whole by that.
                let steps = (value * (100.0 * step) + 1e-6).floor().min(100.0 * step - 1.0);
                format!("{:.digits$}", steps / step)
            }
            Unit::Share => quantity::significant(value * 100.0, digits),
            Unit::Count if digits == DIGITS => count(value.max(0.0)),
            Unit::PerSecond if digits == DIGITS && value >= 100.0 => quantity::count(value.round() as u64),
            Unit::Count | Unit::PerSecond => quantity::significant(value.max(0.0), digits),
            _ => quantity::significant(value / size, digits),
        }
    }
}

/// The same of round trips. Whether a request without a known outcome would have had a reply is not known, and a reply that only
/// pubmark made late was in time. A request that a late responder dropped may have had a reply in time.
fn without_a_reply(requests: &RequestFigures) -> Option<(f64, &'static str)> {
    let outcomes = &requests.outcomes;
    let may_be_in_time = outcomes.unknown + outcomes.late_by_generator + requests.responses.dropped_by_generator;
    if outcomes.sent == 0 || outcomes.answered + may_be_in_time > 0 {
        return None;
    }
    match outcomes.late {
        0 => Some((f64::INFINITY, NOTHING_ARRIVED)),
        _ => Some((requests.timeout_s? * 1e6, "no reply in time")),
    }
}

/// A number in three significant digits, or in as many as show on which side of a limit it is.
pub fn beside(value: f64, limit: f64) -> String {
    let is_clear = |digits: &usize| {
        let shown = quantity::significant(value, *digits).parse::<f64>();
        shown.is_ok_and(|shown| side(shown, limit) == side(value, limit))
    };
    quantity::significant(value, (DIGITS..MOST_DIGITS).find(is_clear).unwrap_or(MOST_DIGITS))
}

/// Two shares of messages as percentages, in as many digits as tell them apart.
pub fn shares_apart(shares: [f64; 2]) -> [String; 2] {
    let texts = shares.map(quantity::share);
    if texts[0] != texts[1] {
        return texts;
    }
    let [first, second] = shares.map(|share| share * 100.0);
    [beside(first, second), beside(second, first)].map(|number| format!("{number} %"))
}

/// On which side of a limit a value is, as [`Operator`] judges it.
fn side(value: f64, limit: f64) -> Option<Ordering> {
    if Operator::Equal.is_true(value, limit) { Some(Ordering::Equal) } else { value.partial_cmp(&limit) }
}

/// A count; the mean of several has a decimal where it is no whole number, and is 0 only if it is exactly that.
fn count(value: f64) -> String {
    if value.fract() == 0.0 {
        return quantity::count(value as u64);
    }
    match (value * 10.0).round() as u64 {
        0 => "< 0.1".to_owned(),
        tenths => format!("{}.{}", quantity::count(tenths / 10), tenths % 10),
    }
}

/// Name of a user-defined metric without `custom.`.
fn own_name(name: &str) -> &str {
    name.strip_prefix(PREFIX).unwrap_or(name)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::{beside, shares_apart};
    use crate::threshold::{Bound, Clause, MeasuredFigure, Objectives, Operator};
    use crate::unit;

    #[test]
    fn a_mean_of_counts_is_not_cut_to_a_whole_number() {
        let objectives = Objectives::parse("lost<3").unwrap();
        let lost = &objectives.clauses()[0].metric;
        let mean = |counts: [f64; 3]| counts.iter().sum::<f64>() / 3.0;
        assert_eq!([[0.0, 0.0, 2.0], [2.0, 3.0, 3.0]].map(|counts| lost.text(mean(counts))), ["0.7", "2.7"]);
        assert_eq!([0.0, 3.0, 1_234.0].map(|value| lost.text(value)), ["0", "3", "1,234"]);
        assert_eq!([0.02, 1.96, 1_234.5].map(|value| lost.text(value)), ["< 0.1", "2.0", "1,234.5"]);
        assert_eq!(lost.interval([0.5, 2.0]), "0.5 to 2");
        assert_eq!(lost.text(f64::NAN), "—", "not 0");
    }

    /// Text of an interval beside the limit that it is judged by.
    fn shown(limit: &str, interval: [f64; 2]) -> String {
        let objectives = Objectives::parse(limit).unwrap();
        objectives.clauses()[0].shown(&MeasuredFigure::within(interval))
    }

    #[test]
    fn a_figure_near_its_limit_is_not_rounded_onto_it() {
        for (limit, interval, text) in [
            ("p99<=50ms", [49_960.0, 50_040.0], "49.9–50.1 ms"),
            ("p99<1s", [49_960.0, 50_040.0], "49.9–50.1 ms"),
            ("p99<50ms", [410.0, 1_230.0], "0.41–1.23 ms"),
            ("p99<50ms", [2.0, 33.0], "2–33 µs"),
            ("p99<50ms", [50_000.0, 50_000.0], "50 ms"),
            ("rate>=0.5/s", [0.4, 0.4], "0.4/s"),
            ("rate>=100/s", [99.96, 99.96], "99.96/s"),
            ("rate>=5000/s", [1_234.2, 1_234.2], "1,234/s"),
            ("rate>=1234.6/s", [1_234.55, 1_234.55], "1234.5/s"),
            ("loss=0", [1e-9, 1e-9], "0.0000001 %"),
            ("delivered>=99.9995%", [0.999_996, 0.999_996], "99.9996 %"),
            ("memory<100MB", [99_990_000.0, 99_990_000.0], "99.99 MB"),
            ("cpu<0.5", [0.5004, 0.5004], "0.5004 cores"),
        ] {
            assert_eq!(shown(limit, interval), text, "{limit} {interval:?}");
        }
        assert_eq!([beside(10.04, 10.0), beside(10.04, 60.0), beside(10.0, 10.0)], ["10.04", "10", "10"]);
    }

    #[test]
    fn shares_that_differ_are_shown_to_differ() {
        for (shares, text) in [
            ([0.9, 1.0], ["90 %", "100 %"]),
            ([0.9998, 1.0], ["99.98 %", "100 %"]),
            ([0.9, 0.9998], ["90 %", "99.98 %"]),
            ([0.95, 0.9502], ["95 %", "95.02 %"]),
            ([0.985, 0.98], ["98.5 %", "98 %"]),
            ([0.5, 0.5], ["50 %", "50 %"]),
        ] {
            assert_eq!(shares_apart(shares), text, "{shares:?}");
        }
    }

    /// The bounds that a text names, in the unit of figures.
    fn read(text: &str) -> [f64; 2] {
        let split = |part: &str| {
            let end = part.find(|letter: char| !letter.is_ascii_digit() && letter != '.' && letter != ',');
            let (number, symbol) = part.split_at(end.unwrap_or(part.len()));
            (number.replace(',', "").parse::<f64>().unwrap(), unit::of_symbol(symbol.trim()).1)
        };
        let value = |(number, worth): (f64, f64)| number * worth;
        match (text.split_once(" to "), text.split_once('–')) {
            (Some((low, high)), _) => [value(split(low)), value(split(high))],
            (None, Some((low, high))) => [split(low).0 * split(high).1, value(split(high))],
            (None, None) => [value(split(text)); 2],
        }
    }

    proptest! {
        #[test]
        fn the_printed_interval_never_contradicts_the_outcome(
            which in 0usize..4, low in 0.001f64..1.0, width in prop_oneof![Just(0.0), 1e-9f64..1.0],
            away in prop_oneof![Just(0.0), -0.5f64..0.5, -1e-4f64..1e-4, -1e-8f64..1e-8], is_at_upper in any::<bool>(),
            operator in prop_oneof![
                Just(Operator::Below), Just(Operator::AtMost), Just(Operator::Equal), Just(Operator::AtLeast), Just(Operator::Above)
            ],
        ) {
            let (text, most) = [("p99<1s", 1e7), ("delivered>0.5", 1.0), ("rate>1/s", 1e5), ("memory<1MB", 1e10)][which];
            let interval = [low, (low + width).min(1.0)].map(|value| value * most);
            let limit = interval[usize::from(is_at_upper)] * (1.0 + away);
            let clause =
                Clause { operator, bound: Bound::Value(limit), ..Objectives::parse(text).unwrap().clauses()[0].clone() };
            let exact = MeasuredFigure::within(interval);
            let printed = MeasuredFigure::within(read(&clause.shown(&exact)));
            prop_assert_eq!(clause.judge(Some(exact)), clause.judge(Some(printed)), "{} of {}", clause.shown(&exact), limit);
        }
    }
}
