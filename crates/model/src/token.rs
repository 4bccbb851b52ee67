//! JSON Web Tokens with which clients authenticate (RFC 7519): their claims, and how they are signed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::secret::Secret;

/// Minimum length of the secret of [`TokenAlgorithm::Hs256`], bytes (RFC 7518 §3.2: at least as long as the hash).
pub const SHORTEST_SECRET_BYTES: usize = 32;

/// How a token is signed (RFC 7518 §3.1, RFC 8037 §3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TokenAlgorithm {
    /// HMAC with SHA-256: the system has the same secret.
    #[serde(rename = "HS256")]
    Hs256,
    /// RSA, PKCS #1 v1.5, with SHA-256.
    #[serde(rename = "RS256")]
    Rs256,
    /// ECDSA over P-256 with SHA-256.
    #[serde(rename = "ES256")]
    Es256,
    /// Ed25519.
    #[serde(rename = "EdDSA")]
    EdDsa,
}

impl TokenAlgorithm {
    /// Name of the algorithm in a token's header.
    pub fn name(self) -> &'static str {
        match self {
            TokenAlgorithm::Hs256 => "HS256",
            TokenAlgorithm::Rs256 => "RS256",
            TokenAlgorithm::Es256 => "ES256",
            TokenAlgorithm::EdDsa => "EdDSA",
        }
    }
}

/// How the clients of a group sign tokens: a new one for each connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TokenRules {
    /// Signature algorithm.
    pub algorithm: TokenAlgorithm,
    /// The secret of HS256; a private key as PEM (PKCS #8) for the others.
    pub key: Secret,
    /// Identifier of the key in a token's header (`kid`), if the system selects keys by it.
    pub key_id: Option<String>,
    /// Lifetime from when a token is signed until it expires, s; 1 or more.
    pub lifetime_s: u32,
    /// The claims, a JSON object with placeholders in its texts. `iat` and `exp` are not included: they are added when a
    /// token is signed.
    pub claims: String,
    /// Re-authentication with a new token on an open connection before the old one expires; `None` if clients authenticate
    /// only when they connect.
    pub reauthentication: Option<Reauthentication>,
}

/// How a client renews its token on an open connection (MQTT 5.0 §4.12.1).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reauthentication {
    /// Name of the authentication method, which is also in the client's CONNECT.
    pub method: String,
    /// Time from when a token is signed until the next one is sent, s; above 0 and below the lifetime.
    pub after_s: u32,
}

/// Contents of a client's tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientToken {
    /// User name that is sent with the token; empty if none.
    pub user: String,
    /// The claims, a JSON object.
    pub claims: String,
    /// How the token is renewed on an open connection.
    pub reauthentication: Option<Reauthentication>,
}

/// The JSON of `claims` with `fill` applied to each text in it; keys are unchanged.
pub(crate) fn filled(claims: &str, fill: &impl Fn(&str) -> String) -> String {
    let Ok(mut root) = serde_json::from_str::<Value>(claims) else { return claims.to_owned() };
    for_each_text(&mut root, &mut |text| *text = fill(text));
    root.to_string()
}

/// Applies `each` to every text in a value, but not to keys.
pub(crate) fn for_each_text(value: &mut Value, each: &mut impl FnMut(&mut String)) {
    match value {
        Value::String(text) => each(text),
        Value::Array(items) => items.iter_mut().for_each(|item| for_each_text(item, each)),
        Value::Object(entries) => entries.values_mut().for_each(|entry| for_each_text(entry, each)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_filled_in_wherever_they_stand_and_stay_json() {
        let claims = r#"{"aud":["{x}",1],"deep":{"{x}":"a-{x}"},"n":null}"#;
        let filled = filled(claims, &|text| text.replace("{x}", "\"q\\"));
        assert_eq!(filled, r#"{"aud":["\"q\\",1],"deep":{"{x}":"a-\"q\\"},"n":null}"#);
    }
}
