//! Renders a plot as an SVG of a given width. Colours, dashes and fonts are CSS classes, which the page's style sheet
//! defines.

use maud::{Markup, html};

use super::line::{area, path, pixel, thinned};
use super::mark::Shape;
use super::{Line, Plot, Tick, Width, heat};

/// Approximate width of a letter of an axis label, pixels.
const LETTER: f64 = 6.6;
/// Left edge of the frame unless labels need more space: the same for all charts, so that charts one above the other
/// are aligned.
const LEFT: f64 = 58.0;

/// Height of a line's name at its end, pixels.
const NAME: f64 = 14.0;
/// Half the width of the strokes at the ends of an interval, pixels.
const SERIF: f64 = 3.5;

/// The frame inside which lines are drawn.
struct Frame {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl Frame {
    fn of(plot: &Plot, width: Width) -> Frame {
        let label = plot.y.ticks.iter().map(|tick| tick.label.chars().count()).max().unwrap_or(0);
        let notes = plot.x.ticks.iter().any(|tick| !tick.note.is_empty());
        Frame {
            left: f64::max(LEFT, label as f64 * LETTER + 12.0),
            right: width.pixels() - plot.room_for_names(width),
            top: 26.0,
            bottom: plot.height - if notes { 54.0 } else { 38.0 },
        }
    }

    fn x(&self, plot: &Plot, value: f64) -> f64 {
        self.left + plot.x.scale.place(value) * (self.right - self.left)
    }

    fn y(&self, plot: &Plot, value: f64) -> f64 {
        self.bottom - plot.y.scale.place(value) * (self.bottom - self.top)
    }
}

impl Plot {
    /// The plot as an SVG; `description` is the text for screen readers.
    pub fn svg(&self, width: Width, description: &str) -> Markup {
        let frame = Frame::of(self, width);
        let size = format!("0 0 {} {}", pixel(width.pixels()), pixel(self.height));
        html! {
            svg class=(width.class()) viewBox=(size) role="img" aria-label=(description)
                data-left=(pixel(frame.left)) data-right=(pixel(frame.right)) {
                @for band in &self.bands { (self.band(&frame, band)) }
                (self.cells(&frame))
                (self.y_axis(&frame))
                (self.x_axis(&frame))
                @for (number, post) in self.posts.iter().enumerate() { (self.post(&frame, post, number)) }
                @for rule in &self.rules { (self.rule(&frame, rule)) }
                @for line in &self.lines { (self.line(&frame, line)) }
                @if self.is_labelled && width == Width::Wide { (self.names(&frame)) }
                @for mark in &self.marks {
                    path class={ "mark " (mark.class) } d=(mark.shape.path(frame.x(self, mark.x), frame.y(self, mark.y), 4.6)) {
                        title { (mark.title) }
                    }
                }
                line class="cursor" x1="0" x2="0" y1=(pixel(frame.top)) y2=(pixel(frame.bottom)) {}
            }
        }
    }

    /// The cells, one path per level. They belong to the first line of the legend.
    fn cells(&self, frame: &Frame) -> Markup {
        let path = |level: usize| -> String {
            let cells = self.cells.iter().filter(|cell| cell.level == level);
            cells
                .map(|cell| {
                    let (left, right) = (frame.x(self, cell.from), frame.x(self, cell.to));
                    let (top, bottom) = (frame.y(self, cell.high), frame.y(self, cell.low));
                    format!("M{} {}H{}V{}H{}Z", pixel(left), pixel(top), pixel(right), pixel(bottom), pixel(left))
                })
                .collect()
        };
        let levels = (0..heat::LEVELS.len()).map(|level| (level, path(level))).filter(|(_, path)| !path.is_empty());
        html! {
            @for (level, path) in levels {
                path class={ "cell h" (level + 1) } data-line=[self.lines.first().map(|line| line.style)] d=(path) {}
            }
        }
    }

    /// A line with its intervals and marks.
    fn line(&self, frame: &Frame, line: &Line) -> Markup {
        let points: Vec<_> =
            line.points.iter().map(|(x, y)| (frame.x(self, *x), y.map(|y| frame.y(self, y)))).collect();
        html! {
            @if !line.lower.is_empty() {
                @let lower: Vec<_> = line.lower.iter().map(|(x, y)| (frame.x(self, *x), y.map(|y| frame.y(self, y)))).collect();
                path class={ "spread c" (line.style) } data-line=(line.style) d=(area(&thinned(&points), &thinned(&lower), line.join)) {}
            }
            path class={ "line c" (line.style) } data-line=(line.style) d=(path(&thinned(&points), line.join)) {}
            @if !line.intervals.is_empty() {
                path class={ "whisker c" (line.style) } data-line=(line.style) d=(self.whiskers(frame, line)) {}
            }
            @if line.is_marked {
                @let shape = Shape::of_style(line.style);
                @let marks: String = points.iter().filter_map(|(x, y)| y.map(|y| shape.path(*x, y, 3.6))).collect();
                path class={ "mark c" (line.style) } data-line=(line.style) d=(marks) {}
            }
        }
    }

