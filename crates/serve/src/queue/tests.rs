use std::os::unix::fs::PermissionsExt as _;

use pubmark_record::sample;
use pubmark_record::store::RunFolder;
use pubmark_runner::Host;

use super::*;
use crate::allow::Allow;
use crate::entry::RunEntry;
use crate::library::list::{self, ListQuery};
use crate::live::Views;
use crate::shared::Shared;
use crate::submission::Submission;

/// A machine lock for one test.
fn machine(place: &Path) -> Machine {
    let folder = place.join("session");
    std::fs::create_dir_all(&folder).unwrap();
    Machine::with_session(folder)
}

fn queue(place: &Path, store: &Arc<Store>, program: PathBuf) -> Queue {
    Queue::new(Arc::clone(store), program, machine(place))
}

#[test]
fn a_run_of_another_server_is_waited_for_and_named() {
    let place = tempfile::tempdir().unwrap();
    let store = Arc::new(Store::open(&place.path().join("runs")).unwrap());
    let text = r#"{"workload": "hello", "duration": "1s", "warmup": "0s"}"#;
    let id = store.add(Submission::read(text, &Allow::default(), &Host::this()).unwrap()).unwrap().submitted.id;
    let queue = queue(place.path(), &store, program(place.path(), "exit 0"));
    let state = || store.get(&id).unwrap().status.state;
    let other = machine(place.path()).try_take().unwrap().unwrap();
    queue.carry_out_next(&store.get(&id).unwrap());
    assert!(queue.waits_for(&store.get(&id).unwrap()).is_some());
    assert_eq!(queue.between_runs(|| ()), Err(Busy::Run), "nor is the machine measured beside it");
    drop(other);
    // A process that another test forks at this moment shares the lock until it executes its program.
    let until = Instant::now() + Duration::from_secs(10);
    while !state().is_over() && Instant::now() < until {
        queue.carry_out_next(&store.get(&id).unwrap());
    }
    assert!(state().is_over() && !queue.waits_for_others.load(Ordering::Relaxed));
    assert_eq!(queue.between_runs(|| ()), Ok(()));
}

#[test]
fn while_this_server_examines_the_machine_no_other_one_is_waited_for() {
    let place = tempfile::tempdir().unwrap();
    let store = Arc::new(Store::open(&place.path().join("runs")).unwrap());
    let text = r#"{"workload": "hello", "duration": "1s", "warmup": "0s"}"#;
    let entry = store.add(Submission::read(text, &Allow::default(), &Host::this()).unwrap()).unwrap();
    let queue = queue(place.path(), &store, program(place.path(), "exit 0"));
    let another = queue.between_runs(|| {
        assert!(queue.carry_out_next(&entry));
        assert_eq!(queue.waits_for(&entry), None);
        queue.between_runs(|| ())
    });
    assert_eq!(another, Ok(Err(Busy::Examined)));
    assert_eq!(store.get(&entry.submitted.id).unwrap().status.state, State::Queued, "it waits all the same");
}

#[test]
fn a_list_is_searched_once_for_the_submission_that_waits() {
    let place = tempfile::tempdir().unwrap();
    let store = Arc::new(Store::open(&place.path().join("runs")).unwrap());
    let text = r#"{"workload": "hello", "duration": "1s", "warmup": "0s"}"#;
    let add = || store.add(Submission::read(text, &Allow::default(), &Host::this()).unwrap()).unwrap().submitted.id;
    let ids = [add(), add(), add()];
    let queue = Arc::new(queue(place.path(), &store, program(place.path(), "exit 0")));
    queue.waits_for_others.store(true, Ordering::Relaxed);
    let shared = Shared::of_queue(&store, &queue);
    let open = || list::open(&shared);
    let all = || list::page(&shared, &ListQuery::default()).unwrap().runs;
    let lists: [&dyn Fn() -> Vec<RunEntry>; 2] = [&open, &all];
    for entries in lists {
        queue.searches.store(0, Ordering::Relaxed);
        let found = entries();
        assert_eq!(found.len(), ids.len());
        let waiting: Vec<&String> = found.iter().filter(|one| one.waits_for.is_some()).map(|one| &one.id).collect();
        assert_eq!(waiting, [&ids[0]], "the others wait for the one before them");
        assert_eq!(queue.searches.load(Ordering::Relaxed), 1);
    }
}

