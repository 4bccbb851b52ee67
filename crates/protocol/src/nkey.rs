//! NKeys, with which clients log in to NATS: Ed25519 keys as text
//! (<https://docs.nats.io/running-a-nats-service/configuration/securing_nats/auth_intro/nkey_auth>).

use std::fmt;

use data_encoding::{BASE32_NOPAD, BASE64URL_NOPAD};
use ring::signature::{Ed25519KeyPair, KeyPair};

/// Prefix of every seed, in the five highest bits: the letter S.
const SEED: u8 = 18 << 3;
/// Prefix of users' public keys, in the five highest bits: the letter U.
const USER: u8 = 20 << 3;
/// Bytes of a seed without prefix and check sum.
const SEED_BYTES: usize = 32;

/// The key of a user.
pub struct NKey(Ed25519KeyPair);

impl fmt::Debug for NKey {
    /// Without the key.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("NKey")
    }
}

impl NKey {
    /// Reads the seed of a user, such as `nk -gen user` prints.
    ///
    /// # Errors
    /// Why it is invalid; the reason contains nothing of it.
    pub fn of_seed(seed: &str) -> Result<NKey, String> {
        let bytes = BASE32_NOPAD.decode(seed.as_bytes()).map_err(|_| "it is not base32".to_owned())?;
        // Two bytes of kinds, the seed, a check sum.
        if bytes.len() != 2 + SEED_BYTES + 2 {
            return Err("it has not the 58 letters of a seed".to_owned());
        }
        let (known, sum) = bytes.split_at(2 + SEED_BYTES);
        if check_sum(known).to_le_bytes() != sum {
            return Err("its check sum is wrong: a letter is".to_owned());
        }
        if known[0] & 0xf8 != SEED {
            return Err("it is no seed, which begins with S".to_owned());
        }
        if known[0] << 5 | known[1] >> 3 != USER {
            return Err("it is not the seed of a user, which begins with SU".to_owned());
        }
        let pair = Ed25519KeyPair::from_seed_unchecked(&known[2..]);
        pair.map(NKey).map_err(|error| format!("it makes no key: {error}"))
    }

    /// The public key as text.
    pub fn public(&self) -> String {
        let mut bytes = vec![USER];
        bytes.extend_from_slice(self.0.public_key().as_ref());
        bytes.extend_from_slice(&check_sum(&bytes).to_le_bytes());
        BASE32_NOPAD.encode(&bytes)
    }

    /// The signature of a server's nonce, as text.
    pub fn sign(&self, nonce: &str) -> String {
        BASE64URL_NOPAD.encode(self.0.sign(nonce.as_bytes()).as_ref())
    }
}

/// CRC-16/XMODEM.
fn check_sum(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |sum, byte| {
        let sum = sum ^ u16::from(*byte) << 8;
        (0..8).fold(sum, |sum, _| if sum & 0x8000 == 0 { sum << 1 } else { sum << 1 ^ 0x1021 })
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use ring::signature::{ED25519, UnparsedPublicKey};

    use super::*;

    // The key pair in the documentation of NATS.
    const SEED: &str = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY";
    const PUBLIC: &str = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4";

    #[test]
    fn the_pair_of_the_documentation_belongs_together() {
        let key = NKey::of_seed(SEED).unwrap();
        assert_eq!(key.public(), PUBLIC);
        let signature = BASE64URL_NOPAD.decode(key.sign("asked").as_bytes()).unwrap();
        let public = UnparsedPublicKey::new(&ED25519, key.0.public_key().as_ref());
        public.verify(b"asked", &signature).unwrap();
        assert!(public.verify(b"other", &signature).is_err());
        assert_eq!(format!("{key:?}"), "NKey");
    }

    #[test]
    fn an_invalid_user_seed_is_refused_without_showing_it() {
        let mut letter = SEED.to_owned();
        letter.replace_range(10..11, "A");
        for (seed, reason) in [
            ("", "58 letters"),
            ("S1", "base32"),
            (&SEED[..40], "58 letters"),
            (letter.as_str(), "check sum"),
            (PUBLIC, "58 letters"),
        ] {
            let refused = NKey::of_seed(seed).unwrap_err();
            assert!(refused.contains(reason), "{seed}: {refused}");
        }
        // An account's seed, whose check sum is right.
        let mut bytes = BASE32_NOPAD.decode(SEED.as_bytes()).unwrap();
        bytes.truncate(2 + SEED_BYTES);
        bytes[0] = super::SEED;
        bytes[1] = 0;
        let sum = check_sum(&bytes).to_le_bytes();
        bytes.extend_from_slice(&sum);
        assert!(NKey::of_seed(&BASE32_NOPAD.encode(&bytes)).unwrap_err().contains("begins with SU"));
    }
}
