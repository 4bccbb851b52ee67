//! The queries of `docs/how-to/analyse-records.md` and of `docs/reference/message-log.md`, executed by DuckDB and pandas in a virtual
//! environment.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use pubmark_conformance::liar::LiarProcess;
use serde_json::Value;

use crate::pages::{Block, Page};
use crate::place::{Earlier, Place};

/// Packages that the page installs, in versions that are known to work.
const PACKAGES: [&str; 2] = ["duckdb==2.0.1", "pandas==3.1.1"];

/// A Python with these packages, installed once for all tests of this process; the error is the reason why there is
/// none.
fn python() -> Result<&'static Path, &'static str> {
    static INSTALLED: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    INSTALLED.get_or_init(install).as_deref().map_err(String::as_str)
}

fn install() -> Result<PathBuf, String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("analysis");
    let python = folder.join("bin/python");
    let has_packages = || {
        Command::new(&python).args(["-c", "import duckdb, pandas"]).output().is_ok_and(|output| output.status.success())
    };
    if !has_packages() {
        done(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
        done(Command::new(&python).args(["-m", "pip", "install", "--quiet", "--timeout", "30"]).args(PACKAGES))?;
    }
    Ok(python)
}

fn done(command: &mut Command) -> Result<Output, String> {
    let output = command.output().map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&output.stderr);
    let told = String::from_utf8_lossy(&output.stdout);
    let why = || said.lines().last().map_or_else(|| told.trim_end().to_owned(), str::to_owned);
    if output.status.success() { Ok(output) } else { Err(why()) }
}

#[test]
fn the_queries_on_records_find_their_runs() {
    let python = match python() {
        Ok(python) => python,
        Err(why) => return pubmark_testing::skip(format_args!("no DuckDB and pandas: {why}")),
    };
    let pages = Page::all();
    let page = pages.iter().find(|page| page.name.ends_with("analyse-records.md")).unwrap();
    // The first block creates the table that the scripts read.
    let first: &Block = &page.blocks[0];
    let place = Place::for_block(page, first, &Earlier::default());
    let made = place.execute(&first.commands[0].text);
    assert_eq!(made.code, Some(0), "{}", made.said);
    let run = |script: &str| {
        let output = done(Command::new(python).arg(script).current_dir(place.path()));
        String::from_utf8(output.unwrap_or_else(|why| panic!("{script}: {why}")).stdout).unwrap()
    };
    let sql = run("with_duckdb.py");
    for found in ["worst_delivered_share", "builtin", "reason", "smart-home/"] {
        assert!(sql.contains(found), "no {found} in\n{sql}");
    }
    done(Command::new(python).args(["-c", MORE_RUNS]).current_dir(place.path())).unwrap();
    let frames = run("with_pandas.py");
    for found in ["system_memory_bytes", "builtin", "schedule_hash", "latency.upper.max_us", "unversioned"] {
        assert!(frames.contains(found), "no {found} in\n{frames}");
    }
    // The names of the systems stand above the line with the name of the index.
    let lines: Vec<&str> = frames.lines().collect();
    let index = lines.iter().position(|line| line.starts_with("schedule_hash")).unwrap();
    let systems = lines[index - 1];
    assert!(systems.contains("builtin") && !systems.contains("flood") && !systems.contains("spoiled"), "{frames}");
}

/// Adds runs of a system of unknown version, of a flood and of an invalid run to the table.
const MORE_RUNS: &str = r#"
import pandas

runs = pandas.read_csv("runs.csv", dtype={"schedule_hash": str}).assign(verdict="valid")
one = runs[runs["schedule_hash"] != "none"].head(1)
more = [{"system": "unversioned", "version": None}, {"system": "flood", "schedule_hash": "none"}]
more.append({"system": "spoiled", "verdict": "invalid"})
pandas.concat([runs, *(one.assign(**change) for change in more)]).to_csv("runs.csv", index=False)
"#;

