//! The data of the bench, `docs/results/cost.csv`: a line for each case of each row. The page is generated from them.

use std::fs;

use pubmark_model::load::csv::cells;
use pubmark_report::csv::text;

use crate::row::{Reading, Row};
use crate::rows::ROWS;

const HEADING: &str = "row,case,unit,median,least,most,target,repetitions,note";

/// The row of lines that are about the bench itself.
pub const BENCH: &str = "bench";
/// Case of the line that describes the machine in its note.
pub const MACHINE: &str = "machine";
/// Case of the line with the load at the end.
pub const LOAD: &str = "load at the end";
/// The case of a row that could not be measured; its note has the reason.
pub const NOT_MEASURED: &str = "not measured";
/// Case of the lines with the time that a row takes: this text and the name of the row.
pub const TIME_OF: &str = "time of ";

/// A case, over all its repetitions.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Name of the row.
    pub row: String,
    /// Which case of the row.
    pub case: String,
    /// Unit of the values.
    pub unit: String,
    /// Median; `None` if nothing was measured.
    pub median: Option<f64>,
    /// Lowest value.
    pub least: Option<f64>,
    /// Highest value.
    pub most: Option<f64>,
    /// Upper limit of the median; `None` without a target.
    pub target: Option<f64>,
    /// Number of values.
    pub repetitions: usize,
    /// A note for the reader.
    pub note: String,
}

impl Line {
    /// The values of one case of a row.
    pub fn measured(row: &Row, reading: &Reading) -> Line {
        let values = || reading.values.iter().copied();
        Line {
            row: row.name.to_owned(),
            case: reading.case.clone(),
            unit: reading.unit.to_owned(),
            median: reading.median(),
            least: values().reduce(f64::min),
            most: values().reduce(f64::max),
            target: reading.bar,
            repetitions: reading.values.len(),
            note: reading.note.clone(),
        }
    }

    /// A row that could not be measured, and the reason.
    pub fn missing(row: &Row, why: String) -> Line {
        Line { row: row.name.to_owned(), note: why, ..Line::about_bench(NOT_MEASURED, "", None) }
    }

    /// A line about the bench itself.
    pub fn about_bench(case: &str, unit: &str, value: Option<f64>) -> Line {
        Line {
            row: BENCH.to_owned(),
            case: case.to_owned(),
            unit: unit.to_owned(),
            median: value,
            least: value,
            most: value,
            target: None,
            repetitions: usize::from(value.is_some()),
            note: String::new(),
        }
    }

    /// Name of the row that it is about; `None` for the machine and its load.
    fn measure(&self) -> Option<&str> {
        if self.row == BENCH { self.case.strip_prefix(TIME_OF) } else { Some(&self.row) }
    }

    /// Was the target met? `None` without one.
    pub fn is_met(&self) -> Option<bool> {
        Some(self.median? <= self.target?)
    }

    fn csv(&self) -> String {
        let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
        [
            text(&self.row),
            text(&self.case),
            text(&self.unit),
            number(self.median),
            number(self.least),
            number(self.most),
            number(self.target),
            self.repetitions.to_string(),
            text(&self.note),
        ]
        .join(",")
    }

    fn parse(line: &str) -> Result<Line, String> {
        let cells: [String; 9] =
            cells(line)?.try_into().map_err(|cells: Vec<String>| format!("{} cells", cells.len()))?;
        let [row, case, unit, median, least, most, target, repetitions, note] = cells;
        let number = |cell: &str| match cell {
            "" => Ok(None),
            cell => cell.parse().map(Some).map_err(|error| format!("`{cell}`: {error}")),
        };
        Ok(Line {
            row,
            case,
            unit,
            median: number(&median)?,
            least: number(&least)?,
            most: number(&most)?,
            target: number(&target)?,
            repetitions: repetitions.parse().map_err(|error| format!("`{repetitions}`: {error}"))?,
            note,
        })
    }
}

/// The text of the file.
pub fn to_csv(lines: &[Line]) -> String {
    // A cell contains no line breaks, so that each line of the file is one case.
    let lines = lines.iter().map(|line| line.csv().replace('\n', " ") + "\n");
    format!("{HEADING}\n{}", lines.collect::<String>())
}

/// Reads such a file.
pub fn read(path: &str) -> Result<Vec<Line>, String> {
    let file = fs::read_to_string(path).map_err(|error| format!("failed to read `{path}`: {error}"))?;
    from_csv(&file).map_err(|error| format!("`{path}` is not data of the bench: {error}"))
}

