//! The comparison notices a change of any one line of the journal.

use crate::liar::{Liar, compare};

#[test]
fn a_journal_with_any_one_line_changed_does_not_agree() {
    let truth = Liar::start("drop message=7\nduplicate message=9").run(&[
        "fan-in",
        "--set",
        "publishers=2",
        "--set",
        "rate=10/s",
        "--duration",
        "1s",
        "--warmup",
        "0s",
        "--qos",
        "1",
    ]);
    truth.demand_agreement();
    let journal = std::fs::read_to_string(&truth.journal).unwrap();
    let lines: Vec<&str> = journal.lines().collect();
    assert!(lines.len() > 60, "{} lines", lines.len());
    let changed_path = truth.journal.with_file_name("changed");
    for changed in 0..lines.len() {
        let kept: Vec<String> = lines
            .iter()
            .enumerate()
            .map(|(index, line)| if index == changed { change(line) } else { (*line).to_owned() })
            .collect();
        std::fs::write(&changed_path, kept.join("\n") + "\n").unwrap();
        let output = compare(&changed_path, &truth.run.join("record.json"));
        assert_eq!(output.status.code(), Some(1), "line {} was changed and nothing was noticed", changed + 1);
    }
}

/// Changes the last digit of the time: the smallest possible change.
fn change(line: &str) -> String {
    let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    let time: u64 = words[1].parse().unwrap();
    words[1] = (time ^ 1).to_string();
    words.join(" ")
}