    fn whiskers(&self, frame: &Frame, line: &Line) -> String {
        let whisker = |(x, low, high): &(f64, f64, f64)| {
            let x = frame.x(self, *x);
            let (low, high) = (pixel(frame.y(self, *low)), pixel(frame.y(self, *high)));
            let (left, right) = (pixel(x - SERIF), pixel(x + SERIF));
            format!("M{} {low}V{high}M{left} {low}H{right}M{left} {high}H{right}", pixel(x))
        };
        line.intervals.iter().map(whisker).collect()
    }

    fn rule(&self, frame: &Frame, rule: &super::Rule) -> Markup {
        let y = frame.y(self, rule.at);
        // At the upper edge the name is below its line, so that it does not overlap the axis's title.
        let label_y = if y < frame.top + NAME { y + NAME } else { y - 5.0 };
        html! {
            line class="rule" x1=(pixel(frame.left)) x2=(pixel(frame.right)) y1=(pixel(y)) y2=(pixel(y)) {}
            text class="rule-label" x=(pixel(frame.left + 6.0)) y=(pixel(label_y)) { (rule.label) }
        }
    }

    /// A vertical line. The names of several are one below the other, on the side that has space.
    fn post(&self, frame: &Frame, post: &super::Post, number: usize) -> Markup {
        let x = frame.x(self, post.at);
        let needed = post.label.chars().count() as f64 * LETTER + 5.0;
        let (fits_left, fits_right) = (x - needed >= frame.left, x + needed <= frame.right);
        let is_late = x > (frame.left + frame.right) / 2.0;
        // If neither side has space, the name crosses its line, as far to the right as possible.
        let (side, label_x) = match (fits_left, fits_right) {
            (true, true) if is_late => ("end", x - 5.0),
            (true, false) => ("end", x - 5.0),
            (false, false) => ("end", frame.right + 10.0),
            _ => ("", x + 5.0),
        };
        html! {
            line class={ "post " (post.class) } x1=(pixel(x)) x2=(pixel(x)) y1=(pixel(frame.top)) y2=(pixel(frame.bottom)) {}
            text class={ "post-label " (side) } x=(pixel(label_x))
                y=(pixel(self.below_rules(frame) + NAME * (number as f64 + 0.8))) { (post.label) }
        }
    }

    /// The upper edge of the frame, or the lower edge of the names of limits there.
    fn below_rules(&self, frame: &Frame) -> f64 {
        let heights = self.rules.iter().map(|rule| frame.y(self, rule.at)).filter(|y| *y < frame.top + 2.0 * NAME);
        heights.map(|y| if y < frame.top + NAME { y + NAME + 4.0 } else { y + 4.0 }).fold(frame.top, f64::max)
    }

    /// Space between the frame and the right edge, pixels.
    fn room_for_names(&self, width: Width) -> f64 {
        let longest = self.lines.iter().map(|line| line.name.chars().count()).max().unwrap_or(0);
        if self.is_labelled && width == Width::Wide { (longest as f64 * LETTER + 20.0).min(190.0) } else { 14.0 }
    }

    /// Names of the lines at their ends, moved apart if they would overlap.
    fn names(&self, frame: &Frame) -> Markup {
        let end = |line: &Line| {
            let last = line.points.iter().rev().find_map(|(x, y)| y.map(|y| (*x, y)))?;
            Some((frame.x(self, last.0), frame.y(self, last.1)))
        };
        let mut names: Vec<(&Line, f64, f64)> =
            self.lines.iter().filter_map(|line| end(line).map(|(x, y)| (line, x, y))).collect();
        names.sort_by(|a, b| a.2.total_cmp(&b.2));
        let places = apart(&names.iter().map(|(_, _, y)| *y).collect::<Vec<f64>>(), frame.top, frame.bottom);
        html! {
            @for ((line, x, y), place) in names.iter().zip(&places) {
                path class={ "leader c" (line.style) } data-line=(line.style)
                    d={ "M" (pixel(*x)) " " (pixel(*y)) "L" (pixel(frame.right + 10.0)) " " (pixel(*place)) } {}
                text class={ "line-name t" (line.style) } data-line=(line.style) x=(pixel(frame.right + 13.0)) y=(pixel(place + 4.0)) { (line.name) }
            }
        }
    }

