#![allow(clippy::unwrap_used)]

use super::*;
use crate::check::subject::{of_experiment, of_run};
use crate::check::{Demands, judge};
use crate::experiment::{CellFailure, ExperimentRecord, FailureKind, LimitedValue};
use crate::links::{LinkDirection, LinkFigures, LinkGroup};
use crate::record::{Reason, Record, VerdictStatus};
use crate::threshold::Conditions;
use crate::{sample, sample_experiment};

/// Bounds of five runs around these.
fn five(lower_us: f64, upper_us: f64) -> Vec<[f64; 2]> {
    [1.0, 1.01, 0.99, 1.005, 0.995].map(|noise| [lower_us * noise, upper_us * noise]).to_vec()
}

/// An experiment of one cell with these bounds of p99.
fn experiment(p99s_us: &[[f64; 2]]) -> ExperimentRecord {
    let mut record = sample_experiment::experiment();
    let mut cell = record.cells.remove(1);
    let p99 = cell.figures.iter_mut().find(|figure| figure.figure == "latency p99").unwrap();
    p99.values = p99s_us.iter().map(|bounds| Some(bounds[1])).collect();
    p99.lower.as_mut().unwrap().values = p99s_us.iter().map(|bounds| Some(bounds[0])).collect();
    record.cells = vec![cell];
    record
}

fn judged(before: &Subject, after: &Subject, condition: &str) -> Row {
    let demands = Demands { fail_on: Some(Conditions::parse(condition).unwrap()), ..Demands::default() };
    let rows = judge(after, &demands, Some(before)).unwrap().rows;
    rows.into_iter().find(|row| row.kind == Kind::Regression).unwrap()
}

/// Judges the change of p99 between two experiments.
fn of_p99(before: &[[f64; 2]], after: &[[f64; 2]], condition: &str) -> Row {
    judged(&of_experiment(experiment(before)), &of_experiment(experiment(after)), condition)
}

#[test]
fn a_change_that_the_generator_may_have_made_is_undecided() {
    let row = of_p99(&five(1_000.0, 1_020.0), &five(1_000.0, 1_300.0), "p99>+10%");
    assert_eq!((row.outcome, row.p), (Outcome::Undecided, Some(1.0)), "{row:?}");
    assert!(row.detail.starts_with("+27.5 %") && row.detail.contains("nearest bounds −2.0 %"), "{row:?}");
    assert!(row.detail.contains("`--realtime`"), "{row:?}");
    let row = of_p99(&five(1_000.0, 1_020.0), &five(1_060.0, 1_300.0), "p99>+10%");
    assert_eq!(row.outcome, Outcome::Undecided, "slower for certain, and perhaps by less than the limit: {row:?}");
    let row = of_p99(&five(1_000.0, 1_300.0), &five(1_000.0, 1_020.0), "p99<-5%");
    assert_eq!(row.outcome, Outcome::Undecided, "{row:?}");
}

#[test]
fn a_regression_that_wide_bounds_of_the_baseline_hide_does_not_pass() {
    // The system alone may have become twice as slow, while pubmark delayed the baseline more.
    for after in [five(1_010.0, 1_310.0), five(1_010.0, 1_100.0)] {
        let row = of_p99(&five(500.0, 1_300.0), &after, "p99>+10%");
        assert_eq!((row.outcome, row.p), (Outcome::Undecided, Some(1.0)), "{row:?}");
        assert!(
            row.detail.contains("), undecided: by the lower bounds +102.0 % (500 µs → 1.01 ms); to decide it, "),
            "{row:?}"
        );
    }
    let row = of_p99(&five(1_000.0, 1_310.0), &five(500.0, 1_300.0), "p99>+10%");
    assert_eq!(row.outcome, Outcome::Passed, "faster by the lower bounds: {row:?}");
    let row = of_p99(&five(1_000.0, 1_310.0), &five(500.0, 1_300.0), "p99<-5%");
    assert_eq!(row.outcome, Outcome::Undecided, "{row:?}");
    let row = of_p99(&five(500.0, 1_300.0), &five(540.0, 1_310.0), "p99>+10%");
    assert_eq!(row.outcome, Outcome::Passed, "less than the limit by either bound: {row:?}");
}

