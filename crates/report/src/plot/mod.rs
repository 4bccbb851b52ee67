//! Elements of charts: axes with ticks, lines thinned without losing their peaks, an SVG of a given width. This module
//! does not depend on records; the charts are in [`crate::charts`].

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

/// Most lines that can be distinguished by colour, dashes and marks.
pub const MOST_LINES: usize = 12;

/// A range of the x axis that is shaded and named.
#[derive(Clone, Debug, PartialEq)]
pub struct Band {
    /// Start, in the axis's unit.
    pub from: f64,
    /// End, in the axis's unit.
    pub to: f64,
    /// Its name.
    pub label: String,
    /// Whether it is a fault; otherwise it is a phase of the run.
    pub is_fault: bool,
}

/// A horizontal line at a value of the vertical axis, with its name.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// Value, in the axis's unit.
    pub at: f64,
    /// Name of the line.
    pub label: String,
}

/// A vertical line at a value of the horizontal axis, with its name.
#[derive(Clone, Debug, PartialEq)]
pub struct Post {
    /// Value, in the axis's unit.
    pub at: f64,
    /// Name of the line.
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
    /// The lines, in the order of the legend.
    pub lines: Vec<Line>,
    /// Single points, each with a shape.
    pub marks: Vec<Mark>,
    /// Horizontal lines, such as limits.
    pub rules: Vec<Rule>,
    /// Vertical lines, for comparison.
    pub posts: Vec<Post>,
    /// Whether the names of the lines are also written at their ends, which needs space.
    pub is_labelled: bool,
    /// Shaded ranges of the x axis.
    pub bands: Vec<Band>,
    /// Cells of a heat map, shaded by level.
    pub cells: Vec<Cell>,
    /// Positions at which values can be read: position on the x axis and its text.
    pub readings: Vec<(f64, String)>,
    /// Height of the drawing, CSS pixels.
    pub height: f64,
}

/// Widths in which charts are drawn. A single chart is drawn in two of them; the page shows one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// For pages of 700 CSS pixels and more.
    Wide,
    /// For telephones.
    Narrow,
    /// For one of several panels side by side, on any page.
    Panel,
}

impl Plot {
    /// A plot of lines over two axes without other elements.
    pub fn of_lines(x: Axis, y: Axis, lines: Vec<Line>, readings: Vec<(f64, String)>, height: f64) -> Plot {
        let (marks, rules, posts, bands, cells) = (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Plot { x, y, lines, marks, rules, posts, is_labelled: false, bands, cells, readings, height }
    }
}

impl Width {
    /// Widths of a single chart.
    pub const ALL: [Width; 2] = [Width::Wide, Width::Narrow];

    /// Widths of a small chart, one of several side by side.
    pub const SMALL: [Width; 2] = [Width::Panel, Width::Narrow];

    /// Width of the drawing, CSS pixels.
    pub fn pixels(self) -> f64 {
        match self {
            Width::Wide => 860.0,
            Width::Narrow => 340.0,
            Width::Panel => 420.0,
        }
    }

    /// Name of the CSS class.
    pub fn class(self) -> &'static str {
        match self {
            Width::Wide => "wide",
            Width::Narrow => "narrow",
            Width::Panel => "panel",
        }
    }
}
