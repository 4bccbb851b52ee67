//! Validates the shape of a file and converts it to an [`Experiment`].

use std::time::Duration;

use super::axes::{AXES, Axes, RawAxes};
use super::axis_value::{judged, name, nothing, read, whole};
use super::cells::combinations;
use super::definition::{Experiment, Generator, Pins, Quick, QuietMachine};
use super::raw::{
    NetemWord, RawExperiment, RawGenerator, RawPins, RawQuick, RawQuietMachine, ShareText, TimeText, VariantWord,
    WholeText,
};
use super::{Judge, LARGEST_SEED, MOST_CELLS, MOST_REPETITIONS, Word, papers};
use crate::load::diagnostic::{Problem, ProblemKind, Span};
use crate::load::shape::{AnyText, Spanned, Text};
use crate::load::value::{impossible, too_many, unit};
use crate::units;
use crate::workload::Variant;

/// Default number of repetitions: enough for a confidence interval.
const REPETITIONS: u32 = 5;
/// Maximum number of threads on each side of the generator.
const MOST_SHARDS: u32 = 256;

/// Validates every value.
pub(super) fn checked(raw: &RawExperiment, judge: Judge<'_>) -> Result<Experiment, Problem> {
    check_name(&raw.name)?;
    let axes = all_axes(&raw.axes.value, judge)?;
    let default = Quick::default();
    let seed = raw.seed.as_ref().map_or(Ok(1), seed)?;
    let mut experiment = Experiment {
        name: raw.name.value.clone(),
        title: raw.title.clone().unwrap_or_else(|| raw.name.value.clone()),
        description: raw.description.clone(),
        workload: workload(raw, &axes, judge)?,
        variant: match raw.variant {
            Some(VariantWord::Published) => Variant::Published,
            Some(VariantWord::Corrected) | None => Variant::Corrected,
        },
        set: raw.set.0.iter().map(|(key, value)| (key.value.clone(), value.text.clone())).collect(),
        seed,
        order_seed: raw.order_seed.as_ref().map_or(Ok(seed), self::seed)?,
        duration: above_zero(raw.duration.as_ref(), Duration::from_secs(60))?,
        warmup: time(raw.warmup.as_ref(), Duration::from_secs(5))?,
        exact_warmup: raw.exact_warmup,
        drain: time(raw.drain.as_ref(), Duration::from_secs(10))?,
        repeat: repetitions(raw.repeat.as_ref(), REPETITIONS)?,
        quiet_machine: raw.quiet_machine.as_ref().map_or(Ok(QuietMachine::default()), quiet_machine)?,
        pin: raw.pin.as_ref().map_or(Ok(Pins::default()), |pin| pins(pin, judge))?,
        generator: raw.generator.as_ref().map_or(Ok(Generator::default()), generator)?,
        strict_defaults: raw.strict_defaults,
        quick: raw.quick.as_ref().map_or(Ok(default), |quick| self::quick(quick, default))?,
        axes,
        papers: vec![],
    };
    check_size(&experiment, raw.axes.span)?;
    experiment.papers = papers::checked(&raw.papers, &experiment, judge)?;
    Ok(experiment)
}

/// The workload of all cells, or the first of several.
fn workload(raw: &RawExperiment, axes: &Axes, judge: Judge<'_>) -> Result<String, Problem> {
    match (&raw.workload, axes.workload.first()) {
        (Some(one), None) => {
            judged(judge, Word::Workload, &one.value, one.span)?;
            Ok(one.value.clone())
        }
        (None, Some(first)) => Ok(first.clone()),
        (Some(one), Some(_)) => Err(impossible("the workload is given twice".to_owned())
            .at(one.span, "here")
            .help("`axes` has workloads: leave this one out")),
        (None, None) => Err(impossible("no workload is given".to_owned())
            .at(raw.axes.span, "nor here")
            .help("write for instance `workload: smart-home` above `axes`")),
    }
}