#[test]
fn lower_bounds_show_a_regression_only_beyond_the_noise() {
    let with = |lower_us: [f64; 5], upper_us: [f64; 5]| -> Vec<[f64; 2]> {
        lower_us.into_iter().zip(upper_us).map(|(lower, upper)| [lower, upper]).collect()
    };
    let (noisy, steady) = ([300.0, 900.0, 500.0, 800.0, 400.0], [200.0, 202.0, 198.0, 201.0, 199.0]);
    let more = |values: [f64; 5]| values.map(|value| 1.2 * value);
    let row = of_p99(&with(noisy, [2_000.0; 5]), &with(more(noisy), [2_000.0; 5]), "p99>+10%");
    assert_eq!(row.outcome, Outcome::Passed, "{row:?}");
    // The upper bounds show nothing because of their noise, and the lower ones have none.
    let row = of_p99(&with(steady, noisy), &with(more(steady), more(noisy)), "p99>+10%");
    assert_eq!(row.outcome, Outcome::Undecided, "{row:?}");
    assert!(row.detail.contains("undecided: by the lower bounds +20.0 % (200 µs → 240 µs)"), "{row:?}");
}

#[test]
fn a_change_at_the_nearest_bounds_is_a_regression() {
    let row = of_p99(&five(1_000.0, 1_020.0), &five(1_250.0, 1_300.0), "p99>+10%");
    assert_eq!(row.outcome, Outcome::Failed, "{row:?}");
    assert!(row.detail.ends_with("p < 0.001") && (row.change.unwrap() - 0.2745).abs() < 1e-3, "{row:?}");
    let row = of_p99(&five(1_250.0, 1_300.0), &five(1_000.0, 1_020.0), "p99<-5%");
    assert_eq!(row.outcome, Outcome::Failed, "{row:?}");
    let row = of_p99(&five(1_000.0, 1_020.0), &five(1_000.0, 1_030.0), "p99>+10%");
    assert_eq!(row.outcome, Outcome::Passed, "{row:?}");
}

#[test]
fn noise_is_no_regression_however_wide_the_bounds() {
    let noisy = [500.0, 2_000.0, 800.0, 1_400.0, 700.0].map(|upper_us| [0.5 * upper_us, upper_us]);
    let row = of_p99(&five(700.0, 800.0), &noisy, "p99>+10%");
    assert_eq!(row.outcome, Outcome::Passed, "{row:?}");
    assert!(row.detail.contains(", not shown: a difference as large would occur") && row.p.unwrap() < 1.0, "{row:?}");
}

#[test]
fn without_lower_bounds_above_nothing_no_change_is_certain() {
    let row = of_p99(&five(0.0, 1_000.0), &five(0.0, 1_300.0), "p99>+10%");
    assert_eq!(row.outcome, Outcome::Undecided, "{row:?}");
    let row = of_p99(&five(0.0, 1_000.0), &five(1_250.0, 1_300.0), "p99>+10%");
    assert_eq!(row.outcome, Outcome::Failed, "{row:?}");
}

#[test]
fn a_figure_without_bounds_is_compared_as_it_is() {
    let of_rate = |rate: f64| {
        let mut record = experiment(&five(1_000.0, 1_020.0));
        let mut figure = record.cells[0].figures[0].clone();
        figure.figure = "delivered rate".to_owned();
        figure.values = five(rate, rate).iter().map(|bounds| Some(bounds[1])).collect();
        figure.lower = None;
        record.cells[0].figures.push(figure);
        of_experiment(record)
    };
    let outcome = |before, after| judged(&of_rate(before), &of_rate(after), "rate<-5%").outcome;
    assert_eq!(outcome(1_000.0, 900.0), Outcome::Failed);
    assert_eq!(outcome(1_000.0, 970.0), Outcome::Passed);
    assert_eq!(outcome(1_000.0, 1_100.0), Outcome::Passed);
}

