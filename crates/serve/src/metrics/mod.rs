//! Metrics of the current run in the OpenMetrics text format, for Prometheus and compatible programs.
//!
//! [`RunValues`] has the values of one run; `table` has a row for each metric; [`MetricsServer`] serves `GET /metrics` for
//! one command, `routes::metrics` for `pubmark serve`.

mod latest;
mod server;
mod table;
mod values;

use std::fmt;

use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

pub(crate) use latest::Latest;
pub use server::MetricsServer;
pub use table::{Kind, METRICS, Metric, markdown};
pub use values::{Exposed, QueueValues, RunValues};

/// Media type of the text.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A label and its value.
pub type Label = (&'static str, String);

/// The current value of one series.
pub enum Reading {
    /// A counter.
    Count(u64),
    /// A gauge.
    Level(f64),
    /// A histogram.
    Histogram {
        /// Upper bound of each bucket, seconds, and the number of deliveries in this bucket only; the last bound is
        /// infinite.
        buckets: Vec<(f64, u64)>,
        /// Sum of the latencies, seconds.
        sum_s: f64,
    },
}

/// The text of all known values. A metric without a value has no series.
///
/// # Errors
/// None in practice: the type is that of the encoder, and writing to memory does not fail.
pub fn text(exposed: &Exposed) -> Result<String, fmt::Error> {
    let mut text = String::new();
    let collector = Collected(exposed.clone());
    let mut registry = prometheus_client::registry::Registry::default();
    registry.register_collector(Box::new(collector));
    prometheus_client::encoding::text::encode(&mut text, &registry)?;
    Ok(text)
}

#[derive(Debug)]
struct Collected(Exposed);

impl prometheus_client::collector::Collector for Collected {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for metric in METRICS {
            let series = (metric.series)(&self.0);
            if series.is_empty() {
                continue;
            }
            let mut described = encoder.encode_descriptor(metric.name, metric.help, None, metric.kind.openmetrics())?;
            for (labels, reading) in series {
                write(described.encode_family(&labels)?, &reading)?;
            }
        }
        Ok(())
    }
}

fn write(mut encoder: MetricEncoder<'_>, reading: &Reading) -> fmt::Result {
    match reading {
        Reading::Count(count) => encoder.encode_counter::<NoLabelSet, u64, f64>(count, None),
        Reading::Level(level) => encoder.encode_gauge(level),
        Reading::Histogram { buckets, sum_s } => {
            let count = buckets.iter().map(|(_, deliveries)| deliveries).sum();
            encoder.encode_histogram::<NoLabelSet>(*sum_s, count, buckets, None)
        }
    }
}

impl Kind {
    fn openmetrics(self) -> MetricType {
        match self {
            Kind::Counter => MetricType::Counter,
            Kind::Gauge => MetricType::Gauge,
            Kind::Histogram => MetricType::Histogram,
        }
    }
}
