//! Steps between a message's body and what is sent: compression, encryption, a signature. Publishers apply them in order,
//! subscribers reverse them in the opposite order. They do not change the header of a message.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Maximum number of steps of a group: one of each kind.
pub const MOST_STEPS: usize = 3;
/// Bytes that a cipher adds: a nonce of 12 B before the text, a tag of 16 B after it (RFC 5116 §5.1, RFC 8439 §2.8).
pub const CIPHER_BYTES: u32 = 28;
/// Default level of zstd: that of its own tools.
pub const USUAL_ZSTD_LEVEL: u8 = 3;
/// Highest level of zstd; the levels above it need more memory than devices have.
pub const HIGHEST_ZSTD_LEVEL: u8 = 19;
/// Default level of zlib: that of zlib itself.
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

/// A cipher with authentication (AEAD).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cipher {
    /// AES-GCM with keys of 128 bits.
    Aes128Gcm,
    /// AES-GCM with keys of 256 bits.
    Aes256Gcm,
    /// ChaCha20-Poly1305 (RFC 8439), for devices without AES instructions.
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
    /// Compresses the body, if its content allows this.
    Compress(Compression),
    /// Encrypts the body with the device's key.
    Encrypt(Cipher),
    /// Appends a signature with the device's key.
    Sign(Signature),
}

impl Step {
    /// Key of the step in a workload.
    pub fn kind(self) -> &'static str {
        match self {
            Step::Compress(_) => "compress",
            Step::Encrypt(_) => "encrypt",
            Step::Sign(_) => "sign",
        }
    }

    /// Bytes that the step adds to every body; `None` if this depends on the content.
    pub fn added_bytes(self) -> Option<u32> {
        match self {
            Step::Compress(_) => None,
            Step::Encrypt(_) => Some(CIPHER_BYTES),
            Step::Sign(Signature::HmacSha256) => Some(32),
            Step::Sign(Signature::Ed25519) => Some(64),
        }
    }
}

/// Formats the step as `compress zstd 3`, `encrypt aes-256-gcm`, `sign ed25519`.
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

/// Describes all steps in a line, in order.
pub fn words(steps: &[Step]) -> String {
    steps.iter().map(Step::to_string).collect::<Vec<_>>().join(", ")
}

/// Maximum number of bytes that steps add to a body, without the few bytes that a compression adds to a body that cannot be
/// compressed.
pub fn added_bytes(steps: &[Step]) -> u32 {
    steps.iter().filter_map(|step| step.added_bytes()).sum()
}

/// Whether the size after the steps depends on the content.
pub fn compresses(steps: &[Step]) -> bool {
    steps.iter().any(|step| matches!(step, Step::Compress(_)))
}
