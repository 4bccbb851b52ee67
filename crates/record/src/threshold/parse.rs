//! Parser of limits.

use pubmark_model::units::{self, UnitError};

use super::metrics::{self, Metric, names};
use super::{Bound, Clause, Limited, Operator};
use crate::custom::PREFIX;
use crate::unit::{self, Unit};

/// Most clauses in one list.
const MOST_CLAUSES: usize = 64;

/// Why a text is not a valid list of limits, and the position of the error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ThresholdError {
    /// What is wrong, including the value.
    pub message: String,
    /// What to write instead.
    pub hint: String,
    /// The complete text that was parsed.
    pub text: String,
    /// Start of the wrong part, in characters from 0.
    pub at: usize,
    /// Length of the wrong part in characters, at least 1.
    pub length: usize,
    /// The unknown name, if that is the error.
    pub unknown_name: Option<String>,
}

impl ThresholdError {
    /// The text with the wrong part underlined: two lines, without a final line end.
    pub fn drawing(&self) -> String {
        // The beginning of a long list is cut off.
        let skipped = (self.at + self.length).saturating_sub(60).min(self.at);
        let shown: String = self.text.chars().skip(skipped).take(70).collect();
        let carets = self.length.min(70 - (self.at - skipped).min(69));
        format!("  {shown}\n  {}{}", " ".repeat(self.at - skipped), "^".repeat(carets))
    }
}

/// Operators, the longer ones first.
const OPERATORS: [(&str, Operator); 8] = [
    ("<=", Operator::AtMost),
    (">=", Operator::AtLeast),
    ("==", Operator::Equal),
    ("≤", Operator::AtMost),
    ("≥", Operator::AtLeast),
    ("<", Operator::Below),
    (">", Operator::Above),
    ("=", Operator::Equal),
];

/// Operators that are written the wrong way round, with what they mean.
const REVERSED: [(&str, &str); 2] = [("=<", "<="), ("=>", ">=")];

/// A part of the text, with its byte position.
#[derive(Clone, Copy)]
struct Piece<'a> {
    whole: &'a str,
    start: usize,
    text: &'a str,
}

impl<'a> Piece<'a> {
    fn trimmed(self) -> Piece<'a> {
        let cut = self.text.len() - self.text.trim_start().len();
        Piece { start: self.start + cut, text: self.text.trim(), ..self }
    }

    fn split_at(self, place: usize) -> (Piece<'a>, Piece<'a>) {
        let (left, right) = self.text.split_at(place);
        (Piece { text: left, ..self }, Piece { start: self.start + place, text: right, ..self })
    }

    fn error(self, message: impl Into<String>, hint: impl Into<String>) -> ThresholdError {
        ThresholdError {
            message: message.into(),
            hint: hint.into(),
            text: self.whole.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect(),
            at: self.whole[..self.start].chars().count(),
            length: self.text.chars().count().max(1),
            unknown_name: None,
        }
    }
}

/// Where a list of clauses comes from, which determines the bounds that it may have.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// Limits that a user writes.
    Objectives,
    /// Limits in a record. Older versions accepted a share of `1`, shares above it, and sizes without a unit, in bytes.
    Record,
    /// Conditions, whose bounds may have a sign: a change from a baseline.
    Conditions,
}

/// Parses clauses separated by commas.
pub(super) fn list(text: &str, origin: Origin) -> Result<Vec<Clause>, ThresholdError> {
    let with_changes = origin == Origin::Conditions;
    let whole = Piece { whole: text, start: 0, text };
    let example = if with_changes { "write it like `p99>+10%,loss>0.1%`" } else { "write it like `p99<50ms,loss=0`" };
    if text.trim().is_empty() {
        return Err(whole.error("nothing is limited", example));
    }
    let mut clauses: Vec<Clause> = Vec::new();
    let mut start = 0;
    let parts: Vec<&str> = text.split(',').collect();
    for (position, part) in parts.iter().enumerate() {
        let piece = Piece { whole: text, start, text: part }.trimmed();
        start += part.len() + 1;
        let groups = parts[position + 1..].iter().take_while(|next| is_group_of_digits(next)).count();
        if groups > 0 && part.ends_with(|letter: char| letter.is_ascii_digit()) {
            let number = parts[position..=position + groups].concat();
            let message = format!("`{}` ends at the comma, which separates limits", piece.text);
            return Err(piece.error(message, format!("write the number without a comma: `{}`", number.trim())));
        }
        if piece.text.is_empty() {
            return Err(piece.error("a limit is missing between the commas", example));
        }
        if clauses.len() == MOST_CLAUSES {
            return Err(piece.error(format!("there are more than {MOST_CLAUSES} limits"), "leave some out"));
        }
        clauses.push(clause(piece, origin, example)?);
    }
    Ok(clauses)
}

