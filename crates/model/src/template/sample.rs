//! What a template becomes, tried out before it is used.

use super::parse::TemplateError;
use super::{BodyDraw, Filling, Part, Template};

/// Messages whose sizes are averaged.
const SAMPLES: u32 = 1_000;
/// A name as long as most.
const DEVICE: &str = "0-10";

/// Mean size of the first messages of one device.
pub(super) fn mean_bytes(template: &Template) -> f64 {
    let bytes = |number| template.bytes(BodyDraw { key: 0, number }, DEVICE.len()) as f64;
    (0..SAMPLES).map(bytes).sum::<f64>() / f64::from(SAMPLES)
}

/// Checks that a message of it is JSON. Whatever is drawn, a field is of one kind: a number, or text without quotes.
pub(super) fn check_json(template: &Template) -> Result<(), TemplateError> {
    let filling = Filling { draw: BodyDraw::default(), device: DEVICE, due_unix_ns: 0 };
    let mut message = Vec::new();
    template.append(&filling, &mut message);
    let Err(error) = serde_json::from_slice::<serde::de::IgnoredAny>(&message) else { return Ok(()) };
    let at = place_in_text(template, &filling, place_of(&message, error.line(), error.column()));
    let reason = error.to_string();
    let reason = reason.split(" at line ").next().unwrap_or_default();
    Err(TemplateError {
        at: at..(at + 1).min(template.text.len()).max(at),
        reason: format!("the document is no JSON here: {reason}"),
        hint: "text stands in double quotes, also where a field gives it: `{\"room\": \"{{enum hall lab}}\"}`"
            .to_owned(),
    })
}

/// The byte of a message at a line and a column, both from 1.
fn place_of(message: &[u8], line: usize, column: usize) -> usize {
    let before: usize =
        message.split_inclusive(|byte| *byte == b'\n').take(line.saturating_sub(1)).map(<[u8]>::len).sum();
    (before + column.saturating_sub(1)).min(message.len())
}

/// The byte of the template's text that a byte of a message comes from; the beginning of a field for one within it.
fn place_in_text(template: &Template, filling: &Filling<'_>, place: usize) -> usize {
    let stream = super::stream_of(filling.draw);
    let (mut in_message, mut in_text) = (0, 0);
    for (index, part) in template.parts.iter().enumerate() {
        let bytes = match part {
            Part::Text(range) => range.len(),
            Part::Field(field) => field.bytes(stream, index as u64, filling.draw.number, filling.device.len()),
        };
        if place < in_message + bytes {
            let within = if matches!(part, Part::Text(_)) { place - in_message } else { 0 };
            return in_text + within;
        }
        in_message += bytes;
        in_text = match part {
            Part::Text(range) => range.end,
            Part::Field(_) => template.text[in_text..].find("}}").map_or(template.text.len(), |end| in_text + end + 2),
        };
    }
    template.text.len()
}
