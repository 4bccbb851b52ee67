//! Prints the table.

use std::time::Instant;

use pubmark_systems::awake::IdleStatesDisabled;

use crate::row::{Reading, Row};
use crate::rows::ROWS;
use crate::{large_record, out, usage};

/// CPU figures count at a load up to this.
const QUIET_LOAD: f64 = 2.0;

/// Measures the rows named (all if none is) and prints the table.
pub fn print(words: &[&str]) -> Result<(), String> {
    let mut repetitions = 5;
    let (mut markdown, mut asleep) = (false, false);
    let mut names = vec![];
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "--repeat" => {
                let count = words.next().ok_or("--repeat needs a number")?;
                repetitions = count.parse().map_err(|error| format!("`{count}` is not a number: {error}"))?;
            }
            "--markdown" => markdown = true,
            "--asleep" => asleep = true,
            name => names.push(name),
        }
    }
    if let Some(name) = names.iter().find(|name| ROWS.iter().all(|row| row.name != **name)) {
        let known: Vec<_> = ROWS.iter().map(|row| row.name).collect();
        return Err(format!("there is no measure `{name}`; there are: {}", known.join(", ")));
    }
    // Held until the table is printed. What is compared is the programs, not how long a core takes to wake up.
    let awake = if asleep { None } else { Some(IdleStatesDisabled::hold()) };
    let cores = match &awake {
        Some(Ok(_)) => "CPU idle states disabled".to_owned(),
        Some(Err(error)) => format!("CPU idle states enabled ({error})"),
        None => "CPU idle states enabled (--asleep)".to_owned(),
    };
    out::line(&format!("{}; {cores}", machine()));
    let mut missed = 0;
    for row in ROWS.iter().filter(|row| names.is_empty() || names.contains(&row.name)) {
        missed += measure(row, repetitions, markdown);
    }
    let load = usage::load().unwrap_or(0.0);
    out::line(&format!("\nbars missed: {missed}; load at the end {load:.2}, repetitions {repetitions}"));
    Ok(())
}

fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cpu = cpu.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or(": unknown processor");
    let load = usage::load().unwrap_or(0.0);
    let doubt = if load > QUIET_LOAD { ", too high for CPU figures" } else { "" };
    format!("{}, {cores} cores, load at the start {load:.2}{doubt}", cpu.trim_start_matches(['\t', ' ', ':']))
}

/// Measures and prints one row; how many bars it missed.
fn measure(row: &Row, repetitions: usize, markdown: bool) -> u32 {
    match markdown {
        true => out::line(&heading(row)),
        false => out::line(&format!("\n{} — {} (known: {})", row.name, row.measure, row.known)),
    }
    match (row.run)(repetitions) {
        Ok(readings) => {
            readings.iter().for_each(|reading| out::line(&line(reading, markdown)));
            readings.iter().filter(|reading| reading.is_met() == Some(false)).count() as u32
        }
        Err(error) if markdown => {
            out::line(&format!("| not measured | | | | {error} |"));
            1
        }
        Err(error) => {
            out::line(&format!("  not measured: {error}"));
            1
        }
    }
}

/// What stands above the table of a row: each row is a section of the page, so that the first column is a few words.
fn heading(row: &Row) -> String {
    let known = match row.known {
        "—" => String::new(),
        known => format!("Known: {known}.\n\n"),
    };
    let title = row.measure[..1].to_uppercase() + &row.measure[1..];
    format!("\n### {title}\n\n{known}| case | median (min – max) | target | met | note |\n|---|---|---|---|---|")
}

fn line(reading: &Reading, markdown: bool) -> String {
    let unit = reading.unit;
    let show = |value: f64| if value.abs() < 10.0 { format!("{value:.2}") } else { format!("{value:.0}") };
    let median = reading.median().map_or("—".to_owned(), show);
    let least = reading.values.iter().copied().reduce(f64::min).map_or("—".to_owned(), show);
    let most = reading.values.iter().copied().reduce(f64::max).map_or("—".to_owned(), show);
    let bar = reading.bar.map_or("—".to_owned(), |bar| format!("≤ {bar}"));
    let met = match reading.is_met() {
        Some(true) => "yes",
        Some(false) => "MISSED",
        None => "",
    };
    let note = &reading.note;
    if markdown {
        let case = &reading.case;
        format!("| {case} | {median} {unit} ({least} – {most}) | {bar} | {met} | {note} |")
    } else {
        format!("  {:<46} {median:>8} {unit:<8} ({least} – {most})  {bar}  {met}  {note}", reading.case)
    }
}

/// Size of the large sample's report and the time that making it takes.
pub fn report_cost() -> Result<(usize, f64), String> {
    let record = large_record::factory();
    let began = Instant::now();
    let page = pubmark_report::html::run(&record);
    Ok((page.len(), began.elapsed().as_secs_f64()))
}