fn check_name(name: &Spanned<String>) -> Result<(), Problem> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if name.value.is_empty() || name.value.len() > 60 || !name.value.chars().all(fits) {
        return Err(Problem::new(ProblemKind::BadName, format!("`{}` cannot be a name", name.value))
            .at(name.span, "here")
            .help("up to 60 letters, digits, `-` and `_`: it names a folder"));
    }
    Ok(())
}

fn check_size(experiment: &Experiment, span: Span) -> Result<(), Problem> {
    match combinations(experiment) {
        cells if cells > MOST_CELLS as u64 => Err(too_many("combinations", cells, MOST_CELLS as u64, span)
            .help("leave values out, or make two experiments of it")),
        _ => Ok(()),
    }
}

fn time(text: Option<&Text<TimeText>>, default: Duration) -> Result<Duration, Problem> {
    text.map_or(Ok(default), |text| unit(text, units::duration))
}

fn above_zero(text: Option<&Text<TimeText>>, default: Duration) -> Result<Duration, Problem> {
    let length = time(text, default)?;
    match text {
        Some(text) if length.is_zero() => Err(impossible("a run of no length measures nothing".to_owned())
            .at(text.span, "zero")
            .help("write for instance `60s`")),
        _ => Ok(length),
    }
}

fn seed(text: &Text<WholeText>) -> Result<u64, Problem> {
    // YAML parsers silently change larger numbers.
    text.text.parse().ok().filter(|seed| *seed <= LARGEST_SEED).ok_or_else(|| {
        Problem::new(ProblemKind::WrongKind, format!("`{}` is not a seed", text.text))
            .at(text.span, "here")
            .help(format!("write a whole number up to {LARGEST_SEED}, for instance `1`"))
    })
}

fn repetitions(text: Option<&Text<WholeText>>, default: u32) -> Result<u32, Problem> {
    text.map_or(Ok(default), |text| whole(text, "a number of repetitions", MOST_REPETITIONS))
}

fn quiet_machine(raw: &RawQuietMachine) -> Result<QuietMachine, Problem> {
    let default = QuietMachine::default();
    let below = raw.below.as_ref().map_or(Ok(default.below), share)?;
    Ok(QuietMachine { below, within: time(raw.within.as_ref(), default.within)? })
}

fn share(text: &Text<ShareText>) -> Result<f64, Problem> {
    let share = unit(text, units::chance)?;
    match (0.0..=1.0).contains(&share) {
        true => Ok(share),
        false => Err(impossible(format!("a share of {} cannot be", text.text))
            .at(text.span, "out of range")
            .help("a share lies between 0% and 100%")),
    }
}

fn pins(raw: &RawPins, judge: Judge<'_>) -> Result<Pins, Problem> {
    let cores = |text: &Option<Text<AnyText>>| match text {
        None => Ok(None),
        Some(text) => judged(judge, Word::Cores, &text.text, text.span).map(|()| Some(text.text.clone())),
    };
    Ok(Pins { system: cores(&raw.system)?, generator: cores(&raw.generator)? })
}

fn generator(raw: &RawGenerator) -> Result<Generator, Problem> {
    let shards = raw.shards.as_ref().map_or(Ok(1), |text| whole(text, "a number of threads", MOST_SHARDS))?;
    let kernel_netem = matches!(raw.netem, Some(NetemWord::Kernel));
    Ok(Generator { shards: shards as u16, realtime: raw.realtime, awake: raw.awake, kernel_netem })
}

fn quick(raw: &RawQuick, default: Quick) -> Result<Quick, Problem> {
    Ok(Quick {
        duration: above_zero(raw.duration.as_ref(), default.duration)?,
        warmup: time(raw.warmup.as_ref(), default.warmup)?,
        repeat: repetitions(raw.repeat.as_ref(), default.repeat)?,
    })
}

fn all_axes(raw: &RawAxes, judge: Judge<'_>) -> Result<Axes, Problem> {
    let mut axes = Axes::default();
    AXES.iter().try_for_each(|row| (row.read)(raw, &mut axes, judge))?;
    for (key, many) in &raw.set.0 {
        let values = read([many], name(judge, None))?;
        if values.is_empty() {
            return Err(nothing(key.span));
        }
        axes.set.push((key.value.clone(), values));
    }
    Ok(axes)
}
