//! Makes text from other programs safe to show: a message of a peer or content of a file must not control the terminal
//! or reorder the text of a page.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The text with every control character replaced by its escape `\u001b`, which JSON reads as that character: C0 except
/// tab and line feed, DEL, C1 (ECMA-48), and the controls of bidirectional text (Unicode TR 9), which can hide text.
pub fn masked(text: &str) -> Cow<'_, str> {
    masked_but(text, |_| None)
}

/// The same, except for pubmark's own colours: sequences `ESC [ … m` (SGR) that set or reset a foreground colour, bold,
/// dim, italic or underlined are preserved. Sequences that conceal, blink, invert or set the background are masked.
pub fn masked_but_colours(text: &str) -> Cow<'_, str> {
    masked_but(text, colour)
}

/// `kept` returns how many bytes of a text that begins with a control character are left unchanged.
fn masked_but(text: &str, kept: fn(&str) -> Option<usize>) -> Cow<'_, str> {
    if !text.chars().any(acts) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let length = match (acts(letter), kept(rest)) {
            (true, None) => {
                // Writing to a string cannot fail. All these characters are below U+10000.
                let _ = write!(out, "\\u{:04x}", u32::from(letter));
                rest = &rest[letter.len_utf8()..];
                continue;
            }
            (true, Some(length)) => length,
            (false, _) => letter.len_utf8(),
        };
        out.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    Cow::Owned(out)
}

fn acts(letter: char) -> bool {
    match letter {
        '\n' | '\t' => false,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        // Line and paragraph separators; only pubmark may end a line.
        '\u{2028}' | '\u{2029}' => true,
        other => other.is_control(),
    }
}

/// Length of the colour sequence at the start of a text.
fn colour(text: &str) -> Option<usize> {
    let parameters = text.strip_prefix("\u{1b}[")?;
    let length = parameters.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    let fits = |number: &str| {
        matches!(number.parse::<u8>(), Ok(0..=4 | 22..=24 | 30..=37 | 39 | 90..=97)) || number.is_empty()
    };
    (parameters[length..].starts_with('m') && parameters[..length].split(';').all(fits)).then_some(2 + length + 1)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_acts_is_written_out() {
        for (said, shown) in [
            ("plain — text\n\tä…", "plain — text\n\tä…"),
            ("\u{1b}[2J\u{7}\r\u{7f}", "\\u001b[2J\\u0007\\u000d\\u007f"),
            ("\u{9b}31m \u{202e}abc\u{2066}", "\\u009b31m \\u202eabc\\u2066"),
            ("\u{1b}[31mred\u{1b}[0m", "\\u001b[31mred\\u001b[0m"),
        ] {
            assert_eq!(masked(said), shown);
        }
    }

    #[test]
    fn our_colours_stay_and_nothing_else_does() {
        let own = "\u{1b}[1;31merror:\u{1b}[0m no \u{1b}[36mhint\u{1b}[m";
        assert_eq!(masked_but_colours(own), own);
        for said in
            ["\u{1b}[8m", "\u{1b}[31", "\u{1b}[48;5;1m", "\u{1b}]0;title\u{7}", "\u{1b}[2J", "\u{1b}", "\u{9b}31m"]
        {
            assert!(!masked_but_colours(said).chars().any(acts), "{said:?}");
        }
    }

    proptest! {
        #[test]
        fn no_control_character_is_left(text in "\\PC*|[\\x00-\\x20\\x7f-\\u{9f}\\u{200e}-\\u{2069}a\\[m;]{0,40}") {
            prop_assert!(!masked(&text).chars().any(acts));
            let coloured = masked_but_colours(&text);
            let left = coloured.split("\u{1b}[").skip(1);
            prop_assert!(left.clone().all(|rest| rest.find(|c: char| !c.is_ascii_digit() && c != ';').is_some_and(|at| rest[at..].starts_with('m'))));
            prop_assert_eq!(coloured.chars().filter(|letter| acts(*letter)).count(), left.count());
        }

        #[test]
        fn json_stays_json_and_means_the_same(text in ".{0,40}|[\\x00-\\x20\\x7f-\\u{9f}\\u{202e}a\"\\\\]{0,20}") {
            let json = serde_json::to_string(&text).unwrap();
            prop_assert_eq!(serde_json::from_str::<String>(&masked(&json)).unwrap(), text);
        }
    }
}
