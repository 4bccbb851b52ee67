//! Parses text to a validated template.

use std::ops::Range;

use super::number::{Grid, MOST_DECIMALS, MOST_STEPS};
use super::sample;
use super::{FURTHEST_NORMAL, Field, LONGEST_STRING, LONGEST_TEXT_BYTES, MOST_FIELDS, Part, Template};

/// The forms of all fields, as they are written.
pub const FIELD_FORMS: [&str; 10] = [
    "{{normal MEAN SD}}",
    "{{uniform MIN MAX}}",
    "{{counter}}",
    "{{counter START STEP}}",
    "{{timestamp}}",
    "{{timestamp ms}}",
    "{{enum A B C}}",
    "{{string N}}",
    "{{bool CHANCE}}",
    "{{device}}",
];

/// Largest absolute value of a counter's start and step: 2³² steps stay within 64 bits.
const MOST_STEP: i64 = 1 << 30;
/// Maximum number of words of an enumeration.
const MOST_WORDS: usize = 256;

/// An error in a template, and its position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct TemplateError {
    /// Position in the text, bytes.
    pub at: Range<usize>,
    /// What is wrong.
    pub reason: String,
    /// What to write instead.
    pub hint: String,
}

impl Template {
    /// Parses a template and checks that it renders to JSON.
    ///
    /// # Errors
    ///
    /// A field is unknown, a value is not valid, or the document is not JSON. The error has the position.
    pub fn parse(text: &str) -> Result<Template, TemplateError> {
        if text.len() > LONGEST_TEXT_BYTES {
            let reason = format!("a template of {} B, {LONGEST_TEXT_BYTES} B at most", text.len());
            return Err(error(0..text.len(), reason, "write a smaller document".to_owned()));
        }
        let mut parts = Vec::new();
        let mut at = 0;
        while let Some(open) = text[at..].find("{{").map(|open| at + open) {
            // In `{{{device}}`, the first brace belongs to the document.
            let open = open + text[open..].bytes().take_while(|byte| *byte == b'{').count() - 2;
            let Some(close) = text[open..].find("}}").map(|close| open + close + 2) else {
                let reason = "a field without its end".to_owned();
                return Err(error(open..text.len(), reason, "end it with `}}`".to_owned()));
            };
            if open > at {
                parts.push(Part::Text(at..open));
            }
            let field = field(&text[open + 2..close - 2]);
            parts.push(Part::Field(field.map_err(|(reason, hint)| error(open..close, reason, hint))?));
            at = close;
        }
        if at < text.len() {
            parts.push(Part::Text(at..text.len()));
        }
        let fields = parts.iter().filter(|part| matches!(part, Part::Field(_))).count();
        if fields > MOST_FIELDS {
            let reason = format!("a template of {fields} fields, {MOST_FIELDS} at most");
            return Err(error(0..text.len(), reason, "write a smaller document".to_owned()));
        }
        let mut template = Template { text: text.into(), parts, mean_bytes: 0.0 };
        sample::check_json(&template)?;
        template.mean_bytes = sample::mean_bytes(&template);
        Ok(template)
    }
}

fn error(at: Range<usize>, reason: String, hint: String) -> TemplateError {
    TemplateError { at, reason, hint }
}

/// Why a text is not a field, and what to write instead.
type Wrong = (String, String);

fn field(text: &str) -> Result<Field, Wrong> {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let (name, values) = words.split_first().map_or(("", &[][..]), |(name, values)| (*name, values));
    match (name, values) {
        ("normal", [mean, sd]) => normal(mean, sd),
        ("uniform", [min, max]) => uniform(min, max),
        ("counter", []) => Ok(Field::Counter { start: 1, step: 1 }),
        ("counter", [start, step]) => Ok(Field::Counter { start: whole(start)?, step: whole(step)? }),
        ("timestamp", []) => Ok(Field::Timestamp),
        ("timestamp", ["ms"]) => Ok(Field::UnixMs),
        ("enum", [_, ..]) => enumeration(values),
        ("string", [count]) => match count.parse() {
            Ok(count @ 1..=LONGEST_STRING) => Ok(Field::Letters(count)),
            _ => Err(wrong(format!("`{count}` is no length of a string"), format!("1 to {LONGEST_STRING} letters"))),
        },
        ("bool", [chance]) => match chance.parse::<f64>() {
            Ok(chance) if (0.0..=1.0).contains(&chance) => Ok(Field::Truth(chance)),
            _ => Err(wrong(format!("`{chance}` is no chance"), "between 0 and 1: `{{bool 0.5}}`".to_owned())),
        },
        ("device", []) => Ok(Field::Device),
        _ => Err(unknown(name, text)),
    }
}