#[test]
fn a_system_that_was_held_up_has_no_regression_of_times() {
    let slower = |code: &str| {
        let mut record = sample::record();
        let total = record.latency.total.as_mut().unwrap();
        for summary in [&mut total.upper, total.lower.as_mut().unwrap()] {
            summary.p99 = summary.p99.map(|p99| 2.0 * p99);
        }
        let (text, hint) = (String::new(), String::new());
        record.verdict.reasons = vec![Reason { code: code.to_owned(), status: VerdictStatus::Suspect, text, hint }];
        of_run(&record)
    };
    let before = of_run(&sample::record());
    let row = judged(&before, &slower("V28"), "p99>+10%");
    assert_eq!(row.outcome, Outcome::Undecided, "{row:?}");
    assert!(row.detail.contains("CPU time"), "{row:?}");
    assert_eq!(judged(&before, &slower("V12"), "p99>+10%").outcome, Outcome::Failed);
    let row = judged(&slower("V28"), &before, "p99>+10%");
    assert_eq!(row.outcome, Outcome::Undecided, "the baseline may have been faster: {row:?}");
    assert!(row.detail.contains("by the lower bounds from nothing") && row.detail.contains("CPU time"), "{row:?}");
    assert_eq!(judged(&slower("V12"), &before, "p99>+10%").outcome, Outcome::Passed);
}

#[test]
fn a_flood_of_another_load_is_no_baseline() {
    let conditions = || Demands { fail_on: Some(Conditions::parse("p99>+10%").unwrap()), ..Demands::default() };
    let refused = |before: &Subject, after: &Subject| {
        judge(after, &conditions(), Some(before)).err().map(|error| error.to_string())
    };
    let run = |change: fn(&mut Record)| {
        let mut record = sample::record();
        record.workload.schedule_hash = NO_HASH.to_owned();
        change(&mut record);
        of_run(&record)
    };
    assert_eq!(refused(&run(|_| ()), &run(|_| ())), None);
    let message = refused(&run(|_| ()), &run(|record| record.workload.name = "pairs".to_owned())).unwrap();
    assert!(message.contains("workload smart-home, here pairs"), "{message}");
    assert!(refused(&run(|_| ()), &run(|record| record.workload.devices = 7)).is_some());
    let cell = |payload: &str| {
        let mut record = experiment(&five(1_000.0, 1_020.0));
        record.cells[0].schedule_hash = Some(NO_HASH.to_owned());
        record.cells[0].settings.insert("payload".to_owned(), payload.to_owned());
        of_experiment(record)
    };
    assert_eq!(refused(&cell("16B"), &cell("16B")), None);
    let message = refused(&cell("16B"), &cell("64KB")).unwrap();
    assert!(message.contains("payload 16B, here 64KB"), "{message}");
}

#[test]
fn times_that_a_verdict_excludes_are_no_baseline() {
    let mut late = sample::record();
    late.verdict.status = VerdictStatus::Invalid;
    let (text, hint) = (String::new(), String::new());
    late.verdict.reasons = vec![Reason { code: "V01".to_owned(), status: VerdictStatus::Invalid, text, hint }];
    let (late, fine) = (of_run(&late), of_run(&sample::record()));
    let row = judged(&late, &fine, "p99>+10%");
    assert_eq!(row.outcome, Outcome::Undecided, "{row:?}");
    assert_eq!(row.detail, "undecided: the verdict of the baseline excludes it");
    let notes = judge(&fine, &Demands::default(), Some(&late)).unwrap().notes;
    assert!(
        notes.contains(&"runs of the baseline: 1 invalid of 1; a change may come from that".to_owned()),
        "{notes:?}"
    );
    // Of an experiment, the invalid repetition alone is left out.
    let mut before = experiment(&[five(1_000.0, 1_020.0), vec![[40_000.0, 40_100.0]]].concat());
    let run = before.cells[0].runs[0].clone();
    before.cells[0].runs = vec![run.clone(); 6];
    let after = of_experiment(experiment(&five(2_000.0, 2_020.0)));
    assert_ne!(judged(&of_experiment(before.clone()), &after, "p99>+10%").outcome, Outcome::Failed, "as 40 ms hide it");
    before.cells[0].runs[5].verdict = VerdictStatus::Invalid;
    assert_eq!(judged(&of_experiment(before.clone()), &after, "p99>+10%").outcome, Outcome::Failed);
    before.cells[0].runs[..5].iter_mut().skip(2).for_each(|run| run.verdict = VerdictStatus::Invalid);
    let row = judged(&of_experiment(before), &after, "p99>+10%");
    assert_eq!(row.outcome, Outcome::Undecided, "two runs have no noise: {row:?}");
    assert_eq!(row.detail, "undecided: verdicts exclude it in 4 of 6 runs of the baseline");
}

