//! The queries of `docs/how-to/analyse-records.md` and of `docs/reference/message-log.md`, executed by DuckDB and pandas in a virtual
//! environment.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use crate::pages::{Block, Page};
use crate::place::{Earlier, Place};

/// What the page tells to install, in versions that are known to work.
const PACKAGES: [&str; 2] = ["duckdb==2.0.1", "pandas==3.1.1"];

/// The Python that has them, installed once for all tests of this process; the error is why there is none.
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
    if output.status.success() { Ok(output) } else { Err(said.lines().last().unwrap_or("it failed").to_owned()) }
}

#[test]
fn the_queries_on_records_find_their_runs() {
    let python = match python() {
        Ok(python) => python,
        Err(why) => return pubmark_testing::skip(format_args!("no DuckDB and pandas: {why}")),
    };
    let pages = Page::all();
    let page = pages.iter().find(|page| page.name.ends_with("analyse-records.md")).unwrap();
    // The first block makes the table that the scripts read.
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
    let frames = run("with_pandas.py");
    for found in ["system_memory_bytes", "builtin", "schedule_hash", "latency.upper.max_us"] {
        assert!(frames.contains(found), "no {found} in\n{frames}");
    }
}

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
