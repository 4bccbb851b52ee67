//! The figures by which runs and systems are compared: one table, [`FIGURES`].

mod values;

use crate::custom::{self, PREFIX};
use crate::latency::{lower, upper};
use crate::record::{Record, Side};
use crate::statistics::Scale;
use crate::unit;
use crate::verdict::usable::{Usable, usable};
use crate::wanted::delivered_by_the_end_share;
use values::{high, high_trip, low, low_trip};

pub use crate::unit::Unit;
pub use crate::wanted::delivered_share;

/// Which values of a figure are better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Low values.
    Lower,
    /// High values.
    Higher,
    /// Neither: the figure is shown for information only.
    Neither,
}

impl Better {
    /// Of both bounds of a figure, the lower one first, the one that is the measured value. It is never the better one: what pubmark may
    /// have added to a time is part of what was measured, and what it may have dropped is missing in a share or a rate.
    pub fn measured<T>(self, [lower, upper]: [T; 2]) -> T {
        match self {
            Better::Higher => lower,
            Better::Lower | Better::Neither => upper,
        }
    }
}

/// When a figure may decide a winner. Each judged figure makes significance harder to reach for all of them, so figures
/// that repeat another one, or depend on a single message, are shown but not judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judged {
    /// Never: the figure is shown only.
    Never,
    /// In runs whose messages are due at fixed times.
    OpenLoop,
    /// In floods only: otherwise the figure follows from the load.
    Flood,
    /// In all runs.
    Always,
}

impl Judged {
    /// Whether it is judged in runs that are floods (`flood`), or that are not.
    pub fn applies(self, flood: bool) -> bool {
        match self {
            Judged::Never => false,
            Judged::OpenLoop => !flood,
            Judged::Flood => flood,
            Judged::Always => true,
        }
    }
}

/// Runs for which a figure is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShownOf {
    /// All runs.
    All,
    /// Runs with requesters.
    Requests,
    /// Runs over TLS.
    Tls,
    /// Runs whose packets are counted.
    Packets,
    /// Runs with a client program whose resource use was sampled.
    Programs,
    /// Runs on nodes.
    Nodes,
}

/// A figure by which runs are compared.
#[derive(Clone, Copy, Debug)]
pub struct Figure<'a> {
    /// Name, short enough for a column.
    pub name: &'a str,
    /// Unit of the values.
    pub unit: Unit,
    /// Which values are better.
    pub better: Better,
    /// Whether it is a latency, which is not judged in a flood.
    pub is_latency: bool,
    /// Whether it counts only what arrived before a deadline, so that it depends on times though it is no latency.
    pub is_in_time: bool,
    /// When it may decide a winner.
    pub judged: Judged,
    /// Scale of comparison: ratios or differences.
    pub scale: Scale,
    /// Resolution of the measurement: a share of the value on [`Scale::Logarithm`], otherwise in the unit of the
    /// figure. A smaller spread or difference comes from the instrument.
    pub resolution: f64,
    /// Runs for which it is shown.
    pub shown_of: ShownOf,
    /// Location of its values in a record.
    source: Source<'a>,
}

/// Reads the value of a figure from a record.
type Get = fn(&Record) -> Option<f64>;

/// Location of a figure's values in a record.
#[derive(Clone, Copy, Debug)]
enum Source<'a> {
    /// In fields of the record.
    Fields {
        /// Value; the upper bound of a latency; `None` where it was not measured.
        value: Get,
        /// Lower bound of the value; `None` where the value has no bounds, or the lower bound was not measured.
        lower: Get,
    },
    /// A user-defined metric, in the unit of this symbol; in the metric's unit if it is empty.
    Custom(&'a str),
}

