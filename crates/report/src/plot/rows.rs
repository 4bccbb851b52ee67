//! Rows over several axes side by side: box plots and bars of many cells; the name of each row is written once.

use maud::{Markup, html};

use super::axis::Tick;
use super::line::pixel;
use super::{Axis, Width};

/// Height of a row, pixels.
const ROW: f64 = 22.0;
/// Height of a group's name, pixels.
const GROUP: f64 = 26.0;
/// Space above the rows for a panel's name, and below for its axis, pixels.
const HEAD: f64 = 24.0;
const FOOT: f64 = 40.0;
/// Space between panels, pixels.
const GAP: f64 = 22.0;
/// Approximate width of a letter, pixels.
const LETTER: f64 = 6.8;

/// Content of a row in a panel.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// Nothing was measured; the text is the reason.
    Words(String),
    /// A box plot with every value as a point.
    Spread(Spread),
    /// A box plot of many values.
    Boxed(Boxed),
    /// A bar from the start of the axis.
    Bar {
        /// Value, in the axis's unit.
        value: f64,
        /// Interval around it.
        interval: Option<(f64, f64)>,
        /// The value with its unit.
        text: String,
    },
}

/// A box plot: every value as a point, the quartiles as a box, the median as a stroke.
#[derive(Clone, Debug, PartialEq)]
pub struct Spread {
    /// All values, in the axis's unit.
    pub values: Vec<f64>,
    /// Median of the values.
    pub median: f64,
    /// First and third quartile, if there are enough values.
    pub quartiles: Option<(f64, f64)>,
    /// Text shown when the pointer is over it.
    pub text: String,
}

/// A box plot of too many values to draw as points.
#[derive(Clone, Debug, PartialEq)]
pub struct Boxed {
    /// Ends of the whiskers, in the axis's unit.
    pub whiskers: (f64, f64),
    /// First and third quartile.
    pub quartiles: (f64, f64),
    /// The median.
    pub median: f64,
    /// Text shown when the pointer is over it.
    pub text: String,
}

/// A row.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Name of the row.
    pub name: String,
    /// Number of its colour, 1 to [`super::MOST_LINES`].
    pub style: usize,
    /// Content for each panel.
    pub contents: Vec<Content>,
}

/// Rows that belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct RowGroup {
    /// Name of the group; empty if it is the only one.
    pub name: String,
    /// Rows of the group, from top to bottom.
    pub rows: Vec<Row>,
}

/// An axis with its name.
#[derive(Clone, Debug, PartialEq)]
pub struct RowPanel {
    /// What the panel shows.
    pub name: String,
    /// Axis of the panel.
    pub axis: Axis,
}

/// Rows over several axes.
#[derive(Clone, Debug, PartialEq)]
pub struct Rows {
    /// The panels, from left to right.
    pub panels: Vec<RowPanel>,
    /// The rows, in groups.
    pub groups: Vec<RowGroup>,
}

/// Frame of a panel: left and right, top and bottom.
struct Frame {
    panel: usize,
    left: f64,
    right: f64,
    top: f64,
}

impl Rows {
    /// The rows as an SVG: panels side by side, on a narrow page one below the other.
    pub fn svg(&self, width: Width, description: &str) -> Markup {
        let names = self.name_width(width);
        let body = self.body_height();
        let count = self.panels.len().max(1) as f64;
        let each = (width.pixels() - names - GAP * (count - 1.0) - 10.0) / count;
        let is_stacked = width == Width::Narrow;
        let frames: Vec<Frame> = (0..self.panels.len())
            .map(|panel| {
                let place = panel as f64;
                let (left, row) = if is_stacked { (names, place) } else { (names + place * (each + GAP), 0.0) };
                let right = if is_stacked { width.pixels() - 10.0 } else { left + each };
                Frame { panel, left, right, top: row * (HEAD + body + FOOT) + HEAD }
            })
            .collect();
        let height = (HEAD + body + FOOT) * if is_stacked { count } else { 1.0 };
        let size = format!("0 0 {} {}", pixel(width.pixels()), pixel(height));
        html! {
            svg class={ "rows " (width.class()) } viewBox=(size) role="img" aria-label=(description) {
                @for frame in &frames {
                    @if is_stacked || frame.panel == 0 { (self.names(frame.top, names)) }
                    (self.panel(frame, body))
                }
            }
        }
    }

