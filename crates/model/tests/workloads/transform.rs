//! `transform` of device groups: what is accepted, what is refused before the run, and at which position.

use pubmark_model::fleet::Fleet;
use pubmark_model::load::ProblemKind;
use pubmark_model::schedule::{self, Timeline};
use pubmark_model::transform::{Cipher, Compression, Signature, Step};

use super::{read, refused};

fn workload(keys: &str) -> String {
    format!(
        "name: t\ndevices:\n  - {{name: sensor, every: 1s, payload: 10B, {keys}}}\nsubscribers: [{{name: s, filters: '#'}}]\n"
    )
}

fn steps(transform: &str) -> Vec<Step> {
    read(&workload(&format!("transform: {transform}"))).unwrap().devices[0].transform.clone()
}

#[test]
fn steps_are_read_in_their_order() {
    assert_eq!(steps("none"), []);
    assert_eq!(steps("[compress: zstd]"), [Step::Compress(Compression::Zstd(3))]);
    assert_eq!(steps("{compress: zlib}"), [Step::Compress(Compression::Zlib(6))]);
    assert_eq!(steps("[compress: {zstd: 19}]"), [Step::Compress(Compression::Zstd(19))]);
    let all = [Step::Sign(Signature::Ed25519), Step::Encrypt(Cipher::Aes256Gcm), Step::Compress(Compression::Zlib(1))];
    assert_eq!(steps("[sign: ed25519, encrypt: aes-256-gcm, compress: {zlib: 1}]"), all);
}

#[test]
fn a_group_can_leave_out_what_the_defaults_have() {
    let text = "name: t
defaults: {payload: 100B, transform: [sign: hmac-sha256]}
devices:
  - {name: signs, every: 1s}
  - {name: leaves, every: 1s, transform: none}
subscribers: [{name: s, filters: '#'}]
";
    let groups = read(text).unwrap().devices;
    let steps = groups.iter().map(|group| group.transform.len());
    assert_eq!(steps.collect::<Vec<_>>(), [1, 0]);
}

#[test]
fn mistakes_are_refused_at_their_place() {
    use ProblemKind::{Conflict, Empty, ImpossibleValue};
    for (transform, kind, message, hint) in [
        ("[compress: zstd, compress: zlib]", Conflict, "`compress` is there twice", "once"),
        ("[none, sign: ed25519]", Conflict, "`none` stands beside steps", "transform: none"),
        ("[{compress: zstd, sign: ed25519}]", Conflict, "no order", "write a list"),
        ("[{}]", Empty, "does nothing", "compress: zstd"),
        ("[compress: {zstd: 20}]", ImpossibleValue, "`zstd`", "19"),
        ("[compress: {zlib: 0}]", ImpossibleValue, "`zlib`", "9"),
        ("[compress: {}]", ImpossibleValue, "one compression", "compress: zstd"),
    ] {
        let problem = refused(&workload(&format!("transform: {transform}")));
        assert_eq!(problem.kind(), kind, "{transform}: {problem:?}");
        let text = format!("{problem:?}");
        assert!(text.contains(message) && text.contains(hint), "{transform}: {text}");
    }
}

#[test]
fn payloads_with_steps_have_the_full_header_and_what_the_steps_add() {
    let group = |keys: &str| read(&workload(keys)).unwrap().devices[0].clone();
    let (plain, signed) = (group("qos: 0"), group("transform: [encrypt: aes-256-gcm, sign: ed25519]"));
    assert_eq!((plain.smallest_payload_bytes(), plain.largest_payload_bytes()), (16, 16));
    assert_eq!((signed.smallest_payload_bytes(), signed.largest_payload_bytes()), (24, 24 + 28 + 64));
    let deviations = read(&workload("transform: [sign: ed25519]")).unwrap().deviations;
    assert!(deviations.iter().any(|deviation| deviation.detail.contains("`transform`")), "{deviations:?}");
}

#[test]
fn a_broker_cannot_filter_what_it_cannot_read() {
    let text = "name: t
devices:
  - {name: sensor, every: 1s, body: {json: '{\"n\": {{counter}}}'}, transform: [encrypt: aes-128-gcm]}
subscribers:
  - {name: s, filters: '#', where: {filter: payload.n > 3, at: broker}}
";
    let problem = refused(text);
    let shown = format!("{problem:?}");
    assert!(shown.contains("a broker cannot read") && shown.contains("aes-128-gcm"), "{shown}");
    assert!(
        read(&text.replace("{filter: payload.n > 3, at: broker}", "payload.n > 3")).is_ok(),
        "the client undoes it"
    );
}

fn named(keys: &str) -> String {
    let workload = read(&workload(keys)).unwrap();
    let timeline = Timeline { warmup_ns: 0, duration_ns: 10_000_000_000 };
    schedule::hash(&workload, &Fleet::new(&workload, 1), 1, &timeline)
}

#[test]
fn steps_are_in_the_schedule_s_name_and_leave_those_without_alone() {
    let names = ["none", "[compress: zstd]", "[compress: {zstd: 4}]", "[sign: ed25519]"]
        .map(|steps| named(&format!("transform: {steps}")));
    assert!((0..4).all(|one| (0..one).all(|other| names[one] != names[other])), "{names:?}");
    assert_eq!(names[0], named("qos: 0"));
}
