//! Renders the fixtures of the tests into a folder, to look at: `cargo run -p pubmark-report --example render -- FOLDER`.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use pubmark_record::comparison::compare;
use pubmark_report::terminal::{self, TerminalOptions};
use pubmark_report::{exports, html, markdown};

#[path = "../tests/fixtures/mod.rs"]
mod fixtures;

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(std::env::args().nth(1).ok_or("name a folder to render into")?);
    for (name, record) in fixtures::all() {
        let folder = root.join(name);
        write(&folder, exports::all(&record))?;
        let shown = folder.display().to_string();
        println!(
            "{}",
            terminal::summary(
                &record,
                &TerminalOptions { colour: true, folder: Some(&shown), ..TerminalOptions::default() }
            )
        );
    }
    for (name, record) in fixtures::experiments() {
        write(&root.join(name), exports::experiment(&record))?;
        println!(
            "{}",
            terminal::experiment(
                &record,
                &TerminalOptions { colour: true, folder: Some("runs/latest"), ..TerminalOptions::default() }
            )
        );
    }
    for (name, record) in fixtures::searches() {
        write(&root.join(name), exports::capacity(&record))?;
        println!(
            "{}",
            terminal::capacity(
                &record,
                &TerminalOptions { colour: true, folder: Some("runs/latest"), ..TerminalOptions::default() }
            )
        );
    }
    let records = fixtures::compared();
    let comparison = compare(&records)?;
    fs::write(root.join("comparison.html"), html::comparison(&comparison))?;
    fs::write(root.join("comparison.md"), markdown::comparison(&comparison))?;
    println!("{}", terminal::comparison(&comparison, &TerminalOptions::default()));
    Ok(())
}

fn write(folder: &Path, files: Vec<(String, String)>) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(folder.join("csv"))?;
    for (file, text) in files {
        fs::write(folder.join(file), text)?;
    }
    Ok(())
}
