//! Renders examples of a template to validate it.

use std::ops::Range;

use super::parse::TemplateError;
use super::{BodyDraw, Field, Filling, Part, Template};

/// Number of messages whose sizes are averaged.
const SAMPLES: u32 = 1_000;
/// A device name of typical length.
const DEVICE: &str = "0-10";
/// Hint for a text field without quotes.
const IN_QUOTES: &str =
    "text stands in double quotes, also where a field gives it: `{\"room\": \"{{enum hall lab}}\"}`";

/// Mean size of the first messages of one device.
pub(super) fn mean_bytes(template: &Template) -> f64 {
    let bytes = |number| template.bytes(BodyDraw { key: 0, number }, DEVICE.len()) as f64;
    (0..SAMPLES).map(bytes).sum::<f64>() / f64::from(SAMPLES)
}

/// The first messages of one device.
pub(super) fn messages(template: &Template, count: u32) -> Vec<Vec<u8>> {
    let message = |number| {
        let mut message = Vec::new();
        let filling = Filling { draw: BodyDraw { key: 0, number }, device: DEVICE, due_unix_ns: 0 };
        template.append(&filling, &mut message);
        message
    };
    (0..count).map(message).collect()
}

/// Checks that every message is JSON. Outside of strings, each field is a complete value whatever is drawn, so one message
/// is sufficient.
pub(super) fn check_json(template: &Template) -> Result<(), TemplateError> {
    check_fields(template)?;
    let filling = Filling { draw: BodyDraw::default(), device: DEVICE, due_unix_ns: 0 };
    let mut message = Vec::new();
    template.append(&filling, &mut message);
    let Err(error) = serde_json::from_slice::<serde::de::IgnoredAny>(&message) else { return Ok(()) };
    let at = place_in_text(template, &filling, place_of(&message, error.line(), error.column()));
    let reason = error.to_string();
    let reason = reason.split(" at line ").next().unwrap_or_default();
    Err(TemplateError {
        at: letter_at(&template.text, at),
        reason: format!("the document is no JSON here: {reason}"),
        hint: IN_QUOTES.to_owned(),
    })
}

/// State of the scan before a field.
#[derive(Clone, Copy, PartialEq)]
enum ScanState {
    /// Outside of strings. `joins` is set after a letter or a digit, which a value would extend.
    Outside { joins: bool },
    /// Inside a string.
    String,
    /// In `\u0041`, with N digits missing.
    Escape(u8),
    /// After the backslash of an escape.
    Backslash,
}

impl ScanState {
    fn behind(self, byte: u8) -> ScanState {
        match (self, byte) {
            (ScanState::Outside { .. }, b'"') => ScanState::String,
            (ScanState::Outside { .. }, _) => ScanState::Outside { joins: joins(byte) },
            (ScanState::String, b'"') => ScanState::Outside { joins: false },
            (ScanState::String, b'\\') => ScanState::Backslash,
            (ScanState::Backslash, b'u') => ScanState::Escape(4),
            (ScanState::Escape(missing @ 2..), _) => ScanState::Escape(missing - 1),
            (ScanState::String | ScanState::Backslash | ScanState::Escape(_), _) => ScanState::String,
        }
    }
}

/// Whether the byte would extend a number or a word.
fn joins(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.') || !byte.is_ascii()
}

/// Checks the positions of fields.
fn check_fields(template: &Template) -> Result<(), TemplateError> {
    let mut place = ScanState::Outside { joins: false };
    let mut parts = places(template).peekable();
    while let Some((range, part)) = parts.next() {
        let Part::Field(field) = part else {
            place = template.text.as_bytes()[range].iter().fold(place, |place, byte| place.behind(*byte));
            continue;
        };
        let wrong =
            |reason: String, hint: &str| Err(TemplateError { at: range.clone(), reason, hint: hint.to_owned() });
        let joined = match place {
            ScanState::String => continue,
            ScanState::Backslash | ScanState::Escape(_) => {
                return wrong("a field within an escape".to_owned(), "write the whole escape before the field");
            }
            ScanState::Outside { joins } => joins,
        };
        let joins_next = parts.peek().is_some_and(|(next, part)| match part {
            Part::Field(_) => true,
            Part::Text(_) => joins(template.text.as_bytes()[next.start]),
        });
        if joined || joins_next {
            return wrong(
                "the field would run into what stands next to it".to_owned(),
                "a number has its sign and its decimals from the values of its field: `{{uniform -5 -0.5}}`",
            );
        }
        match field {
            Field::Letters(_) | Field::Timestamp | Field::Device => {
                return wrong("a text without quotes, so the document is no JSON here".to_owned(), IN_QUOTES);
            }
            Field::Word(words) => {
                let is_value = |word: &str| serde_json::from_str::<serde::de::IgnoredAny>(word).is_ok();
                if let Some(word) = words.iter().find(|word| !is_value(word)) {
                    return wrong(
                        format!("the document is no JSON here: `{word}` without quotes is no value"),
                        IN_QUOTES,
                    );
                }
            }
            Field::Normal { .. } | Field::Uniform { .. } | Field::Counter { .. } | Field::UnixMs | Field::Truth(_) => {}
        }
        place = ScanState::Outside { joins: false };
    }
    Ok(())
}

/// The parts of a template with their positions in the text.
fn places(template: &Template) -> impl Iterator<Item = (Range<usize>, &Part)> {
    let mut at = 0;
    template.parts.iter().map(move |part| {
        let end = match part {
            Part::Text(range) => range.end,
            Part::Field(_) => template.text[at..].find("}}").map_or(template.text.len(), |end| at + end + 2),
        };
        let range = at..end;
        at = end;
        (range, part)
    })
}

/// The range of the character at a position; empty after the end.
fn letter_at(text: &str, at: usize) -> Range<usize> {
    let start = (0..=at.min(text.len())).rev().find(|start| text.is_char_boundary(*start)).unwrap_or(0);
    start..start + text[start..].chars().next().map_or(0, char::len_utf8)
}

/// Index of the byte of a message at a line and a column, both from 1.
fn place_of(message: &[u8], line: usize, column: usize) -> usize {
    let before: usize =
        message.split_inclusive(|byte| *byte == b'\n').take(line.saturating_sub(1)).map(<[u8]>::len).sum();
    (before + column.saturating_sub(1)).min(message.len())
}

/// Index of the byte in the template's text that a byte of a message comes from; the beginning of a field for a byte within
/// it.
fn place_in_text(template: &Template, filling: &Filling<'_>, place: usize) -> usize {
    let stream = super::stream_of(filling.draw);
    let mut in_message = 0;
    for (index, (range, part)) in places(template).enumerate() {
        let bytes = match part {
            Part::Text(_) => range.len(),
            Part::Field(field) => field.bytes(stream, index as u64, filling.draw.number, filling.device.len()),
        };
        if place < in_message + bytes {
            let within = if matches!(part, Part::Text(_)) { place - in_message } else { 0 };
            return range.start + within;
        }
        in_message += bytes;
    }
    template.text.len()
}
