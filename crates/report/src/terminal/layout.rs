//! Lines no wider than the terminal: fields with a label, wrapped paragraphs, small tables. Colours are added when the lines are done,
//! so they take no part in the widths.

use pubmark_record::record::Summary;

use super::{COLUMNS, MOST_COLUMNS};
use crate::numbers::TimeUnit;

/// Columns before a field's text.
const INDENT: usize = 12;
/// Columns of a value in a table.
const VALUE: usize = 13;

/// What a line says, for its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Nothing besides its words.
    Plain,
    /// What is as it should be.
    Good,
    /// A warning.
    Caution,
    /// What failed.
    Bad,
    /// Something to type.
    Hint,
}

impl Tone {
    /// The ANSI sequence that starts the colour.
    fn start(self) -> &'static str {
        match self {
            Tone::Plain => "",
            Tone::Good => "\x1b[32m",
            Tone::Caution => "\x1b[33m",
            Tone::Bad => "\x1b[31m",
            Tone::Hint => "\x1b[36m",
        }
    }
}

/// Lines in the making.
pub struct Page {
    lines: Vec<(String, Tone)>,
    columns: usize,
    /// Texts longer than their lines are cut; otherwise they take as many lines as they need.
    cuts: bool,
}

impl Default for Page {
    fn default() -> Page {
        Page { lines: Vec::new(), columns: COLUMNS, cuts: true }
    }
}

impl Page {
    /// For a terminal so wide, or for a file, in which nothing is cut.
    pub fn new(columns: Option<usize>) -> Page {
        let width = columns.unwrap_or(COLUMNS).clamp(COLUMNS, MOST_COLUMNS);
        Page { lines: Vec::new(), columns: width, cuts: columns.is_some() }
    }

    /// Lines so far.
    pub fn lines(&self) -> usize {
        self.lines.len()
    }

    /// An empty line.
    pub fn blank(&mut self) {
        self.lines.push((String::new(), Tone::Plain));
    }

    /// A line of its own, cut at the last column.
    pub fn line(&mut self, text: &str, tone: Tone) {
        self.lines.push((cut(&printable(text), self.columns), tone));
    }

    /// A label and its text, wrapped to at most N lines.
    pub fn field(&mut self, label: &str, text: &str, most_lines: usize) {
        self.toned_field(label, text, most_lines, Tone::Plain);
    }

    /// The same in a colour.
    pub fn toned_field(&mut self, label: &str, text: &str, most_lines: usize, tone: Tone) {
        self.paragraph(&format!("  {label:<width$}", width = INDENT - 2), text, most_lines, tone);
    }

    /// A text after a start, its further lines under its first word.
    pub(super) fn paragraph(&mut self, start: &str, text: &str, most_lines: usize, tone: Tone) {
        let words: Vec<String> = printable(text).split_whitespace().map(String::from).collect();
        // Spaces inside a text are kept where they set parts apart: only wrapped texts lose them.
        let whole = format!("{start}{}", printable(text));
        if whole.chars().count() <= self.columns {
            self.lines.push((whole, tone));
            return;
        }
        self.wrapped(start, &words, " ", most_lines, tone);
    }

    /// Parts that are not broken inside, two spaces apart.
    pub(super) fn items(&mut self, label: &str, items: &[String], most_lines: usize) {
        let start = format!("  {label:<width$}", width = INDENT - 2);
        self.wrapped(&start, items, "  ", most_lines, Tone::Plain);
    }

    fn wrapped(&mut self, start: &str, parts: &[String], gap: &str, most_lines: usize, tone: Tone) {
        let indent = " ".repeat(start.chars().count());
        let mut lines: Vec<String> = vec![start.to_string()];
        for part in parts {
            let width = self.columns - indent.chars().count();
            let part = cut(part, width);
            let current = lines.last_mut().expect("there is always a line");
            let filled = current.chars().count();
            let is_empty = filled == indent.chars().count();
            let needed = part.chars().count() + if is_empty { 0 } else { gap.chars().count() };
            if filled + needed <= self.columns {
                if !is_empty {
                    current.push_str(gap);
                }
                current.push_str(&part);
            } else {
                lines.push(format!("{indent}{part}"));
            }
        }
        if self.cuts && lines.len() > most_lines {
            lines.truncate(most_lines);
            let last = lines.last_mut().expect("at least one line is asked for");
            *last = shortened(last, self.columns);
        }
        self.lines.extend(lines.into_iter().map(|line| (line, tone)));
    }

