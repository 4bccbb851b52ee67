//! Validates the transform steps of a device group.

use super::diagnostic::{Problem, ProblemKind};
use super::raw::{CipherWord, CompressWord, RawCompress, RawStep, RawSteps, SignWord};
use super::shape::{Form, Spanned, Word};
use super::value;
use crate::transform::{
    Cipher, Compression, HIGHEST_ZLIB_LEVEL, HIGHEST_ZSTD_LEVEL, Signature, Step, USUAL_ZLIB_LEVEL, USUAL_ZSTD_LEVEL,
};

/// Reads the steps of a group, in order.
pub(crate) fn steps(raw: Option<&RawSteps>) -> Result<Vec<Step>, Problem> {
    let Some(raw) = raw else { return Ok(vec![]) };
    let mut steps: Vec<(Step, &Spanned<RawStep>)> = vec![];
    for item in &raw.value.0 {
        let Form::Full(item) = item else {
            if raw.value.0.len() == 1 {
                return Ok(vec![]);
            }
            return Err(Problem::new(ProblemKind::Conflict, "`none` stands beside steps")
                .at(raw.span, "this list")
                .help("write `transform: none`, or the steps alone"));
        };
        let step = step(item)?;
        if let Some((_, first)) = steps.iter().find(|(known, _)| known.kind() == step.kind()) {
            let kind = step.kind();
            return Err(Problem::new(ProblemKind::Conflict, format!("`{kind}` is there twice"))
                .at(item.span, "again")
                .at(first.span, "first used here")
                .help("a body goes through each kind of step once"));
        }
        steps.push((step, item));
    }
    Ok(steps.into_iter().map(|(step, _)| step).collect())
}

fn step(raw: &Spanned<RawStep>) -> Result<Step, Problem> {
    let RawStep { compress, encrypt, sign } = &raw.value;
    match (compress, encrypt, sign) {
        (Some(compress), None, None) => compression(compress, raw).map(Step::Compress),
        (None, Some(cipher), None) => Ok(Step::Encrypt(match cipher.value {
            CipherWord::Aes128Gcm => Cipher::Aes128Gcm,
            CipherWord::Aes256Gcm => Cipher::Aes256Gcm,
            CipherWord::ChaCha20Poly1305 => Cipher::ChaCha20Poly1305,
        })),
        (None, None, Some(signature)) => Ok(Step::Sign(match signature.value {
            SignWord::HmacSha256 => Signature::HmacSha256,
            SignWord::Ed25519 => Signature::Ed25519,
        })),
        (None, None, None) => Err(Problem::new(ProblemKind::Empty, "a step that does nothing")
            .at(raw.span, "empty")
            .help("write one of `compress`, `encrypt`, `sign`, for instance `compress: zstd`")),
        _ => Err(Problem::new(ProblemKind::Conflict, "several steps in one mapping have no order")
            .at(raw.span, "which comes first?")
            .help("write a list: `transform: [compress: zstd, encrypt: aes-256-gcm]`")),
    }
}

fn compression(raw: &Form<Word<CompressWord>, RawCompress>, place: &Spanned<RawStep>) -> Result<Compression, Problem> {
    let level = |text, what, highest| value::count(text, what, 1, highest).map(|level| level as u8);
    match raw {
        Form::Short(word) => Ok(match word.value {
            CompressWord::Zstd => Compression::Zstd(USUAL_ZSTD_LEVEL),
            CompressWord::Zlib => Compression::Zlib(USUAL_ZLIB_LEVEL),
        }),
        Form::Full(RawCompress { zstd: Some(text), zlib: None }) => {
            level(text, "the level of `zstd`", HIGHEST_ZSTD_LEVEL.into()).map(Compression::Zstd)
        }
        Form::Full(RawCompress { zstd: None, zlib: Some(text) }) => {
            level(text, "the level of `zlib`", HIGHEST_ZLIB_LEVEL.into()).map(Compression::Zlib)
        }
        Form::Full(_) => Err(Problem::new(ProblemKind::ImpossibleValue, "`compress` takes one compression")
            .at(place.span, "none, or two")
            .help("write `compress: zstd`, or with a level `compress: {zstd: 3}`")),
    }
}
