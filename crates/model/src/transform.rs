//! Steps between a message's body and what is sent: compression, encryption, a signature. Publishers do them in order,
//! subscribers undo them in the reverse order. The header of a message goes through none of them.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Most steps of a group: one of each kind.
pub const MOST_STEPS: usize = 3;
/// Bytes that a cipher adds: a nonce of 12 B before the text, a tag of 16 B behind it (RFC 5116 §5.1, RFC 8439 §2.8).
pub const CIPHER_BYTES: u32 = 28;
/// Level of zstd where none is given: that of its own tools.
pub const USUAL_ZSTD_LEVEL: u8 = 3;
/// Highest level of zstd; those above it are for memory that devices do not have.
pub const HIGHEST_ZSTD_LEVEL: u8 = 19;
/// Level of zlib where none is given: its own default.
pub const USUAL_ZLIB_LEVEL: u8 = 6;
/// Highest level of zlib.
pub const HIGHEST_ZLIB_LEVEL: u8 = 9;

/// A compression with its level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Compression {
    /// zlib (RFC 1950), level 1 to 9.
    Zlib(u8),
    /// Zstandard (RFC 8878), level 1 to 19.
    Zstd(u8),
}

/// A cipher that also authenticates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cipher {
    /// AES-GCM with keys of 128 bits.
    Aes128Gcm,
    /// AES-GCM with keys of 256 bits.
    Aes256Gcm,
    /// ChaCha20-Poly1305 (RFC 8439), for devices without instructions for AES.
    ChaCha20Poly1305,
}

/// A signature of the body, or an authentication code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Signature {
    /// HMAC with SHA-256 (RFC 2104), 32 B.
    HmacSha256,
    /// Ed25519 (RFC 8032), 64 B.
    Ed25519,
}

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    /// Makes the body smaller, if its content allows that.
    Compress(Compression),
    /// Encrypts it with the device's key.
    Encrypt(Cipher),
    /// Puts a signature with the device's key behind it.
    Sign(Signature),
}

impl Step {
    /// Its key in a workload.
    pub fn kind(self) -> &'static str {
        match self {
            Step::Compress(_) => "compress",
            Step::Encrypt(_) => "encrypt",
            Step::Sign(_) => "sign",
        }
    }

    /// Bytes that it adds to every body; `None` where that depends on the content.
    pub fn added_bytes(self) -> Option<u32> {
        match self {
            Step::Compress(_) => None,
            Step::Encrypt(_) => Some(CIPHER_BYTES),
            Step::Sign(Signature::HmacSha256) => Some(32),
            Step::Sign(Signature::Ed25519) => Some(64),
        }
    }
}

/// As in a workload: `compress zstd 3`, `encrypt aes-256-gcm`, `sign ed25519`.
impl fmt::Display for Step {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ", self.kind())?;
        match self {
            Step::Compress(Compression::Zlib(level)) => write!(formatter, "zlib {level}"),
            Step::Compress(Compression::Zstd(level)) => write!(formatter, "zstd {level}"),
            Step::Encrypt(Cipher::Aes128Gcm) => formatter.write_str("aes-128-gcm"),
            Step::Encrypt(Cipher::Aes256Gcm) => formatter.write_str("aes-256-gcm"),
            Step::Encrypt(Cipher::ChaCha20Poly1305) => formatter.write_str("chacha20-poly1305"),
            Step::Sign(Signature::HmacSha256) => formatter.write_str("hmac-sha256"),
            Step::Sign(Signature::Ed25519) => formatter.write_str("ed25519"),
        }
    }
}

/// All steps in a line, in order.
pub fn words(steps: &[Step]) -> String {
    steps.iter().map(Step::to_string).collect::<Vec<_>>().join(", ")
}

/// Bytes that steps add to a body at most, without what a compression adds to a body that does not compress: a few bytes.
pub fn added_bytes(steps: &[Step]) -> u32 {
    steps.iter().filter_map(|step| step.added_bytes()).sum()
}

/// Does the size behind the steps depend on the content?
pub fn compresses(steps: &[Step]) -> bool {
    steps.iter().any(|step| matches!(step, Step::Compress(_)))
}
