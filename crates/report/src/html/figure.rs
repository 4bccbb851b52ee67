//! A chart in the page: question, answer, legend, picture in two widths, and the data with which the script shows
//! values.

use maud::{Markup, html};

use crate::charts::{Chart, Picture};
use crate::plot::heat::LEVELS;
use crate::plot::mark::Shape;
use crate::plot::{Plot, Width};

/// The figure of a chart.
pub(super) fn figure(id: &str, chart: &Chart) -> Markup {
    drawn(id, chart, id, Width::ALL)
}

/// The figure of a chart over time or load. Its cursor is shared with the other such charts of the page: pointing at
/// one of them shows the same position in all.
pub(super) fn shared(id: &str, chart: &Chart) -> Markup {
    drawn(id, chart, SHARED, Width::ALL)
}

/// The figure of a small chart, with a shared cursor, too. A heat map has too many columns for a small chart and uses
/// the full width.
pub(super) fn small(id: &str, chart: &Chart) -> Markup {
    let is_heat_map = matches!(&chart.picture, Picture::Plot(plot) if !plot.cells.is_empty());
    if is_heat_map { shared(id, chart) } else { drawn(id, chart, SHARED, Width::SMALL) }
}

/// Group of the charts that share a cursor.
const SHARED: &str = "time";

fn drawn(id: &str, chart: &Chart, group: &str, widths: [Width; 2]) -> Markup {
    let description = format!("{} {}", chart.title, chart.finding);
    let plot = if let Picture::Plot(plot) = &chart.picture { Some(plot) } else { None };
    html! {
        figure id=(id) data-group=(group) data-at=[plot.map(|plot| places(plot))] data-labels=[plot.map(|plot| labels(plot))] {
            figcaption {
                h3 { a href={ "#" (id) } { (chart.title) } }
                // If the chart is missing, the reason replaces it.
                @if !matches!(chart.picture, Picture::Missing(_)) { p.finding { (chart.finding) } }
                p.notes {
                    @for note in &chart.notes { span { (note) } }
                    @if !chart.csv.is_empty() { span { a href=(chart.csv) { (chart.csv) } } }
                }
            }
            @match &chart.picture {
                Picture::Missing(why) => p.missing { (why) },
                Picture::Bars(bars) => {
                    @for width in widths { (bars.svg(width, &description)) }
                }
                Picture::Plot(plot) => {
                    (legend(plot))
                    @for width in widths { (plot.svg(width, &description)) }
                }
                Picture::Stacks(stacks) => {
                    @for width in widths { (stacks.svg(width, &description)) }
                }
                Picture::Rows(rows) => {
                    @for width in widths { (rows.svg(width, &description)) }
                }
                Picture::Panels(panels) => {
                    div.panels { @for (name, plot) in panels { (panel(id, name, plot, &description)) } }
                }
            }
        }
    }
}

/// One of several plots, with a separate legend and cursor.
fn panel(id: &str, name: &str, plot: &Plot, description: &str) -> Markup {
    let description = format!("{name}: {description}");
    html! {
        figure.panel data-group={ (id) ": " (name) } data-at=(places(plot)) data-labels=(labels(plot)) {
            figcaption { h4 { (name) } }
            (legend(plot))
            (plot.svg(Width::Panel, &description))
        }
    }
}

/// Names of the lines with line samples; the script turns them into switches and writes the value at the cursor beside
/// them.
fn legend(plot: &Plot) -> Markup {
    html! {
        ul.legend {
            li.moment {}
            @for line in &plot.lines {
                li data-line=(line.style) data-values=(line.readings.join("|")) {
                    @if plot.cells.is_empty() {
                        svg viewBox="0 0 28 10" aria-hidden="true" { path class={ "line c" (line.style) } d="M1 5H27" {}
                            @if line.is_marked { path class={ "mark c" (line.style) } d=(Shape::of_style(line.style).path(14.0, 5.0, 3.6)) {} } }
                    }
                    span { (line.name) }
                    output {}
                }
            }
            @if !plot.cells.is_empty() {
                @for (position, (_, name)) in LEVELS.iter().enumerate() { li { span class={ "shade h" (position + 1) } {} (name) } }
            }
        }
    }
}

/// Positions at which values can be read, in ten-thousandths of the x axis.
fn places(plot: &Plot) -> String {
    let place = |value: f64| format!("{:.0}", plot.x.scale.place(value) * 10_000.0);
    plot.readings.iter().map(|(at, _)| place(*at)).collect::<Vec<String>>().join(" ")
}

fn labels(plot: &Plot) -> String {
    plot.readings.iter().map(|(_, label)| label.as_str()).collect::<Vec<&str>>().join("|")
}
