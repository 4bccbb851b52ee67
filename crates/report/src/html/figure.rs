//! A chart in the page: question, answer, legend, picture in two widths, what the script needs to read values off.

use maud::{Markup, html};

use crate::charts::{Chart, Picture};
use crate::plot::{Plot, Width};

/// The figure of a chart. Figures that `share_cursor` show the same moment when one of them is pointed at.
pub(super) fn figure(id: &str, chart: &Chart, share_cursor: bool) -> Markup {
    let description = format!("{} {}", chart.title, chart.finding);
    let group = if share_cursor { "time" } else { id };
    html! {
        figure id=(id) data-group=(group) data-at=[places(&chart.picture)] data-labels=[labels(&chart.picture)] {
            figcaption {
                h3 { a href={ "#" (id) } { (chart.title) } }
                p.finding { (chart.finding) }
                p.notes {
                    @for note in &chart.notes { span { (note) } }
                    @if !chart.csv.is_empty() { span { a href=(chart.csv) { (chart.csv) } } }
                }
            }
            @match &chart.picture {
                Picture::Missing(why) => p.missing { (why) },
                Picture::Bars(bars) => {
                    @for width in Width::ALL { (bars.svg(width, &description)) }
                }
                Picture::Plot(plot) => {
                    (legend(plot))
                    @for width in Width::ALL { (plot.svg(width, &description)) }
                }
            }
        }
    }
}

/// The lines' names with their strokes; the script turns them into switches and writes the value pointed at beside them.
fn legend(plot: &Plot) -> Markup {
    html! {
        ul.legend {
            li.moment {}
            @for line in &plot.lines {
                li data-line=(line.style) data-values=(line.readings.join("|")) {
                    svg viewBox="0 0 28 10" aria-hidden="true" { path class={ "line c" (line.style) } d="M1 5H27" {} }
                    span { (line.name) }
                    output {}
                }
            }
        }
    }
}

/// Where values can be read off, in ten-thousandths of the x axis.
fn places(picture: &Picture) -> Option<String> {
    let Picture::Plot(plot) = picture else { return None };
    let place = |value: f64| format!("{:.0}", plot.x.scale.place(value) * 10_000.0);
    Some(plot.readings.iter().map(|(at, _)| place(*at)).collect::<Vec<String>>().join(" "))
}

fn labels(picture: &Picture) -> Option<String> {
    let Picture::Plot(plot) = picture else { return None };
    Some(plot.readings.iter().map(|(_, label)| label.as_str()).collect::<Vec<&str>>().join("|"))
}