fn unknown(name: &str, text: &str) -> Wrong {
    let forms = || FIELD_FORMS.iter();
    let begins = |form: &&&str| form[2..].trim_end_matches('}').split(' ').next() == Some(name);
    let own: Vec<String> = forms().filter(begins).map(|form| format!("`{form}`")).collect();
    if own.is_empty() {
        let all: Vec<String> = forms().map(|form| format!("`{form}`")).collect();
        return (format!("unknown field `{{{{{text}}}}}`"), format!("there are {}", all.join(", ")));
    }
    (format!("`{{{{{text}}}}}` has other values than it needs"), format!("write {}", own.join(" or ")))
}

fn wrong(reason: String, hint: String) -> Wrong {
    (reason, hint)
}

fn normal(mean: &str, sd: &str) -> Result<Field, Wrong> {
    let grid = grid(mean, sd)?;
    let (mean, sd) = (number(mean)?, number(sd)?);
    if sd < 0.0 {
        return Err(wrong(format!("a standard deviation of {sd}"), "0 or more".to_owned()));
    }
    check_range(mean.abs() + FURTHEST_NORMAL * sd, grid)?;
    Ok(Field::Normal { mean, sd, grid })
}

fn uniform(min: &str, max: &str) -> Result<Field, Wrong> {
    let grid = grid(min, max)?;
    let (low, high) = (number(min)?, number(max)?);
    check_range(low.abs().max(high.abs()), grid)?;
    if high < low {
        return Err(wrong(format!("the largest value, {max}, is below the smallest, {min}"), "swap them".to_owned()));
    }
    Ok(Field::Uniform { min: grid.nearest(low), max: grid.nearest(high), grid })
}

fn enumeration(values: &[&str]) -> Result<Field, Wrong> {
    if values.len() > MOST_WORDS {
        return Err(wrong(format!("an enumeration of {} words", values.len()), format!("{MOST_WORDS} at most")));
    }
    let cannot_stand = |byte: u8| matches!(byte, b'"' | b'\\' | b'{' | b'}') || byte.is_ascii_control();
    if let Some(word) = values.iter().find(|word| word.bytes().any(cannot_stand)) {
        let hint =
            "write words without quotes, backslashes and braces; quotes go around the field: `\"{{enum on off}}\"`";
        return Err(wrong(format!("`{word}` cannot stand in an enumeration"), hint.to_owned()));
    }
    Ok(Field::Word(values.iter().map(|word| (*word).into()).collect()))
}

fn whole(text: &str) -> Result<i64, Wrong> {
    let number = text.parse().ok().filter(|number: &i64| number.abs() <= MOST_STEP);
    number.ok_or_else(|| {
        wrong(format!("`{text}` is no start or step of a counter"), format!("a whole number of at most {MOST_STEP}"))
    })
}

/// A number in digits; `inf`, `nan` and exponents are refused.
fn number(text: &str) -> Result<f64, Wrong> {
    let is_plain = !text.is_empty() && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'-'));
    let number = is_plain.then(|| text.parse().ok()).flatten();
    number.ok_or_else(|| wrong(format!("`{text}` is no number"), "write digits, such as `21`, `-3.25`".to_owned()))
}

/// The grid with as many decimals as the more precise of two numbers.
fn grid(first: &str, second: &str) -> Result<Grid, Wrong> {
    let decimals = |text: &str| text.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let most = decimals(first).max(decimals(second));
    match u8::try_from(most) {
        Ok(most) if most <= MOST_DECIMALS => Ok(Grid::new(most)),
        _ => Err(wrong(format!("a number of {most} decimals"), format!("{MOST_DECIMALS} at most"))),
    }
}

fn check_range(furthest: f64, grid: Grid) -> Result<(), Wrong> {
    if (grid.nearest(furthest) as f64) < MOST_STEPS {
        return Ok(());
    }
    Err(wrong(
        format!("values up to {furthest} need more than 15 digits"),
        "use smaller values, or fewer decimals".to_owned(),
    ))
}
