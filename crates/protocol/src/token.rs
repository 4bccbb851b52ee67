//! Signs the JSON Web Tokens that clients log in with (RFC 7515 §3.1, RFC 7519), each time that one connects.

use std::fmt;

use data_encoding::BASE64URL_NOPAD;
use pubmark_model::token::{TokenAlgorithm, TokenRules};
use ring::rand::SystemRandom;
use ring::rsa;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, RSA_PKCS1_SHA256};
use ring::{error::Unspecified, hmac};
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;

const SECOND_NS: u64 = 1_000_000_000;

/// Signs the tokens of a group of clients.
pub struct TokenSigner {
    key: Key,
    random: SystemRandom,
    /// The token's header as it is sent, base64 of JSON.
    header: String,
    lifetime_s: u64,
}

enum Key {
    Hmac(hmac::Key),
    Rsa(rsa::KeyPair),
    Ecdsa(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

impl fmt::Debug for TokenSigner {
    /// Without the key.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("TokenSigner").field("lifetime_s", &self.lifetime_s).finish_non_exhaustive()
    }
}

impl TokenSigner {
    /// Reads the key of some rules, and signs once to check it.
    ///
    /// # Errors
    /// Why the key cannot sign; the reason contains nothing of it.
    pub fn new(rules: &TokenRules) -> Result<TokenSigner, String> {
        let random = SystemRandom::new();
        let mut header = serde_json::json!({"alg": rules.algorithm.name(), "typ": "JWT"});
        if let Some(id) = &rules.key_id {
            header["kid"] = id.as_str().into();
        }
        let key = Key::read(rules, &random)?;
        let header = BASE64URL_NOPAD.encode(header.to_string().as_bytes());
        let signer = TokenSigner { key, random, header, lifetime_s: rules.lifetime_s.into() };
        signer.key.sign(&signer.random, b"").map_err(|Unspecified| "the key does not sign".to_owned())?;
        Ok(signer)
    }

    /// A token with these claims, a JSON object, signed at a time of the wall clock, ns since 1970. It expires at the first
    /// whole second that is its rules' lifetime later, never earlier: a client that renews it some time before must not be
    /// late because seconds are whole. `None` if the machine has no random numbers, which RSA and ECDSA need.
    pub fn sign(&self, claims: &str, now_ns: u64) -> Option<String> {
        let given = claims.trim_end().strip_suffix('}').unwrap_or(claims);
        let comma = if given.trim_end().ends_with('{') { "" } else { "," };
        let (issued_s, expires_s) = (now_ns / SECOND_NS, now_ns.div_ceil(SECOND_NS) + self.lifetime_s);
        let claims = format!("{given}{comma}\"iat\":{issued_s},\"exp\":{expires_s}}}");
        let mut token = format!("{}.{}", self.header, BASE64URL_NOPAD.encode(claims.as_bytes()));
        let signature = self.key.sign(&self.random, token.as_bytes()).ok()?;
        token.push('.');
        BASE64URL_NOPAD.encode_append(&signature, &mut token);
        Some(token)
    }
}

impl Key {
    fn read(rules: &TokenRules, random: &SystemRandom) -> Result<Key, String> {
        let text = rules.key.expose().as_bytes();
        if rules.algorithm == TokenAlgorithm::Hs256 {
            return Ok(Key::Hmac(hmac::Key::new(hmac::HMAC_SHA256, text)));
        }
        let der = PrivateKeyDer::from_pem_slice(text)
            .map_err(|_| "there is no private key as PEM, or it is encrypted".to_owned())?;
        let PrivateKeyDer::Pkcs8(der) = &der else {
            return Err(
                "the private key is not PKCS #8 (`BEGIN PRIVATE KEY`): `openssl pkcs8 -topk8 -nocrypt -in KEY` \
                        makes that of it"
                    .to_owned(),
            );
        };
        let der = der.secret_pkcs8_der();
        let key = match rules.algorithm {
            TokenAlgorithm::Rs256 => rsa::KeyPair::from_pkcs8(der).map(Key::Rsa),
            TokenAlgorithm::Es256 => {
                EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der, random).map(Key::Ecdsa)
            }
            // The public half, which openssl leaves out, is not compared.
            _ => Ed25519KeyPair::from_pkcs8_maybe_unchecked(der).map(Key::Ed25519),
        };
        key.map_err(|error| format!("the private key is none for {}: {error}", rules.algorithm.name()))
    }