/// Whether it is what follows the comma of a number: `000/s` of `1,000/s`.
fn is_group_of_digits(part: &str) -> bool {
    let digits = part.bytes().take_while(u8::is_ascii_digit).count();
    digits == 3 && !part.contains(['<', '>', '=', '≤', '≥'])
}

fn clause(piece: Piece, origin: Origin, example: &str) -> Result<Clause, ThresholdError> {
    let with_changes = origin == Origin::Conditions;
    let Some(place) = piece.text.find(['<', '>', '=', '≤', '≥']) else {
        let hint = match metrics::find(piece.text) {
            Some(metric) => format!("say how much, like `{}`", example_of(metric)),
            None => example.to_owned(),
        };
        return Err(piece.error(format!("`{}` limits nothing: it has no `<`, `>` or `=`", piece.text), hint));
    };
    let (name, rest) = piece.split_at(place);
    let name = name.trimmed();
    let (symbol, operator) = OPERATORS
        .iter()
        .find(|(symbol, _)| rest.text.starts_with(symbol))
        .ok_or_else(|| rest.error("this is no comparison", "there are `<`, `<=`, `=`, `>=`, `>`"))?;
    if let Some((reversed, meant)) = REVERSED.iter().find(|(reversed, _)| rest.text.starts_with(reversed)) {
        let (reversed, _) = rest.split_at(reversed.len());
        return Err(reversed.error(format!("`{}` is no comparison", reversed.text), format!("write `{meant}`")));
    }
    let (_, bound) = rest.split_at(symbol.len());
    let bound = bound.trimmed();
    let own = is_custom(name)?;
    let known = if own { None } else { Some(metric(name)?) };
    if bound.text.is_empty() {
        let example = known.map_or_else(|| format!("{}<2ms", name.text), example_of);
        return Err(piece.error(format!("`{}` has no value", piece.text), format!("write it like `{example}`")));
    }
    let is_change = bound.text.starts_with(['+', '-', '−']);
    let (metric, bound) = match known {
        Some(metric) if !is_change => {
            let is_share = matches!(metric.unit(), Unit::Share | Unit::Cores);
            let value = value(metric, bound, origin).map_err(|error| match with_changes && !is_share {
                true => of_change(error, bound),
                false => error,
            });
            (Limited::Known(metric), Bound::Value(value?))
        }
        Some(metric) => (Limited::Known(metric), change(bound, *operator, with_changes)?),
        None => {
            let is_percentage = bound.text.ends_with('%') && with_changes;
            let (value, symbol) = match is_change && is_percentage {
                true => (change(bound, *operator, with_changes)?, ""),
                false => custom_value(bound)?,
            };
            (Limited::Custom { name: name.text.to_owned(), symbol: symbol.to_owned() }, value)
        }
    };
    Ok(Clause { text: piece.text.to_owned(), metric, operator: *operator, bound })
}

/// The error for a bound that is no value of its metric: where it is a percentage, a change without its sign was meant.
fn of_change(error: ThresholdError, bound: Piece) -> ThresholdError {
    let share = bound.text.strip_suffix('%').map(str::trim_end).filter(|number| number.parse::<f64>().is_ok());
    match share {
        Some(number) => ThresholdError {
            hint: format!("write a change from the baseline with its sign: `+{number}%`, `-{number}%`"),
            ..error
        },
        None => error,
    }
}

/// Whether this is the name of a user-defined metric.
fn is_custom(name: Piece) -> Result<bool, ThresholdError> {
    let Some(own) = name.text.strip_prefix(PREFIX) else { return Ok(false) };
    let is_name = !own.is_empty() && own.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    match is_name {
        true => Ok(true),
        false => Err(name.error(
            format!("`{}` is no name of a metric", name.text),
            "metrics of your own are written `custom.NAME`, with the name that they were declared with",
        )),
    }
}

/// A bound of a user-defined metric, with the symbol of its unit: `2ms`, `-0.5`, `20mJ`. The unit of the metric is only
/// known from the record.
fn custom_value(bound: Piece<'_>) -> Result<(Bound, &str), ThresholdError> {
    let is_digit = |letter: char| letter.is_ascii_digit() || letter == '.';
    let (sign, digits) = match bound.text.strip_prefix(['-', '−']) {
        Some(rest) => (-1.0, rest),
        None => (1.0, bound.text),
    };
    let end = digits.find(|letter| !is_digit(letter)).unwrap_or(digits.len());
    let (number, symbol) = (&digits[..end], digits[end..].trim_start());
    let is_symbol = symbol.chars().count() <= 16 && !symbol.contains([' ', '<', '>', '=']);
    match number.parse::<f64>() {
        Ok(number) if is_symbol => Ok((Bound::Value(sign * number * unit::of_symbol(symbol).1), symbol)),
        _ => Err(bound.error(
            format!("`{}` is no value", bound.text),
            "write a number and the unit of the metric: `2ms`, `10kB`, `99%`, `0.5`",
        )),
    }
}