    fn name_width(&self, width: Width) -> f64 {
        let rows = self.groups.iter().flat_map(|group| &group.rows);
        let longest = rows.map(|row| row.name.chars().count()).max().unwrap_or(0) as f64;
        (longest * 7.6 + 18.0).clamp(60.0, width.pixels() * 0.34)
    }

    fn body_height(&self) -> f64 {
        self.groups.iter().map(|group| group_head(group) + group.rows.len() as f64 * ROW).sum()
    }

    /// Every row with the position of its middle, from the top of the rows.
    fn placed(&self) -> Vec<(f64, &Row)> {
        let mut placed = Vec::new();
        let mut top = 0.0;
        for group in &self.groups {
            top += group_head(group);
            for row in &group.rows {
                placed.push((top + ROW / 2.0, row));
                top += ROW;
            }
        }
        placed
    }

    fn names(&self, top: f64, width: f64) -> Markup {
        let mut heads = Vec::new();
        let mut at = top;
        for group in &self.groups {
            if !group.name.is_empty() {
                heads.push((at + GROUP - 8.0, &group.name));
            }
            at += group_head(group) + group.rows.len() as f64 * ROW;
        }
        let letters = ((width - 10.0) / LETTER) as usize;
        html! {
            @for (y, name) in heads { text class="group-label" x="0" y=(pixel(y)) { (name) } }
            @for (middle, row) in self.placed() {
                text class="row-label" x="0" y=(pixel(top + middle + 4.0)) {
                    (shortened(&row.name, letters))
                    @if row.name.chars().count() > letters { title { (row.name) } }
                }
            }
        }
    }

    fn panel(&self, frame: &Frame, body: f64) -> Markup {
        let panel = &self.panels[frame.panel];
        let place = |value: f64| frame.left + panel.axis.scale.place(value) * (frame.right - frame.left);
        let bottom = frame.top + body;
        html! {
            text class="panel-title" x=(pixel(frame.left)) y=(pixel(frame.top - 8.0)) { (panel.name) }
            @for tick in ticks_that_fit(&panel.axis, frame.right - frame.left) {
                @let x = place(tick.value);
                line class="grid" x1=(pixel(x)) x2=(pixel(x)) y1=(pixel(frame.top)) y2=(pixel(bottom)) {}
                text class={ "x-label " (anchor(frame, x, tick)) } x=(pixel(x)) y=(pixel(bottom + 15.0)) { (tick.label) }
            }
            line class="axis" x1=(pixel(frame.left)) x2=(pixel(frame.right)) y1=(pixel(bottom)) y2=(pixel(bottom)) {}
            text class="axis-title end" x=(pixel(frame.right)) y=(pixel(bottom + 31.0)) { (panel.axis.title) }
            @for (middle, row) in self.placed() {
                @if let Some(content) = row.contents.get(frame.panel) {
                    (draw(content, row.style, frame.top + middle, frame, &place))
                }
            }
        }
    }
}

fn group_head(group: &RowGroup) -> f64 {
    if group.name.is_empty() { 0.0 } else { GROUP }
}

fn draw(content: &Content, style: usize, middle: f64, frame: &Frame, place: &dyn Fn(f64) -> f64) -> Markup {
    match content {
        Content::Words(words) => {
            let letters = ((frame.right - frame.left) / LETTER) as usize;
            html! { text class="row-words" x=(pixel(frame.left + 4.0)) y=(pixel(middle + 4.0)) { (shortened(words, letters)) } }
        }
        Content::Bar { value, interval, text } => {
            let (end, room) = (place(*value), text.chars().count() as f64 * LETTER + 10.0);
            let after = interval.map_or(end, |(_, high)| place(high)).max(end);
            // The figure of a long bar is written inside if it does not fit after the bar.
            let is_inside = after + room > frame.right;
            let (x, class) = if is_inside {
                (end.min(interval.map_or(end, |(low, _)| place(low))) - 5.0, "bar-value in")
            } else {
                (after + 5.0, "bar-value")
            };
            html! {
                rect class={ "bar c" (style) } x=(pixel(frame.left)) y=(pixel(middle - 7.0))
                    width=(pixel((end - frame.left).max(1.0))) height="14" {}
                @if let Some((low, high)) = interval { (whisker(place(*low), place(*high), middle, style)) }
                text class=(class) x=(pixel(x)) y=(pixel(middle + 4.0)) { (text) }
            }
        }
        Content::Boxed(boxed) => {
            let (low, high) = (place(boxed.quartiles.0), place(boxed.quartiles.1));
            let median = pixel(place(boxed.median));
            html! {
                g class={ "c" (style) } {
                    title { (boxed.text) }
                    (whisker(place(boxed.whiskers.0), place(boxed.whiskers.1), middle, style))
                    rect class="box" x=(pixel(low)) y=(pixel(middle - 7.0)) width=(pixel((high - low).max(1.0))) height="14" {}
                    line class="median" x1=(median) x2=(median) y1=(pixel(middle - 8.0)) y2=(pixel(middle + 8.0)) {}
                }
            }
        }
        Content::Spread(spread) => html! {
            g class={ "c" (style) } {
                title { (spread.text) }
                @if let Some((low, high)) = spread.quartiles {
                    rect class="box" x=(pixel(place(low))) y=(pixel(middle - 7.0)) width=(pixel((place(high) - place(low)).max(1.0))) height="14" {}
                }
                @for value in &spread.values { circle class="dot" cx=(pixel(place(*value))) cy=(pixel(middle)) r="2.6" {} }
                line class="median" x1=(pixel(place(spread.median))) x2=(pixel(place(spread.median))) y1=(pixel(middle - 8.0)) y2=(pixel(middle + 8.0)) {}
            }
        },
    }
}

