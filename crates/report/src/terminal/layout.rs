//! Layout of lines that are no wider than the terminal: fields with a label, wrapped paragraphs, small tables. Colours
//! are added to complete lines, so they do not affect the widths.

use pubmark_record::record::Summary;

use super::{COLUMNS, MOST_COLUMNS};
use crate::numbers::TimeUnit;

/// Width of the label before a field's text, columns.
const INDENT: usize = 12;
/// Width of a value in a table, columns.
const VALUE: usize = 13;

/// Meaning of a line, which determines its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// No particular meaning.
    Plain,
    /// A good result.
    Good,
    /// A warning.
    Caution,
    /// A failure.
    Bad,
    /// Something to type.
    Hint,
}

impl Tone {
    /// ANSI sequence that starts the colour.
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

/// Lines of a page.
pub struct Page {
    lines: Vec<(String, Tone)>,
    columns: usize,
    /// Whether texts longer than their lines are cut; otherwise they are wrapped completely.
    cuts: bool,
}

impl Default for Page {
    fn default() -> Page {
        Page { lines: Vec::new(), columns: COLUMNS, cuts: true }
    }
}

impl Page {
    /// A page for a terminal of this width, or for a file, in which nothing is cut.
    pub fn new(columns: Option<usize>) -> Page {
        let width = columns.unwrap_or(COLUMNS).clamp(COLUMNS, MOST_COLUMNS);
        Page { lines: Vec::new(), columns: width, cuts: columns.is_some() }
    }

    /// Number of lines.
    pub fn lines(&self) -> usize {
        self.lines.len()
    }

    /// Adds an empty line.
    pub fn blank(&mut self) {
        self.lines.push((String::new(), Tone::Plain));
    }

    /// Adds a line, cut at the last column.
    pub fn line(&mut self, text: &str, tone: Tone) {
        self.lines.push((cut(&printable(text), self.columns), tone));
    }

    /// Adds a label and its text, wrapped to at most `most_lines` lines.
    pub fn field(&mut self, label: &str, text: &str, most_lines: usize) {
        self.toned_field(label, text, most_lines, Tone::Plain);
    }

    /// The same in a colour.
    pub fn toned_field(&mut self, label: &str, text: &str, most_lines: usize, tone: Tone) {
        self.paragraph(&format!("  {label:<width$}", width = INDENT - 2), text, most_lines, tone);
    }

    /// Adds a text after `start`; continuation lines are aligned with its first word.
    pub(super) fn paragraph(&mut self, start: &str, text: &str, most_lines: usize, tone: Tone) {
        let words: Vec<String> = printable(text).split_whitespace().map(String::from).collect();
        // Spaces that separate parts of a text are preserved unless the text is wrapped.
        let whole = format!("{start}{}", printable(text));
        if whole.chars().count() <= self.columns {
            self.lines.push((whole, tone));
            return;
        }
        self.wrapped(start, &words, " ", most_lines, tone);
    }

    /// Adds parts that must not be broken, separated by two spaces.
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

    /// Adds a row of a table with its values right-aligned at the last column.
    pub(super) fn table_row(&mut self, label: &str, name: &str, values: &[String]) {
        let name_width = self.columns - INDENT - VALUE * values.len();
        let mut line =
            format!("  {label:<label_width$}{:<name_width$}", cut(name, name_width), label_width = INDENT - 2);
        for value in values {
            line.push_str(&format!("{:>VALUE$}", cut(value, VALUE - 1)));
        }
        self.lines.push((line, Tone::Plain));
    }

    /// Adds a command and its purpose; the purpose only if it fits. A command is never cut, so that it can be copied.
    pub(super) fn command(&mut self, label: &str, command: &str, purpose: &str) {
        let start = format!("  {label:<width$}{}", printable(command), width = INDENT - 2);
        let with_purpose = format!("{start:<50}   {purpose}");
        let line = if with_purpose.chars().count() <= self.columns { with_purpose } else { start };
        self.lines.push((line, Tone::Plain));
    }

    /// Adds a path and the text beside it, which is on the next line if it does not fit. A path is never cut, not even
    /// on a terminal, so that it can be copied, and that a script can read it from redirected output.
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
            // Parts that the functions above take as they are, such as names of metrics, may come from a record of others, too.
            let line = printable(line);
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

/// Unit for a table of these distributions, by their largest p99 (or median, or largest sample).
pub(super) fn unit_of<'a>(summaries: impl Iterator<Item = &'a Summary>) -> TimeUnit {
    TimeUnit::for_value(summaries.map(typical).fold(0.0, f64::max))
}

/// The figure of a summary that determines the unit.
///
/// Not inlined: at `opt-level = 1` the optimiser of rustc 1.95 moves this read of a summary's fields before the check
/// whether there is a summary, and reads from an invalid address (a crash for runs that measured nothing).
#[inline(never)]
fn typical(summary: &Summary) -> f64 {
    summary.p99.or(summary.p50).unwrap_or(summary.max)
}

/// Shortens a line whose text continues: whole words and `…`.
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

/// Cuts a text to at most `columns` columns, with `…` if something was cut.
pub fn cut(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.to_string();
    }
    let mut kept: String = text.chars().take(columns.saturating_sub(1)).collect();
    kept.push('…');
    kept
}

/// Removes control characters: some texts come from the system under test, and must not control the reader's terminal.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { '?' } else { letter }).collect()
}
