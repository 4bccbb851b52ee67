//! Keys of the devices, drawn from the seed of the run.

use std::fmt;

use pubmark_model::transform::{Cipher, Signature, Step};
use ring::aead::{self, LessSafeKey, UnboundKey};
use ring::hmac;
use ring::signature::Ed25519KeyPair;

/// What the keys of one device are for: no two of them are the same.
#[derive(Clone, Copy)]
enum Purpose {
    Encrypt,
    Sign,
}

/// The keys of one device.
pub struct Keys {
    pub(super) cipher: Option<LessSafeKey>,
    pub(super) signing: Option<SigningKey>,
}

/// The key of a signature.
pub(super) enum SigningKey {
    Hmac(hmac::Key),
    Ed25519(Box<Ed25519KeyPair>),
}

impl fmt::Debug for Keys {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Keys")
    }
}

impl Keys {
    /// What these steps of a publisher need.
    pub fn of(steps: &[Step], seed: u64, publisher: u32) -> Keys {
        let mut keys = Keys { cipher: None, signing: None };
        for step in steps {
            match step {
                Step::Compress(_) => {}
                Step::Encrypt(cipher) => keys.cipher = Some(cipher_key(*cipher, seed, publisher)),
                Step::Sign(signature) => keys.signing = Some(signing_key(*signature, seed, publisher)),
            }
        }
        keys
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

fn signing_key(signature: Signature, seed: u64, publisher: u32) -> SigningKey {
    let bytes = derive(seed, publisher, Purpose::Sign);
    match signature {
        Signature::HmacSha256 => SigningKey::Hmac(hmac::Key::new(hmac::HMAC_SHA256, &bytes)),
        Signature::Ed25519 => {
            SigningKey::Ed25519(Box::new(Ed25519KeyPair::from_seed_unchecked(&bytes).expect("a seed has 32 bytes")))
        }
    }
}

/// HMAC-SHA256 over publisher and purpose, with the run's seed as key.
fn derive(seed: u64, publisher: u32, purpose: Purpose) -> [u8; 32] {
    let key = hmac::Key::new(hmac::HMAC_SHA256, &[b"pubmark transform", &seed.to_le_bytes()[..]].concat());
    let [a, b, c, d] = publisher.to_le_bytes();
    let derived = hmac::sign(&key, &[a, b, c, d, purpose as u8]);
    derived.as_ref().try_into().expect("SHA-256 has 32 bytes")
}