impl<'a> Figure<'a> {
    /// A user-defined metric in the unit of a symbol; in the metric's unit if the symbol is empty.
    pub fn custom(name: &'a str, symbol: &'a str) -> Figure<'a> {
        Figure {
            better: Better::Neither,
            judged: Judged::Never,
            source: Source::Custom(symbol),
            ..positive(name, unit::of_symbol(symbol).0, Better::Neither, Judged::Never, HISTOGRAM, unbounded)
        }
    }

    /// Name among other figures: `custom.NAME` for a user-defined metric, with its unit if that is not one of
    /// pubmark's.
    pub fn label(&self) -> String {
        match self.source {
            Source::Fields { .. } => self.name.to_owned(),
            Source::Custom(symbol) if self.unit == Unit::Number && !symbol.is_empty() => {
                format!("{PREFIX}{} ({symbol})", self.name)
            }
            Source::Custom(_) => format!("{PREFIX}{}", self.name),
        }
    }

    /// Whether it is a user-defined metric.
    pub fn is_custom(&self) -> bool {
        matches!(self.source, Source::Custom(_))
    }

    /// Value; the upper bound of a latency; `None` where it was not measured. [`Figure::of`] also checks the verdict.
    pub fn value(&self, record: &Record) -> Option<f64> {
        match self.source {
            Source::Fields { value, .. } => value(record),
            Source::Custom(symbol) => Some(custom::bounds_in(&record.custom, self.name, symbol)?[1]),
        }
    }

    /// Lower bound of the value; `None` where the value has no bounds, or the lower bound was not measured.
    pub fn lower(&self, record: &Record) -> Option<f64> {
        match self.source {
            Source::Fields { lower, .. } => lower(record),
            Source::Custom(symbol) => Some(custom::bounds_in(&record.custom, self.name, symbol)?[0]),
        }
    }

    /// Whether the figure is shown for a run.
    pub fn concerns(&self, record: &Record) -> bool {
        match self.shown_of {
            ShownOf::All => true,
            ShownOf::Requests => record.requests.is_some(),
            ShownOf::Tls => record.connections.tls.is_some(),
            ShownOf::Programs => record.cost.client_programs.is_some(),
            ShownOf::Nodes => !record.tables.nodes.is_empty(),
            ShownOf::Packets => record.cost.efficiency.as_ref().is_some_and(|found| found.total.window.is_some()),
        }
    }

    /// Whether it depends on the times of events and not only on their number.
    pub fn is_of_times(&self) -> bool {
        let is_own_time = self.is_custom() && self.unit == Unit::Microseconds;
        self.is_latency || is_own_time || self.is_in_time
    }

    /// The share of messages, or of requests, whose times the figure is of: those that arrived. `None` for other figures.
    pub fn of_arrived(&self) -> Option<&'static Figure<'static>> {
        match (self.is_latency, self.shown_of) {
            (false, _) | (true, ShownOf::Tls) => None,
            (true, _) if self.name == BACK_PRESSURE => None,
            (true, ShownOf::Requests) => figure("answered in time"),
            (true, _) => figure("delivered"),
        }
    }

    /// Whether the verdict of a run permits using the figure.
    pub fn is_usable(&self, record: &Record) -> bool {
        match usable(record) {
            Usable::Everything => true,
            Usable::AllButTimes => !self.is_of_times(),
            Usable::Nothing => false,
        }
    }

    /// Value, if it was measured and the verdict permits using it.
    pub fn of(&self, record: &Record) -> Option<f64> {
        self.value(record).filter(|_| self.is_usable(record))
    }

    /// Both bounds of the value, the lower one first. A value without bounds, and one whose lower bound was not
    /// measured, is used for both.
    pub fn bounds(&self, record: &Record) -> Option<[f64; 2]> {
        let value = self.value(record)?;
        // Each is a separate quantile of a histogram; rounding must not reverse their order.
        Some([self.lower(record).map_or(value, |lower| lower.min(value)), value])
    }
}

/// Resolution of histograms of totals: three digits.
const HISTOGRAM: f64 = 1e-3;
/// CPU time of the system is counted in ticks of 10 ms: 2 % of the half second that a short run uses.
const CPU_TICKS: f64 = 0.02;
/// CPU time of our own threads is read in ns; below one thousandth, the cost of the reading itself matters.
const THREAD_CPU: f64 = 1e-3;
/// A resident set grows in steps of 128 KiB (M_TOP_PAD of glibc's malloc): 2 % of the 6 MB of a small broker.
const MEMORY_STEPS: f64 = 0.02;
/// One message in ten thousand: smaller differences depend on single events.
const STRAY_MESSAGES: f64 = 1e-4;
/// Name of the figure of a wait. It ends when the system accepts a message, whether that arrives or not.
pub(crate) const BACK_PRESSURE: &str = "back-pressure p99";