fn whisker(low: f64, high: f64, middle: f64, style: usize) -> Markup {
    let (low, high) = (pixel(low), pixel(high));
    let (top, bottom) = (pixel(middle - 4.0), pixel(middle + 4.0));
    let path = format!("M{low} {middle}H{high}M{low} {top}V{bottom}M{high} {top}V{bottom}", middle = pixel(middle));
    html! { path class={ "whisker c" (style) } d=(path) {} }
}

/// Ticks whose labels do not overlap: every one, every second, every third, …
fn ticks_that_fit(axis: &Axis, width: f64) -> Vec<&Tick> {
    let half = |tick: &Tick| tick.label.chars().count() as f64 * LETTER / 2.0 + 5.0;
    for stride in 1..=axis.ticks.len().max(1) {
        let kept: Vec<&Tick> = axis.ticks.iter().step_by(stride).collect();
        let at = |tick: &Tick| axis.scale.place(tick.value) * width;
        if kept.windows(2).all(|pair| at(pair[0]) + half(pair[0]) <= at(pair[1]) - half(pair[1])) {
            return kept;
        }
    }
    Vec::new()
}

fn anchor(frame: &Frame, x: f64, tick: &Tick) -> &'static str {
    let half = tick.label.chars().count() as f64 * LETTER / 2.0;
    if x + half > frame.right + 10.0 { "end" } else { "middle" }
}

/// At most `letters` characters, with `…` if something was cut.
fn shortened(text: &str, letters: usize) -> String {
    if text.chars().count() <= letters {
        return text.to_string();
    }
    let mut kept: String = text.chars().take(letters.saturating_sub(1)).collect();
    kept.push('…');
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numbers::short;

    fn rows(contents: Vec<Content>) -> Rows {
        let row = Row { name: "a".to_string(), style: 1, contents };
        Rows {
            panels: vec![RowPanel { name: "p99".to_string(), axis: Axis::from_zero(10.0, "ms", short) }],
            groups: vec![RowGroup { name: String::new(), rows: vec![row] }],
        }
    }

    #[test]
    fn a_failed_row_holds_words_and_no_bar() {
        let svg = rows(vec![Content::Words("did not start".to_string())]).svg(Width::Wide, "").into_string();
        assert!(svg.contains("did not start") && !svg.contains("<rect"), "{svg}");
    }

    #[test]
    fn a_box_has_whiskers_and_a_median() {
        let boxed = Boxed { whiskers: (1.0, 8.0), quartiles: (2.0, 4.0), median: 3.0, text: "all".to_string() };
        let svg = rows(vec![Content::Boxed(boxed)]).svg(Width::Wide, "").into_string();
        for part in ["class=\"box\"", "class=\"median\"", "whisker", "<title>all</title>"] {
            assert!(svg.contains(part), "{part} is not in {svg}");
        }
    }

    #[test]
    fn every_repetition_is_a_point() {
        let spread = Spread { values: vec![1.0, 2.0, 4.0], median: 2.0, quartiles: None, text: String::new() };
        let svg = rows(vec![Content::Spread(spread)]).svg(Width::Narrow, "").into_string();
        assert_eq!(svg.matches("<circle").count(), 3);
        assert!(!svg.contains("class=\"box\""), "three values have no quartiles");
    }
}