    /// A row of a table with its values right-aligned at the last column.
    pub(super) fn table_row(&mut self, label: &str, name: &str, values: &[String]) {
        let name_width = self.columns - INDENT - VALUE * values.len();
        let mut line =
            format!("  {label:<label_width$}{:<name_width$}", cut(name, name_width), label_width = INDENT - 2);
        for value in values {
            line.push_str(&format!("{:>VALUE$}", cut(value, VALUE - 1)));
        }
        self.lines.push((line, Tone::Plain));
    }

    /// Something to type and what for; the purpose only where there is room. Never cut: it is there to be copied.
    pub(super) fn command(&mut self, label: &str, command: &str, purpose: &str) {
        let start = format!("  {label:<width$}{}", printable(command), width = INDENT - 2);
        let with_purpose = format!("{start:<50}   {purpose}");
        let line = if with_purpose.chars().count() <= self.columns { with_purpose } else { start };
        self.lines.push((line, Tone::Plain));
    }

    /// A path and what stands beside it, on the next line if there is no room. A path is never cut, on a terminal either: it
    /// is there to be opened and copied, and a script reads it from redirected output.
    pub fn path(&mut self, label: &str, path: &str, beside: &str) {
        let start = format!("  {label:<width$}{}", printable(path), width = INDENT - 2);
        let with_beside = if beside.is_empty() { start.clone() } else { format!("{start}   {beside}") };
        if with_beside.chars().count() <= self.columns {
            self.lines.push((with_beside, Tone::Plain));
            return;
        }
        self.lines.push((start, Tone::Plain));
        if !beside.is_empty() {
            self.field("", beside, 1);
        }
    }

    /// The page with a final newline.
    pub fn text(&self, colour: bool) -> String {
        let mut text = String::new();
        for (line, tone) in &self.lines {
            let line = line.trim_end();
            if colour && *tone != Tone::Plain && !line.is_empty() {
                let indent = line.len() - line.trim_start().len();
                text.push_str(&format!("{}{}{}\x1b[0m\n", &line[..indent], tone.start(), &line[indent..]));
            } else {
                text.push_str(line);
                text.push('\n');
            }
        }
        text
    }
}

/// The unit for a table of these distributions, by their largest p99 (or median, or largest sample).
pub(super) fn unit_of<'a>(summaries: impl Iterator<Item = &'a Summary>) -> TimeUnit {
    TimeUnit::for_value(summaries.map(typical).fold(0.0, f64::max))
}

/// The figure that a summary's unit is chosen by.
///
/// Not inlined: at `opt-level = 1` the optimiser of rustc 1.95 moves this read of a summary's fields in front of the check
/// whether there is a summary, and reads from a wild address (a crash for runs that measured nothing).
#[inline(never)]
fn typical(summary: &Summary) -> f64 {
    summary.p99.or(summary.p50).unwrap_or(summary.max)
}

/// A line whose text goes on elsewhere: whole words and `…`.
fn shortened(line: &str, columns: usize) -> String {
    let mut kept = line.trim_end();
    while kept.chars().count() > columns - 2 {
        match kept.rfind(' ') {
            Some(space) => kept = kept[..space].trim_end(),
            None => return cut(line, columns),
        }
    }
    format!("{} …", kept.trim_end_matches([',', ';', ':']))
}

/// At most N columns, with `…` where something was cut.
pub fn cut(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.to_string();
    }
    let mut kept: String = text.chars().take(columns.saturating_sub(1)).collect();
    kept.push('…');
    kept
}

/// Without control characters: some texts come from the system under test, and must not steer the reader's terminal.
pub(super) fn printable(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { '?' } else { letter }).collect()
}
