//! Tokens that clients sign: what is accepted, their claims, and what is refused.

use std::path::Path;

use pubmark_model::fleet::Fleet;
use pubmark_model::load::{self, LoadError, LoadOptions};
use pubmark_model::token::TokenAlgorithm;
use pubmark_model::workload::Workload;
use tempfile::TempDir;

const SECRET: &str = "planted-secret-of-32-bytes-or-more";

/// A folder with a secret, a secret that is too short, and rows.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [
        ("secret", format!("{SECRET}\n")),
        ("short", "planted-short".to_owned()),
        ("rows.csv", "client_id,user\nsn-1,ann\nsn-2,bob\n".to_owned()),
        ("passwords.csv", "user,password\nann,planted-a\nbob,planted-b\n".to_owned()),
    ] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

fn read(folder: &Path, credentials: &str) -> Result<Workload, LoadError> {
    let text = format!(
        "name: t\ndevices:\n  - {{name: pump, count: 2, every: 1s, payload: 20B, credentials: {credentials}}}\nsubscribers: []\n"
    );
    load::parse(&folder.join("w.yaml").display().to_string(), &text, &LoadOptions::default())
}

/// User name and claims of each device.
fn tokens(workload: &Workload) -> Vec<(String, String)> {
    let fleet = Fleet::new(workload, 1);
    let of = |device| fleet.device_identity(workload, 0, device).token.unwrap();
    fleet.devices().iter().map(of).map(|token| (token.user, token.claims)).collect()
}

#[test]
fn claims_of_tokens_are_filled_in_for_each_client() {
    let folder = folder();
    let token = "{algorithm: HS256, file: secret, lifetime: 30s, claims: {sub: '{device}', aud: [a, '{user}'], id: '{client_id}'}}";
    let workload =
        read(folder.path(), &format!("{{user: 'u{{index}}', client_id: 'c{{index}}', token: {token}}}")).unwrap();
    let rules = &workload.devices[0].identity.token.as_ref().unwrap().rules;
    assert_eq!((rules.algorithm, rules.lifetime_s, rules.key.expose()), (TokenAlgorithm::Hs256, 30, SECRET));
    let claims = |number: u32| format!(r#"{{"aud":["a","u{number}"],"id":"c{number}","sub":"0-{number}"}}"#);
    assert_eq!(tokens(&workload), [0, 1].map(|number| (format!("u{number}"), claims(number))));
    // Client identifiers and user names from a file.
    let token = "{algorithm: HS256, file: secret, claims: {sub: '{user}', id: '{client_id}'}}";
    let workload = read(folder.path(), &format!("{{file: rows.csv, token: {token}}}")).unwrap();
    let claims = |id: &str, user: &str| format!(r#"{{"id":"{id}","sub":"{user}"}}"#);
    let expected = [("ann", "sn-1"), ("bob", "sn-2")].map(|(user, id)| (user.to_owned(), claims(id, user)));
    assert_eq!(tokens(&workload), expected);
    assert_eq!(workload.devices[0].identity.token.as_ref().unwrap().rules.lifetime_s, 3_600);
    // Neither claims nor a user name.
    let workload = read(folder.path(), "{token: {algorithm: HS256, file: secret}}").unwrap();
    assert_eq!(tokens(&workload)[0], (String::new(), "{}".to_owned()));
}

#[test]
fn an_error_about_a_token_shows_no_key() {
    let folder = folder();
    for (credentials, message) in [
        ("{token: {algorithm: HS256}}", "a token has no key to sign it with"),
        ("{token: {file: secret}}", "algorithm"),
        ("{token: {algorithm: none, file: secret}}", "none"),
        ("{token: {algorithm: HS256, file: short}}", "a secret of 13 B is too short for HS256"),
        ("{token: {algorithm: HS256, file: nowhere}}", "failed to read"),
        ("{token: {algorithm: HS256, key_env: PUBMARK_NOT_SET}}", "`PUBMARK_NOT_SET` is not set"),
        ("{token: {algorithm: HS256, file: secret, key_env: HOME}}", "the key of a token is given twice"),
        ("{token: {algorithm: HS256, file: secret, lifetime: 0s}}", "cannot be zero"),
        ("{token: {algorithm: HS256, file: secret, lifetime: 1500ms}}", "whole seconds, a year at most"),
        (
            "{token: {algorithm: HS256, file: secret, lifetime: 10s, reauthenticate: {method: JWT, before: 10s}}}",
            "a token of 10 s cannot be renewed 10 s before it expires",
        ),
        (
            "{token: {algorithm: HS256, file: secret, lifetime: 10s, reauthenticate: {method: JWT, before: 500ms}}}",
            "a token of 10 s cannot be renewed 0.5 s before it expires",
        ),
        (
            "{token: {algorithm: HS256, file: secret, lifetime: 10s, reauthenticate: {method: '', before: 5s}}}",
            "an authentication method has a name of 1 to 100 B",
        ),
        ("{token: {algorithm: HS256, file: secret, lifetime: 10000h}}", "whole seconds, a year at most"),
        ("{token: {algorithm: HS256, file: secret, claims: {exp: 1}}}", "the claim `exp` is written when"),
        ("{token: {algorithm: HS256, file: secret, claims: {sub: ['{devise}']}}}", "unknown placeholder `{devise}`"),
        ("{token: {algorithm: HS256, file: secret, claims: [sub]}}", "expected a map"),
        ("{token: planted-s.of.one}", "`token` says how clients sign tokens"),
        ("{token: {algorithm: HS256, file: secret, claims: {file: a}}}", "a claim called `file`"),
        (
            "{user: a, password: planted-p, token: {algorithm: HS256, file: secret}}",
            "in place of a password, and there is one",
        ),
        ("{user: a, file: rows.csv, token: {algorithm: HS256, file: secret}}", "in a file and in the workload"),
        ("{file: passwords.csv, token: {algorithm: HS256, file: secret}}", "a column `password`, and clients sign"),
        ("{file: rows.csv}", "the column `password` is missing"),
        ("{token: {algorithm: HS256, key: planted-s}}", "unknown key `key`"),
        ("{token: {algorithm: HS256, hmac: planted-s}}", "unknown key `hmac`"),
        ("{token: {algorithm: HS256, pem: [planted-s, planted-p]}}", "unknown key `pem`"),
        ("{apikey: planted-s}", "unknown key `apikey`"),
    ] {
        let error = read(folder.path(), credentials).unwrap_err();
        let shown = format!("{error:?} {error}");
        assert!(shown.contains(message), "{credentials}: {shown}");
        assert!(!shown.contains("planted-s") && !shown.contains("planted-p"), "{shown}");
        // The token is also not in the part of the file that is shown.
        if let LoadError::Wrong(diagnostic) = &error {
            let source = miette::Diagnostic::source_code(diagnostic.as_ref()).unwrap();
            let lines = source.read_span(&(0, 60).into(), 0, 9).unwrap();
            let lines = String::from_utf8_lossy(lines.data()).into_owned();
            assert!(!lines.contains("planted-s") && !lines.contains("planted-p"), "{lines}");
        }
    }
}
