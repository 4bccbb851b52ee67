//! Templates of payloads: a JSON document with fields that are drawn for each message.
//!
//! A value is a pure function of the seed, the device, the number of the message in the device's schedule and the position
//! of the field, so a message can be generated again for a repetition, and its size is known when it is due. Only
//! `{{timestamp}}` also depends on the wall clock at the start of the run; its length does not. Start with
//! [`Template::parse`].

use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::random::{Stream, mix};

mod moment;
mod number;
mod parse;
mod sample;

pub use parse::{FIELD_FORMS, TemplateError};

use number::Grid;

/// Maximum number of fields of one template.
pub const MOST_FIELDS: usize = 256;
/// Maximum length of a template, bytes.
pub const LONGEST_TEXT_BYTES: usize = 256 * 1024;
/// Maximum N of `{{string N}}`.
pub const LONGEST_STRING: u16 = 4_096;

/// Identifies the draws of one message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BodyDraw {
    /// Key of the device's draws; for a reaction, of the device and the trigger.
    pub key: u64,
    /// Number of the message in the device's schedule, from 0; for a reaction, the sequence number of its trigger.
    pub number: u32,
}

/// Values for the fields of one message.
#[derive(Clone, Copy, Debug)]
pub struct Filling<'a> {
    /// Identifies the draws.
    pub draw: BodyDraw,
    /// Name of the device, as `{device}` in topics.
    pub device: &'a str,
    /// Due time of the message on the wall clock, ns since 1970-01-01 UTC.
    pub due_unix_ns: u64,
}

/// A validated template.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Template {
    text: Arc<str>,
    parts: Vec<Part>,
    mean_bytes: f64,
}

/// A piece of a template: fixed text or a field.
#[derive(Clone, Debug, PartialEq)]
enum Part {
    /// Bytes of the template's text.
    Text(Range<usize>),
    /// A field.
    Field(Field),
}

/// Kinds of fields.
#[derive(Clone, Debug, PartialEq)]
enum Field {
    /// Normal with mean and standard deviation, rounded to N decimals.
    Normal { mean: f64, sd: f64, grid: Grid },
    /// Every value of the grid from `min` to `max` equally likely.
    Uniform { min: i64, max: i64, grid: Grid },
    /// `start` in the first message of the device's schedule, then `step` more each time.
    Counter { start: i64, step: i64 },
    /// The due time as text, such as `2026-01-31T12:00:00.000Z`.
    Timestamp,
    /// The due time in ms since 1970.
    UnixMs,
    /// One of these words, each equally likely.
    Word(Vec<Box<str>>),
    /// This number of letters and digits.
    Letters(u16),
    /// `true` with this chance, otherwise `false`.
    Truth(f64),
    /// The device's name.
    Device,
}

/// A draw of [`Stream::normal`] is never further from 0 than √(2·53·ln 2).
const FURTHEST_NORMAL: f64 = 8.6;
/// Letters of `{{string N}}`: five bits each.
const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
/// Number of letters from one draw.
const LETTERS_A_DRAW: usize = 12;

impl Template {
    /// Whether a text contains a field. JSON itself never has two opening braces in a row.
    pub fn is_one(text: &str) -> bool {
        text.contains("{{")
    }

    /// The text, as written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Minimum size of a rendered message, bytes.
    pub fn least_bytes(&self) -> usize {
        self.bound(|field| *field.bounds_bytes().start())
    }

    /// Maximum size of a rendered message, bytes. For a counter, 2³² messages are assumed.
    pub fn most_bytes(&self) -> usize {
        self.bound(|field| *field.bounds_bytes().end())
    }

    /// Mean size of a rendered message, bytes: of the first messages of one device.
    pub fn mean_bytes(&self) -> f64 {
        self.mean_bytes
    }

    /// The first messages of one device, as examples.
    pub fn examples(&self, count: u32) -> Vec<Vec<u8>> {
        sample::messages(self, count)
    }

    fn bound(&self, of_field: impl Fn(&Field) -> usize) -> usize {
        let bytes = |part: &Part| match part {
            Part::Text(range) => range.len(),
            Part::Field(field) => of_field(field),
        };
        self.parts.iter().map(bytes).sum()
    }

    /// Size of a rendered message, bytes.
    pub fn bytes(&self, draw: BodyDraw, device_bytes: usize) -> usize {
        let stream = stream_of(draw);
        let bytes = |(index, part): (usize, &Part)| match part {
            Part::Text(range) => range.len(),
            Part::Field(field) => field.bytes(stream, index as u64, draw.number, device_bytes),
        };
        self.parts.iter().enumerate().map(bytes).sum()
    }

    /// Appends the rendered message: [`Template::bytes`] bytes.
    pub fn append(&self, filling: &Filling<'_>, out: &mut Vec<u8>) {
        let stream = stream_of(filling.draw);
        for (index, part) in self.parts.iter().enumerate() {
            match part {
                Part::Text(range) => out.extend_from_slice(&self.text.as_bytes()[range.clone()]),
                Part::Field(field) => field.append(stream, index as u64, filling, out),
            }
        }
    }
}

