//! Messages between sites, if labels of nodes determine where groups run: a site is all nodes with the same value of a
//! label.

use maud::{Markup, html};
use pubmark_record::latency::both;
use pubmark_record::record::Record;
use pubmark_record::tables::LabelRow;

use super::heat_map::{HeatCell, heat_map};
use super::tables;
use crate::markdown::unit_of;
use crate::words::{by_label, site};

/// Most sites that are shown as a map.
const MAP_SITES: usize = 24;

/// A map and a table for each label; empty for a run without labels.
pub(super) fn section(record: &Record) -> Markup {
    html! {
        @for (label, rows) in by_label(record) { (map(record, label, &rows)) (tables::sites(record, label, &rows)) }
    }
}

fn map(record: &Record, label: &str, rows: &[&LabelRow]) -> Markup {
    let mut sites: Vec<&Option<String>> = vec![];
    for site in rows.iter().flat_map(|row| [&row.publisher_site, &row.subscriber_site]) {
        if !sites.contains(&site) {
            sites.push(site);
        }
    }
    sites.sort_by_key(|site| (site.is_none(), *site));
    if sites.len() > MAP_SITES {
        return html! {};
    }
    let cell = |from: usize, to: usize| {
        let wanted = (sites[from], sites[to]);
        let row = rows.iter().find(|row| (&row.publisher_site, &row.subscriber_site) == wanted)?;
        let p50 = both(&row.latency, |latency| latency.p50);
        Some(HeatCell { p50, expected: row.expected, lost: row.lost })
    };
    let names: Vec<&str> = sites.iter().map(|name| site(name)).collect();
    heat_map(&format!("Latency from {label} to {label}"), label, &names, unit_of(record), cell)
}
