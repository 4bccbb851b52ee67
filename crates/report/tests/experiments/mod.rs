//! Reports of experiments and capacity searches.

use pubmark_record::experiment::Grade;
use pubmark_record::record::VerdictStatus;
use pubmark_record::sample_experiment::{self, Grid};
use pubmark_report::experiment::{View, headline, ratio};
use pubmark_report::terminal::{self, COLUMNS, TerminalOptions};
use pubmark_report::{csv, exports, html, markdown};

use crate::{PLAIN, fixtures, markup, without_colours};

/// All pages of experiments and searches, with their names.
fn pages() -> Vec<(&'static str, String)> {
    let experiments = fixtures::experiments().into_iter().map(|(name, record)| (name, html::experiment(&record)));
    let searches = fixtures::searches().into_iter().map(|(name, record)| (name, html::capacity(&record)));
    experiments.chain(searches).collect()
}

/// All texts for a terminal, with their names.
fn texts(options: &TerminalOptions) -> Vec<(&'static str, String)> {
    let experiments =
        fixtures::experiments().into_iter().map(|(name, record)| (name, terminal::experiment(&record, options)));
    let searches = fixtures::searches().into_iter().map(|(name, record)| (name, terminal::capacity(&record, options)));
    experiments.chain(searches).collect()
}

#[test]
fn terminal_texts_look_like_this() {
    // The grids of 20 and 60 cells add nothing to the others.
    for (name, text) in texts(&PLAIN).into_iter().filter(|(name, _)| !["loads", "sixty"].contains(name)) {
        insta::assert_snapshot!(format!("terminal_{name}"), text);
    }
}

#[test]
fn a_search_shows_both_bounds_where_they_are_known() {
    let mut record = sample_experiment::capacity();
    for trial in &mut record.trials {
        let mut lower = trial.latency.upper;
        for bound in [&mut lower.p50_us, &mut lower.p99_us, &mut lower.max_us] {
            *bound = bound.map(|us| 0.8 * us);
        }
        trial.latency.lower = Some(lower);
    }
    let text = terminal::capacity(&record, &PLAIN);
    let interval = "0.611–0.765";
    assert!(text.contains(interval) && text.lines().all(|line| line.chars().count() <= COLUMNS), "{text}");
    assert!([html::capacity(&record), markdown::capacity(&record)].iter().all(|page| page.contains(interval)));
    let table = csv::trials(&record);
    let rows: Vec<Vec<&str>> = table.lines().take(2).map(|line| line.split(',').collect()).collect();
    let column = rows[0].iter().position(|name| *name == "p99_lower_us").unwrap();
    assert!((rows[1][column].parse::<f64>().unwrap() - 611.0).abs() < 1.0, "{table}");
}

#[test]
fn terminal_texts_fit_80_columns() {
    for (name, text) in texts(&PLAIN) {
        let widest = text.lines().max_by_key(|line| line.chars().count()).unwrap();
        assert!(widest.chars().count() <= COLUMNS, "{name}: {widest}");
        assert!(text.lines().all(|line| line == line.trim_end()), "{name}: spaces at a line's end");
    }
}

#[test]
fn colours_of_experiments_add_to_the_words() {
    let coloured = texts(&TerminalOptions { colour: true, ..PLAIN });
    for ((name, coloured), (_, plain)) in coloured.iter().zip(texts(&PLAIN)) {
        assert!(coloured.contains("\u{1b}["), "{name}");
        assert_eq!(without_colours(coloured), plain, "{name}");
    }
}

#[test]
fn markdown_of_experiments_looks_like_this() {
    insta::assert_snapshot!("markdown_experiment", markdown::experiment(&sample_experiment::experiment()));
    insta::assert_snapshot!("markdown_capacity", markdown::capacity(&sample_experiment::capacity()));
}

#[test]
fn pages_of_experiments_are_well_formed_and_load_nothing() {
    for (name, page) in pages() {
        markup::check(&page).unwrap_or_else(|error| panic!("{name}: {error}"));
        for forbidden in ["http://", "https://", "src=", "@import", "url(", "NaN", "inf\"", "<b>address"] {
            assert!(!page.contains(forbidden), "{name} contains {forbidden}");
        }
        for svg in page.split("<svg ").skip(1).map(|rest| rest.split('>').next().unwrap()) {
            assert!(svg.contains("aria-hidden") || svg.contains("role=\"img\" aria-label=\""), "{name}: {svg}");
        }
        let mut ids: Vec<&str> = page.split(" id=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
        let count = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), count, "{name}: an id stands twice");
    }
}