impl PartialEq for Template {
    fn eq(&self, other: &Template) -> bool {
        self.text == other.text
    }
}

impl Eq for Template {}

impl TryFrom<String> for Template {
    type Error = TemplateError;

    fn try_from(text: String) -> Result<Template, TemplateError> {
        Template::parse(&text)
    }
}

impl From<Template> for String {
    fn from(template: Template) -> String {
        template.text.to_string()
    }
}

/// The draws of a message; a field uses the draws 2·index and 2·index + 1.
fn stream_of(draw: BodyDraw) -> Stream {
    /// Makes these draws different from those of the schedule, which have the same key.
    const BODY: u64 = 0x626f_6479;
    Stream::new(mix(draw.key ^ BODY), u64::from(draw.number))
}

impl Field {
    fn scaled(&self, stream: Stream, index: u64, number: u32) -> Option<(i64, Grid)> {
        match self {
            Field::Normal { mean, sd, grid } => Some((grid.nearest(mean + sd * stream.normal(index)), *grid)),
            Field::Uniform { min, max, grid } => {
                let count = max.abs_diff(*min) + 1;
                Some((min + stream.pick(2 * index, count) as i64, *grid))
            }
            Field::Counter { start, step } => Some((start + step * i64::from(number), Grid::WHOLE)),
            _ => None,
        }
    }

    fn word(&self, stream: Stream, index: u64) -> &str {
        match self {
            Field::Word(words) => &words[stream.pick(2 * index, words.len() as u64) as usize],
            Field::Truth(chance) if stream.unit(2 * index) < *chance => "true",
            Field::Truth(_) => "false",
            _ => "",
        }
    }

    fn bytes(&self, stream: Stream, index: u64, number: u32, device_bytes: usize) -> usize {
        match self {
            Field::Normal { .. } | Field::Uniform { .. } | Field::Counter { .. } => {
                self.scaled(stream, index, number).map_or(0, |(value, grid)| grid.bytes(value))
            }
            Field::Timestamp => moment::ISO_BYTES,
            Field::UnixMs => moment::UNIX_MS_BYTES,
            Field::Word(_) | Field::Truth(_) => self.word(stream, index).len(),
            Field::Letters(count) => usize::from(*count),
            Field::Device => device_bytes,
        }
    }

    fn append(&self, stream: Stream, index: u64, filling: &Filling<'_>, out: &mut Vec<u8>) {
        match self {
            Field::Normal { .. } | Field::Uniform { .. } | Field::Counter { .. } => {
                if let Some((value, grid)) = self.scaled(stream, index, filling.draw.number) {
                    grid.append(value, out);
                }
            }
            Field::Timestamp => moment::append_iso(filling.due_unix_ns, out),
            Field::UnixMs => moment::append_unix_ms(filling.due_unix_ns, out),
            Field::Word(_) | Field::Truth(_) => out.extend_from_slice(self.word(stream, index).as_bytes()),
            Field::Letters(count) => append_letters(Stream::new(stream.bits(2 * index), 0), usize::from(*count), out),
            Field::Device => out.extend_from_slice(filling.device.as_bytes()),
        }
    }

    /// Minimum and maximum size, bytes.
    fn bounds_bytes(&self) -> RangeInclusive<usize> {
        let numbers = |low: i64, high: i64, grid: &Grid| {
            // 0 has the fewest digits, the ends of the range the most.
            let least = if low <= 0 && high >= 0 { grid.bytes(0) } else { grid.bytes(low).min(grid.bytes(high)) };
            least..=grid.bytes(low).max(grid.bytes(high))
        };
        match self {
            Field::Normal { mean, sd, grid } => {
                let far = FURTHEST_NORMAL * sd;
                numbers(grid.nearest(mean - far), grid.nearest(mean + far), grid)
            }
            Field::Uniform { min, max, grid } => numbers(*min, *max, grid),
            Field::Counter { start, step } => {
                let end = start + step * i64::from(u32::MAX);
                numbers(*start.min(&end), *start.max(&end), &Grid::WHOLE)
            }
            Field::Word(words) => {
                let bytes = || words.iter().map(|word| word.len());
                bytes().min().unwrap_or(0)..=bytes().max().unwrap_or(0)
            }
            Field::Truth(chance) => match *chance {
                0.0 => 5..=5,
                1.0 => 4..=4,
                _ => 4..=5,
            },
            // `copy-index`, two numbers of 32 bits.
            Field::Device => 3..=21,
            Field::Timestamp | Field::UnixMs | Field::Letters(_) => {
                let bytes = self.bytes(Stream::new(0, 0), 0, 0, 0);
                bytes..=bytes
            }
        }
    }
}

fn append_letters(stream: Stream, count: usize, out: &mut Vec<u8>) {
    let mut draw = 0;
    let mut missing = count;
    while missing > 0 {
        let mut bits = stream.bits(draw);
        for _ in 0..missing.min(LETTERS_A_DRAW) {
            out.push(LETTERS[(bits & 31) as usize]);
            bits >>= 5;
        }
        missing -= missing.min(LETTERS_A_DRAW);
        draw += 1;
    }
}

#[cfg(test)]
mod tests;
