//! Validates sizes and bodies of payloads.

use std::ops::Range;
use std::sync::Arc;

use super::diagnostic::{Problem, ProblemKind, Span};
use super::files::{Files, wrong_line};
use super::raw::{BodyWord, RawBody, RawGroup, RawPayload, ShapeWord};
use super::shape::{Form, SizeText, Spanned, SpreadText, Text, Word};
use super::value::{self, impossible};
use crate::payload::{Body, HeaderPlace, SizeDistribution, below};
use crate::schedule::SMALLEST_PAYLOAD_BYTES;
use crate::template::{Template, TemplateError};
use crate::workload::{Deviation, DeviceGroup};

/// Maximum payload, in bytes: the limit of one MQTT packet (MQTT 5.0 §1.5.5).
const LARGEST_PAYLOAD_BYTES: f64 = 268_435_455.0;
/// Largest standard deviation as a multiple of the mean: of wider distributions, almost every draw is the smallest size.
const WIDEST_SPREAD: f64 = 100.0;
/// Maximum number of sizes of an empirical distribution.
const MOST_SIZES: usize = 1_000_000;

/// Reads the distribution of payload sizes.
pub(crate) fn distribution(
    raw: &Form<Text<SizeText>, Spanned<RawPayload>>,
    files: &Files,
) -> Result<SizeDistribution, Problem> {
    match raw {
        Form::Short(size) => whole(size).map(SizeDistribution::Fixed),
        Form::Full(full) => full_distribution(&full.value, full.span, files),
    }
}

fn full_distribution(raw: &RawPayload, span: Span, files: &Files) -> Result<SizeDistribution, Problem> {
    let forms = [raw.mean.is_some(), raw.min.is_some() || raw.max.is_some(), raw.sizes.is_some()];
    if forms.iter().filter(|given| **given).count() != 1 {
        return Err(Problem::new(ProblemKind::Conflict, "a payload has exactly one distribution")
            .at(span, "here")
            .help("give one of: `mean` with `sd` or `variance`; `min` and `max`; `sizes`"));
    }
    if let Some(mean) = &raw.mean {
        return around_mean(raw, mean);
    }
    if let Some(sizes) = &raw.sizes {
        return match sizes {
            Form::Short(sizes) => observed(sizes, span),
            Form::Full(full) => observed_in_file(&full.file, files),
        };
    }
    match (&raw.min, &raw.max) {
        (Some(min), Some(max)) => {
            let (low, high) = (whole(min)?, whole(max)?);
            if high < low {
                return Err(impossible(format!("the largest size, {high} B, is below the smallest, {low} B"))
                    .at(max.span, "below `min`")
                    .at(min.span, "`min`")
                    .help("swap them"));
            }
            Ok(SizeDistribution::Uniform { min: low, max: high })
        }
        _ => {
            Err(Problem::new(ProblemKind::MissingKey, "a uniform payload needs `min` and `max`")
                .at(span, "one is missing"))
        }
    }
}

fn around_mean(raw: &RawPayload, mean_text: &Text<SizeText>) -> Result<SizeDistribution, Problem> {
    let mean = bytes(mean_text)?;
    let sd = match (&raw.sd, &raw.variance) {
        (Some(sd), Some(variance)) => {
            return Err(Problem::new(ProblemKind::Conflict, "`sd` and `variance` say the same thing twice")
                .at(variance.span, "this")
                .at(sd.span, "and this")
                .help("keep one of the two"));
        }
        (Some(sd), None) => spread(sd, mean)?,
        (None, Some(variance)) => libm::sqrt(value::number(variance)?),
        (None, None) => {
            return Err(Problem::new(ProblemKind::MissingKey, "a mean without a spread")
                .at(mean_text.span, "how far do sizes lie from it?")
                .help(format!("add `sd: 10%`, or write `payload: {}` for one size", mean_text.text)));
        }
    };
    let spread_span = raw.sd.as_ref().map(|sd| sd.span).or(raw.variance.as_ref().map(|variance| variance.span));
    let is_lognormal = raw.shape.as_ref().map(|shape| shape.value) == Some(ShapeWord::Lognormal);
    let distribution = match (&raw.floor, is_lognormal) {
        (Some(floor), true) => {
            return Err(Problem::new(ProblemKind::Conflict, "a lognormal payload has no floor")
                .at(floor.span, "not read")
                .help("leave `floor` out"));
        }
        (None, true) => SizeDistribution::Lognormal { mean, sd },
        (floor, false) => {
            SizeDistribution::Normal { mean, sd, floor: floor.as_ref().map(whole).transpose()?.unwrap_or(0) }
        }
    };
    not_too_wide(&distribution, mean, sd, spread_span.unwrap_or(mean_text.span)).map(|()| distribution)
}