#[test]
fn a_page_of_12_cells_and_5_runs_each_is_small_and_60_cells_can_be_shown() {
    let size = |grid: &Grid| html::experiment(&sample_experiment::experiment_over(grid)).len();
    let twelve = size(&Grid { systems: 12, ..Grid::default() });
    assert!(twelve <= 600_000, "{twelve} bytes");
    let sixty = fixtures::experiments().into_iter().find(|(name, _)| *name == "sixty").unwrap().1;
    assert_eq!(sixty.cells.len(), 60);
    let page = html::experiment(&sixty);
    assert!(page.len() <= 1_000_000, "{} bytes", page.len());
}

#[test]
fn a_failed_cell_says_why_and_holds_no_number() {
    let record = sample_experiment::experiment();
    let page = html::experiment(&record);
    let row = page.split("<tr class=\"failed\">").nth(1).unwrap().split("</tr>").next().unwrap();
    assert!(row.contains("not offered") && row.contains("grants at-least-once at most"), "{row}");
    let why = row.split("class=\"why\"").nth(1).unwrap().split("</td>").next().unwrap();
    assert!(!why.split('>').skip(1).collect::<String>().contains(|letter: char| letter.is_ascii_digit()), "{why}");
    let text = terminal::experiment(&record, &PLAIN);
    let line = text.lines().find(|line| line.contains("not offered")).unwrap();
    assert!(line.ends_with("0/5"), "{line}");
}

/// One line for each of thirty cells would move the table off the screen.
#[test]
fn many_suspect_cells_share_a_line() {
    let lines = |cells: usize| {
        let mut record = fixtures::experiments().into_iter().find(|(name, _)| *name == "sixty").unwrap().1;
        record.cells.iter_mut().take(cells).for_each(|cell| cell.runs[0].verdict = VerdictStatus::Suspect);
        let text = terminal::experiment(&record, &PLAIN);
        (text.matches("suspect: ").count(), text)
    };
    assert_eq!(lines(6).0, 6);
    let (count, text) = lines(30);
    assert_eq!(count, 1, "{text}");
    assert!(text.contains("suspect: runs of 30 cells: ") && text.contains("24 more"), "{text}");
}

#[test]
fn a_best_value_is_marked_only_where_a_contest_has_a_winner() {
    let record = sample_experiment::experiment();
    let winners = record.contests.iter().filter(|contest| contest.winner.is_some()).count();
    assert!(winners > 0 && winners < record.contests.len());
    let page = html::experiment(&record);
    let table = page.split("<table class=\"cells\">").nth(1).unwrap().split("</table>").next().unwrap();
    assert_eq!(table.matches('★').count(), winners);
    let none = html::experiment(&sample_experiment::no_winner());
    assert!(!none.contains("class=\"number best\""));
    assert!(none.contains("<h2>No winner"));
    let text = terminal::experiment(&sample_experiment::no_winner(), &PLAIN);
    assert!(!text.contains('*'), "{text}");
}

