//! One line of comma-separated values (RFC 4180), without line ends in cells.

/// The cells of a line.
///
/// # Errors
/// The reason why its quotes are wrong.
pub fn cells(line: &str) -> Result<Vec<String>, &'static str> {
    let mut cells = Vec::new();
    let mut rest = line.trim_end_matches('\r');
    loop {
        let (cell, behind) = match rest.trim_start().strip_prefix('"') {
            Some(quoted) => quoted_cell(quoted)?,
            None => {
                let end = rest.find(',').unwrap_or(rest.len());
                (rest[..end].trim().to_owned(), &rest[end..])
            }
        };
        cells.push(cell);
        match behind.strip_prefix(',') {
            Some(next) => rest = next,
            None => return Ok(cells),
        }
    }
}

/// A cell up to its closing quote, and the text after the following blanks; `""` is a quote in it.
fn quoted_cell(text: &str) -> Result<(String, &str), &'static str> {
    let mut cell = String::new();
    let mut rest = text;
    loop {
        let end = rest.find('"').ok_or("a cell whose quote does not end")?;
        cell.push_str(&rest[..end]);
        rest = &rest[end + 1..];
        match rest.strip_prefix('"') {
            Some(next) => {
                cell.push('"');
                rest = next;
            }
            None => break,
        }
    }
    let rest = rest.trim_start();
    match rest.is_empty() || rest.starts_with(',') {
        true => Ok((cell, rest)),
        false => Err("text behind a quoted cell"),
    }
}

#[cfg(test)]
mod tests {
    use super::cells;

    #[test]
    fn cells_are_cut_at_commas_outside_quotes() {
        for (line, expected) in [
            ("a,b", Ok(vec!["a", "b"])),
            (" a , \"b, c\" ,", Ok(vec!["a", "b, c", ""])),
            ("\"say \"\"x\"\"\"\r", Ok(vec!["say \"x\""])),
            ("", Ok(vec![""])),
            ("\"open", Err("a cell whose quote does not end")),
            ("\"a\"b,c", Err("text behind a quoted cell")),
        ] {
            let expected = expected.map(|cells| cells.into_iter().map(str::to_owned).collect::<Vec<_>>());
            assert_eq!(cells(line), expected, "{line}");
        }
    }
}
