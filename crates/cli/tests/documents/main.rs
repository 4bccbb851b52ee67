//! Every command that a document shows is executed, or named with the reason why it is not.
//!
//! Blocks marked `console` hold commands after `$`. Without a word each is executed as it stands and must end with 0. A comment
//! before the block, which readers do not see, says otherwise ([`annotation`]): options that shorten it, other exit codes, or why it is
//! not executed. Commands in running text, in help and in hints are read by the program's own parser ([`inline`]).
//! Links between documents lead somewhere ([`links`]).

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
#![allow(clippy::print_stdout, reason = "tables that are shown on request")]

mod analysis;
mod annotation;
mod inline;
mod links;
mod pages;
mod place;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use annotation::Treatment;
use pages::{Block, Page};
use place::{Earlier, Place};

/// Number of blocks that are executed at the same time: most commands wait for their run to end.
const BESIDE: usize = 4;

/// Results of the commands.
#[derive(Default)]
struct Tally {
    executed: usize,
    dry: usize,
    /// Positions of commands that were not executed, by reason.
    named: BTreeMap<String, Vec<String>>,
    faults: Vec<String>,
}

#[test]
fn every_command_of_the_documents_works() {
    let pages = Page::all();
    let blocks: Vec<(&Page, &Block)> =
        pages.iter().flat_map(|page| page.blocks.iter().map(move |block| (page, block))).collect();
    assert!(blocks.len() > 30, "the blocks of the documents are no longer found: {}", blocks.len());
    let tally = Mutex::new(Tally::default());
    let next = AtomicUsize::new(0);
    let earlier = Earlier::default();
    thread::scope(|scope| {
        for _ in 0..BESIDE {
            scope.spawn(|| {
                while let Some((page, block)) = blocks.get(next.fetch_add(1, Ordering::Relaxed)) {
                    execute(page, block, &earlier, &tally);
                }
            });
        }
    });
    let tally = tally.into_inner().unwrap();
    let named: usize = tally.named.values().map(Vec::len).sum();
    let mut summary =
        format!("commands of the documents: {} executed, {} dry, {named} named:", tally.executed, tally.dry);
    for (reason, places) in &tally.named {
        summary.push_str(&format!("\n  {reason}: {}", places.join(", ")));
    }
    say(&summary);
    assert!(tally.executed >= 15, "only {} commands were executed", tally.executed);
    assert!(tally.faults.is_empty(), "{} commands do not work:\n{}", tally.faults.len(), tally.faults.join("\n"));
}

/// Prints what came of a test that passed, too: not by a macro, whose text is swallowed then.
fn say(text: &str) {
    writeln!(std::io::stderr().lock(), "{text}").unwrap();
}

/// Executes the commands of a block one after the other, in a separate folder.
fn execute(page: &Page, block: &Block, earlier: &Earlier, tally: &Mutex<Tally>) {
    let place = Place::for_block(page, block, earlier);
    for command in &block.commands {
        let at = format!("{}:{}", page.name, command.line);
        let text = command.text.as_str();
        let treatment = match &command.treatment {
            Ok(treatment) => treatment,
            Err(why) => {
                tally.lock().unwrap().faults.push(format!("{at}: {why}"));
                continue;
            }
        };
        let (typed, codes) = match treatment {
            Treatment::Named { reason } => {
                let mut tally = tally.lock().unwrap();
                tally.named.entry(reason.clone()).or_default().push(at.clone());
                tally.faults.extend(inline::fault(text).map(|why| format!("{at}: {why}")));
                continue;
            }
            Treatment::Executed { options, codes } => (annotation::with_options(text, options), codes),
        };
        let outcome = place.execute(&typed);
        let mut tally = tally.lock().unwrap();
        match typed.contains("--dry-run") || typed.contains("--print") || typed.starts_with("make -n ") {
            true => tally.dry += 1,
            false => tally.executed += 1,
        }
        if !outcome.code.is_some_and(|code| codes.contains(&code)) {
            let code =
                outcome.code.map_or_else(|| "no exit code in time".to_owned(), |code| format!("exit code {code}"));
            tally.faults.push(format!("{at}: $ {typed}\n  {code}, expected {codes:?}\n{}", outcome.said));
        }
    }
}

#[test]
fn install_scripts_of_the_reference_are_scripts() {
    let scripts: Vec<(String, String)> = Page::all().iter().flat_map(Page::scripts).collect();
    assert!(scripts.len() > 10, "the scripts are no longer found: {}", scripts.len());
    for (at, script) in &scripts {
        place::check_script(script).unwrap_or_else(|why| panic!("{at}: {why}"));
    }
    let count = scripts.len();
    say(&format!("install scripts: {count} checked by `sh -n`; `pubmark install` runs them for make test-systems"));
}

#[test]
fn programs_that_are_shown_are_those_that_are_built() {
    let programs: Vec<(String, String)> = Page::all().iter().flat_map(Page::programs).collect();
    assert!(!programs.is_empty(), "programs in documents are no longer found");
    for (path, shown) in programs {
        let text = std::fs::read_to_string(pages::root().join(&path)).unwrap();
        // The head says how it is built.
        let head = |line: &&str| line.starts_with("//!") || line.starts_with("#![") || line.is_empty();
        let built: Vec<&str> = text.lines().skip_while(head).collect();
        assert_eq!(shown.trim(), built.join("\n").trim(), "{path}");
    }
}

#[test]
fn commands_in_text_help_and_hints_are_ones_that_the_program_takes() {
    let found = inline::all();
    assert!(found.len() > 100, "commands in text are no longer found: {}", found.len());
    let faults: Vec<String> =
        found.iter().filter_map(|(at, text)| Some(format!("{at}: {}", inline::fault(text)?))).collect();
    say(&format!("commands in text, help and hints: {} read by the parser", found.len()));
    assert!(faults.is_empty(), "{} are not taken:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn links_between_documents_resolve() {
    let found = links::all();
    assert!(found.len() > 100, "links are no longer found: {}", found.len());
    let faults: Vec<String> =
        found.iter().filter_map(|(at, target)| Some(format!("{at}: {}", links::fault(at, target)?))).collect();
    say(&format!("links between documents: {}", found.len()));
    assert!(faults.is_empty(), "{} lead nowhere:\n{}", faults.len(), faults.join("\n"));
}
