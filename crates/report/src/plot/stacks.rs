//! Stacked horizontal bars over one axis: parts of an amount, row by row, each with a text after it.

use maud::{Markup, html};

use super::line::pixel;
use super::{Axis, Width};

/// Height of a row with its name above the bar, pixels.
const ROW: f64 = 48.0;
/// Space for the axis, pixels.
const FOOT: f64 = 36.0;
/// Height of a line of the legend, pixels.
const LEGEND: f64 = 20.0;
/// Approximate width of a letter, pixels.
const LETTER: f64 = 6.8;

/// A part of a row.
#[derive(Clone, Debug, PartialEq)]
pub struct Piece {
    /// Name of the part.
    pub name: &'static str,
    /// Class of its colour in the page's style sheet.
    pub class: &'static str,
    /// Its value, in the axis's unit.
    pub value: f64,
    /// The value with its unit, written inside if it fits.
    pub label: String,
    /// Details, shown when the pointer is over it.
    pub text: String,
}

/// A row.
#[derive(Clone, Debug, PartialEq)]
pub struct Stack {
    /// Name of the row.
    pub name: String,
    /// Note beside the name.
    pub note: String,
    /// Parts, from left to right.
    pub pieces: Vec<Piece>,
}

/// Rows over one axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Stacks {
    /// The axis, from 0.
    pub axis: Axis,
    /// The rows, from top to bottom.
    pub rows: Vec<Stack>,
}

impl Stacks {
    /// The rows as an SVG.
    pub fn svg(&self, width: Width, description: &str) -> Markup {
        let legend = self.legend(width);
        let head = legend.last().map_or(0.0, |(_, top, ..)| top + LEGEND);
        let bottom = head + ROW * self.rows.len() as f64 + 4.0;
        let right = width.pixels() - 12.0;
        let place = |value: f64| self.axis.scale.place(value) * right;
        let size = format!("0 0 {} {}", pixel(width.pixels()), pixel(bottom + FOOT));
        html! {
            svg class={ "stacks " (width.class()) } viewBox=(size) role="img" aria-label=(description) {
                @for (left, top, name, class) in &legend {
                    rect class={ "part " (class) } x=(pixel(*left)) y=(pixel(top + 3.0)) width="11" height="11" {}
                    text class="bar-label" x=(pixel(left + 17.0)) y=(pixel(top + 13.0)) { (name) }
                }
                @for tick in &self.axis.ticks {
                    @let x = place(tick.value);
                    line class="grid" x1=(pixel(x)) x2=(pixel(x)) y1=(pixel(head)) y2=(pixel(bottom)) {}
                    text class={ "x-label " (if x < 1.0 { "" } else if x > right - 20.0 { "end" } else { "middle" }) }
                        x=(pixel(x)) y=(pixel(bottom + 15.0)) { (tick.label) }
                }
                line class="axis" x1="0" x2=(pixel(right)) y1=(pixel(bottom)) y2=(pixel(bottom)) {}
                text class="axis-title end" x=(pixel(right)) y=(pixel(bottom + 31.0)) { (self.axis.title) }
                @for (number, row) in self.rows.iter().enumerate() {
                    (draw(row, head + number as f64 * ROW, right, &place))
                }
            }
        }
    }

    /// Names of the parts with their positions: left, top, name, class.
    fn legend(&self, width: Width) -> Vec<(f64, f64, &'static str, &'static str)> {
        let mut named: Vec<(f64, f64, &'static str, &'static str)> = Vec::new();
        let (mut left, mut top) = (0.0, 0.0);
        for piece in self.rows.iter().flat_map(|row| &row.pieces) {
            if named.iter().any(|(.., name, _)| *name == piece.name) {
                continue;
            }
            let needed = 17.0 + piece.name.chars().count() as f64 * LETTER + 16.0;
            if left > 0.0 && left + needed > width.pixels() {
                (left, top) = (0.0, top + LEGEND);
            }
            named.push((left, top, piece.name, piece.class));
            left += needed;
        }
        named
    }
}

fn draw(row: &Stack, top: f64, right: f64, place: &dyn Fn(f64) -> f64) -> Markup {
    let mut end = 0.0;
    let placed: Vec<(&Piece, f64, f64)> = row
        .pieces
        .iter()
        .map(|piece| {
            let from = end;
            end += piece.value;
            (piece, place(from), place(end))
        })
        .collect();
    let room = (right / LETTER) as usize;
    let name: String = row.name.chars().take(room.saturating_sub(row.note.chars().count() + 2)).collect();
    html! {
        text class="bar-label" x="0" y=(pixel(top + 14.0)) { (name) }
        text class="axis-title end" x=(pixel(right)) y=(pixel(top + 14.0)) { (row.note) }
        @for (piece, from, to) in placed {
            @let part_width = (to - from).max(if piece.value > 0.0 { 1.0 } else { 0.0 });
            rect class={ "part " (piece.class) } x=(pixel(from)) y=(pixel(top + 20.0)) width=(pixel(part_width)) height="20" {
                title { (piece.text) }
            }
            @if piece.label.chars().count() as f64 * LETTER + 10.0 < part_width {
                text class="part-label" x=(pixel(from + 6.0)) y=(pixel(top + 34.0)) { (piece.label) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numbers::short;

    #[test]
    fn parts_follow_each_other_and_are_named_once() {
        let piece = |name, value| Piece { name, class: "c", value, label: short(value), text: String::new() };
        let row = |name: &str| Stack {
            name: name.to_string(),
            note: "p99 9".to_string(),
            pieces: vec![piece("first", 2.0), piece("second", 6.0)],
        };
        let stacks = Stacks { axis: Axis::from_zero(8.0, "ms", short), rows: vec![row("a"), row("b")] };
        let svg = stacks.svg(Width::Wide, "").into_string();
        assert_eq!(svg.matches(">first<").count(), 1);
        assert_eq!(svg.matches("<rect").count(), 2 + 4);
        // 2 of 8 over 848 pixels; the second begins where the first ends.
        assert!(
            svg.contains("x=\"0\" y=\"40\" width=\"212\"") && svg.contains("x=\"212\" y=\"40\" width=\"636\""),
            "{svg}"
        );
    }
}