    fn sign(&self, random: &SystemRandom, message: &[u8]) -> Result<Vec<u8>, Unspecified> {
        match self {
            Key::Hmac(key) => Ok(hmac::sign(key, message).as_ref().to_vec()),
            Key::Rsa(key) => {
                let mut signature = vec![0; key.public().modulus_len()];
                key.sign(&RSA_PKCS1_SHA256, random, message, &mut signature).map(|()| signature)
            }
            Key::Ecdsa(key) => key.sign(random, message).map(|signature| signature.as_ref().to_vec()),
            Key::Ed25519(key) => Ok(key.sign(message).as_ref().to_vec()),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::process::Command;

    use pubmark_model::secret::Secret;
    use ring::signature::{
        ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey, VerificationAlgorithm,
    };

    use super::*;

    fn rules(algorithm: TokenAlgorithm, key: &str) -> TokenRules {
        TokenRules {
            algorithm,
            key: Secret::new(key),
            key_id: None,
            lifetime_s: 60,
            claims: "{}".to_owned(),
            reauthentication: None,
        }
    }

    fn part(token: &str, number: usize) -> String {
        let part = token.split('.').nth(number).unwrap();
        String::from_utf8(BASE64URL_NOPAD.decode(part.as_bytes()).unwrap()).unwrap()
    }

    /// A new key made by openssl, and its public half as it stands in a certificate, or the reason for a skip.
    fn key_pair(kind: &[&str]) -> Option<(String, Vec<u8>)> {
        let folder = std::env::temp_dir().join(format!("pubmark-token-{}-{}", kind[0], std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let key = folder.join("key.pem");
        let made = Command::new("openssl").arg("genpkey").arg("-out").arg(&key).arg("-algorithm").args(kind).output();
        if !made.is_ok_and(|made| made.status.success()) {
            pubmark_testing::skip("openssl is not installed (`apt-get install openssl`)");
            return None;
        }
        let public = Command::new("openssl").args(["pkey", "-pubout", "-outform", "DER", "-in"]).arg(&key).output();
        let text = std::fs::read_to_string(&key).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        Some((text, public.unwrap().stdout))
    }

    #[test]
    fn a_token_says_when_it_was_signed_and_when_it_expires() {
        let signer = TokenSigner::new(&TokenRules {
            key_id: Some("k\"1".to_owned()),
            ..rules(TokenAlgorithm::Hs256, "0123456789abcdef0123456789abcdef")
        })
        .unwrap();
        let token = signer.sign(r#"{"sub":"a"}"#, 1_000 * SECOND_NS).unwrap();
        assert_eq!(part(&token, 0), r#"{"alg":"HS256","kid":"k\"1","typ":"JWT"}"#);
        assert_eq!(part(&token, 1), r#"{"sub":"a","iat":1000,"exp":1060}"#);
        assert_eq!(part(&signer.sign("{}", 5 * SECOND_NS).unwrap(), 1), r#"{"iat":5,"exp":65}"#);
        let within_a_second = signer.sign("{}", 5 * SECOND_NS + 1).unwrap();
        assert_eq!(part(&within_a_second, 1), r#"{"iat":5,"exp":66}"#, "never shorter than its lifetime");
        assert!(!format!("{signer:?}").contains("0123"));
    }

    /// The example of RFC 7515 A.1, whose header and claims are laid out as no program writes them.
    #[test]
    fn hs256_is_that_of_rfc_7515() {
        let secret = BASE64URL_NOPAD
            .decode(b"AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow")
            .unwrap();
        let signed = "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";
        let key = Key::Hmac(hmac::Key::new(hmac::HMAC_SHA256, &secret));
        let signature = key.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
        assert_eq!(BASE64URL_NOPAD.encode(&signature), "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk");
    }

    #[test]
    fn private_keys_of_openssl_sign_and_their_public_halves_verify() {
        let kinds: [(TokenAlgorithm, &[&str], &dyn VerificationAlgorithm, usize); 3] = [
            // What stands before the public key itself in a SubjectPublicKeyInfo (RFC 5280 §4.1), bytes.
            (TokenAlgorithm::Rs256, &["RSA", "-pkeyopt", "rsa_keygen_bits:2048"], &RSA_PKCS1_2048_8192_SHA256, 24),
            (TokenAlgorithm::Es256, &["EC", "-pkeyopt", "ec_paramgen_curve:P-256"], &ECDSA_P256_SHA256_FIXED, 26),
            (TokenAlgorithm::EdDsa, &["ED25519"], &ED25519, 12),
        ];
        for (algorithm, kind, verifies, before) in kinds {
            let Some((key, public)) = key_pair(kind) else { return };
            let signer = TokenSigner::new(&rules(algorithm, &key)).unwrap();
            let token = signer.sign("{}", 7).unwrap();
            let (signed, signature) = token.rsplit_once('.').unwrap();
            let signature = BASE64URL_NOPAD.decode(signature.as_bytes()).unwrap();
            let public = UnparsedPublicKey::new(verifies, &public[before..]);
            public.verify(signed.as_bytes(), &signature).unwrap();
            assert!(public.verify(token.as_bytes(), &signature).is_err());
            // A key of one algorithm does not work for the others, and no reason contains it.
            for other in [TokenAlgorithm::Rs256, TokenAlgorithm::Es256, TokenAlgorithm::EdDsa] {
                if other != algorithm {
                    let reason = TokenSigner::new(&rules(other, &key)).unwrap_err();
                    assert!(reason.contains(other.name()) && !reason.contains("BEGIN"), "{reason}");
                }
            }
        }
    }

    #[test]
    fn a_file_without_a_private_key_is_refused_with_a_hint() {
        for (key, reason) in [
            ("planted", "no private key as PEM"),
            ("-----BEGIN ENCRYPTED PRIVATE KEY-----\nAA==\n-----END ENCRYPTED PRIVATE KEY-----\n", "encrypted"),
            ("-----BEGIN EC PRIVATE KEY-----\nAA==\n-----END EC PRIVATE KEY-----\n", "openssl pkcs8 -topk8"),
            ("-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----\n", "none for ES256"),
        ] {
            let refused = TokenSigner::new(&rules(TokenAlgorithm::Es256, key)).unwrap_err();
            assert!(refused.contains(reason) && !refused.contains("planted"), "{refused}");
        }
    }
}