#[test]
fn the_headline_names_the_winner_or_says_that_there_is_none() {
    let say = |record| headline(&View::of(&record));
    assert_eq!(say(sample_experiment::experiment_over(&Grid::default())), "alphamq is best by CPU a million, memory");
    assert_eq!(say(sample_experiment::no_winner()), "No winner: differences within the noise");
    assert_eq!(say(sample_experiment::all_failed()), "No figures: every cell failed");
    let mut few = sample_experiment::no_winner();
    for duel in few.contests.iter_mut().flat_map(|contest| &mut contest.duels) {
        duel.p = None;
        duel.p_adjusted = None;
    }
    assert_eq!(say(few), "No winner: too few repetitions to tell differences from noise");
    let mut likely = sample_experiment::experiment_over(&Grid::default());
    likely.contests.retain(|contest| contest.winner.is_none());
    assert_eq!(say(likely), "No winner proven; alphamq is likely best by p99");
    let mut untested = sample_experiment::experiment_over(&Grid::default());
    for contest in &mut untested.contests {
        contest.winner = None;
        contest.duels.iter_mut().for_each(|duel| (duel.is_significant, duel.grade) = (true, Some(Grade::Proven)));
        let last = contest.duels.last_mut().unwrap();
        (last.p, last.p_adjusted, last.is_significant, last.grade) = (None, None, false, Some(Grade::NotShown));
    }
    assert!(View::of(&untested).conclusions().iter().all(|found| found.text.contains("too few repetitions of ")));
    assert_eq!(say(untested), "No winner: too few runs of some can be counted to tell");
    let mut survivors = sample_experiment::experiment_over(&Grid { systems: 2, ..Grid::default() });
    survivors.contests.retain(|contest| contest.figure.starts_with("latency"));
    for contest in &mut survivors.contests {
        contest.winner = None;
        let lossy = &mut contest.duels[0];
        (lossy.survivors, lossy.is_significant, lossy.grade) = (Some([0.9, 1.0]), false, Some(Grade::NotShown));
    }
    let why = ": the lower latencies are those of fewer messages";
    let conclusions = View::of(&survivors).conclusions();
    assert!(conclusions.len() == 2 && conclusions.iter().all(|found| found.text.ends_with(why)), "{conclusions:?}");
    assert_eq!(say(survivors), "No winner: the lower latencies are those of fewer messages");
    let mut alone = sample_experiment::experiment_over(&Grid { systems: 1, ..Grid::default() });
    alone.contests.clear();
    assert_eq!(say(alone), "Nothing to compare: one cell has figures");
}

#[test]
fn a_conclusion_names_the_next_the_ratio_its_interval_and_how_sure_it_is() {
    let record = sample_experiment::experiment_over(&Grid::default());
    let view = View::of(&record);
    let text = |figure: &str| view.conclusions().into_iter().find(|found| found.figure == figure).unwrap().text;
    let interval = |figure: &str| {
        let contest = record.contests.iter().find(|contest| contest.figure == figure).unwrap();
        contest.duels[0].interval.map(|(low, high)| format!("({}–{})", ratio(low), ratio(high))).unwrap()
    };
    let expected = |figure: &str, start: &str, end: &str| format!("{start} {}: {end}", interval(figure));
    for (figure, start, end) in [
        (
            "system CPU a million",
            "alphamq has the lowest CPU time a million messages, 21.6 s, 1.29 × less than gammamq",
            "proven",
        ),
        ("latency p99", "alphamq has the lowest p99, 0.484–0.511 ms, 1.10 × less than gammamq", "likely"),
        (
            "latency p50",
            "no difference shown in p50 between alphamq and gammamq: 1.01 ×",
            "the bounds of what was measured overlap",
        ),
    ] {
        assert_eq!(text(figure), expected(figure, start, end));
    }
}

/// A printed grade and the printed interval beside it never contradict each other.
#[test]
fn no_printed_grade_contradicts_its_printed_interval() {
    for (name, record) in fixtures::experiments() {
        for duel in record.contests.iter().flat_map(|contest| &contest.duels).filter(|duel| duel.is_ratio) {
            let Some((low, high)) = duel.interval else { continue };
            if duel.grade() > Grade::NotShown {
                assert!(!(ratio(low) == "1.00" || ratio(high) == "1.00"), "{name}: {duel:?}");
                assert!(low > 1.0 || high < 1.0, "{name}: {duel:?}");
            }
        }
    }
}

#[test]
fn a_difference_of_shares_is_in_percentage_points_with_a_sign() {
    let mut record = sample_experiment::experiment_over(&Grid { systems: 2, ..Grid::default() });
    let contest = record.contests.iter_mut().find(|contest| contest.figure == "delivered").unwrap();
    contest.winner = contest.ranking.first().cloned();
    contest.duels[0].difference = -0.09;
    contest.duels[0].interval = Some((-0.095, -0.085));
    contest.duels[0].grade = Some(Grade::Proven);
    let view = View::of(&record);
    let text = &view.conclusions()[0].text;
    assert!(text.ends_with("9.00 points more than betamq (8.50 points to 9.50 points): proven"), "{text}");
}

#[test]
fn every_cell_of_a_grid_is_a_row_and_a_system_has_one_colour() {
    let sixty = fixtures::experiments().into_iter().find(|(name, _)| *name == "sixty").unwrap().1;
    let view = View::of(&sixty);
    assert_eq!((view.groups.len(), view.members().count()), (12, 60));
    for member in view.members() {
        let first = view.groups[0].members.iter().find(|other| other.name == member.name).unwrap();
        assert_eq!(first.style, member.style);
    }
    let page = html::experiment(&sixty);
    assert!(page.contains("Who wins where"));
    assert!(
        sixty.cells.iter().flat_map(|cell| &cell.runs).all(|run| page.contains(&format!("{}/report.html", run.folder)))
    );
}