fn not_too_wide(distribution: &SizeDistribution, mean: f64, sd: f64, span: Span) -> Result<(), Problem> {
    if sd > WIDEST_SPREAD * mean {
        return Err(impossible(format!("a standard deviation of {WIDEST_SPREAD} times the mean is the largest"))
            .at(span, "more than that")
            .help("write for instance `sd: 10%`"));
    }
    // Beyond this size, draws have negligible probability.
    if f64::from(distribution.upper_bound()) > LARGEST_PAYLOAD_BYTES {
        return Err(Problem::new(
            ProblemKind::TooLarge,
            "sizes this far above the mean are more than one message can carry",
        )
        .at(span, "sizes above 268,435,455 B")
        .help("make it or the mean smaller, or give `min` and `max` or `sizes`"));
    }
    Ok(())
}

fn observed(sizes: &[Text<SizeText>], span: Span) -> Result<SizeDistribution, Problem> {
    if sizes.is_empty() {
        return Err(Problem::new(ProblemKind::Empty, "`sizes` is empty")
            .at(span, "here")
            .help("list at least one size"));
    }
    if sizes.len() > MOST_SIZES {
        return Err(value::too_many("sizes", sizes.len() as u64, MOST_SIZES as u64, span));
    }
    Ok(SizeDistribution::Empirical(sizes.iter().map(whole).collect::<Result<Arc<[u32]>, Problem>>()?))
}

/// Sizes from a file: one in each line, written as in a workload. The first line may be the heading `bytes`; empty lines
/// are skipped.
fn observed_in_file(name: &Spanned<String>, files: &Files) -> Result<SizeDistribution, Problem> {
    let text = files.read(name)?;
    let mut sizes = Vec::new();
    for (line, size) in (1..).zip(text.lines().map(str::trim)) {
        if size.is_empty() || (line == 1 && size == "bytes") {
            continue;
        }
        let bytes = crate::units::size(size).ok().filter(|bytes| bytes.fract() == 0.0);
        let bytes = bytes.filter(|bytes| (1.0..=LARGEST_PAYLOAD_BYTES).contains(bytes)).ok_or_else(|| {
            wrong_line(name, line, "no size of a message")
                .help("a line holds one size, such as `200` or `1.5KB`; the first may be `bytes`")
        })?;
        if sizes.len() == MOST_SIZES {
            return Err(wrong_line(name, line, &format!("more than {MOST_SIZES} sizes")));
        }
        sizes.push(bytes as u32);
    }
    match sizes.is_empty() {
        true => Err(wrong_line(name, 1, "the file holds no size").help("write one size a line")),
        false => Ok(SizeDistribution::Empirical(sizes.into())),
    }
}

fn spread(sd: &Text<SpreadText>, mean: f64) -> Result<f64, Problem> {
    match sd.text.strip_suffix('%') {
        Some(_) => Ok(value::unit(sd, crate::units::chance)? * mean),
        None => value::unit(sd, crate::units::size),
    }
}

fn bytes<K>(size: &Text<K>) -> Result<f64, Problem> {
    let bytes = value::unit(size, crate::units::size)?;
    if bytes < 1.0 {
        return Err(impossible("a payload of nothing carries no header".to_owned()).at(size.span, "below 1 B").help(
            format!("the smallest payload is {SMALLEST_PAYLOAD_BYTES} B; smaller ones are raised to it and counted"),
        ));
    }
    if bytes > LARGEST_PAYLOAD_BYTES {
        return Err(Problem::new(ProblemKind::TooLarge, format!("`{}` is more than one message can carry", size.text))
            .at(size.span, "above 268,435,455 B"));
    }
    Ok(bytes)
}

/// A size that every message can have: whole bytes, from 1 to the largest payload.
pub(crate) fn whole<K>(size: &Text<K>) -> Result<u32, Problem> {
    let bytes = bytes(size)?;
    if (bytes - bytes.round()).abs() > 1e-6 {
        return Err(impossible(format!("`{}` is not a whole number of bytes", size.text))
            .at(size.span, "a message has whole bytes")
            .help(format!("write `{}B`, or a distribution `{{mean: {}, sd: 10%}}`", bytes.round(), size.text)));
    }
    Ok(bytes.round() as u32)
}

/// Reads the content of payloads.
pub(crate) fn body(raw: Option<&Form<Word<BodyWord>, RawBody>>) -> Result<Body, Problem> {
    match raw {
        None => Ok(Body::Random),
        Some(Form::Short(word)) => Ok(match word.value {
            BodyWord::Random => Body::Random,
            BodyWord::Text => Body::Text,
        }),
        Some(Form::Full(full)) if Template::is_one(&full.json.value) => {
            let template = Template::parse(&full.json.value).map_err(|error| wrong_template(&full.json, error))?;
            Ok(Body::Template(Arc::new(template)))
        }
        Some(Form::Full(full)) => Ok(Body::Json(full.json.value.as_str().into())),
    }
}

