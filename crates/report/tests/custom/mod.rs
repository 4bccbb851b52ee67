//! Reports of user-defined metrics, and their absence in reports of a run without any.

use pubmark_record::comparison::compare;
use pubmark_record::experiment::CellMetric;
use pubmark_record::record::{Reason, Record, VerdictStatus};
use pubmark_record::{sample, sample_experiment};
use pubmark_report::table::{Format, table};
use pubmark_report::{csv, html, markdown, terminal};

use crate::{PLAIN, fixtures};

/// A run with a metric in one of pubmark's units, one in another unit, and one without a value. One has the same name
/// as a figure of pubmark.
fn computed() -> Record {
    let mut record = fixtures::factory();
    record.custom = vec![
        sample::custom("lost", "ms", [0.5, 1.5]),
        sample::custom("energy", "mJ", [20.0, 20.0]),
        sample::custom("broken", "", [0.0, 0.0]),
    ];
    let broken = &mut record.custom[2];
    (broken.lower, broken.upper, broken.failure) = (None, None, Some("it printed <nothing>".to_owned()));
    record
}

#[test]
fn a_run_shows_values_and_why_there_is_none() {
    let record = computed();
    let text = terminal::summary(&record, &PLAIN);
    for words in ["lost 0.50–1.50 ms", "energy 20.0 mJ", "broken no value: it printed <nothing>"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let page = html::run(&record);
    for words in ["Metrics of your own", "0.50–1.50 ms", "20.0 mJ", "it printed &lt;nothing&gt;", "lost by part, in ms"]
    {
        assert!(page.contains(words), "{words}");
    }
    assert!(markdown::run(&record).contains("| energy | 20.0 mJ |"), "{}", markdown::run(&record));
    let file = csv::TABLES.iter().find(|table| table.file == "custom.csv").expect("a table of them");
    let text = (file.render)(&record);
    assert!(text.contains(",lost,hub,ms,0.5,1.5,,false\n"), "{text}");
    assert!(text.contains(",broken,,,,,it printed <nothing>,false\n"), "{text}");

    let none = fixtures::factory();
    assert!(!html::run(&none).contains("Metrics of your own") && !markdown::run(&none).contains("Metrics of your own"));
    assert!(!terminal::summary(&none, &PLAIN).contains("  custom"));
}

#[test]
fn values_of_a_part_of_the_messages_are_marked_and_not_compared() {
    let mut record = computed();
    record.custom.iter_mut().for_each(|metric| metric.partial = true);
    let marked = "20.0 mJ (partial: the message log lacks rows)";
    for text in [terminal::summary(&record, &PLAIN), html::run(&record), markdown::run(&record)] {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(marked), "{text}");
    }
    let file = csv::TABLES.iter().find(|table| table.file == "custom.csv").expect("a table of them");
    assert!((file.render)(&record).contains(",energy,,mJ,20,20,,true\n"), "{}", (file.render)(&record));
    let text = table(&[record, computed()], Format::Csv);
    let [_, first, second] = text.lines().collect::<Vec<_>>()[..] else { panic!("{text}") };
    assert!(first.ends_with(",,,") && second.ends_with(",500.0,20.0,"), "{text}");
    assert!(second.contains(",1500.0,20.0,,"), "{text}");
}

#[test]
fn runs_side_by_side_have_a_row_for_each_and_none_takes_the_place_of_a_figure() {
    let records = [computed(), fixtures::factory()];
    let compared = compare(&records).expect("one schedule");
    let lost: Vec<_> = compared.figures.iter().filter(|row| row.figure.name == "lost").collect();
    assert_eq!(lost.len(), 1, "pubmark's own");
    for text in [html::comparison(&compared), markdown::comparison(&compared), terminal::comparison(&compared, &PLAIN)]
    {
        assert!(text.contains("custom.lost") && text.contains("custom.energy (mJ)"), "{text}");
    }
    let text = table(&records, Format::Csv);
    let [head, first, second] = text.lines().collect::<Vec<_>>()[..] else { panic!("{text}") };
    assert!(head.contains(",custom_lost_us,custom_energy,custom_broken,"), "{head}");
    assert!(head.ends_with(",custom_lost_lower_us,custom_energy_lower,custom_broken_lower"), "{head}");
    assert!(first.contains(",1500.0,20.0,,") && first.ends_with(",500.0,20.0,"), "{text}");
    assert!(second.ends_with(",,,"), "{text}");
}

