//! Generates the tables of `docs/results/cost.md` from the data, and writes them between two markers.

use std::fmt::Write as _;
use std::fs;

use crate::data::{self, BENCH, LOAD, Line, MACHINE, NOT_MEASURED, TIME_OF};
use crate::row::Row;
use crate::rows::ROWS;

const BEGIN: &str = "<!-- bench: begin; written by `make bench-write` -->";
const END: &str = "<!-- bench: end -->";

/// Replaces the text between the markers of `page` by tables of the file `data`.
pub fn insert(data: &str, page: &str) -> Result<(), String> {
    let read = |path: &str| fs::read_to_string(path).map_err(|error| format!("failed to read `{path}`: {error}"));
    let (before, _, after) =
        split(&read(page)?).ok_or_else(|| format!("`{page}` has no marks `{BEGIN}` and `{END}`"))?;
    let text = format!("{before}{BEGIN}\n{}\n{END}{after}", tables(&data::read(data)?)?);
    fs::write(page, text).map_err(|error| format!("failed to write `{page}`: {error}"))
}

/// The text before, between and after the markers.
fn split(page: &str) -> Option<(String, String, String)> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (between, after) = rest.split_once(END)?;
    Some((before.to_owned(), between.to_owned(), after.to_owned()))
}

/// The tables, each row of the bench as a section, so that the first column is a few words.
fn tables(lines: &[Line]) -> Result<String, String> {
    if let Some(line) = lines.iter().find(|line| line.row != BENCH && ROWS.iter().all(|row| row.name != line.row)) {
        return Err(format!("there is no measure `{}`", line.row));
    }
    let about = |case: &str| lines.iter().find(|line| line.row == BENCH && line.case == case);
    let mut page = about(MACHINE).map_or(String::new(), |line| format!("{}\n", line.note));
    for row in ROWS {
        let cases: Vec<&Line> = lines.iter().filter(|line| line.row == row.name).collect();
        if !cases.is_empty() {
            let _ = writeln!(page, "{}", heading(row));
            cases.iter().for_each(|line| page += &shown(line));
        }
    }
    let times: Vec<(&str, f64)> = lines
        .iter()
        .filter(|line| line.row == BENCH)
        .filter_map(|line| Some((line.case.strip_prefix(TIME_OF)?, line.median?)))
        .collect();
    if !times.is_empty() {
        let sum: f64 = times.iter().map(|(_, seconds)| seconds).sum();
        let _ =
            writeln!(page, "\n### Time that the bench takes\n\n{:.1} minutes:\n\n| row | s |\n|---|---|", sum / 60.0);
        times.iter().for_each(|(row, seconds)| page += &format!("| {row} | {seconds:.0} |\n"));
    }
    Ok(format!("{page}\n{}", end(lines)))
}

/// The text below the tables.
pub fn end(lines: &[Line]) -> String {
    let count = |is: fn(&Line) -> bool| lines.iter().filter(|line| is(line)).count();
    let missed = count(|line| line.is_met() == Some(false));
    let load = lines.iter().find(|line| line.row == BENCH && line.case == LOAD).and_then(|line| line.median);
    let load = load.map_or("unknown".to_owned(), |load| format!("{load:.2}"));
    let failed = count(|line| line.case == NOT_MEASURED);
    format!("Targets missed: {missed}. Rows that were not measured: {failed}. Load at the end: {load}.")
}

fn heading(row: &Row) -> String {
    let known = match row.known {
        "—" => String::new(),
        known => format!("Known: {known}.\n\n"),
    };
    let title = row.measure[..1].to_uppercase() + &row.measure[1..];
    format!(
        "\n### {title}\n\n{known}| case | median (min – max) | of | target | met | note |\n|---|---|---|---|---|---|"
    )
}

fn shown(line: &Line) -> String {
    let Line { case, repetitions, note, .. } = line;
    let [value, target, met] = cells(line);
    format!("| {case} | {value} | {repetitions} | {target} | {met} | {note} |\n")
}

/// Median and range, the target, and whether it was met, in words.
pub fn cells(line: &Line) -> [String; 3] {
    let show = |value: Option<f64>| match value {
        None => "—".to_owned(),
        Some(value) if value.abs() < 10.0 => format!("{value:.2}"),
        Some(value) => format!("{value:.0}"),
    };
    let met = match line.is_met() {
        Some(true) => "yes",
        Some(false) => "MISSED",
        None => "",
    };
    let value = format!("{} {} ({} – {})", show(line.median), line.unit, show(line.least), show(line.most));
    [value, line.target.map_or("—".to_owned(), |target| format!("≤ {target}")), met.to_owned()]
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Figures are not edited by hand, and the page is generated again whenever the data change.
    #[test]
    fn the_page_shows_the_data() {
        let results = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/results/");
        let lines = data::read(&format!("{results}cost.csv")).unwrap();
        let page = fs::read_to_string(format!("{results}cost.md")).unwrap();
        let (_, between, _) = split(&page).unwrap();
        let made = tables(&lines).unwrap();
        let remake = "`pubmark-bench page docs/results/cost.csv docs/results/cost.md` makes it again";
        // Compared line by line, because a message with the whole page would not be readable.
        between.trim().lines().zip(made.lines()).for_each(|(shown, made)| assert_eq!(shown, made, "{remake}"));
        assert_eq!(between.trim().lines().count(), made.lines().count(), "{remake}");
    }

    #[test]
    fn a_missed_target_is_shown_and_counted() {
        let row = &ROWS[0];
        let line = Line { target: Some(1.5), ..Line::about_bench("case", "s", Some(2.0)) };
        let lines =
            [Line { row: row.name.to_owned(), ..line }, Line::about_bench(&format!("{TIME_OF}idle"), "s", Some(90.0))];
        let page = tables(&lines).unwrap();
        assert!(page.contains("| case | 2.00 s (2.00 – 2.00) | 1 | ≤ 1.5 | MISSED |  |\n"), "{page}");
        assert!(page.contains("\n1.5 minutes:\n") && page.contains("| idle | 90 |\n"), "{page}");
        assert!(
            page.ends_with("Targets missed: 1. Rows that were not measured: 0. Load at the end: unknown."),
            "{page}"
        );
        let unknown = Line { row: "nonsense".to_owned(), ..Line::about_bench("case", "s", None) };
        assert_eq!(tables(&[unknown]).unwrap_err(), "there is no measure `nonsense`");
    }
}