#[test]
fn a_record_is_recomputed_from_its_message_log_by_a_program_that_shares_no_code_with_it() {
    let python = match python() {
        Ok(python) => python,
        Err(why) => return pubmark_testing::skip(format_args!("no DuckDB and pandas: {why}")),
    };
    let pages = Page::all();
    let page = pages.iter().find(|page| page.name.ends_with("message-log.md")).unwrap();
    let first: &Block = &page.blocks[0];
    let place = Place::for_block(page, first, &Earlier::default());
    let made = place.execute(&format!("{} --duration 4s --warmup 1s --scale 4", first.commands[0].text));
    assert!(matches!(made.code, Some(0 | 5)), "{}", made.said);
    let output = done(Command::new(python).args(["recount.py", "runs/latest"]).current_dir(place.path()));
    let said = String::from_utf8(output.unwrap_or_else(|why| panic!("the log and the record differ: {why}")).stdout);
    let said = said.unwrap();
    assert!(said.contains("upper p99 us") && said.contains("delivered"), "{said}");
}

/// Lies of the broker: it loses, repeats and swaps messages, and sends some foreign ones (docs of `pubmark-liar`).
const LIES: &str = "drop every=97\nduplicate every=101 after=0\nswap every=103\nforeign every=50021\n";

/// Fifty publishers through a broker that lies; `rate` is that of each, messages a second. The page's program must
/// compute from the log the counts of the record and of the table of clients.
fn recount_lies(rate: u64, seconds: u64) {
    let python = match python() {
        Ok(python) => python,
        Err(why) => return pubmark_testing::skip(format_args!("no DuckDB and pandas: {why}")),
    };
    let pages = Page::all();
    let page = pages.iter().find(|page| page.name.ends_with("message-log.md")).unwrap();
    let place = Place::for_block(page, &page.blocks[0], &Earlier::default());
    let pubmark = assert_cmd::cargo::cargo_bin("pubmark");
    let liar = LiarProcess::start(&pubmark, place.path(), LIES, &[]);
    let output = Command::new(&pubmark)
        .args(["run", "fan-in", "--set", "publishers=50", "--set", "payload=32B", "--set", &format!("rate={rate}/s")])
        .args(["--duration", &format!("{seconds}s"), "--warmup", "1s", "--drain", "30s", "--message-log", "--json"])
        .args(["--endpoint", &format!("mqtt://{}", liar.address)])
        .current_dir(place.path())
        .output()
        .unwrap();
    assert!(matches!(output.status.code(), Some(0 | 5)), "{output:?}");
    let record: Value = serde_json::from_slice(&output.stdout).unwrap();
    let count = |name: &str| record["delivery"][name].as_u64().unwrap();
    assert_eq!(record["message_log"]["missing"], 0, "{}", record["message_log"]);
    pubmark_testing::assert_count_eq!(count("offered"), 50 * rate * seconds);
    for name in ["lost", "duplicated", "out_of_order", "foreign"] {
        pubmark_testing::assert_count!(count(name) > 0, "no {name} in {}", record["delivery"]);
    }
    let output = done(Command::new(python).args(["recount.py", "runs/latest"]).current_dir(place.path()));
    let said = output.map(|output| String::from_utf8(output.stdout).unwrap());
    let said = said.unwrap_or_else(|why| panic!("the log and the record differ: {why}"));
    println!("{said}");
    let clients = said.lines().find(|line| line.starts_with("clients as said")).unwrap();
    assert_eq!(clients.split_whitespace().nth(3), Some("51"), "fifty publishers and a subscriber: {clients}");
}

#[test]
fn a_hundred_thousand_messages_with_losses_and_duplicates_are_recounted() {
    recount_lies(200, 10);
}

#[test]
#[ignore = "two minutes: `make test-all`"]
fn a_million_messages_with_losses_and_duplicates_are_recounted() {
    recount_lies(500, 40);
}
