//! Stacked horizontal bars of shares.

use maud::{Markup, html};

use super::Width;
use super::line::pixel;
use crate::numbers::{count, share};

/// A part of a bar.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// Name of the part.
    pub name: &'static str,
    /// Class of its colour in the page's style sheet.
    pub class: &'static str,
    /// Size of the part.
    pub count: u64,
}

/// A bar: the whole and its parts.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// Name of the whole.
    pub label: String,
    /// The parts, which add up to the whole.
    pub parts: Vec<Part>,
}

/// Bars one above the other, each over the full width: 100 % of its whole.
#[derive(Clone, Debug, PartialEq)]
pub struct Bars {
    /// The bars, from top to bottom.
    pub bars: Vec<Bar>,
}

/// Height of a bar with its label, pixels.
const ROW: f64 = 56.0;
/// Smallest width of a part that is not 0, so that it is visible, pixels.
const LEAST: f64 = 3.0;

impl Bars {
    /// The bars as an SVG.
    pub fn svg(&self, width: Width, description: &str) -> Markup {
        let size = format!("0 0 {} {}", pixel(width.pixels()), pixel(ROW * self.bars.len() as f64));
        html! {
            svg class=(width.class()) viewBox=(size) role="img" aria-label=(description) {
                @for (row, bar) in self.bars.iter().enumerate() {
                    (draw(bar, row as f64 * ROW, width.pixels()))
                }
            }
        }
    }
}

fn draw(bar: &Bar, top: f64, width: f64) -> Markup {
    let whole: u64 = bar.parts.iter().map(|part| part.count).sum();
    let mut end = 0.0;
    // Each part with its left edge and its width.
    let placed = bar.parts.iter().zip(widths(&bar.parts, width)).map(|(part, part_width)| {
        end += part_width;
        (part, end - part_width, part_width)
    });
    html! {
        text class="bar-label" x="0" y=(pixel(top + 14.0)) { (bar.label) }
        @for (part, from, part_width) in placed {
            @if part.count > 0 {
                rect class={ "part " (part.class) } x=(pixel(from)) y=(pixel(top + 21.0)) width=(pixel(part_width)) height="24" {
                    title { (part.name) ": " (count(part.count)) " (" (share(part.count, whole)) ")" }
                }
                @let text = format!("{} {}", part.name, share(part.count, whole));
                @if text.chars().count() as f64 * 6.8 + 10.0 < part_width {
                    text class="part-label" x=(pixel(from + 6.0)) y=(pixel(top + 37.0)) { (text) }
                }
            }
        }
    }
}

/// Widths of the parts: proportional, at least [`LEAST`] for parts that are not 0, and the whole width in total.
fn widths(parts: &[Part], width: f64) -> Vec<f64> {
    let whole: u64 = parts.iter().map(|part| part.count).sum();
    if whole == 0 {
        return vec![0.0; parts.len()];
    }
    let proportional: Vec<f64> = parts.iter().map(|part| width * part.count as f64 / whole as f64).collect();
    let is_small = |part: &Part, natural: f64| part.count > 0 && natural < LEAST;
    let added: f64 = parts
        .iter()
        .zip(&proportional)
        .filter(|(part, natural)| is_small(part, **natural))
        .map(|(_, natural)| LEAST - natural)
        .sum();
    let large: f64 = proportional.iter().filter(|natural| **natural >= LEAST).sum();
    parts
        .iter()
        .zip(&proportional)
        .map(|(part, natural)| if is_small(part, *natural) { LEAST } else { natural - natural * added / large })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_lost_message_can_be_seen_and_the_bar_stays_whole() {
        let part = |count| Part { name: "part", class: "good", count };
        let widths = widths(&[part(1_000_000), part(1), part(0)], 800.0);
        assert!((widths.iter().sum::<f64>() - 800.0).abs() < 1e-9);
        assert_eq!(widths[1..], [LEAST, 0.0]);
    }
}
