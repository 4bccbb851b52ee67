//! Prints the table.

use std::fs;
use std::time::Instant;

use pubmark_systems::awake::{Awake, Means};
use pubmark_systems::environment;

use crate::data::{self, LOAD, Line, MACHINE, TIME_OF};
use crate::row::Row;
use crate::rows::ROWS;
use crate::{large_record, out, page};

/// Highest load at which CPU figures count.
const QUIET_LOAD: f64 = 2.0;

/// Measures the named rows (all if none is named), prints the table, and writes the data to a file if one is given.
pub fn print(words: &[&str]) -> Result<(), String> {
    let mut repetitions = 3;
    let (mut file, mut asleep) = (None, false);
    let mut names = vec![];
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "--repeat" => {
                let count = words.next().ok_or("--repeat needs a number")?;
                repetitions = count.parse().map_err(|error| format!("`{count}` is not a number: {error}"))?;
            }
            "--csv" => file = Some(*words.next().ok_or("--csv needs a file")?),
            "--asleep" => asleep = true,
            name => names.push(name),
        }
    }
    if let Some(name) = names.iter().find(|name| ROWS.iter().all(|row| row.name != **name)) {
        let known: Vec<_> = ROWS.iter().map(|row| row.name).collect();
        return Err(format!("there is no measure `{name}`; there are: {}", known.join(", ")));
    }
    // Before loops at idle priority would be a part of the load.
    let machine = machine();
    // Held until the table is printed, because programs are compared and not the wake-up times of cores.
    let awake = if asleep { None } else { Some(Awake::hold(None)) };
    let cores = match &awake {
        Some(Ok(held)) => match held.means() {
            Means::IdleStates => "CPU idle states disabled".to_owned(),
            Means::Loops => "CPU idle states prevented by loops at idle priority".to_owned(),
        },
        Some(Err(error)) => format!("CPU idle states enabled ({error})"),
        None => "CPU idle states enabled (--asleep)".to_owned(),
    };
    let about = format!("{machine}; {cores}");
    out::line(&about);
    let mut lines = vec![Line { note: about, ..Line::about_bench(MACHINE, "", None) }];
    // Written after each row, too, so that an unusable file name fails at once and an interruption loses only one row.
    let write = |lines: &[Line]| match file {
        Some(file) => {
            fs::write(file, data::to_csv(lines)).map_err(|error| format!("failed to write `{file}`: {error}"))
        }
        None => Ok(()),
    };
    write(&lines)?;
    for row in ROWS.iter().filter(|row| names.is_empty() || names.contains(&row.name)) {
        lines.extend(measure(row, repetitions));
        write(&lines)?;
    }
    lines.push(Line::about_bench(LOAD, "", environment::load()));
    out::line(&format!("\n{}", page::end(&lines)));
    write(&lines)
}

fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cpu = cpu.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or(": unknown processor");
    let load = environment::load();
    let doubt = if load.is_some_and(|load| load > QUIET_LOAD) { ", too high for CPU figures" } else { "" };
    let load = load.map_or("—".to_owned(), |load| format!("{load:.2}"));
    format!("{}, {cores} cores, load at the start {load}{doubt}", cpu.trim_start_matches(['\t', ' ', ':']))
}

/// Measures and prints one row.
fn measure(row: &Row, repetitions: usize) -> Vec<Line> {
    out::line(&format!("\n{} — {} (known: {})", row.name, row.measure, row.known));
    let began = Instant::now();
    let mut lines = match (row.run)(repetitions) {
        Ok(readings) => readings.iter().map(|reading| Line::measured(row, reading)).collect(),
        Err(error) => vec![Line::missing(row, error)],
    };
    for line in &lines {
        let [value, target, met] = page::cells(line);
        out::line(&format!("  {:<46} {value}  {target}  {met}  {}", line.case, line.note));
    }
    let seconds = began.elapsed().as_secs_f64();
    out::line(&format!("  it took {seconds:.0} s"));
    lines.push(Line::about_bench(&format!("{TIME_OF}{}", row.name), "s", Some(seconds)));
    lines
}

/// Size of the report of the large sample, and the time to render it.
pub fn report_cost() -> Result<(usize, f64), String> {
    let record = large_record::factory();
    let began = Instant::now();
    let page = pubmark_report::html::run(&record);
    Ok((page.len(), began.elapsed().as_secs_f64()))
}