fn metric(name: Piece) -> Result<&'static Metric, ThresholdError> {
    metrics::find(name.text).ok_or_else(|| {
        let own = "custom.NAME";
        let listed = names().chain([own]).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        if name.text.is_empty() {
            return name.error("it does not say what is limited", format!("there are: {listed}"));
        }
        ThresholdError {
            unknown_name: Some(name.text.to_owned()),
            ..name.error(format!("there is no figure `{}`", name.text), format!("there are: {listed}"))
        }
    })
}

fn change(bound: Piece, operator: Operator, with_changes: bool) -> Result<Bound, ThresholdError> {
    if !with_changes {
        return Err(bound.error(
            format!("`{}` is a change, and there is no baseline to compare with", bound.text),
            "write the value itself, or use `pubmark check --baseline … --fail-on …`",
        ));
    }
    let mut letters = bound.text.chars();
    let sign = if letters.next() == Some('+') { 1.0 } else { -1.0 };
    let share = letters.as_str().strip_suffix('%').and_then(|number| units::chance(&format!("{number}%")).ok());
    let Some(share) = share else {
        return Err(bound.error(
            format!("`{}` is not a change", bound.text),
            "write changes from the baseline in percent: `+10%`, `-5%`",
        ));
    };
    if operator == Operator::Equal {
        return Err(bound.error("a change is never exact", "use `>` or `<`"));
    }
    Ok(Bound::Change(sign * share))
}

/// A bound in the metric's unit.
fn value(metric: &Metric, bound: Piece, origin: Origin) -> Result<f64, ThresholdError> {
    let text = bound.text;
    let plain = |what: &str| {
        text.parse::<f64>()
            .ok()
            .filter(|number| number.is_finite() && text.starts_with(|c: char| c.is_ascii_digit()))
            .ok_or_else(|| UnitError {
                message: format!("`{text}` is not {what}"),
                hint: Some(format!("write it like `{}`", example_of(metric))),
            })
    };
    let read = match metric.unit() {
        Unit::Microseconds => units::duration(text).map(|time| time.as_nanos() as f64 / 1e3),
        Unit::Share if origin == Origin::Record => units::chance(text),
        Unit::Share => share(text),
        Unit::Count => plain("a number of messages"),
        Unit::PerSecond => units::rate(text),
        Unit::Cores if text.ends_with('%') => units::chance(text),
        Unit::Cores => plain("a number of cores"),
        Unit::CpuSecondsPerMillion => plain("a number of seconds"),
        Unit::Bytes if origin == Origin::Record => units::size(text),
        Unit::Bytes => units::size_with_unit(text),
        Unit::Number => plain("a number"),
    };
    read.map_err(|error| {
        bound.error(error.message, error.hint.unwrap_or_else(|| format!("write it like `{}`", example_of(metric))))
    })
}

/// A share of 1. A `1` without `%` is refused: 1 % and everything are written so, which are a hundred times apart.
fn share(text: &str) -> Result<f64, UnitError> {
    let share = units::chance(text)?;
    let has_unit = text.ends_with('%');
    let refused = |message: &str, hint: String| {
        Err(UnitError { message: format!("`{text}` {message}"), hint: Some(format!("write {hint}")) })
    };
    match share {
        1.0 if !has_unit => refused("can be read as 1 % and as everything", "`1%`, or `100%`".to_owned()),
        ..=1.0 => Ok(share),
        _ if has_unit => refused("is more than everything", "at most `100%`".to_owned()),
        _ => refused("is more than everything, which is 1", format!("`{text}%`")),
    }
}

/// An example of a limit on a metric, for messages.
fn example_of(metric: &Metric) -> String {
    let bound = match metric.unit() {
        Unit::Microseconds => "<50ms",
        Unit::Share if metric.is_complement => "<=0.1%",
        Unit::Share => ">=99.9%",
        Unit::Count => "=0",
        Unit::PerSecond => ">=5000/s",
        Unit::Cores => "<0.5",
        Unit::CpuSecondsPerMillion => "<20",
        Unit::Bytes => "<100MB",
        Unit::Number => "<2",
    };
    format!("{}{bound}", metric.name)
}