#[test]
fn a_repetition_that_fails_after_another_has_a_report_is_named() {
    let place = tempfile::tempdir().unwrap();
    let store = Arc::new(Store::open(&place.path().join("runs")).unwrap());
    let begins = |repetition: u32, folder: &str| {
        format!(
            r#"{{"event":"begins","t_s":0.0,"stream_version":1,"folder":"{folder}","name":"hello","repetition":{repetition},"repetitions":2,"warmup_s":0.0,"duration_s":1.0}}"#
        )
    };
    let ended = r#"{"event":"ends","t_s":1.0,"folder":"one","status":"complete","verdict":"valid"}"#;
    let failed = r#"{"event":"failed","t_s":2.0,"exit_code":6,"chain":["failed to connect to `a`","refused"],"hint":"start it"}"#;
    let events = [begins(1, "one").as_str(), ended, begins(2, "two").as_str(), failed].join("\n");
    let program = program(place.path(), &format!("printf '%s\\n' '{events}'\nexit 6"));
    RunFolder::at(&store.runs().join("one")).unwrap().write_record(&sample::record()).unwrap();
    let text = r#"{"workload": "hello", "duration": "1s", "warmup": "0s", "repetitions": 2}"#;
    let id = store.add(Submission::read(text, &Allow::default(), &Host::this()).unwrap()).unwrap().submitted.id;
    queue(place.path(), &store, program).carry_out_next(&store.get(&id).unwrap());
    let status = store.get(&id).unwrap().status;
    assert_eq!((status.state, &status.folders[..]), (State::Failed, &["one".to_owned()][..]));
    let shown = Views::default().show(&store, &id, |_| None).unwrap();
    assert!(shown.over, "its page shows the report of the first repetition");
    assert_eq!(shown.failure.as_deref(), Some("Failed to connect to `a`: refused. Start it."));
    assert!(serde_json::to_value(&*shown).unwrap()["failure"].is_string(), "the page reads it by this name");
}

#[test]
fn a_submission_whose_start_cannot_be_recorded_does_not_stop_the_queue() {
    let place = tempfile::tempdir().unwrap();
    let store = Arc::new(Store::open(&place.path().join("runs")).unwrap());
    let text = r#"{"workload": "hello", "duration": "1s", "warmup": "0s"}"#;
    let add = || store.add(Submission::read(text, &Allow::default(), &Host::this()).unwrap()).unwrap().submitted.id;
    let ids = [add(), add()];
    // Nobody can replace a folder with a file, root neither.
    let status = store.folder(&ids[0]).join("status.json");
    std::fs::remove_file(&status).unwrap();
    std::fs::create_dir_all(status.join("x")).unwrap();
    let queue = queue(place.path(), &store, program(place.path(), "exit 0"));
    std::thread::scope(|scope| {
        scope.spawn(|| queue.carry_out());
        let began = Instant::now();
        let is_over = || store.get(&ids[1]).unwrap().status.state.is_over();
        while !is_over() && began.elapsed() < ORDERLY {
            std::thread::sleep(LOOK);
        }
        queue.stop();
        assert!(is_over(), "it waits for the one before it");
    });
    assert_eq!(store.get(&ids[0]).unwrap().status.state, State::Queued);
}

#[test]
fn what_a_run_left_behind_ends_before_the_next_one() {
    let place = tempfile::tempdir().unwrap();
    let store = Arc::new(Store::open(&place.path().join("runs")).unwrap());
    let text = r#"{"workload": "hello", "duration": "1s", "warmup": "0s"}"#;
    let id = store.add(Submission::read(text, &Allow::default(), &Host::this()).unwrap()).unwrap().submitted.id;
    let queue = queue(place.path(), &store, program(place.path(), "setsid sleep 60 &\nexit 0"));
    queue.carry_out_next(&store.get(&id).unwrap());
    assert!(store.get(&id).unwrap().status.state.is_over());
    assert!(machine(place.path()).try_take().unwrap().is_some(), "it holds the lock of the machine");
}

