//! Bodies with fields, headers outside payloads, properties, sizes from a file: what is accepted, and what is refused with
//! which error.

use pubmark_model::fleet::Fleet;
use pubmark_model::load::{self, LoadOptions, ProblemKind};
use pubmark_model::payload::{Body, HeaderPlace, SizeDistribution};
use pubmark_model::schedule::{self, Cursor, Rules, Timeline};
use pubmark_model::workload::Workload;

use super::{group, read, refused};

const MINUTE: Timeline = Timeline { warmup_ns: 0, duration_ns: 60_000_000_000 };
const BODY: &str = "body: {json: '{\"t\": {{normal 21 0.5}}, \"n\": {{counter}}, \"d\": \"{{device}}\"}'}";

fn workload(lines: &str) -> Workload {
    read(&group(lines)).unwrap()
}

fn sizes(workload: &Workload) -> Vec<u32> {
    let (fleet, rules) = (Fleet::new(workload, 1), Rules::all(workload, 1, &MINUTE));
    let mut cursor = Cursor::new(&rules[0], &fleet.devices()[0]);
    std::iter::from_fn(|| cursor.take(&rules[0])).map(|due| due.payload_bytes).collect()
}

fn assert_refused(text: &str, kind: ProblemKind, underlined: &str, message: &str, hint: &str) {
    let diagnostic = refused(text);
    assert_eq!(diagnostic.kind(), kind, "{diagnostic}");
    assert_eq!(diagnostic.underlined(), Some(underlined), "{diagnostic}");
    assert!(diagnostic.to_string().contains(message), "{diagnostic} lacks {message:?}");
    assert!(diagnostic.hint().unwrap_or_default().contains(hint), "{:?} lacks {hint:?}", diagnostic.hint());
}

#[test]
fn a_body_with_fields_gives_the_size_and_one_size_holds_it() {
    let own = workload(&format!("every: 1s\n{BODY}"));
    assert!(matches!(own.devices[0].body, Body::Template(_)));
    let sizes_own = sizes(&own);
    // Header of 24 B, 30 B of text without the counter, and one digit up to the ninth message.
    assert_eq!((sizes_own[0], sizes_own[8], sizes_own[9]), (24 + 31, 24 + 31, 24 + 32), "{sizes_own:?}");
    let pure = workload(&format!("every: 1s\nheader: user-property\n{BODY}"));
    assert_eq!(pure.devices[0].header, HeaderPlace::UserProperty);
    assert_eq!(sizes(&pure)[..2], [31, 31]);
    let fixed = workload(&format!("every: 1s\npayload: 100B\n{BODY}"));
    assert!(sizes(&fixed).iter().all(|bytes| *bytes == 100));
}

#[test]
fn a_small_payload_is_not_raised_where_its_header_is_beside_it() {
    let beside = workload("every: 1s\npayload: 3B\nheader: user-property");
    assert_eq!((sizes(&beside)[0], beside.deviations.len()), (3, 0));
    let within = workload("every: 1s\npayload: 3B");
    assert_eq!((sizes(&within)[0], within.deviations.len()), (16, 1));
}

#[test]
fn a_template_changes_no_schedule_but_its_own() {
    let hash = |lines: &str| {
        let workload = workload(lines);
        schedule::hash(&workload, &Fleet::new(&workload, 1), 1, &MINUTE)
    };
    let fixed = hash("every: 1s\npayload: 100B");
    assert_eq!(fixed, hash(&format!("every: 1s\npayload: 100B\n{BODY}")));
    assert_ne!(fixed, hash(&format!("every: 1s\n{BODY}")));
}

#[test]
fn a_wrong_template_is_refused_at_its_line_and_column() {
    use ProblemKind::ImpossibleValue;
    let body = |json: &str| group(&format!("every: 1s\nbody: {{json: {json}}}"));
    assert_refused(
        &body("'[1, {{norml 1 2}}]'"),
        ImpossibleValue,
        "{{norml 1 2}}",
        "unknown field",
        "{{normal MEAN SD}}",
    );
    assert_refused(&body("'[{{counter}}, x]'"), ImpossibleValue, "x", "no JSON here", "double quotes");
    let block = group("every: 1s\nbody:\n  json: |\n    {\n      \"a\": {{bool 3}}\n    }");
    let diagnostic = refused(&block);
    assert!(diagnostic.to_string().contains("line 2, column 8 of the document"), "{diagnostic}");
}

