//! Renders the fixtures of the tests into a folder, to look at: `cargo run -p pubmark-report --example render -- FOLDER`.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::fs;
use std::path::PathBuf;

use pubmark_record::comparison::compare;
use pubmark_report::terminal::{self, TerminalOptions};
use pubmark_report::{exports, html, markdown};

#[path = "../tests/fixtures/mod.rs"]
mod fixtures;

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(std::env::args().nth(1).ok_or("name a folder to render into")?);
    for (name, record) in fixtures::all() {
        let folder = root.join(name);
        fs::create_dir_all(folder.join("csv"))?;
        for (file, text) in exports::all(&record) {
            fs::write(folder.join(file), text)?;
        }
        let shown = folder.display().to_string();
        println!("{}", terminal::summary(&record, &TerminalOptions { colour: true, folder: Some(&shown) }));
    }
    let records = fixtures::compared();
    let comparison = compare(&records)?;
    fs::write(root.join("comparison.html"), html::comparison(&comparison))?;
    fs::write(root.join("comparison.md"), markdown::comparison(&comparison))?;
    println!("{}", terminal::comparison(&comparison, &TerminalOptions::default()));
    Ok(())
}
