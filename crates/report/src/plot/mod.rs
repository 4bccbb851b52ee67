//! What charts are drawn with: axes with their ticks, lines thinned without losing their peaks, an SVG of a given width.
//! Nothing here knows a record; the charts themselves are in [`crate::charts`].

pub mod axis;
pub mod bars;
pub mod line;
pub mod svg;

pub use axis::{Axis, Scale, Tick};
pub use line::{Join, Line};

/// Lines, at most, that can be told apart by colour and dashes.
pub const MOST_LINES: usize = 8;

/// A stretch of the x axis that is shaded and named.
#[derive(Clone, Debug, PartialEq)]
pub struct Band {
    /// Where it begins, in the axis's unit.
    pub from: f64,
    /// Where it ends.
    pub to: f64,
    /// Its name.
    pub label: &'static str,
}

/// Lines over two axes.
#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The lines, first one first in the legend.
    pub lines: Vec<Line>,
    /// Shaded stretches of the x axis.
    pub bands: Vec<Band>,
    /// Where values can be read off: position on the x axis and its text.
    pub readings: Vec<(f64, String)>,
    /// Height of the drawing, CSS pixels.
    pub height: f64,
}

/// The two widths in which each chart is drawn; the page shows one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// For pages of 700 CSS pixels and more.
    Wide,
    /// For telephones.
    Narrow,
}

impl Width {
    /// Both.
    pub const ALL: [Width; 2] = [Width::Wide, Width::Narrow];

    /// Width of the drawing, CSS pixels.
    pub fn pixels(self) -> f64 {
        match self {
            Width::Wide => 860.0,
            Width::Narrow => 340.0,
        }
    }

    /// Name of its class in the page.
    pub fn class(self) -> &'static str {
        match self {
            Width::Wide => "wide",
            Width::Narrow => "narrow",
        }
    }
}