#[test]
fn a_template_that_can_outgrow_its_size_is_refused() {
    let text = |payload: &str| group(&format!("every: 1s\npayload: {payload}\n{BODY}"));
    // For a mapping, the first key is underlined.
    for (payload, underlined) in [
        ("50B", "50B"),
        ("{mean: 200B, sd: 10%}", "mean"),
        ("{min: 50B, max: 1KB}", "min"),
        ("{sizes: [1KB, 50B]}", "sizes"),
    ] {
        let message = "can become 82 B, its header of 24 B included";
        let hint = "`payload: 82B`";
        assert_refused(&text(payload), ProblemKind::ImpossibleValue, underlined, message, hint);
    }
    assert!(read(&text("{mean: 200B, sd: 10%, floor: 82B}")).is_ok());
    assert!(read(&text("82B")).is_ok());
    let options = LoadOptions { payload: Some(81), ..LoadOptions::default() };
    let error = load::parse("t.yaml", &text("100B"), &options).unwrap_err();
    assert!(error.to_string().contains("a payload of 81 B does not hold the body"), "{error}");
}

#[test]
fn properties_are_names_and_texts() {
    let read = workload("every: 1s\npayload: 100B\nproperties: {site: hall-3, floor: 2}");
    let expected = [("site", "hall-3"), ("floor", "2")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(read.devices[0].properties, expected);
    let text = |properties: &str| group(&format!("every: 1s\npayload: 100B\nproperties: {properties}"));
    use ProblemKind::{BadName, ImpossibleValue};
    assert_refused(&text("{pubmark: x}"), BadName, "pubmark", "cannot be the name", "that of the header");
    assert_refused(&text("{'a b': x}"), BadName, "'a b'", "cannot be the name", "letters");
    assert_refused(&text("{a: \"x\\ny\"}"), ImpossibleValue, "\"x\\ny\"", "the value of `a`", "on one line");
    let nine: Vec<String> = (0..9).map(|number| format!("a{number}: x")).collect();
    assert!(refused(&text(&format!("{{{}}}", nine.join(", ")))).to_string().contains("properties"));
}

#[test]
fn a_will_keeps_its_header_in_its_payload() {
    let text = group("every: 1s\npayload: 100B\nheader: user-property\nwill: {topic: gone}");
    assert_eq!(refused(&text).kind(), ProblemKind::Conflict);
}

#[test]
fn sizes_come_from_a_file_beside_the_workload() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.yaml");
    let sizes = |content: &str| {
        std::fs::write(folder.path().join("sizes.csv"), content).unwrap();
        let text = group("every: 1s\npayload: {sizes: {file: sizes.csv}}");
        load::parse(file.to_str().unwrap(), &text, &LoadOptions::default()).map(|read| read.devices[0].size.clone())
    };
    assert_eq!(sizes("bytes\n20\n1.5KB\n\n 300 \n").unwrap(), SizeDistribution::Empirical([20, 1_500, 300].into()));
    for (content, message) in [
        ("20\nlarge\n", "sizes.csv:2: no size of a message"),
        ("20\n-1\n", "sizes.csv:2: no size"),
        ("20.5\n", "sizes.csv:1: no size"),
        ("bytes\n", "the file holds no size"),
        ("", "the file holds no size"),
    ] {
        let error = sizes(content).unwrap_err();
        assert!(error.to_string().contains(message), "{content:?}: {error}");
    }
    std::fs::remove_file(folder.path().join("sizes.csv")).unwrap();
    let text = group("every: 1s\npayload: {sizes: {file: sizes.csv}}");
    let error = load::parse(file.to_str().unwrap(), &text, &LoadOptions::default()).unwrap_err();
    assert!(error.to_string().contains("failed to read"), "{error}");
}