/// An invalid run's figures have the same sign in every report, and a metric below zero keeps its sign.
#[test]
fn a_figure_of_an_invalid_run_is_marked_everywhere_and_a_negative_one_is_not_0() {
    let mut records = [fixtures::factory(), fixtures::factory()];
    records[0].custom = vec![sample::custom("cooling", "K", [-3.0, 2.0])];
    let (text, hint, status) = (String::new(), String::new(), VerdictStatus::Invalid);
    records[1].verdict.reasons = vec![Reason { code: "V01".to_owned(), status, text, hint }];
    records[1].verdict.status = status;
    records[1].custom = vec![sample::custom("cooling", "K", [-2.0, -1.0])];
    let compared = compare(&records).expect("one schedule");
    let texts = [terminal::comparison(&compared, &PLAIN), markdown::comparison(&compared), html::comparison(&compared)];
    for text in &texts {
        assert!(text.contains("−3.00 to 2.00") && text.contains("−2.00 to −1.00"), "{text}");
        assert!(text.contains("✗ of an invalid run") || text.contains("✗: of an invalid run"), "{text}");
    }
    let [on_terminal, as_markdown, page] = &texts;
    assert!(on_terminal.contains("−2.00 to −1.00 ✗"), "{on_terminal}");
    assert!(as_markdown.contains("| ~~−2.00 to −1.00~~ ✗ |"), "{as_markdown}");
    assert!(page.contains("<td class=\"number struck\">−2.00 to −1.00 ✗</td>"), "{page}");
    let measured = compared.figures.iter().filter(|row| row.values[1].is_some()).count();
    assert_eq!(as_markdown.matches("~~ ✗").count(), measured + 1, "{as_markdown}");
    records[1].verdict.status = VerdictStatus::Valid;
    let compared = compare(&records).expect("one schedule");
    assert!(!terminal::comparison(&compared, &PLAIN).contains('✗') && !markdown::comparison(&compared).contains('✗'));
}

#[test]
fn a_mean_of_invalid_runs_alone_is_marked_in_every_table_of_an_experiment() {
    let mut record = sample_experiment::experiment();
    let plain = [terminal::experiment(&record, &PLAIN), markdown::experiment(&record)];
    assert!(plain.iter().all(|text| !text.contains('✗')), "{plain:?}");
    let first = &mut record.cells[0];
    first.runs.iter_mut().for_each(|run| run.verdict = VerdictStatus::Invalid);
    for figure in first.figures.iter_mut().filter(|figure| figure.figure == "latency p99") {
        figure.shown_only = true;
    }
    record.contests.clear();
    record.papers.clear();
    let (text, page) = (markdown::experiment(&record), html::experiment(&record));
    assert_eq!(text.matches("~~ ✗").count(), 1, "{text}");
    assert!(terminal::experiment(&record, &PLAIN).contains("✗ of an invalid run"));
    assert!(page.contains("number struck") && page.contains("✗ is of an invalid run"), "{page}");
    let struck = page.matches("<td class=\"number struck\" data-sort").count();
    assert!(struck >= record.cells[0].runs.len(), "a time of each invalid run: {struck}");
}

#[test]
fn an_experiment_has_a_table_of_them() {
    let mut record = sample_experiment::experiment();
    let first = &mut record.cells[0];
    let mut figure = first.figures.iter().find(|figure| figure.figure == "latency p50").cloned().expect("a latency");
    "jitter".clone_into(&mut figure.figure);
    first.custom = vec![CellMetric { unit: "ms".to_owned(), figure }];
    let runs = csv::runs(&record);
    let mut lines = runs.lines();
    let head = lines.next().expect("a head");
    assert!(head.ends_with(",custom_jitter_us,custom_jitter_lower_us,excluded"), "{head}");
    let with_values = lines.filter(|line| !line.ends_with(",,,")).count();
    assert_eq!(with_values, record.cells[0].runs.len(), "{runs}");
    assert!(csv::cells(&record).contains(",custom.jitter,us,"));
    for text in [html::experiment(&record), markdown::experiment(&record), terminal::experiment(&record, &PLAIN)] {
        assert!(text.contains("custom.jitter, ms"), "{text}");
    }
}