/// Final state of a submission whose program writes these events and exits with this code.
fn ends(events: &str, code: i32, has_record: bool) -> State {
    let place = tempfile::tempdir().unwrap();
    let store = Arc::new(Store::open(&place.path().join("runs")).unwrap());
    let program = program(place.path(), &format!("printf '%s\\n' '{events}'\nexit {code}"));
    let folder = RunFolder::at(&store.runs().join("one")).unwrap();
    if has_record {
        folder.write_record(&sample::record()).unwrap();
    }
    let text = r#"{"workload": "hello", "duration": "1s", "warmup": "0s"}"#;
    let id = store.add(Submission::read(text, &Allow::default(), &Host::this()).unwrap()).unwrap().submitted.id;
    let queue = queue(place.path(), &store, program);
    let entry = store.get(&id).unwrap();
    queue.carry_out_next(&entry);
    let ended = store.get(&id).unwrap().status;
    assert_eq!(ended.folders, ["one"], "{ended:?}");
    assert!(ended.state != State::Failed || ended.error.is_some(), "no reason: {ended:?}");
    // A submission that is over is not started again.
    queue.carry_out_next(&entry);
    assert_eq!(store.get(&id).unwrap().status, ended);
    ended.state
}

/// Final state of a submission that is cancelled after its program has written these events.
fn ends_cancelled(events: &str, then: &str) -> State {
    let place = tempfile::tempdir().unwrap();
    let store = Arc::new(Store::open(&place.path().join("runs")).unwrap());
    // The signal is sent after the last event is written, so that all events are read.
    let text = format!("trap '{then}' INT\nprintf '%s\\n' '{events}'\nwhile :; do sleep 0.02; done");
    let program = program(place.path(), &text);
    RunFolder::at(&store.runs().join("one")).unwrap().write_record(&sample::record()).unwrap();
    let text = r#"{"workload": "hello", "duration": "1s", "warmup": "0s"}"#;
    let id = store.add(Submission::read(text, &Allow::default(), &Host::this()).unwrap()).unwrap().submitted.id;
    let queue = queue(place.path(), &store, program);
    let entry = store.get(&id).unwrap();
    std::thread::scope(|scope| {
        let carried = scope.spawn(|| queue.carry_out_next(&entry));
        while store.get(&id).unwrap().status.folders.is_empty() {
            assert!(!carried.is_finished(), "it ended before it was cancelled");
            std::thread::sleep(LOOK);
        }
        queue.cancel(&id).unwrap();
    });
    store.get(&id).unwrap().status.state
}

#[test]
fn a_run_on_a_full_disk_is_cancelled() {
    let place = tempfile::tempdir().unwrap();
    let store = Arc::new(Store::open(&place.path().join("runs")).unwrap());
    let begins = r#"{"event":"begins","t_s":0.0,"stream_version":1,"folder":"one","name":"hello","repetition":1,"repetitions":1,"warmup_s":0.0,"duration_s":1.0}"#;
    let text = format!("trap 'exit 130' INT\nprintf '%s\\n' '{begins}'\nwhile :; do sleep 0.02; done");
    let program = program(place.path(), &text);
    std::fs::create_dir_all(store.runs().join("one")).unwrap();
    let text = r#"{"workload": "hello", "duration": "1s", "warmup": "0s"}"#;
    let entry = store.add(Submission::read(text, &Allow::default(), &Host::this()).unwrap()).unwrap();
    let id = &entry.submitted.id;
    let queue = queue(place.path(), &store, program);
    let cancelled = std::thread::scope(|scope| {
        let carried = scope.spawn(|| queue.carry_out_next(&entry));
        while store.get(id).unwrap().status.folders.is_empty() {
            assert!(!carried.is_finished(), "it ended before it was cancelled");
            std::thread::sleep(LOOK);
        }
        // Nobody can replace a folder with a file, root neither.
        let status = store.folder(id).join("status.json");
        std::fs::remove_file(&status).unwrap();
        std::fs::create_dir_all(status.join("x")).unwrap();
        let cancelled = queue.cancel(id).map(|entry| entry.status.state);
        // There is space again. A run that was not cancelled ends with the server.
        std::fs::remove_dir_all(&status).unwrap();
        if cancelled.is_err() {
            queue.stop();
        }
        cancelled
    });
    assert_eq!(cancelled.unwrap(), State::Cancelling);
    assert_eq!(store.get(id).unwrap().status.state, State::Cancelled);
}

/// Writes a program that is named like `pubmark`.
fn program(place: &Path, text: &str) -> PathBuf {
    let program = place.join("program");
    std::fs::write(&program, format!("#!/bin/sh\n{text}\n")).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    program
}

