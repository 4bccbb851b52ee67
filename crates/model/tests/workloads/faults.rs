//! Faults in a file and on the command line: what is accepted, and what is refused with which error.

use std::time::Duration;

use pubmark_model::fault::choice::FaultChoice;
use pubmark_model::fault::{Fault, FaultKind, Timing};
use pubmark_model::load::{self, LoadError, LoadOptions, ProblemKind};
use pubmark_model::workload::Workload;

use super::{read, refused};

/// A workload with one group.
const PLAIN: &str =
    "name: test\ndevices:\n  - {name: sensor, every: 1s, payload: 100B}\nsubscribers:\n  - filters: [\"#\"]\n";

/// The same workload with these faults.
fn broken(faults: &str) -> String {
    format!("{PLAIN}faults:\n  - {faults}\n")
}

fn fault(text: &str) -> Fault {
    read(&broken(text)).unwrap_or_else(|error| panic!("{text}: {error:?}")).faults.remove(0)
}

fn chosen(text: &str, choices: &[&str]) -> Result<Workload, LoadError> {
    let faults = choices.iter().map(|choice| FaultChoice::parse(choice).unwrap()).collect();
    load::parse("test.yaml", text, &LoadOptions { faults, ..LoadOptions::default() })
}

#[test]
fn every_kind_is_read_in_a_file_and_the_same_on_the_command_line() {
    for (file, line) in [
        ("{kind: kill, at: 30s, for: 5s}", "kill:at=30s,for=5s"),
        ("{kind: restart, at: 30s, server: 2}", "restart:at=30s,server=2"),
        ("{kind: pause, mttf: 30s, mttr: 5s}", "pause:mttf=30s,mttr=5s"),
        ("{kind: reset, at: 0s, share: 20%, group: sensor}", "reset:at=0s,share=20%,group=sensor"),
        ("{kind: cut, at: 1m}", "cut:at=1m"),
        ("{kind: partition, at: 1s, for: 1s, group: sensor}", "partition:at=1s,for=1s,group=sensor"),
        ("{kind: link-down, at: 1s, for: 1s, link: lte}", "link-down:at=1s,for=1s,link=lte"),
    ] {
        let found = chosen(PLAIN, &[line]).unwrap().faults;
        assert_eq!(found, [fault(file)], "{line}");
        assert_eq!(found[0].kind.as_str(), line.split(':').next().unwrap());
    }
    let kill = fault("{kind: kill, at: 30s, for: 5s}");
    let timing = Timing::Once { at: Duration::from_secs(30), length: Some(Duration::from_secs(5)) };
    let expected = Fault { kind: FaultKind::Kill, timing, share: 1.0, group: None, link: None, server: None };
    assert_eq!(kill, expected);
    assert_eq!(fault("{kind: reset, at: 1s, share: 20%}").share, 0.2);
}

#[test]
fn impossible_values_are_refused_with_line_and_column() {
    for (text, kind, expected) in [
        ("{kind: kill}", ProblemKind::MissingKey, "without a time"),
        ("{kind: kill, mttf: 30s}", ProblemKind::MissingKey, "without a time"),
        ("{kind: kill, at: 1s, mttf: 30s, mttr: 1s}", ProblemKind::Conflict, "`at` and `mttf`"),
        ("{kind: kill, at: 1s, for: 1s, mttr: 1s}", ProblemKind::Conflict, "`for` and `mttr`"),
        ("{kind: kill, at: 1s, for: 0s}", ProblemKind::ImpossibleValue, "length of a fault"),
        ("{kind: pause, at: 1s}", ProblemKind::MissingKey, "has no end"),
        ("{kind: partition, at: 1s, for: 1s}", ProblemKind::MissingKey, "without `group`"),
        ("{kind: link-down, at: 1s, for: 1s}", ProblemKind::MissingKey, "without `link`"),
        ("{kind: kill, at: 1s, group: sensor}", ProblemKind::Conflict, "`group` means nothing to `kill`"),
        ("{kind: reset, at: 1s, server: 1}", ProblemKind::Conflict, "`server` means nothing to `reset`"),
        ("{kind: reset, at: 1s, share: 1}", ProblemKind::ImpossibleValue, "a share of 1 cannot be"),
        ("{kind: reset, at: 1s, share: 0%}", ProblemKind::ImpossibleValue, "a share of 0% cannot be"),
        ("{kind: reset, at: 1s, group: sensors}", ProblemKind::UnknownName, "there is no group `sensors`"),
    ] {
        let found = refused(&broken(text));
        assert!(found.to_string().contains(expected), "{text}: {found}");
        assert_eq!(found.kind(), kind, "{text}: {found}");
    }
}

#[test]
fn faults_of_the_command_line_replace_those_of_the_file_with_a_notice() {
    let text = broken("{kind: kill, at: 30s}");
    let workload = chosen(&text, &["pause:at=1s,for=1s"]).unwrap();
    assert_eq!(workload.faults.iter().map(|fault| fault.kind).collect::<Vec<_>>(), [FaultKind::Pause]);
    assert!(workload.deviations.iter().any(|found| found.name == "faults-replaced"), "{:?}", workload.deviations);
    assert!(chosen(&text, &["none"]).unwrap().faults.is_empty());
    assert_eq!(chosen(&text, &[]).unwrap().faults.len(), 1);
    assert!(["", "kill:", "kill:at", "kill:at=1s,", ":at=1s"].iter().all(|text| FaultChoice::parse(text).is_err()));
}
