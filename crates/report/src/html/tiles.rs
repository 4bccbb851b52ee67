//! The first screen of a run: five figures, one tile each, with their objectives. The section `objectives` has all.

use maud::{Markup, html};
use pubmark_record::figures::delivered_share;
use pubmark_record::latency::{LatencyBounds, Summary, both, upper};
use pubmark_record::objectives::Objective;
use pubmark_record::record::Record;

use super::objectives::class;
use crate::numbers::{MISSING, TimeUnit, bytes, cores, count, interval, percentage, significant};
use crate::words;

/// A figure on a tile.
struct Tile {
    /// Anchor in the page, and the name by which its objectives are found.
    id: &'static str,
    /// Name of the figure.
    name: &'static str,
    /// Values with a smaller text after each: the unit.
    values: Vec<(String, String)>,
    /// Text beside the values.
    beside: String,
    /// Whether it is a time: the times of a run may be unusable although its counts are usable.
    is_time: bool,
}

/// The tiles.
pub(super) fn tiles(record: &Record) -> Markup {
    let tiles = [delivered(record), latency(record, &P50), latency(record, &P99), rate(record), cost(record)];
    html! { div.tiles { @for one in &tiles { (tile(one, &objectives(record, one.id))) } } }
}

fn tile(tile: &Tile, objectives: &[&Objective]) -> Markup {
    html! {
        div id={ "tile-" (tile.id) } class={ "tile" @if tile.is_time { " of-times" } } {
            div.name { (tile.name) }
            div.values { @for (value, unit) in &tile.values { span.value { (value) @if !unit.is_empty() { " " span.unit { (unit) } } } " " } }
            div.beside { (tile.beside) }
            @for objective in objectives {
                div class={ "objective " (class(objective.outcome)) } { (objective.limit) ": " (objective.outcome.word()) }
            }
        }
    }
}

/// Metrics whose limits are shown on a tile, by the name of the tile.
const METRICS: [(&str, &[&str]); 5] = [
    ("delivered", &["delivered", "loss", "lost", "duplicated"]),
    ("p50", &["p50"]),
    ("p99", &["p95", "p99", "p99.9", "max"]),
    ("rate", &["rate"]),
    ("cost", &["cpu", "cpu_per_million", "memory", "memory_per_connection"]),
];

/// The objectives of a tile.
fn objectives<'a>(record: &'a Record, id: &str) -> Vec<&'a Objective> {
    let metrics = METRICS.iter().find(|(tile, _)| *tile == id).map_or(&[][..], |(_, metrics)| metrics);
    record.objectives.iter().filter(|objective| metrics.contains(&objective.metric.as_str())).collect()
}

fn delivered(record: &Record) -> Tile {
    let books = &record.delivery.messages;
    let prevented = words::named_counts(&words::prevented_outcomes(record));
    let expected = match books.expected {
        0 => "no message was expected".to_string(),
        expected if books.delivered == expected && prevented.is_empty() => format!("all {} messages", count(expected)),
        expected if books.delivered == expected => format!("all {} expected", count(expected)),
        expected => {
            let missing = [(books.lost, "lost"), (books.unknown, "unknown")];
            let parts: Vec<String> = missing
                .iter()
                .filter(|(number, _)| *number > 0)
                .map(|(number, word)| format!("{} {word}", count(*number)))
                .collect();
            format!("{} of {}", parts.join(", "), count(expected))
        }
    };
    let beside = if prevented.is_empty() { expected } else { format!("{expected}; {prevented}") };
    let text = percentage(delivered_share(record));
    let (value, unit) = text.split_once(" %").map_or((text.as_str(), ""), |(value, _)| (value, "%"));
    Tile {
        id: "delivered",
        name: "Delivered",
        values: vec![(value.to_string(), unit.to_string())],
        beside,
        is_time: false,
    }
}

/// A percentile with a tile.
struct Percentile {
    id: &'static str,
    name: &'static str,
    get: fn(&Summary) -> Option<f64>,
    meaning: &'static str,
}

const P50: Percentile = Percentile {
    id: "p50",
    name: "Latency p50",
    get: |summary| summary.p50,
    meaning: "half of the delivered messages take no longer",
};
const P99: Percentile = Percentile {
    id: "p99",
    name: "Latency p99",
    get: |summary| summary.p99,
    meaning: "99 % of the delivered messages take no longer",
};