#[test]
fn a_capacity_s_answer_stands_first_and_its_marks_say_how_each_trial_came_out() {
    let record = sample_experiment::capacity();
    let page = html::capacity(&record);
    let (answer, chart) =
        (page.find("carries 11,500 messages/s of smart-home").unwrap(), page.find("<figure").unwrap());
    assert!(answer < chart);
    assert!(page.contains("objective: p99&lt;50ms"));
    let wide = page.split("<svg class=\"wide\"").nth(1).unwrap().split("</svg>").next().unwrap();
    let marks = |class: &str| wide.matches(&format!("<path class=\"mark {class}\"")).count();
    // Marks of p50 and p99 of each trial.
    assert_eq!((marks("held"), marks("missed"), marks("limited")), (14, 8, 0));
    let limited = html::capacity(&sample_experiment::generator_limited());
    assert!(limited.contains("Carries at least 4,000 messages/s") && limited.contains("<path class=\"mark limited\""));
}

#[test]
fn a_trial_that_did_not_measure_an_objective_is_called_so_everywhere() {
    let mut record = sample_experiment::generator_limited();
    for trial in record.trials.iter_mut().filter(|trial| trial.factor == 8.0) {
        (trial.verdict, trial.code) = (Some(VerdictStatus::Valid), None);
        trial.not_measured = Some("backpressure_p99<1ms".to_owned());
        trial.reason = Some("backpressure_p99 was not measured: longer trials".to_owned());
    }
    let limiting = record.limiting_trial().unwrap();
    let line = terminal::trial_line(4, limiting);
    assert!(line.contains("8,000 msg/s  not measured: backpressure_p99 was"), "{line}");
    let page = html::capacity(&record);
    assert!(page.contains("8,000/s: not measured"), "the chart");
    // The legend of the page has every word.
    let tables: String = page.split("<table").skip(1).filter_map(|rest| rest.split("</table>").next()).collect();
    for text in [terminal::capacity(&record, &PLAIN), markdown::capacity(&record), tables] {
        assert!(text.contains("not measured") && !text.contains("generator-limited"), "{text}");
    }
    // Words for programs are those of `capacity.json`.
    let table = csv::trials(&record);
    let row = table.lines().find(|line| line.contains(",backpressure_p99<1ms,")).unwrap();
    assert!(row.contains(",generator-limited,") && table.lines().next().unwrap().contains(",not_measured,"), "{table}");
}

#[test]
fn every_export_of_an_experiment_and_a_search_has_its_own_file() {
    let names = |files: Vec<(String, String)>| files.into_iter().map(|(name, _)| name).collect::<Vec<String>>();
    assert_eq!(
        names(exports::experiment(&sample_experiment::experiment())),
        ["experiment.html", "experiment.md", "csv/cells.csv", "csv/runs.csv"]
    );
    assert_eq!(
        names(exports::capacity(&sample_experiment::capacity())),
        ["capacity.html", "capacity.md", "csv/trials.csv"]
    );
}

#[test]
fn a_text_of_a_failure_cannot_steer_the_terminal_or_the_page() {
    let mut record = sample_experiment::all_failed();
    record.cells[0].failures[0].text = "log: \u{1b}[2J<script>alert(1)</script>".to_string();
    assert!(!terminal::experiment(&record, &PLAIN).contains('\u{1b}'));
    let page = html::experiment(&record);
    assert!(page.contains("&lt;script&gt;alert(1)") && !page.contains("<script>alert"));
}

#[test]
fn a_limited_run_says_what_held_it_and_what_it_cost() {
    let record = fixtures::limited();
    let text = terminal::summary(&record, &TerminalOptions { verbose: true, ..PLAIN });
    for expected in ["topology", "limits", "binding: CPU rationed in 34 %", "471 s of CPU a million messages", "host"] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let page = html::run(&record);
    assert!(page.contains("<figure id=\"throttling\"") && page.contains("<figure id=\"network\""));
    let plain = html::run(&fixtures::demo());
    assert!(!plain.contains("<figure id=\"throttling\"") && !plain.contains("Its limits were"));
}