/// All figures, in order. A new figure is a row here.
pub static FIGURES: [Figure<'static>; 35] = [
    share("delivered", Better::Higher, delivered_share),
    // What the papers count as delivered, whose runs end 2 s after publishing (PSMark) or with it (ComBench).
    Figure {
        is_in_time: true,
        judged: Judged::Never,
        ..share("delivered by the end", Better::Higher, delivered_by_the_end_share)
    },
    count("lost", |record| delivery_count(record, record.delivery.messages.lost)),
    count("unknown", |record| delivery_count(record, record.delivery.messages.unknown)),
    count("duplicated", |record| delivery_count(record, record.delivery.messages.duplicated)),
    latency("latency mean", Judged::Never, [|it| Some(low(it)?.mean), |it| Some(high(it)?.mean)]),
    latency("latency p50", Judged::OpenLoop, [|it| low(it)?.p50, |it| high(it)?.p50]),
    latency("latency p90", Judged::Never, [|it| low(it)?.p90, |it| high(it)?.p90]),
    latency("latency p95", Judged::Never, [|it| low(it)?.p95, |it| high(it)?.p95]),
    latency("latency p99", Judged::OpenLoop, [|it| low(it)?.p99, |it| high(it)?.p99]),
    latency("latency p99.9", Judged::Never, [|it| low(it)?.p999, |it| high(it)?.p999]),
    Figure {
        // The quartiles of a steady system may be equal.
        scale: Scale::Plain,
        resolution: 1.0,
        ..latency(
            "latency IQR",
            Judged::Never,
            [values::least_interquartile_range, values::largest_interquartile_range],
        )
    },
    latency("latency max", Judged::Never, [|it| Some(low(it)?.max), |it| Some(high(it)?.max)]),
    Figure {
        shown_of: ShownOf::Nodes,
        ..latency(
            "latency mean of pairs",
            Judged::Never,
            [|it| values::pairs_mean(it, lower), |it| values::pairs_mean(it, upper)],
        )
    },
    latency(
        "service latency p99",
        Judged::Never,
        [|it| lower(&it.latency.service)?.p99, |it| upper(&it.latency.service)?.p99],
    ),
    latency(
        BACK_PRESSURE,
        Judged::Never,
        [|it| it.latency.backpressure_lower.as_ref()?.p99, |it| it.latency.backpressure.as_ref()?.p99],
    ),
    Figure {
        shown_of: ShownOf::Requests,
        is_in_time: true,
        judged: Judged::Never,
        ..share("answered in time", Better::Higher, values::answered_share)
    },
    Figure {
        shown_of: ShownOf::Requests,
        ..latency("round trip p50", Judged::Never, [|it| low_trip(it)?.p50, |it| high_trip(it)?.p50])
    },
    Figure {
        shown_of: ShownOf::Requests,
        ..latency("round trip p99", Judged::Never, [|it| low_trip(it)?.p99, |it| high_trip(it)?.p99])
    },
    Figure { shown_of: ShownOf::Tls, ..time("TLS handshake mean", values::handshake) },
    Figure {
        shown_of: ShownOf::Packets,
        judged: Judged::Never,
        ..share("sent efficiency", Better::Higher, |record| record.cost.efficiency.as_ref()?.total.ratios.sent_ethernet)
    },
    Figure {
        shown_of: ShownOf::Packets,
        judged: Judged::Never,
        ..share("received efficiency", Better::Higher, |record| {
            record.cost.efficiency.as_ref()?.total.ratios.received_ethernet
        })
    },
    positive("delivered rate", Unit::PerSecond, Better::Higher, Judged::Flood, HISTOGRAM, |record| {
        Some(record.throughput.delivered_per_s)
    }),
    Figure {
        shown_of: ShownOf::Nodes,
        ..positive(
            "received per node",
            Unit::PerSecond,
            Better::Higher,
            Judged::Never,
            HISTOGRAM,
            values::received_per_node,
        )
    },
    Figure {
        shown_of: ShownOf::Nodes,
        // The rate of a steady system does not vary.
        scale: Scale::Plain,
        ..positive(
            "received variance per node",
            Unit::Number,
            Better::Neither,
            Judged::Never,
            HISTOGRAM,
            values::received_variance_per_node,
        )
    },
    positive("system CPU", Unit::Cores, Better::Lower, Judged::Never, CPU_TICKS, |record| {
        record.cost.system.map(|usage| usage.cores)
    }),
    positive(
        "system CPU of the machine",
        Unit::Share,
        Better::Lower,
        Judged::Never,
        CPU_TICKS,
        values::system_cpu_of_the_machine,
    ),
    positive(
        "system CPU a million",
        Unit::CpuSecondsPerMillion,
        Better::Lower,
        Judged::Always,
        CPU_TICKS,
        values::cpu_per_million,
    ),
    positive("publisher CPU", Unit::Cores, Better::Lower, Judged::Never, THREAD_CPU, |record| {
        record.cost.cores_of(Side::Devices)
    }),
    positive("subscriber CPU", Unit::Cores, Better::Lower, Judged::Never, THREAD_CPU, |record| {
        record.cost.cores_of(Side::Subscribers)
    }),
    Figure {
        shown_of: ShownOf::Programs,
        ..positive("client CPU", Unit::Cores, Better::Lower, Judged::Never, THREAD_CPU, |record| {
            record.cost.client_programs.map(|usage| usage.cores)
        })
    },
    Figure {
        shown_of: ShownOf::Programs,
        ..positive(
            "client CPU a million",
            Unit::CpuSecondsPerMillion,
            Better::Lower,
            Judged::Always,
            THREAD_CPU,
            values::client_cpu_per_million,
        )
    },
    Figure {
        shown_of: ShownOf::Programs,
        ..positive("client memory", Unit::Bytes, Better::Lower, Judged::Never, MEMORY_STEPS, |record| {
            record.cost.client_programs.map(|usage| usage.peak_rss_bytes as f64)
        })
    },
    positive("system memory", Unit::Bytes, Better::Lower, Judged::Always, MEMORY_STEPS, |record| {
        record.cost.system.map(|usage| usage.peak_rss_bytes as f64)
    }),
    positive("memory per connection", Unit::Bytes, Better::Lower, Judged::Never, MEMORY_STEPS, |record| {
        record.cost.system_bytes_per_connection
    }),
];

