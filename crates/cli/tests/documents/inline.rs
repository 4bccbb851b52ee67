//! Commands between backticks, in documents, help and hints: whether the program's parser accepts them. They are not
//! executed.

use std::process::Command;

use crate::pages::{Page, below, root};
use crate::place::program;

/// Placeholders for values of the reader that the parser would not accept, with the value to use instead.
const STAND_INS: [(&str, &str); 13] = [
    ("--nodes N", "--nodes 2"),
    ("--local-nodes N", "--local-nodes 2"),
    ("--system NAME", "--system builtin"),
    ("--protocol NAME", "--protocol mqtt5"),
    ("--link NAME", "--link lte"),
    ("--link GROUP=NAME", "--link lte"),
    ("--link GROUP=", "--link "),
    ("compare RUN RUN…", "compare runs/a runs/b"),
    ("HOST:PORT", "host:7700"),
    ("--address IP", "--address 10.0.0.11"),
    ("schema {}", "schema workload"),
    ("list {}", "list systems"),
    ("--allow {}", "--allow systems"),
];

/// All of them, with their positions.
pub fn all() -> Vec<(String, String)> {
    let mut found = vec![];
    for page in Page::all() {
        for (line, text) in page.prose() {
            found.extend(commands(text).map(|command| (format!("{}:{line}", page.name), command)));
        }
    }
    for folder in
        ["cli", "deploy", "experiment", "links", "model", "protocols", "record", "report", "runner", "serve", "systems"]
    {
        for path in below(&root().join("crates").join(folder).join("src"), "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            // Tests may contain wrong texts.
            let text = text.split("#[cfg(test)]").next().unwrap();
            let name = path.strip_prefix(root()).unwrap().display().to_string();
            for (number, line) in text.lines().enumerate() {
                found.extend(commands(line).map(|command| (format!("{name}:{}", number + 1), command)));
            }
        }
    }
    found
}

/// Whole commands of a line.
fn commands(line: &str) -> impl Iterator<Item = String> {
    line.split('`').skip(1).step_by(2).filter(|text| text.starts_with("pubmark ")).map(str::to_owned)
}

/// Why the parser does not accept a command; `None` if it does, or if it is another program's.
pub fn fault(command: &str) -> Option<String> {
    let command = command.split(" #").next().unwrap_or(command).split(" > ").next()?.split(" && ").next()?.trim();
    let mut typed = command.strip_prefix("pubmark ")?.to_owned();
    for (word, instead) in STAND_INS {
        typed = typed.replace(word, instead);
    }
    // An option with a placeholder gets some value; other placeholders are removed.
    let with_value = format!("{typed} ").replace(" … ", " 1 ").replace('…', " ");
    let attempts = [typed.replace('…', " "), with_value, format!("{typed} 1")];
    let refusals: Vec<String> = attempts.iter().map_while(|attempt| refusal(attempt)).collect();
    (refusals.len() == attempts.len()).then(|| format!("`{command}`: {}", refusals[0]))
}

/// The parser's error.
fn refusal(typed: &str) -> Option<String> {
    let mut words: Vec<String> = split(typed).into_iter().map(|word| filled_in(&word)).collect();
    // Values are parsed as usual; this option disables other checks, and nothing is started.
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    words.insert(end, "--help".to_owned());
    let output = Command::new(program()).args(&words).env_remove("NO_COLOR").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    (!output.status.success()).then(|| said.lines().take(3).collect::<Vec<_>>().join(" "))
}

/// Replaces `{name}` of a format string by a word.
fn filled_in(word: &str) -> String {
    let mut filled = String::new();
    let mut rest = word;
    while let Some((before, after)) = rest.split_once('{') {
        match after.split_once('}') {
            Some((name, behind))
                if name.chars().all(|letter| letter.is_ascii_alphanumeric() || "_.".contains(letter)) =>
            {
                filled.push_str(before);
                filled.push('1');
                rest = behind;
            }
            _ => return word.to_owned(),
        }
    }
    filled + rest
}

/// Words as the shell splits them.
fn split(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (vec![], String::new(), None);
    for letter in text.chars() {
        match (quote, letter) {
            (None, '\'' | '"') => quote = Some(letter),
            (Some(open), letter) if letter == open => quote = None,
            (None, ' ') => words.extend((!word.is_empty()).then(|| std::mem::take(&mut word))),
            _ => word.push(letter),
        }
    }
    words.extend((!word.is_empty()).then_some(word));
    words
}
