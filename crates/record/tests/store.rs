//! Run folders on a real file system.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use pubmark_record::reserve::{RESERVE_FILE, RESERVED_BYTES};
use pubmark_record::sample;
use pubmark_record::store::{LATEST, RunFolder, StoreError, load};

fn folder(root: &Path) -> RunFolder {
    RunFolder::create(root, "smart home/1", UNIX_EPOCH + Duration::from_secs(1_772_355_907)).unwrap()
}

#[test]
fn a_record_comes_back_as_it_was_written_by_folder_file_and_link() {
    let root = tempfile::tempdir().unwrap();
    let folder = folder(root.path());
    let record = sample::record();
    let file = folder.write_record(&record).unwrap();
    folder.mark_latest().unwrap();
    for path in [folder.path().to_path_buf(), file, root.path().join(LATEST)] {
        assert_eq!(load(&path).unwrap(), record);
    }
    let names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["record.json"], "no temporary file is left");
}

#[test]
fn a_count_that_no_run_has_is_refused_with_its_place() {
    let root = tempfile::tempdir().unwrap();
    let folder = folder(root.path());
    let mut record = sample::record();
    record.tables.by_type[1].delivery.duplicated = u64::MAX;
    record.workload.seed = u64::MAX;
    let file = folder.write_record(&record).unwrap();
    let error = load(&file).unwrap_err().to_string();
    assert!(
        error.contains("has 18446744073709551615 as `tables.by_type.1.") && error.contains("duplicated"),
        "{error}"
    );
    record.tables.by_type[1].delivery.duplicated = 1 << 53;
    let file = folder.write_record(&record).unwrap();
    assert_eq!(load(&file).unwrap(), record, "a seed may be any number");
}

#[test]
fn names_are_the_time_and_the_workload_and_never_the_same() {
    let root = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..3).map(|_| folder(root.path()).name().to_string()).collect();
    let first = "20260301-090507-smart-home-1";
    assert_eq!(names, [first.to_string(), format!("{first}-2"), format!("{first}-3")]);
}

#[test]
fn latest_follows_the_newest_run_and_replaces_no_folder() {
    let root = tempfile::tempdir().unwrap();
    let (first, second) = (folder(root.path()), folder(root.path()));
    first.mark_latest().unwrap();
    second.mark_latest().unwrap();
    let link = root.path().join(LATEST);
    assert_eq!(fs::read_link(&link).unwrap(), Path::new(second.name()));
    fs::remove_file(&link).unwrap();
    fs::create_dir(&link).unwrap();
    assert!(matches!(first.mark_latest(), Err(StoreError::LatestIsNotALink { .. })));
}

#[test]
fn a_missing_record_is_named() {
    let root = tempfile::tempdir().unwrap();
    let error = load(&root.path().join("nothing")).unwrap_err();
    assert!(matches!(error, StoreError::NotFound { .. }));
    let empty_folder = folder(root.path());
    assert!(load(empty_folder.path()).unwrap_err().to_string().ends_with("record.json`"));
}

#[test]
fn a_file_that_is_no_record_is_named_with_line_and_column() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("record.json");
    for text in ["not json", "{}", "{\"schema_version\": 2}"] {
        fs::write(&file, text).unwrap();
        let error = load(&file).unwrap_err();
        assert!(matches!(error, StoreError::NotARecord { .. }), "{text}: {error}");
        let source = std::error::Error::source(&error).unwrap().to_string();
        assert!(source.contains("line 1"), "{source}");
    }
}

#[test]
fn another_schema_version_is_refused_with_both_versions() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("record.json");
    fs::write(&file, "{\"schema_version\": 7, \"new\": true}").unwrap();
    let message = load(&file).unwrap_err().to_string();
    assert!(message.contains("version 7") && message.contains("versions 1 to 2"), "{message}");
}

#[test]
fn a_record_that_cannot_be_replaced_leaves_the_old_one() {
    let root = tempfile::tempdir().unwrap();
    let folder = folder(root.path());
    fs::create_dir(folder.path().join("record.json")).unwrap();
    assert!(matches!(folder.write_record(&sample::record()), Err(StoreError::Io { .. })));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file is left");
}

#[test]
fn a_reserve_holds_its_space_until_the_record_is_in_it() {
    use std::os::unix::fs::MetadataExt;

    let root = tempfile::tempdir().unwrap();
    let folder = folder(root.path());
    let reserve = folder.reserve(RESERVED_BYTES).unwrap();
    let held = fs::metadata(folder.path().join(RESERVE_FILE)).unwrap();
    assert!(held.blocks() * 512 >= RESERVED_BYTES, "{} blocks of 512 B", held.blocks());
    let record = sample::record();
    let file = reserve.write_record(&record).unwrap();
    assert_eq!(load(&file).unwrap(), record);
    assert_eq!(fs::metadata(&file).unwrap().ino(), held.ino(), "it was written into the space that was taken");
    assert!(fs::metadata(&file).unwrap().blocks() * 512 < RESERVED_BYTES, "the rest is given back");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "the reserve is gone");
}

#[test]
fn the_reserve_of_a_killed_run_goes_with_the_next_and_that_of_a_living_one_stays() {
    let root = tempfile::tempdir().unwrap();
    let (killed, living) = (folder(root.path()), folder(root.path()));
    fs::write(killed.path().join(RESERVE_FILE), [0; 4_096]).unwrap();
    let reserve = living.reserve(4_096).unwrap();
    folder(root.path());
    assert!(!killed.path().join(RESERVE_FILE).exists() && living.path().join(RESERVE_FILE).exists());
    reserve.write_record(&sample::record()).unwrap();
}

#[test]
fn an_unused_or_removed_reserve_leaves_nothing() {
    let root = tempfile::tempdir().unwrap();
    let folder = folder(root.path());
    drop(folder.reserve(4_096).unwrap());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    let error = folder.reserve(1 << 62).unwrap_err();
    assert!(error.to_string().starts_with("failed to reserve the space of a record in"), "{error}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "what could not be taken is not left in part");
    let reserve = folder.reserve(4_096).unwrap();
    fs::remove_file(folder.path().join(RESERVE_FILE)).unwrap();
    assert_eq!(load(&reserve.write_record(&sample::record()).unwrap()).unwrap(), sample::record());
    let reserve = folder.reserve(4_096).unwrap();
    fs::remove_dir_all(folder.path()).unwrap();
    assert!(matches!(reserve.write_record(&sample::record()), Err(StoreError::Io { .. })));
}
