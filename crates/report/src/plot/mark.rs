//! Shapes of single points, which can be distinguished without colour.

use maud::{Markup, html};

use super::line::pixel;

/// A single point.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    /// Position on the x axis, in its unit.
    pub x: f64,
    /// Position on the y axis, in its unit.
    pub y: f64,
    /// Shape of the point.
    pub shape: Shape,
    /// Class of its colour in the page's style sheet.
    pub class: &'static str,
    /// Description, shown when the pointer is over it.
    pub title: String,
}

/// Shapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A disc.
    Disc,
    /// A square.
    Square,
    /// A triangle with its base at the bottom.
    Triangle,
    /// A square rotated by 45°.
    Diamond,
    /// A triangle with its base at the top.
    Tip,
    /// Two crossing strokes.
    Cross,
}

impl Shape {
    /// The shape for a line's style, 1 to [`super::MOST_LINES`]: colours and dashes repeat at other intervals.
    pub fn of_style(style: usize) -> Shape {
        [Shape::Disc, Shape::Square, Shape::Triangle, Shape::Diamond, Shape::Tip][(style + 4) % 5]
    }

    /// Outline around a position in pixels, as the `d` attribute of an SVG path.
    pub fn path(self, x: f64, y: f64, size: f64) -> String {
        let at = |dx: f64, dy: f64| format!("{} {}", pixel(x + dx * size), pixel(y + dy * size));
        match self {
            Shape::Disc => {
                let radius = pixel(size);
                let to = |place: String| format!("A{radius} {radius} 0 1 1 {place}");
                format!("M{}{}{}Z", at(-1.0, 0.0), to(at(1.0, 0.0)), to(at(-1.0, 0.0)))
            }
            Shape::Square => format!("M{}L{}L{}L{}Z", at(-0.9, -0.9), at(0.9, -0.9), at(0.9, 0.9), at(-0.9, 0.9)),
            Shape::Triangle => format!("M{}L{}L{}Z", at(0.0, -1.2), at(1.1, 0.9), at(-1.1, 0.9)),
            Shape::Tip => format!("M{}L{}L{}Z", at(0.0, 1.2), at(1.1, -0.9), at(-1.1, -0.9)),
            Shape::Diamond => format!("M{}L{}L{}L{}Z", at(0.0, -1.3), at(1.3, 0.0), at(0.0, 1.3), at(-1.3, 0.0)),
            Shape::Cross => format!("M{}L{}M{}L{}", at(-1.0, -1.0), at(1.0, 1.0), at(-1.0, 1.0), at(1.0, -1.0)),
        }
    }
}

/// The shape alone, for a legend.
pub fn sample(shape: Shape, class: &str) -> Markup {
    html! { svg viewBox="0 0 14 10" aria-hidden="true" { path class={ "mark " (class) } d=(shape.path(7.0, 5.0, 4.0)) {} } }
}