#[test]
fn the_rate_of_a_flood_that_was_held_up_is_no_change() {
    let mut whole = sample::record();
    whole.settings.flood = true;
    let mut half = whole.clone();
    half.throughput.delivered_per_s *= 0.5;
    let row = |before: &Record, after: &Record| judged(&of_run(before), &of_run(after), "rate<-5%");
    assert_eq!(row(&whole, &half).outcome, Outcome::Failed);
    let (text, hint) = (String::new(), String::new());
    half.verdict.reasons = vec![Reason { code: "V04".to_owned(), status: VerdictStatus::Suspect, text, hint }];
    // The baseline could have been faster as well.
    for (before, after, whose) in [(&whole, &half, "the rate;"), (&half, &whole, "the rate of the baseline;")] {
        let row = row(before, after);
        assert_eq!(row.outcome, Outcome::Undecided, "{row:?}");
        assert!(row.detail.contains("CPU time") && row.detail.contains(whose), "{row:?}");
        assert!(!row.detail.contains("exclude"), "a suspect verdict excludes nothing: {row:?}");
    }
}

#[test]
fn rates_that_were_held_up_leave_too_few_runs_and_the_remedy_is_named() {
    let rates = |limited: usize, excluded: usize| {
        let mut record = experiment(&five(1_000.0, 1_020.0));
        let mut figure = record.cells[0].figures[0].clone();
        figure.figure = "delivered rate".to_owned();
        figure.values = vec![Some(1_000.0); 5];
        figure.lower = None;
        let value = LimitedValue { lower: 1_000.0, upper: 1_000.0, few_samples: false, held_up: true, partial: false };
        figure.limited = (0..5).map(|run| (run < limited).then_some(value)).collect();
        figure.excluded = (1..=5).rev().take(excluded).collect();
        record.cells[0].figures.push(figure);
        of_experiment(record)
    };
    let row = judged(&rates(3, 0), &rates(0, 0), "rate<-5%");
    assert_eq!(row.outcome, Outcome::Undecided, "{row:?}");
    let expected = "undecided: pubmark or the machine may have limited the rate in 3 of 5 runs of the baseline; to decide it, run \
                    where the system and pubmark get the CPU time that they need (see the verdict)";
    assert_eq!(row.detail, expected);
    let row = judged(&rates(0, 0), &rates(2, 1), "rate<-5%");
    let expected = "undecided: verdicts exclude it in 1 of 5 runs and pubmark or the machine may have limited the rate in 2 of 5 runs; ";
    assert!(row.outcome == Outcome::Undecided && row.detail.starts_with(expected), "{row:?}");
    assert_eq!(judged(&rates(2, 0), &rates(0, 0), "rate<-5%").outcome, Outcome::Passed, "three are enough");
}

