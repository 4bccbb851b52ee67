//! What charts are drawn with: axes with their ticks, lines thinned without losing their peaks, an SVG of a given width.
//! Nothing here knows a record; the charts themselves are in [`crate::charts`].

pub mod axis;
pub mod bars;
pub mod heat;
pub mod line;
pub mod mark;
pub mod rows;
pub mod stacks;
pub mod svg;

pub use axis::{Axis, Scale, Tick};
pub use heat::Cell;
pub use line::{Join, Line};
pub use mark::Mark;

/// Lines, at most, that can be told apart by colour, dashes and marks.
pub const MOST_LINES: usize = 12;

/// A stretch of the x axis that is shaded and named.
#[derive(Clone, Debug, PartialEq)]
pub struct Band {
    /// Where it begins, in the axis's unit.
    pub from: f64,
    /// Where it ends.
    pub to: f64,
    /// Its name.
    pub label: String,
    /// Is it a fault, and not a part of the run?
    pub is_fault: bool,
}

/// A horizontal line at a value of the vertical axis, with its name.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// Where it stands, in the axis's unit.
    pub at: f64,
    /// What it is.
    pub label: String,
}

/// A vertical line at a value of the horizontal axis, with its name.
#[derive(Clone, Debug, PartialEq)]
pub struct Post {
    /// Where it stands, in the axis's unit.
    pub at: f64,
    /// What it is.
    pub label: String,
    /// Class of its colour and dashes in the page's style sheet.
    pub class: &'static str,
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
    /// Single points with a shape of their own.
    pub marks: Vec<Mark>,
    /// Limits.
    pub rules: Vec<Rule>,
    /// Values of the horizontal axis to be compared with.
    pub posts: Vec<Post>,
    /// Are the lines' names written at their ends, too? There has to be room for them.
    pub is_labelled: bool,
    /// Shaded stretches of the x axis.
    pub bands: Vec<Band>,
    /// Cells of a heat map, shaded by level.
    pub cells: Vec<Cell>,
    /// Where values can be read off: position on the x axis and its text.
    pub readings: Vec<(f64, String)>,
    /// Height of the drawing, CSS pixels.
    pub height: f64,
}

/// The widths in which charts are drawn. A chart of its own is drawn in two; the page shows one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// For pages of 700 CSS pixels and more.
    Wide,
    /// For telephones.
    Narrow,
    /// One of several panels beside each other, on any page.
    Panel,
}

impl Plot {
    /// Lines over two axes and nothing else.
    pub fn of_lines(x: Axis, y: Axis, lines: Vec<Line>, readings: Vec<(f64, String)>, height: f64) -> Plot {
        let (marks, rules, posts, bands, cells) = (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Plot { x, y, lines, marks, rules, posts, is_labelled: false, bands, cells, readings, height }
    }
}

impl Width {
    /// Those of a chart of its own.
    pub const ALL: [Width; 2] = [Width::Wide, Width::Narrow];

    /// Those of a small chart, one of several beside each other.
    pub const SMALL: [Width; 2] = [Width::Panel, Width::Narrow];

    /// Width of the drawing, CSS pixels.
    pub fn pixels(self) -> f64 {
        match self {
            Width::Wide => 860.0,
            Width::Narrow => 340.0,
            Width::Panel => 420.0,
        }
    }

    /// Name of its class in the page.
    pub fn class(self) -> &'static str {
        match self {
            Width::Wide => "wide",
            Width::Narrow => "narrow",
            Width::Panel => "panel",
        }
    }
}