fn wrong_template(json: &Spanned<String>, error: TemplateError) -> Problem {
    within(json, "document", error.at, error.reason, error.hint)
}

/// A problem within an embedded text in another language; `what` is its name.
pub(crate) fn within(text: &Spanned<String>, what: &str, at: Range<usize>, reason: String, hint: String) -> Problem {
    let (json, text) = (text, &text.value);
    let before = &text[..at.start];
    let line_start = before.rfind('\n').map_or(0, |end| end + 1);
    let (line, column) = (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1);
    // Positions are known if the file has the text unchanged, with or without quotes; otherwise only within the text.
    let quotes = (json.span.length as usize).checked_sub(text.len()).filter(|more| matches!(more, 0 | 2));
    let (span, message) = match quotes.filter(|_| !text.contains('\n')) {
        Some(quotes) => {
            let start = json.span.start + (quotes / 2 + at.start) as u32;
            (Span { start, length: at.len() as u32, ..json.span }, reason)
        }
        None => (json.span, format!("line {line}, column {column} of the {what}: {reason}")),
    };
    Problem::new(ProblemKind::ImpossibleValue, message).at(span, "here").help(hint)
}

/// The group with the header size added to a size that comes from its body, if its sizes are large enough for the body.
pub(crate) fn with_body(mut group: DeviceGroup, raw: &RawGroup) -> Result<DeviceGroup, Problem> {
    let header = group.header_bytes();
    if let SizeDistribution::Rendered { header_bytes, .. } = &mut group.size {
        *header_bytes = header;
    }
    let (Some(needed), false) = (group.template_needs(), group.template_fits()) else { return Ok(group) };
    let span = match &raw.payload {
        Some(Form::Short(size)) => size.span,
        Some(Form::Full(full)) => full.span,
        None => Span::default(),
    };
    let least = group.size.lower_bound();
    let with_header = if header > 0 { format!(", its header of {header} B included") } else { String::new() };
    let or_none = match group.body {
        Body::Template(_) => "; or no `payload`: then each message has the size that its body becomes",
        _ => "",
    };
    Err(impossible(format!(
        "the body of `{}` can become {needed} B{with_header}, a payload as small as {least} B",
        group.name
    ))
    .at(span, "too small for it")
    .help(format!("sizes of {needed} B at least, for instance `payload: {needed}B`{or_none}")))
}

/// The deviation of a group with sizes that are too small for the header, if there is one.
pub(crate) fn raised_to_header(group: &DeviceGroup) -> Option<Deviation> {
    let (name, size) = (&group.name, &group.size);
    if group.header == HeaderPlace::UserProperty {
        return None;
    }
    let smallest = group.smallest_payload_bytes();
    let header = f64::from(smallest);
    let share = share_below(size, smallest);
    let what = match size {
        SizeDistribution::Fixed(bytes) => format!("{bytes} B"),
        _ => format!("about {:.2} % of sizes, those below {header} B,", share * 100.0),
    };
    (share > 1e-6).then(|| Deviation {
        name: "payload-raised-to-header".to_owned(),
        detail: format!(
            "{name}: {what} raised to the {header} B of {}, so that every message can be told apart",
            match (group.reaction().is_some(), group.transform.is_empty()) {
                (true, _) => "a reaction's header",
                (false, true) => "the smallest header",
                (false, false) => "the full header, which messages with `transform` have",
            }
        ),
    })
}

/// Share of draws below a header, before rounding to whole bytes.
fn share_below(size: &SizeDistribution, smallest: u32) -> f64 {
    let header = f64::from(smallest);
    match size {
        SizeDistribution::Fixed(bytes) => f64::from(u8::from(f64::from(*bytes) < header)),
        SizeDistribution::Normal { floor, .. } if f64::from(*floor) >= header => 0.0,
        SizeDistribution::Normal { mean, sd, .. } if *sd == 0.0 => f64::from(u8::from(*mean < header)),
        SizeDistribution::Normal { mean, sd, .. } => below((header - mean) / sd),
        SizeDistribution::Lognormal { mean, sd } => {
            let variance = libm::log(1.0 + (sd / mean) * (sd / mean));
            match variance > 0.0 {
                true => below((libm::log(header) - libm::log(*mean) + variance / 2.0) / libm::sqrt(variance)),
                false => f64::from(u8::from(*mean < header)),
            }
        }
        SizeDistribution::Uniform { min, max } => {
            let small = f64::from(smallest.saturating_sub(*min).min(max - min + 1));
            small / (f64::from(*max) - f64::from(*min) + 1.0)
        }
        SizeDistribution::Empirical(sizes) => {
            let small = sizes.iter().filter(|size| **size < smallest).count();
            small as f64 / sizes.len().max(1) as f64
        }
        SizeDistribution::Rendered { .. } => 0.0,
    }
}
