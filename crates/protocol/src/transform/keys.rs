//! The steps of one device with its keys, which are drawn from the seed of the run.

use std::fmt;

use pubmark_model::transform::{Cipher, Compression, Signature, Step};
use ring::aead::{self, LessSafeKey, UnboundKey};
use ring::hmac;
use ring::signature::Ed25519KeyPair;

/// What the keys of one device are for: no two of them are the same.
#[derive(Clone, Copy)]
enum Purpose {
    Encrypt,
    Sign,
}

/// The steps of one device, in order.
pub struct KeyedSteps(pub(super) Vec<KeyedStep>);

/// A step with what it needs.
pub(super) enum KeyedStep {
    Compress(Compression),
    Encrypt(Box<LessSafeKey>),
    Hmac(hmac::Key),
    Ed25519(Box<Ed25519KeyPair>),
}

impl fmt::Debug for KeyedSteps {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("KeyedSteps")
    }
}

impl KeyedSteps {
    /// The steps of a publisher.
    pub fn of(steps: &[Step], seed: u64, publisher: u32) -> KeyedSteps {
        let keyed = |step: &Step| match step {
            Step::Compress(compression) => KeyedStep::Compress(*compression),
            Step::Encrypt(cipher) => KeyedStep::Encrypt(Box::new(cipher_key(*cipher, seed, publisher))),
            Step::Sign(Signature::HmacSha256) => {
                KeyedStep::Hmac(hmac::Key::new(hmac::HMAC_SHA256, &derive(seed, publisher, Purpose::Sign)))
            }
            Step::Sign(Signature::Ed25519) => {
                let seed = derive(seed, publisher, Purpose::Sign);
                KeyedStep::Ed25519(Box::new(Ed25519KeyPair::from_seed_unchecked(&seed).expect("a seed has 32 bytes")))
            }
        };
        KeyedSteps(steps.iter().map(keyed).collect())
    }
}

fn cipher_key(cipher: Cipher, seed: u64, publisher: u32) -> LessSafeKey {
    let algorithm = match cipher {
        Cipher::Aes128Gcm => &aead::AES_128_GCM,
        Cipher::Aes256Gcm => &aead::AES_256_GCM,
        Cipher::ChaCha20Poly1305 => &aead::CHACHA20_POLY1305,
    };
    let bytes = derive(seed, publisher, Purpose::Encrypt);
    LessSafeKey::new(UnboundKey::new(algorithm, &bytes[..algorithm.key_len()]).expect("it has the cipher's length"))
}

/// HMAC-SHA256 over publisher and purpose, with the run's seed as key.
fn derive(seed: u64, publisher: u32, purpose: Purpose) -> [u8; 32] {
    let key = hmac::Key::new(hmac::HMAC_SHA256, &[b"pubmark transform", &seed.to_le_bytes()[..]].concat());
    let [a, b, c, d] = publisher.to_le_bytes();
    let derived = hmac::sign(&key, &[a, b, c, d, purpose as u8]);
    derived.as_ref().try_into().expect("SHA-256 has 32 bytes")
}