/// User-defined metrics of these records, each once, in the order of the records. If a metric has several units, the
/// first one is used.
pub fn custom_figures<'a>(records: impl Iterator<Item = &'a Record>) -> Vec<Figure<'a>> {
    let mut found: Vec<Figure> = vec![];
    for metric in records.flat_map(|record| &record.custom) {
        if found.iter().all(|known| known.name != metric.name) {
            found.push(Figure::custom(&metric.name, &metric.unit));
        }
    }
    found
}

/// Finds a figure in [`FIGURES`] by name.
pub fn figure(name: &str) -> Option<&'static Figure<'static>> {
    FIGURES.iter().find(|figure| figure.name == name)
}

/// Whether a share of messages that arrived is smaller than another by more than stray messages: a latency is that of the messages
/// that arrived, and the lost ones may be those that would have been late.
pub fn is_fewer(share: f64, other: f64) -> bool {
    // One message in ten thousand is not more than that because of the rounding of a quotient.
    other - share > STRAY_MESSAGES * (1.0 + 1e-9)
}

const fn share(name: &'static str, better: Better, get: Get) -> Figure<'static> {
    Figure {
        name,
        unit: Unit::Share,
        better,
        is_latency: false,
        is_in_time: false,
        judged: Judged::Always,
        scale: Scale::Plain,
        resolution: STRAY_MESSAGES,
        shown_of: ShownOf::All,
        source: Source::Fields { value: get, lower: unbounded },
    }
}

const fn count(name: &'static str, get: Get) -> Figure<'static> {
    Figure {
        name,
        unit: Unit::Count,
        better: Better::Lower,
        is_latency: false,
        is_in_time: false,
        judged: Judged::Never,
        scale: Scale::Plain,
        resolution: 1.0,
        shown_of: ShownOf::All,
        source: Source::Fields { value: get, lower: unbounded },
    }
}

/// A latency with its bounds, the lower one first.
const fn latency(name: &'static str, judged: Judged, [get_lower, get]: [Get; 2]) -> Figure<'static> {
    Figure {
        name,
        unit: Unit::Microseconds,
        better: Better::Lower,
        is_latency: true,
        is_in_time: false,
        judged,
        scale: Scale::Logarithm,
        resolution: HISTOGRAM,
        shown_of: ShownOf::All,
        source: Source::Fields { value: get, lower: get_lower },
    }
}

/// A time without bounds that is not judged.
const fn time(name: &'static str, get: Get) -> Figure<'static> {
    latency(name, Judged::Never, [unbounded, get])
}

/// Lower bound of a figure without bounds.
const fn unbounded(_: &Record) -> Option<f64> {
    None
}

const fn positive(name: &str, unit: Unit, better: Better, judged: Judged, resolution: f64, get: Get) -> Figure<'_> {
    let scale = Scale::Logarithm;
    Figure {
        name,
        unit,
        better,
        is_latency: false,
        is_in_time: false,
        judged,
        scale,
        resolution,
        shown_of: ShownOf::All,
        source: Source::Fields { value: get, lower: unbounded },
    }
}

fn delivery_count(record: &Record, value: u64) -> Option<f64> {
    (record.delivery.messages.expected > 0).then_some(value as f64)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::cost::Usage;

    #[test]
    fn a_flood_is_judged_by_its_rate_and_an_open_loop_by_its_latency() {
        let judged = |flood: bool| -> Vec<&str> {
            FIGURES.iter().filter(|figure| figure.judged.applies(flood)).map(|figure| figure.name).collect()
        };
        assert_eq!(
            judged(false),
            [
                "delivered",
                "latency p50",
                "latency p99",
                "system CPU a million",
                "client CPU a million",
                "system memory"
            ]
        );
        assert_eq!(
            judged(true),
            ["delivered", "delivered rate", "system CPU a million", "client CPU a million", "system memory"]
        );
    }

    #[test]
    fn the_cpu_time_of_each_side_is_that_of_its_threads() {
        let mut record = crate::sample::record();
        let of = |record: &Record, name: &str| super::figure(name).and_then(|figure| figure.value(record));
        assert_eq!(of(&record, "publisher CPU"), Some(0.051));
        assert_eq!(of(&record, "subscriber CPU"), Some(0.033));
        let first = record.cost.threads[0].clone();
        record.cost.threads.push(crate::record::ShardHealth { name: "publisher 1".to_string(), ..first });
        assert_eq!(of(&record, "publisher CPU"), Some(0.102));
        record.cost.threads[0].cores = None;
        assert_eq!(of(&record, "publisher CPU"), None);
    }

    #[test]
    fn client_programs_have_a_cost_and_pubmarks_own_clients_have_none() {
        let mut record = crate::sample::record();
        let of = |record: &Record, name: &str| super::figure(name).and_then(|figure| figure.value(record));
        assert!(!super::figure("client CPU").unwrap().concerns(&record));
        assert_eq!(of(&record, "client CPU a million"), None);
        record.cost.client_programs =
            Some(Usage { cpu_seconds: 2.0, cores: 0.2, peak_rss_bytes: 40 << 20, ..Usage::default() });
        assert!(super::figure("client CPU").unwrap().concerns(&record));
        record.throughput.delivered_per_s = 800.0;
        assert_eq!(of(&record, "client CPU a million"), Some(250.0));
        record.delivery.messages.delivered *= 2;
        assert_eq!(of(&record, "client CPU a million"), Some(250.0), "and none after it");
        assert_eq!(of(&record, "client CPU"), Some(0.2));
        assert_eq!(of(&record, "client memory"), Some((40 << 20) as f64));
    }

    #[test]
    fn a_latency_has_two_bounds_and_a_cost_has_one_value() {
        let record = crate::sample::record();
        let [low, high] = super::figure("latency p99").unwrap().bounds(&record).unwrap();
        assert!(0.0 < low && low < high, "{low} {high}");
        for name in ["delivered", "system CPU a million", "back-pressure p99"] {
            let [low, high] = super::figure(name).unwrap().bounds(&record).unwrap();
            assert_eq!(low, high, "{name}");
        }
    }

    #[test]
    fn an_answer_in_time_is_a_matter_of_times_and_a_message_lost_is_not() {
        let of_times = |name: &str| super::figure(name).unwrap().is_of_times();
        let times = [
            "latency p99",
            "back-pressure p99",
            "answered in time",
            "round trip p50",
            "TLS handshake mean",
            "delivered by the end",
        ];
        for name in times {
            assert!(of_times(name), "{name}");
        }
        for name in ["delivered", "lost", "sent efficiency", "delivered rate", "system CPU a million", "system memory"]
        {
            assert!(!of_times(name), "{name}");
        }
    }

    #[test]
    fn one_message_in_ten_thousand_is_a_stray_one_whatever_the_share() {
        let share = |arrived: u32| f64::from(arrived) / 1e4;
        assert!((1..=10_000).all(|arrived| !is_fewer(share(arrived - 1), share(arrived))));
        assert!((2..=10_000).all(|arrived| is_fewer(share(arrived - 2), share(arrived))));
        assert!(is_fewer(0.999_899, 1.0) && !is_fewer(1.0, 0.5) && !is_fewer(0.5, 0.5));
    }

    #[test]
    fn names_are_different_and_found() {
        for figure in &FIGURES {
            assert_eq!(super::figure(figure.name).map(|found| found.name), Some(figure.name));
            assert_eq!(FIGURES.iter().filter(|other| other.name == figure.name).count(), 1);
        }
        assert!(super::figure("beauty").is_none());
    }
}
