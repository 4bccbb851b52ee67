//! Puts a table that was measured into a page, between two marks.

use std::fs;

const BEGIN: &str = "<!-- bench: begin; written by `make bench-write` -->";
const END: &str = "<!-- bench: end -->";

/// Replaces what stands between the marks of `page` by the file `table`.
pub fn insert(table: &str, page: &str) -> Result<(), String> {
    let read = |path: &str| fs::read_to_string(path).map_err(|error| format!("failed to read `{path}`: {error}"));
    let (measured, text) = (read(table)?, read(page)?);
    let marks = text.split_once(BEGIN).and_then(|(before, rest)| Some((before, rest.split_once(END)?.1)));
    let (before, after) = marks.ok_or_else(|| format!("`{page}` has no marks `{BEGIN}` and `{END}`"))?;
    let text = format!("{before}{BEGIN}\n{}\n{END}{after}", measured.trim());
    fs::write(page, text).map_err(|error| format!("failed to write `{page}`: {error}"))
}
