//! A square of pairs; a longer p50 has a deeper colour. Losses are stated in the cell.

use maud::{Markup, html};

use crate::numbers::{MISSING, TimeUnit, share};

/// Share of the colour in the deepest cell, %: with more, the text in it could not be read.
pub(super) const DEEPEST: f64 = 40.0;

/// A pair of nodes or sites.
pub(super) struct HeatCell {
    /// Both bounds of the p50 of its latency, µs.
    pub p50: [Option<f64>; 2],
    /// Messages that were expected.
    pub expected: u64,
    /// Messages that were lost.
    pub lost: u64,
}

/// The square: senders (`whose` says whether nodes or sites) at the left, receivers at the top; `cell` returns a pair
/// by indices into `names`.
pub(super) fn heat_map(
    title: &str,
    whose: &str,
    names: &[&str],
    unit: TimeUnit,
    cell: impl Fn(usize, usize) -> Option<HeatCell>,
) -> Markup {
    let places = || 0..names.len();
    let cells: Vec<Vec<Option<HeatCell>>> = places().map(|from| places().map(|to| cell(from, to)).collect()).collect();
    let longest = cells.iter().flatten().flatten().filter_map(|cell| cell.p50[1]).fold(0.0, f64::max);
    html! {
        h3 { (title) }
        div.scroll { table.map {
            caption { "p50 in " (unit.symbol()) ", devices' " (whose) " at the left, subscribers' above; below it the share that was lost" }
            thead { tr { th { "from \\ to" } @for to in names { th.number { (to) } } } }
            tbody {
                @for (from, row) in names.iter().zip(&cells) { tr {
                    th scope="row" { (from) }
                    @for cell in row { @match cell {
                        Some(cell) => {
                            @let depth = cell.p50[1].filter(|_| longest > 0.0).map_or(0.0, |p50| p50 / longest * DEEPEST);
                            td.number style=(format!("background:color-mix(in srgb,var(--link) {depth:.0}%,transparent)")) {
                                (unit.interval(cell.p50))
                                @if cell.lost > 0 { small { (share(cell.lost, cell.expected)) " lost" } }
                            }
                        }
                        None => { td.number { (MISSING) } }
                    } }
                } }
            }
        } }
    }
}