#[test]
fn a_run_whose_server_was_killed_before_it_noted_anything_ends_before_the_next_one_begins() {
    let place = tempfile::tempdir().unwrap();
    let store = Arc::new(Store::open(&place.path().join("runs")).unwrap());
    let log = place.path().join("log");
    // The first program takes a second to end; the kernel signals it when the thread that started it has ended.
    let written = |words: &str| format!("echo {words} >> {}", log.display());
    let text = format!(
        "{}\nif [ ! -e {2} ]; then\n  trap 'sleep 1; {1}; exit 130' TERM\n  touch {2}\n  while :; do sleep 0.02; done\nfi\n{1}",
        written("begins"),
        written("ends"),
        place.path().join("orphan").display()
    );
    let program = program(place.path(), &text);
    let text = r#"{"workload": "hello", "duration": "1s", "warmup": "0s"}"#;
    let add = || store.add(Submission::read(text, &Allow::default(), &Host::this()).unwrap()).unwrap().submitted.id;
    let ids = [add(), add()];
    store.change(&ids[0], |status| status.state = State::Running).unwrap();
    std::thread::scope(|scope| {
        let started = || {
            let machine = machine(place.path()).try_take().unwrap().unwrap();
            Running::start(&program, &[], &store.folder(&ids[0]), None, machine).unwrap();
            while !place.path().join("orphan").exists() {
                std::thread::sleep(LOOK);
            }
        };
        scope.spawn(started);
    });
    let queue = queue(place.path(), &store, program);
    std::thread::scope(|scope| {
        scope.spawn(|| queue.carry_out());
        while !ids.iter().all(|id| store.get(id).unwrap().status.state.is_over()) {
            std::thread::sleep(LOOK);
        }
        queue.stop();
    });
    assert_eq!(std::fs::read_to_string(&log).unwrap(), "begins\nends\nbegins\nends\n");
    assert_eq!(store.get(&ids[0]).unwrap().status.state, State::Interrupted);
}

#[test]
fn one_that_was_over_before_it_could_be_cancelled_is_complete() {
    let begins = |repetitions: u32| {
        format!(
            r#"{{"event":"begins","t_s":0.0,"stream_version":1,"folder":"one","name":"hello","repetition":1,"repetitions":{repetitions},"warmup_s":0.0,"duration_s":1.0}}"#
        )
    };
    let ended =
        |status: &str| format!(r#"{{"event":"ends","t_s":1.0,"folder":"one","status":"{status}","verdict":"valid"}}"#);
    let whole = format!("{}\n{}", begins(1), ended("complete"));
    assert_eq!(ends_cancelled(&whole, "exit 0"), State::Complete);
    for (what, events) in [
        ("it has not ended", begins(1)),
        ("it was interrupted", format!("{}\n{}", begins(1), ended("interrupted"))),
        ("a repetition is missing", format!("{}\n{}", begins(2), ended("complete"))),
    ] {
        assert_eq!(ends_cancelled(&events, "exit 0"), State::Cancelled, "{what}");
    }
}

#[test]
fn a_run_whose_results_were_not_written_came_to_an_outcome_only_with_a_record() {
    let begins = r#"{"event":"begins","t_s":0.0,"stream_version":1,"folder":"one","name":"hello","repetition":1,"repetitions":1,"warmup_s":0.0,"duration_s":1.0}"#;
    assert_eq!(ends(begins, NOT_WRITTEN, true), State::Complete);
    assert_eq!(ends(begins, NOT_WRITTEN, false), State::Failed);
    assert_eq!(ends(begins, 0, true), State::Complete);
    let first = begins.replace(r#""repetitions":1"#, r#""repetitions":2"#);
    assert_eq!(ends(&first, NOT_WRITTEN, true), State::Failed, "the second repetition was not made");
}

#[test]
fn a_call_that_a_lost_node_ended_early_failed() {
    let begins = r#"{"event":"begins","t_s":0.0,"stream_version":1,"folder":"one","name":"hello","repetition":1,"repetitions":1,"warmup_s":0.0,"duration_s":1.0}"#;
    let ended = r#"{"event":"ends","t_s":1.0,"folder":"one","status":"complete","verdict":"invalid"}"#;
    let failed = r#"{"event":"failed","t_s":2.0,"exit_code":5,"chain":["1 of 2 nodes joined"],"hint":"start it"}"#;
    let whole = format!("{begins}\n{ended}\n{failed}");
    assert_eq!(ends(&whole, INVALID, true), State::Complete, "the run has a record, which names the lost node");
    let first = whole.replace(r#""repetitions":1"#, r#""repetitions":2"#);
    for (what, events) in [("a repetition is missing", first), ("it has not ended", format!("{begins}\n{failed}"))] {
        assert_eq!(ends(&events, INVALID, true), State::Failed, "{what}");
    }
}