fn latency(record: &Record, percentile: &Percentile) -> Tile {
    let bounds = &record.latency.total;
    let [lower, measured] = both(bounds, percentile.get);
    let (value, unit) = match measured {
        Some(value) => {
            let unit = TimeUnit::for_value(value);
            (unit.interval([lower, measured]), unit.symbol())
        }
        None => (MISSING.to_string(), ""),
    };
    let beside = match (upper(bounds), measured) {
        (None, _) => "latency was not measured".to_string(),
        (Some(_), Some(_)) if record.settings.flood => "of a flood: not judged".to_string(),
        (Some(_), Some(_)) => percentile.meaning.to_string(),
        (Some(_), None) => too_few(bounds),
    };
    let values = vec![(value, unit.to_string())];
    Tile { id: percentile.id, name: percentile.name, values, beside, is_time: true }
}

/// Text for a percentile with too few samples beyond it: the highest percentile that has enough samples, otherwise the
/// largest sample.
fn too_few(bounds: &Option<LatencyBounds>) -> String {
    let known = words::instead_of_p99(bounds);
    let instead = known.map_or_else(
        || format!("largest {}", interval(both(bounds, |times| Some(times.max)))),
        |(name, [lower, upper])| {
            let unit = TimeUnit::for_value(upper.unwrap_or_default());
            format!("{name} {} {}", unit.interval([lower, upper]), unit.symbol())
        },
    );
    format!("too few messages; {instead}")
}

fn rate(record: &Record) -> Tile {
    let rates = &record.throughput;
    let beside = format!(
        "delivered, of {}/s offered; {}/s",
        significant(rates.offered_per_s),
        bytes(Some(rates.payload_bytes_per_s))
    );
    let was_measured = record.delivery.messages.offered > 0;
    let (values, beside) = if was_measured {
        (vec![(significant(rates.delivered_per_s), "messages/s".to_string())], beside)
    } else {
        (vec![(MISSING.to_string(), String::new())], "no message was due".to_string())
    };
    Tile { id: "rate", name: "Rate", values, beside, is_time: false }
}

fn cost(record: &Record) -> Tile {
    let name = "CPU and memory of the system";
    let (values, beside) = match &record.cost.system {
        Some(usage) => (
            vec![
                (cores(Some(usage.cores)).trim_end_matches(" %").to_string(), "% of a core".to_string()),
                split(&bytes(Some(usage.peak_rss_bytes as f64))),
            ],
            words::unit_costs(record).first().cloned().unwrap_or_else(|| "memory at its peak".to_string()),
        ),
        None => (vec![(MISSING.to_string(), String::new())], "not measured: is it on this machine?".to_string()),
    };
    Tile { id: "cost", name, values, beside, is_time: false }
}

/// Splits a text into a number and its unit.
fn split(text: &str) -> (String, String) {
    let (value, unit) = text.split_once(' ').unwrap_or((text, ""));
    (value.to_string(), unit.to_string())
}

#[cfg(test)]
mod tests {
    use pubmark_record::record::Delivery;
    use pubmark_record::sample;

    use super::*;

    #[test]
    fn what_the_system_prevented_is_in_the_share_that_the_first_tile_shows() {
        let tile = |books: Delivery| {
            let mut record = sample::record();
            record.delivery.messages = books;
            let tile = delivered(&record);
            (tile.values[0].0.clone(), tile.beside)
        };
        let books = Delivery { offered: 8, sent: 4, expected: 8, delivered: 8, ..Delivery::default() };
        let of = |share: &str, beside: &str| (share.to_string(), beside.to_string());
        assert_eq!(tile(books), of("100", "all 8 messages"));
        let refused = Delivery { refused: 4, prevented: 8, ..books };
        assert_eq!(tile(refused), of("50", "all 8 expected; 4 refused"));
        let many = Delivery { refused: 2, unsent: 1, skipped_disconnected: 1, absent: 4, ..refused };
        let many = Delivery { delivered: 5, lost: 3, ..many };
        assert_eq!(tile(many), of("25", "3 lost of 8; 1 disconnected, 2 refused, 1 unsent, 4 absent"));
        let none = Delivery { offered: 5, refused: 5, prevented: 5, ..Delivery::default() };
        assert_eq!(tile(none), of("0", "no message was expected; 5 refused"));
        assert_eq!(tile(Delivery::default()), of(MISSING, "no message was expected"));
        let mut flood = sample::record();
        flood.delivery.messages = refused;
        flood.settings.flood = true;
        let flood = delivered(&flood);
        assert_eq!((&*flood.values[0].0, &*flood.beside), ("100", "all 8 messages"), "a flood always has more to send");
    }
}
