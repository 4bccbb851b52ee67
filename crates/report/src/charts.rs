//! The charts of a run, in the order in which the page shows them. A new chart is a file in `charts/` and a row in
//! [`CHARTS`].

mod cpu;
pub mod curves;
mod latency_over_time;
mod memory;
pub mod outcomes;
mod over_time;
mod rates;
mod scheduler_lag;

use pubmark_record::record::Record;

use crate::plot::{Plot, bars::Bars};

/// Where in the page a chart stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// How late messages arrive.
    Latency,
    /// What became of the messages.
    Messages,
    /// What happened over time; these charts share one x axis.
    OverTime,
}

/// A chart of the page.
pub struct ChartRow {
    /// Its anchor in the page.
    pub id: &'static str,
    /// Where it stands.
    pub section: Section,
    /// Draws it.
    pub draw: fn(&Record) -> Chart,
}

/// Every chart.
pub const CHARTS: [ChartRow; 7] = [
    ChartRow { id: "percentiles", section: Section::Latency, draw: curves::draw },
    ChartRow { id: "outcomes", section: Section::Messages, draw: outcomes::draw },
    ChartRow { id: "rates", section: Section::OverTime, draw: rates::draw },
    ChartRow { id: "latency-over-time", section: Section::OverTime, draw: latency_over_time::draw },
    ChartRow { id: "scheduler-lag", section: Section::OverTime, draw: scheduler_lag::draw },
    ChartRow { id: "cpu", section: Section::OverTime, draw: cpu::draw },
    ChartRow { id: "memory", section: Section::OverTime, draw: memory::draw },
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
}

impl Chart {
    /// A chart of something that was not measured.
    pub(crate) fn missing(title: &'static str, csv: &'static str, why: &str) -> Chart {
        Chart { title, finding: why.to_string(), notes: Vec::new(), csv, picture: Picture::Missing(why.to_string()) }
    }
}
