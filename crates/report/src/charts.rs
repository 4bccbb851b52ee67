//! The charts of a run, in the order in which the page shows them. A new chart is a file in `charts/` and a row in
//! [`CHARTS`].

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

/// Where in the page a chart stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// How late messages arrive.
    Latency,
    /// Where the time of messages went.
    LatencyBreakdown,
    /// What became of the messages.
    Messages,
    /// What happened over time; these charts share one x axis.
    OverTime,
    /// How good the generator was.
    Generator,
}

/// A chart of the page.
pub struct ChartRow {
    /// Its anchor in the page.
    pub id: &'static str,
    /// Where it stands.
    pub section: Section,
    /// Is it shown where there is nothing to draw, too, with the reason?
    pub is_expected: bool,
    /// Draws it.
    pub draw: fn(&Record) -> Chart,
}

/// Every chart.
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

/// A chart with its words.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// The question it answers.
    pub title: &'static str,
    /// The answer in words; also what a reader hears who cannot see it.
    pub finding: String,
    /// How many samples, which direction is better.
    pub notes: Vec<String>,
    /// The file with its figures, relative to the page.
    pub csv: &'static str,
    /// What is drawn.
    pub picture: Picture,
}

/// What a chart draws.
#[derive(Clone, Debug, PartialEq)]
pub enum Picture {
    /// Nothing: why not.
    Missing(String),
    /// Lines.
    Plot(Box<Plot>),
    /// Stacked bars.
    Bars(Bars),
    /// Parts of an amount over one axis.
    Stacks(Stacks),
    /// Rows over several axes.
    Rows(Rows),
    /// Plots beside each other, each with its name.
    Panels(Vec<(String, Plot)>),
}

impl Chart {
    /// A chart of something that was not measured.
    pub(crate) fn missing(title: &'static str, csv: &'static str, why: &str) -> Chart {
        Chart { title, finding: why.to_string(), notes: Vec::new(), csv, picture: Picture::Missing(why.to_string()) }
    }
}