#[test]
fn runs_of_a_flood_that_were_left_out_for_pubmark_may_hide_a_regression() {
    let floods = |name: &str, value: f64, kind: Option<FailureKind>| {
        let mut record = experiment(&five(1_000.0, 1_020.0));
        let cell = &mut record.cells[0];
        cell.schedule_hash = Some(NO_HASH.to_owned());
        cell.figures.retain(|figure| figure.figure != name);
        let mut figure = cell.figures[0].clone();
        (figure.figure, figure.values, figure.lower) = (name.to_owned(), vec![Some(value); 5], None);
        cell.figures.push(figure);
        let failure = |kind| {
            let (text, folder) = ("V04: busy".to_owned(), Some("runs/3".to_owned()));
            CellFailure { repetition: 3, kind, text, folder }
        };
        cell.failures = kind.into_iter().map(failure).collect();
        of_experiment(record)
    };
    let limited = Some(FailureKind::GeneratorLimited);
    let rate = |value, kind| floods("delivered rate", value, kind);
    let row = |before: Subject, after: Subject| judged(&before, &after, "rate<-5%");
    assert_eq!(row(rate(1_000.0, Some(FailureKind::Invalid)), rate(1_000.0, None)).outcome, Outcome::Passed);
    let found = row(rate(1_000.0, limited), rate(1_000.0, None));
    assert_eq!(found.outcome, Outcome::Undecided, "the faster runs of the baseline were left out: {found:?}");
    let told = ", undecided: pubmark or the machine may have limited the rate in runs of the baseline that were left out; to decide it, run \
                where the system and pubmark get the CPU time that they need (see the verdict)";
    assert!(found.detail.ends_with(told), "{found:?}");
    assert_eq!(row(rate(1_000.0, limited), rate(500.0, None)).outcome, Outcome::Failed, "by more still");
    assert_eq!(row(rate(1_000.0, None), rate(1_000.0, limited)).outcome, Outcome::Passed, "or better");
    let found = row(rate(1_000.0, None), rate(500.0, limited));
    assert!(found.outcome == Outcome::Undecided && found.detail.contains("the rate in runs that were"), "{found:?}");
    // The same of what was delivered, which is everything at best.
    let outcome = |before: f64, after: f64| {
        judged(&floods("delivered", before, limited), &floods("delivered", after, None), "loss>+10%").outcome
    };
    let outcomes = [outcome(0.9, 0.9), outcome(1.0, 1.0), outcome(0.9, 1.0)];
    assert_eq!(outcomes, [Outcome::Undecided, Outcome::Passed, Outcome::Passed]);
}

#[test]
fn a_change_is_that_of_what_was_measured_whichever_bound_it_is() {
    // Of 2,000 messages that are missing, pubmark may have dropped 500 on arrival: 80 %, and 85 % at best.
    let mut lossy = sample::record();
    let delivery = &mut lossy.delivery;
    (delivery.messages.delivered, delivery.messages.lost) = (8_000, 2_000);
    delivery.own_drops.library_datagrams = Some(500);
    let change = |condition| judged(&of_run(&sample::record()), &of_run(&lossy), condition);
    let row = change("delivered<-10%");
    assert_eq!((row.outcome, row.baseline, row.value), (Outcome::Failed, Some(1.0), Some(0.8)), "{row:?}");
    assert!(row.detail.starts_with("−20.0 % (100 % → 80 %)"), "{row:?}");
    let row = change("delivered<-17%");
    assert_eq!((row.outcome, row.value), (Outcome::Undecided, Some(0.8)), "{row:?}");
    assert!(row.detail.contains("undecided: by the nearest bounds −15.0 %; "), "{row:?}");
    // What is missing is the rest of it, and its upper bound was measured.
    let row = change("loss>+10%");
    assert_eq!(
        (row.outcome, row.value.map(|lost| (lost * 1e6).round())),
        (Outcome::Failed, Some(200_000.0)),
        "{row:?}"
    );
    assert!(row.detail.contains("(0 % → 20 %)"), "{row:?}");
    // A change that what was measured does not show.
    let mut lost = lossy.clone();
    lost.delivery.own_drops.library_datagrams = None;
    let row = judged(&of_run(&lossy), &of_run(&lost), "delivered<-5%");
    assert_eq!((row.outcome, row.change), (Outcome::Undecided, Some(0.0)), "{row:?}");
    let expected = "undecided: by the upper bounds −5.9 % (85 % → 80 %); to decide it, make pubmark more punctual";
    assert!(row.detail.contains(expected), "{row:?}");
    assert_eq!(judged(&of_run(&lossy), &of_run(&lossy), "delivered<-5%").outcome, Outcome::Passed);
}

