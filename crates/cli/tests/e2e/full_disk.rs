//! A measurement is not lost with the disk for its results: a disk that becomes full during the run, and a folder that
//! is removed.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use pubmark_testing::assert_count_eq;

use crate::support::books::{assert_closed, count};
use crate::support::place::Place;
use crate::support::processes::wait_for;

/// Longest wait for the folder of a run.
const LIMIT: Duration = Duration::from_secs(15);
/// Size of the disk; as mount(8) writes it.
const SIZE: &str = "size=24m";
const RUN: &[&str] =
    &["run", "fan-in", "--set", "publishers=10", "--duration", "2s", "--warmup", "0s", "--out", "disk"];

/// A small file system in memory; it is unmounted when dropped.
struct Disk(PathBuf);

impl Disk {
    /// Mounts it at this folder; `None`, with a message, if that is not allowed.
    fn mount(folder: PathBuf) -> Option<Disk> {
        fs::create_dir(&folder).unwrap();
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", SIZE, "pubmark-e2e"]).arg(&folder).output().unwrap();
        if !mounted.status.success() {
            let why = String::from_utf8_lossy(&mounted.stderr);
            let is_forbidden =
                ["permission denied", "must be superuser", "only root"].iter().any(|words| why.contains(words));
            assert!(is_forbidden, "{why}");
            pubmark_testing::skip(format_args!("a disk of its own cannot be mounted: {why}"));
            return None;
        }
        Some(Disk(folder))
    }

    /// Fills it completely.
    fn fill(&self) {
        let mut filler = OpenOptions::new().append(true).create(true).open(self.0.join("filler")).unwrap();
        for piece in [1 << 16, 1 << 10, 1] {
            let content = vec![0; piece];
            while filler.write_all(&content).is_ok() {}
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// The folder of the run that has begun.
fn begun(out: &Path) -> PathBuf {
    let mut found = None;
    wait_for("the run's folder", LIMIT, || {
        let entries = fs::read_dir(out).into_iter().flatten().flatten();
        found = entries.map(|entry| entry.path()).find(|path| path.join(".reserve").is_file());
        found.is_some()
    });
    found.unwrap()
}

#[test]
fn a_disk_that_fills_up_during_a_run_takes_nothing_of_its_record() {
    let place = Place::new();
    let Some(disk) = Disk::mount(place.path().join("disk")) else { return };
    let call = place.start(RUN);
    let folder = begun(&disk.0);
    disk.fill();
    let called = call.wait();
    assert!(matches!(called.code(), 0 | 5), "{called:?}");
    assert!(called.printed.contains("fan-in"), "no summary: {called:?}");
    let record: serde_json::Value =
        serde_json::from_slice(&fs::read(folder.join("record.json")).expect("a record")).unwrap();
    assert_closed(&record);
    assert_count_eq!(count(&record, "offered"), 200, "10 devices × 10/s × 2 s");
    assert!(!folder.join(".reserve").exists(), "the reserve is left");
}

#[test]
fn a_disk_without_room_for_a_record_starts_no_run() {
    let place = Place::new();
    let Some(disk) = Disk::mount(place.path().join("disk")) else { return };
    disk.fill();
    let called = place.call(RUN);
    assert_eq!(called.code(), 2, "{called:?}");
    assert!(called.errors.contains("failed to"), "{called:?}");
    assert!(called.errors.contains("No space left on device"), "{called:?}");
    let names: Vec<_> = fs::read_dir(&disk.0).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["filler"], "something is left");
}

#[test]
fn a_record_that_cannot_be_written_is_shown_all_the_same_and_has_a_code_of_its_own() {
    let place = Place::new();
    for (option, is_json) in [("--quiet", false), ("--json", true)] {
        let call = place.start(&[RUN, &[option]].concat());
        let folder = begun(&place.path().join("disk"));
        fs::remove_dir_all(&folder).unwrap();
        let called = call.wait();
        assert_eq!(called.code(), 7, "{called:?}");
        assert!(called.errors.contains("failed to write"), "{called:?}");
        assert!(called.errors.contains("record.json"), "{called:?}");
        if is_json {
            assert_count_eq!(count(&called.json(), "offered"), 200);
        } else {
            assert!(called.printed.contains("200"), "no summary: {called:?}");
        }
        assert!(!folder.exists(), "part of it was written");
    }
}