/// Replaces the rows of the file `data` that the file `new` has, too.
pub fn merge_files(new: &str, data: &str) -> Result<(), String> {
    let merged = merge(read(data)?, read(new)?);
    fs::write(data, to_csv(&merged)).map_err(|error| format!("failed to write `{data}`: {error}"))
}

/// `old` with the rows of `new` in place of its own. The line about the machine says which rows these are and how it was then.
fn merge(old: Vec<Line>, new: Vec<Line>) -> Vec<Line> {
    let machine = new.iter().find(|line| line.row == BENCH && line.case == MACHINE).map(|line| line.note.clone());
    let new: Vec<Line> = new.into_iter().filter(|line| line.measure().is_some()).collect();
    let again: Vec<&str> =
        ROWS.iter().map(|row| row.name).filter(|name| new.iter().any(|line| line.row == *name)).collect();
    let is_replaced = |line: &Line| line.measure().is_some_and(|name| again.contains(&name));
    let mut merged: Vec<Line> = old.into_iter().filter(|line| !is_replaced(line)).collect();
    for line in merged.iter_mut().filter(|line| line.row == BENCH && line.case == MACHINE) {
        line.note += &format!("; measured again: {}: {}", again.join(", "), machine.as_deref().unwrap_or("unknown"));
    }
    merged.extend(new);
    // The order of a file that was measured in one call.
    merged.sort_by_key(|line| match line.measure() {
        Some(name) => 1 + ROWS.iter().take_while(|row| row.name != name).count(),
        None if line.case == MACHINE => 0,
        None => usize::MAX,
    });
    merged
}

fn from_csv(file: &str) -> Result<Vec<Line>, String> {
    let mut lines = file.lines();
    if lines.next() != Some(HEADING) {
        return Err(format!("the first line is not `{HEADING}`"));
    }
    let numbered = lines.enumerate();
    numbered.map(|(index, line)| Line::parse(line).map_err(|error| format!("line {}: {error}", index + 2))).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_the_same_after_the_file() {
        let row = &crate::rows::ROWS[0];
        let reading = Reading::new("QoS 0, \"16 B\"", vec![3.0, 0.1, 0.25], "s", Some(0.3));
        let note = "22.2 % of what was sent arrived".to_owned();
        let lines = vec![
            Line { note, ..Line::measured(row, &reading) },
            Line::measured(row, &Reading::new("nothing", vec![], "k/s", None)),
            Line::missing(row, "no server, no figure".to_owned()),
            Line::about_bench(LOAD, "", Some(1.04)),
        ];
        assert_eq!((lines[0].median, lines[0].least, lines[0].most), (Some(0.25), Some(0.1), Some(3.0)));
        assert_eq!((lines[0].is_met(), lines[1].is_met()), (Some(true), None));
        assert_eq!(from_csv(&to_csv(&lines)).unwrap(), lines);
        let broken = to_csv(&lines).replace(",0.1,", ",much,");
        assert_eq!(from_csv(&broken).unwrap_err(), "line 2: `much`: invalid float literal");
        assert!(from_csv("row,case\n").unwrap_err().starts_with("the first line is not"));
    }

    #[test]
    fn rows_that_were_measured_again_replace_those_of_the_data() {
        let line = |row: &Row, case: &str, value: f64| Line {
            row: row.name.to_owned(),
            ..Line::about_bench(case, "s", Some(value))
        };
        let time = |row: &Row, seconds: f64| Line::about_bench(&format!("{TIME_OF}{}", row.name), "s", Some(seconds));
        let machine = |note: &str| Line { note: note.to_owned(), ..Line::about_bench(MACHINE, "", None) };
        let (first, second) = (&ROWS[0], &ROWS[1]);
        let load = |value| Line::about_bench(LOAD, "", Some(value));
        let (before, after) = ((time(first, 1.0), time(second, 2.0)), (time(first, 3.0), load(0.5)));
        let old = vec![
            machine("quiet"),
            line(first, "gone", 1.0),
            line(first, "kept", 2.0),
            before.0,
            line(second, "other", 3.0),
            before.1.clone(),
            after.1.clone(),
        ];
        let new = vec![machine("busy"), line(first, "kept", 4.0), after.0.clone(), load(9.0)];
        let expected = vec![
            machine(&format!("quiet; measured again: {}: busy", first.name)),
            line(first, "kept", 4.0),
            after.0,
            line(second, "other", 3.0),
            before.1,
            after.1,
        ];
        assert_eq!(merge(old, new), expected);
    }

    #[test]
    fn a_note_of_two_lines_stays_on_its_line() {
        let line = Line::missing(&crate::rows::ROWS[0], "one\ntwo, three".to_owned());
        assert_eq!(from_csv(&to_csv(&[line])).unwrap()[0].note, "one two, three");
    }
}