#[test]
fn cells_are_matched_by_the_values_of_their_axes_and_not_by_their_ids() {
    let of_axis = |axis: &str, p99_us: [f64; 2]| {
        let mut record = experiment(&[]);
        record.cells.clear();
        for (value, p99_us) in ["1", "2"].into_iter().zip(p99_us) {
            let mut cell = experiment(&five(p99_us, p99_us)).cells.remove(0);
            cell.settings = [("system", "mosquitto"), (axis, value)].map(|(a, b)| (a.to_owned(), b.to_owned())).into();
            (cell.id, cell.label, cell.failures) = (format!("mosquitto_{value}"), value.to_owned(), vec![]);
            record.cells.push(cell);
        }
        record
    };
    let before = of_axis("qos", [1_000.0, 2_000.0]);
    let mut after = before.clone();
    after.cells.iter_mut().for_each(|cell| cell.id = cell.id.chars().rev().collect());
    let row = judged(&of_experiment(before.clone()), &of_experiment(after), "p99>+10%");
    assert_eq!((row.outcome, row.change), (Outcome::Passed, Some(0.0)), "the axes in another order");
    let row = judged(&of_experiment(before), &of_experiment(of_axis("scale", [1_000.0, 2_000.0])), "p99>+10%");
    assert_eq!(row.outcome, Outcome::NotMeasured, "{row:?}");
}

#[test]
fn a_metric_of_ones_own_is_compared_in_one_unit() {
    let run = |unit: &str, value: f64| {
        let mut record = sample::record();
        record.custom = vec![sample::custom("jitter", unit, [value, value])];
        of_run(&record)
    };
    let row = judged(&run("s", 0.002), &run("ms", 2.1), "custom.jitter>+10%");
    assert_eq!(row.outcome, Outcome::Passed, "5 % and not 1,050 times: {row:?}");
    assert_eq!(judged(&run("s", 0.001), &run("ms", 2.1), "custom.jitter>+10%").outcome, Outcome::Failed);
    for other in ["MB", ""] {
        let row = judged(&run("ms", 2.0), &run(other, 2.1), "custom.jitter>+1%");
        assert_eq!((row.outcome, row.change), (Outcome::NotMeasured, None), "{other}: {row:?}");
    }
    assert_eq!(judged(&run("", 2.0), &run("", 2.1), "custom.jitter>+10%").outcome, Outcome::Passed);
}

#[test]
fn links_that_the_baseline_did_not_have_are_named() {
    let mut linked = sample::record();
    let way = || LinkDirection { requested: vec!["40 ms".to_owned()], ..LinkDirection::default() };
    let group = LinkGroup {
        group: "sensors".to_owned(),
        link: "lte".to_owned(),
        up: way(),
        down: way(),
        ..LinkGroup::default()
    };
    linked.conditions.links = Some(LinkFigures { groups: vec![group], ..LinkFigures::default() });
    let (before, after) = (of_run(&sample::record()), of_run(&linked));
    let note = other_settings(&after, &before).unwrap();
    assert!(note.ends_with("links: none, here lte (40 ms) for sensors"), "{note}");
    assert_eq!(other_settings(&after, &after), None);
}

#[test]
fn settings_of_groups_are_named_unless_the_baseline_is_too_old_to_have_them() {
    let with = |window: Option<&str>| {
        let mut record = sample::record();
        let settings = window.map(|window| ("in-flight window".to_owned(), window.to_owned()));
        record.workload.group_settings = settings.into_iter().collect();
        of_run(&record)
    };
    let note = other_settings(&with(Some("1")), &with(Some("20"))).unwrap();
    assert!(note.ends_with("in-flight window: 20, here 1"), "{note}");
    assert_eq!(other_settings(&with(Some("1")), &with(None)), None);
}