    fn band(&self, frame: &Frame, band: &super::Band) -> Markup {
        let (from, to) = (frame.x(self, band.from), frame.x(self, band.to));
        let label_fits = band.label.chars().count() as f64 * LETTER < to - from;
        html! {
            rect class=(if band.is_fault { "band fault" } else { "band" }) x=(pixel(from)) y=(pixel(frame.top)) width=(pixel(to - from))
                height=(pixel(frame.bottom - frame.top)) { title { (&band.label) } }
            @if label_fits {
                text class="band-label" x=(pixel((from + to) / 2.0)) y=(pixel(frame.top + 12.0)) { (band.label) }
            }
        }
    }

    fn y_axis(&self, frame: &Frame) -> Markup {
        html! {
            text class="axis-title" x="0" y="12" { (self.y.title) }
            @for tick in &self.y.ticks {
                @let y = frame.y(self, tick.value);
                line class="grid" x1=(pixel(frame.left)) x2=(pixel(frame.right)) y1=(pixel(y)) y2=(pixel(y)) {}
                text class="y-label" x=(pixel(frame.left - 6.0)) y=(pixel(y + 4.0)) { (tick.label) }
            }
        }
    }

    fn x_axis(&self, frame: &Frame) -> Markup {
        html! {
            line class="axis" x1=(pixel(frame.left)) x2=(pixel(frame.right)) y1=(pixel(frame.bottom)) y2=(pixel(frame.bottom)) {}
            @for tick in self.x_ticks(frame) {
                @let x = frame.x(self, tick.value);
                @let anchor = anchor(frame, x, tick);
                line class="axis" x1=(pixel(x)) x2=(pixel(x)) y1=(pixel(frame.bottom)) y2=(pixel(frame.bottom + 4.0)) {}
                text class={ "x-label " (anchor) } x=(pixel(x)) y=(pixel(frame.bottom + 17.0)) { (tick.label) }
                @if !tick.note.is_empty() {
                    text class={ "x-note " (anchor) } x=(pixel(x)) y=(pixel(frame.bottom + 31.0)) { (tick.note) }
                }
            }
            text class="axis-title end" x=(pixel(frame.right)) y=(pixel(self.height - 4.0)) { (self.x.title) }
        }
    }

    /// Ticks whose labels do not overlap. Of even ticks, every second, third, … is used. On a scale of nines the last
    /// ones have priority, because they are the most important.
    fn x_ticks(&self, frame: &Frame) -> Vec<&Tick> {
        if !self.x.even {
            return self.fitting(frame, self.x.ticks.iter().collect());
        }
        for stride in 1..=self.x.ticks.len() {
            let wanted: Vec<&Tick> = self.x.ticks.iter().step_by(stride).collect();
            let fitting = self.fitting(frame, wanted.clone());
            if fitting.len() == wanted.len() {
                return fitting;
            }
        }
        Vec::new()
    }

    /// Those of these ticks, from the last one on, whose labels do not overlap labels already placed.
    fn fitting<'a>(&self, frame: &Frame, ticks: Vec<&'a Tick>) -> Vec<&'a Tick> {
        let mut kept: Vec<&Tick> = Vec::new();
        let mut free_until = f64::INFINITY;
        for tick in ticks.into_iter().rev() {
            let x = frame.x(self, tick.value);
            let width = tick.label.chars().count().max(tick.note.chars().count()) as f64 * LETTER + 8.0;
            let end = match anchor(frame, x, tick) {
                "end" => x,
                "start" => x + width,
                _ => x + width / 2.0,
            };
            if end <= free_until {
                free_until = end - width;
                kept.push(tick);
            }
        }
        kept.reverse();
        kept
    }
}

/// Ascending positions, moved apart until each has space for a name, and limited to two ends if all fit between them.
fn apart(wanted: &[f64], top: f64, bottom: f64) -> Vec<f64> {
    let mut places: Vec<f64> = Vec::with_capacity(wanted.len());
    for place in wanted {
        let least = places.last().map_or(top, |last| last + NAME);
        places.push(place.max(least));
    }
    let mut most = bottom;
    for place in places.iter_mut().rev() {
        *place = place.min(most);
        most = *place - NAME;
    }
    places
}

/// Text anchor that keeps labels at the ends of the axis inside the drawing.
fn anchor(frame: &Frame, x: f64, tick: &Tick) -> &'static str {
    let half = tick.label.chars().count().max(tick.note.chars().count()) as f64 * LETTER / 2.0;
    if x + half > frame.right + 14.0 {
        "end"
    } else if x - half < 0.0 {
        "start"
    } else {
        "middle"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_would_overlap_are_moved_apart_and_stay_inside() {
        let places = apart(&[50.0, 51.0, 99.0, 99.5], 0.0, 100.0);
        assert!(places.windows(2).all(|pair| pair[1] - pair[0] >= NAME - 1e-9), "{places:?}");
        assert!(places.iter().all(|place| (0.0..=100.0).contains(place)), "{places:?}");
        assert_eq!(apart(&[10.0, 60.0], 0.0, 100.0), [10.0, 60.0], "those with room stay where they are");
    }
}
