//! Validates the text of the rules by which clients sign tokens; whether a key can sign is found out where it is used.

use std::time::Duration;

use serde_json::Value;

use super::diagnostic::{Problem, ProblemKind, Span};
use super::files::Files;
use super::raw_credentials::{RawReauthentication, RawToken, TokenForm};
use super::shape::Spanned;
use super::value;
use crate::secret::Secret;
use crate::token::{self, Reauthentication, SHORTEST_SECRET_BYTES, TokenAlgorithm, TokenRules};

/// Default lifetime, s.
const USUAL_LIFETIME_S: u32 = 3_600;
/// Maximum lifetime, s: a year.
const LONGEST_LIFETIME_S: u64 = 365 * 86_400;
/// Maximum size of claims, bytes, so that a token fits into an MQTT password: base64 makes four bytes of three.
const LARGEST_CLAIMS_BYTES: usize = 32_000;
/// Maximum length of an authentication method's name, bytes.
const LONGEST_METHOD_BYTES: usize = 100;
/// Claims that pubmark adds when it signs.
const OF_THE_MOMENT: [&str; 2] = ["iat", "exp"];
/// Key by which workloads name files, at any level.
const FILE: &str = super::files::KEY;
/// Placeholders in addition to those of client identifiers.
const WORDS: [&str; 2] = ["user", "client_id"];

/// The rules, with `words` as the placeholders of the group.
pub(super) fn rules(raw: &Spanned<TokenForm>, words: &[&str], files: &Files) -> Result<TokenRules, Problem> {
    let (span, TokenForm(raw)) = (raw.span, &raw.value);
    let algorithm = raw.algorithm.value;
    let lifetime_s = lifetime(raw)?;
    Ok(TokenRules {
        algorithm,
        key: key(raw, span, algorithm, files)?,
        key_id: raw.key_id.as_ref().map(|id| id.value.clone()),
        lifetime_s,
        claims: claims(raw, words)?,
        reauthentication: raw.reauthenticate.as_ref().map(|given| reauthentication(given, lifetime_s)).transpose()?,
    })
}

fn reauthentication(raw: &Spanned<RawReauthentication>, lifetime_s: u32) -> Result<Reauthentication, Problem> {
    let RawReauthentication { method, before } = &raw.value;
    if method.value.is_empty() || method.value.len() > LONGEST_METHOD_BYTES || method.value.contains(char::is_control) {
        let message =
            format!("an authentication method has a name of 1 to {LONGEST_METHOD_BYTES} B, without control characters");
        return Err(Problem::new(ProblemKind::ImpossibleValue, message).at(method.span, "this is none"));
    }
    let time = value::period(before, "the time before a token expires")?;
    let before_s = time.as_secs();
    if time != Duration::from_secs(before_s) || before_s >= u64::from(lifetime_s) {
        let message = format!("a token of {lifetime_s} s cannot be renewed {} s before it expires", time.as_secs_f64());
        return Err(Problem::new(ProblemKind::ImpossibleValue, message)
            .at(before.span, "here")
            .help("whole seconds, fewer than `lifetime`; for instance `lifetime: 60s` and `before: 10s`"));
    }
    Ok(Reauthentication { method: method.value.clone(), after_s: lifetime_s - before_s as u32 })
}

fn key(raw: &RawToken, place: Span, algorithm: TokenAlgorithm, files: &Files) -> Result<Secret, Problem> {
    let (key, span) = match (&raw.file, &raw.key_env) {
        (Some(file), None) => (Secret::new(files.read(file)?), file.span),
        (None, Some(variable)) => (super::credentials::of_variable(variable, "the key")?, variable.span),
        (Some(_), Some(variable)) => {
            return Err(Problem::new(ProblemKind::Conflict, "the key of a token is given twice")
                .at(variable.span, "and here")
                .help("leave `file` or `key_env` out"));
        }
        (None, None) => {
            return Err(Problem::new(ProblemKind::MissingKey, "a token has no key to sign it with")
                .at(place, "here")
                .help("`file: KEY.pem`, or `key_env: NAME` for an environment variable"));
        }
    };
    if algorithm != TokenAlgorithm::Hs256 {
        return Ok(key);
    }
    let secret = key.expose().trim_end_matches(['\r', '\n']);
    if secret.len() < SHORTEST_SECRET_BYTES {
        let reason = format!("a secret of {} B is too short for HS256", secret.len());
        return Err(Problem::new(ProblemKind::ImpossibleValue, reason)
            .at(span, "it is here")
            .help(format!("{SHORTEST_SECRET_BYTES} B or more (RFC 7518 §3.2)")));
    }
    Ok(Secret::new(secret))
}

fn lifetime(raw: &RawToken) -> Result<u32, Problem> {
    let Some(text) = &raw.lifetime else { return Ok(USUAL_LIFETIME_S) };
    let lifetime = value::period(text, "the lifetime of a token")?;
    let whole = lifetime.as_secs();
    if lifetime != Duration::from_secs(whole) || whole > LONGEST_LIFETIME_S {
        return Err(Problem::new(
            ProblemKind::ImpossibleValue,
            "the lifetime of a token is whole seconds, a year at most",
        )
        .at(text.span, "here")
        .help("`exp` counts seconds (RFC 7519 §4.1.4); for instance `lifetime: 30s`"));
    }
    Ok(whole as u32)
}

fn claims(raw: &RawToken, words: &[&str]) -> Result<String, Problem> {
    let Some(given) = &raw.claims else { return Ok("{}".to_owned()) };
    let problem = |kind, message: String| Problem::new(kind, message).at(given.span, "here");
    if let Some(claim) = OF_THE_MOMENT.into_iter().find(|claim| given.value.contains_key(*claim)) {
        return Err(problem(ProblemKind::Conflict, format!("the claim `{claim}` is written when the token is signed"))
            .help("leave it out; `lifetime` sets how far `exp` is from `iat`"));
    }
    if given.value.contains_key(FILE) {
        return Err(problem(ProblemKind::BadName, format!("a claim called `{FILE}`"))
            .help("pubmark takes every key of this name for a path, and changes it where the workload is copied"));
    }
    let words: Vec<&str> = words.iter().copied().chain(WORDS).collect();
    let mut claims = Value::Object(given.value.clone());
    let mut unknown = None;
    token::for_each_text(&mut claims, &mut |text| {
        unknown = unknown.take().or_else(|| value::placeholders(text, &words, given.span).err());
    });
    if let Some(unknown) = unknown {
        return Err(unknown);
    }
    let text = claims.to_string();
    match text.len() > LARGEST_CLAIMS_BYTES {
        true => Err(problem(ProblemKind::ImpossibleValue, format!("claims of more than {LARGEST_CLAIMS_BYTES} B"))),
        false => Ok(text),
    }
}
