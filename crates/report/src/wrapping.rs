//! Wraps text to the width of a terminal.

/// Width of text if the terminal does not report its width, columns.
pub const COLUMNS: usize = 80;

/// Breaks `words` at spaces: the first line begins with `first`, further ones with `indent` spaces. Ends with a line end.
pub fn wrap(first: &str, indent: usize, words: &str) -> String {
    wrap_parts(first, indent, words.split(' '))
}

/// The same for parts that must not be broken.
pub fn wrap_parts<'a>(first: &str, indent: usize, parts: impl IntoIterator<Item = &'a str>) -> String {
    let mut text = String::new();
    let mut line = first.to_owned();
    let mut is_empty = true;
    for word in parts {
        if !is_empty && width(&line) + 1 + width(word) > COLUMNS {
            text.push_str(line.trim_end());
            text.push('\n');
            line = " ".repeat(indent);
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    text.push_str(line.trim_end());
    text.push('\n');
    text
}

/// Wraps each line that is too wide; continuation lines are indented by two more than the line.
pub fn wrap_lines(text: &str) -> String {
    let wrapped = |line: &str| {
        if width(line) <= COLUMNS {
            return format!("{line}\n");
        }
        let indent = line.len() - line.trim_start().len();
        wrap(&" ".repeat(indent), indent + 2, line.trim_start())
    };
    text.lines().map(wrapped).collect()
}

/// Width of a line in columns, without colour sequences.
fn width(line: &str) -> usize {
    let mut columns = 0;
    let mut in_escape = false;
    for letter in line.chars() {
        match (in_escape, letter) {
            (false, '\u{1b}') => in_escape = true,
            (true, 'm') => in_escape = false,
            (true, _) => {}
            (false, _) => columns += 1,
        }
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_stay_within_eighty_columns_and_lose_no_word() {
        let words = "several words that go on and on ".repeat(8);
        let text = wrap("! descriptors ", 14, words.trim());
        assert!(text.lines().count() > 3 && text.lines().all(|line| line.chars().count() <= COLUMNS), "{text}");
        let found: Vec<&str> = text.split_whitespace().skip(2).collect();
        assert_eq!(found, words.split_whitespace().collect::<Vec<_>>());
        assert!(text.lines().skip(1).all(|line| line.starts_with(&" ".repeat(14))));
    }

    #[test]
    fn only_lines_that_are_too_wide_change() {
        let wide = format!("  {}", "word ".repeat(20).trim());
        let text = wrap_lines(&format!("short\n\n{wide}\n"));
        assert!(text.starts_with("short\n\n  word"), "{text}");
        assert!(text.lines().last().is_some_and(|line| line.starts_with("    word")), "{text}");
    }

    #[test]
    fn colour_takes_no_room() {
        assert_eq!(width("\u{1b}[1;31merror:\u{1b}[0m no"), 9);
    }
}
