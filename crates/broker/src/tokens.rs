//! JSON Web Tokens that clients authenticate with: signed with HS256, and valid until they expire (RFC 7515, RFC 7519).

use std::fmt;

use data_encoding::BASE64URL_NOPAD;
use pubmark_model::token::SHORTEST_SECRET_BYTES;
use ring::hmac;
use serde_json::Value;

/// Name of the authentication method whose data is a token (MQTT 5.0 §4.12).
pub const TOKEN_METHOD: &str = "JWT";

/// Largest time at which a token can expire, s since 1970: the year 9999. Later times would not fit a count of ns.
const LATEST_S: f64 = 253_402_300_799.0;

/// The secret that tokens are signed with.
#[derive(Clone)]
pub struct TokenKey(hmac::Key);

impl fmt::Debug for TokenKey {
    /// Without the secret.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("TokenKey").finish_non_exhaustive()
    }
}

impl TokenKey {
    /// A secret; `None` if it is shorter than [`SHORTEST_SECRET_BYTES`].
    pub fn new(secret: &[u8]) -> Option<TokenKey> {
        (secret.len() >= SHORTEST_SECRET_BYTES).then(|| TokenKey(hmac::Key::new(hmac::HMAC_SHA256, secret)))
    }

    /// Time from `now_ns` (ns since 1970) until a token expires, ns; `None` if it is not a valid token of this secret.
    pub(crate) fn valid_for_ns(&self, token: &[u8], now_ns: u64) -> Option<u64> {
        let signed_bytes = token.iter().rposition(|byte| *byte == b'.')?;
        let (signed, signature) = (&token[..signed_bytes], &token[signed_bytes + 1..]);
        let (header, claims) = signed.split_at(signed.iter().position(|byte| *byte == b'.')?);
        hmac::verify(&self.0, signed, &BASE64URL_NOPAD.decode(signature).ok()?).ok()?;
        // A token names the algorithm, and only this one is accepted (RFC 8725 §3.1).
        (json(header)?.get("alg")?.as_str()? == "HS256").then_some(())?;
        let expires_s =
            json(&claims[1..])?.get("exp")?.as_f64().filter(|seconds| (0.0..=LATEST_S).contains(seconds))?;
        ((expires_s * 1e9) as u64).checked_sub(now_ns).filter(|left_ns| *left_ns > 0)
    }
}

fn json(part: &[u8]) -> Option<Value> {
    serde_json::from_slice(&BASE64URL_NOPAD.decode(part).ok()?).ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const SECRET: &[u8] = b"0123456789abcdef0123456789abcdef";
    const SECOND_NS: u64 = 1_000_000_000;

    fn token(header: &str, claims: &str) -> Vec<u8> {
        let encode = |text: &str| BASE64URL_NOPAD.encode(text.as_bytes());
        let signed = format!("{}.{}", encode(header), encode(claims));
        let signature = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, SECRET), signed.as_bytes());
        format!("{signed}.{}", BASE64URL_NOPAD.encode(signature.as_ref())).into_bytes()
    }

    #[test]
    fn a_token_is_valid_until_it_expires() {
        let key = TokenKey::new(SECRET).unwrap();
        let good = token(r#"{"alg":"HS256","typ":"JWT"}"#, r#"{"sub":"a","exp":60}"#);
        assert_eq!(key.valid_for_ns(&good, 57 * SECOND_NS), Some(3 * SECOND_NS));
        assert_eq!(key.valid_for_ns(&good, 60 * SECOND_NS), None);
        let fraction = token(r#"{"alg":"HS256"}"#, r#"{"exp":60.5}"#);
        assert_eq!(key.valid_for_ns(&fraction, 60 * SECOND_NS), Some(SECOND_NS / 2));
        assert!(TokenKey::new(&SECRET[1..]).is_none());
        assert!(!format!("{key:?}").contains("0123"));
    }

    #[test]
    fn tokens_of_others_and_what_is_no_token_are_refused() {
        let key = TokenKey::new(SECRET).unwrap();
        let good = token(r#"{"alg":"HS256"}"#, r#"{"exp":60}"#);
        for (header, claims) in [
            (r#"{"alg":"none"}"#, r#"{"exp":60}"#),
            (r#"{"typ":"JWT"}"#, r#"{"exp":60}"#),
            (r#"{"alg":"HS256"}"#, r#"{"sub":"a"}"#),
            (r#"{"alg":"HS256"}"#, r#"{"exp":"60"}"#),
            (r#"{"alg":"HS256"}"#, r#"{"exp":-1}"#),
            (r#"{"alg":"HS256"}"#, r#"{"exp":1e300}"#),
            ("[", r#"{"exp":60}"#),
        ] {
            assert_eq!(key.valid_for_ns(&token(header, claims), 0), None, "{header} {claims}");
        }
        let other = TokenKey::new(b"another secret of thirty-two bytes").unwrap();
        assert_eq!(other.valid_for_ns(&good, 0), None);
        for cut in 0..good.len() {
            assert_eq!(key.valid_for_ns(&good[..cut], 0), None, "{cut} bytes of it");
        }
        for bytes in [&b""[..], b".", b"..", b"...", b"a.b.c", b"\xff.\xff.\xff"] {
            assert_eq!(key.valid_for_ns(bytes, 0), None);
        }
    }
}
