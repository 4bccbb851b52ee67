//! The charts of a run, in the order of the page. A new chart is a file in `charts/` and a row in [`CHARTS`].

pub mod capacity;
mod cpu;
pub mod curves;
pub mod experiment;
mod latency_breakdown;
mod latency_heat_map;
mod latency_over_time;
mod memory;
mod network;
pub mod outcomes;
mod over_time;
mod rates;
mod scheduler_lag;
mod throttling;

use pubmark_record::record::Record;

use crate::plot::{Plot, bars::Bars, rows::Rows, stacks::Stacks};

/// Section of the page that has a chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// Latency of messages.
    Latency,
    /// Latency breakdown.
    LatencyBreakdown,
    /// Outcomes of messages.
    Messages,
    /// Charts over time, which share one x axis.
    OverTime,
    /// Quality of the load generator.
    Generator,
}

/// A chart of the page.
pub struct ChartRow {
    /// Anchor in the page.
    pub id: &'static str,
    /// Section of the page.
    pub section: Section,
    /// Whether it is shown, with the reason, even if there is nothing to draw.
    pub is_expected: bool,
    /// Draws the chart.
    pub draw: fn(&Record) -> Chart,
}

/// All charts.
pub const CHARTS: [ChartRow; 11] = [
    ChartRow { id: "percentiles", section: Section::Latency, is_expected: true, draw: curves::draw },
    ChartRow {
        id: "latency-breakdown",
        section: Section::LatencyBreakdown,
        is_expected: false,
        draw: latency_breakdown::draw,
    },
    ChartRow { id: "outcomes", section: Section::Messages, is_expected: true, draw: outcomes::draw },
    ChartRow { id: "rates", section: Section::OverTime, is_expected: true, draw: rates::draw },
    ChartRow { id: "latency-over-time", section: Section::OverTime, is_expected: true, draw: latency_over_time::draw },
    ChartRow { id: "latency-heat-map", section: Section::OverTime, is_expected: false, draw: latency_heat_map::draw },
    ChartRow { id: "scheduler-lag", section: Section::Generator, is_expected: true, draw: scheduler_lag::draw },
    ChartRow { id: "cpu", section: Section::OverTime, is_expected: true, draw: cpu::draw },
    ChartRow { id: "memory", section: Section::OverTime, is_expected: true, draw: memory::draw },
    ChartRow { id: "throttling", section: Section::OverTime, is_expected: false, draw: throttling::draw },
    ChartRow { id: "network", section: Section::OverTime, is_expected: false, draw: network::draw },
];

/// A chart with its texts.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// The question that the chart answers.
    pub title: &'static str,
    /// The answer in words; also the description for screen readers.
    pub finding: String,
    /// Notes: number of samples, and which direction is better.
    pub notes: Vec<String>,
    /// File with the figures, relative to the page.
    pub csv: &'static str,
    /// Content of the chart.
    pub picture: Picture,
}

/// Content of a chart.
#[derive(Clone, Debug, PartialEq)]
pub enum Picture {
    /// No content; the text is the reason.
    Missing(String),
    /// Lines.
    Plot(Box<Plot>),
    /// Stacked bars.
    Bars(Bars),
    /// Stacked bars: parts of an amount over one axis.
    Stacks(Stacks),
    /// Rows over several axes.
    Rows(Rows),
    /// Plots side by side, each with its name.
    Panels(Vec<(String, Plot)>),
}

impl Chart {
    /// A chart of figures that were not measured.
    pub(crate) fn missing(title: &'static str, csv: &'static str, why: &str) -> Chart {
        Chart { title, finding: why.to_string(), notes: Vec::new(), csv, picture: Picture::Missing(why.to_string()) }
    }
}
