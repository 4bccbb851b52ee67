//! The shape of log-ins in a workload file; the comments here are the descriptions in its JSON Schema.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{Deserialize, Deserializer, Error};

use super::shape::{DurationText, Form, Spanned, Text, Word};
use crate::secret::Secret;
use crate::token::TokenAlgorithm;

/// Log-in.
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping")]
pub(crate) struct RawCredentials {
    /// User name.
    pub user: Option<Spanned<String>>,
    /// Password; never written to a record. Others can read it in the file: `password_env` is safer.
    pub password: Option<Secret>,
    /// Environment variable that holds the password, in place of `password`.
    pub password_env: Option<Spanned<String>>,
    /// Client identifier, with placeholders such as `{device}`; pubmark's own if not given.
    pub client_id: Option<Spanned<String>>,
    /// A CSV file with a row for each client, in place of all others but `token`. Its first line names its columns, some of
    /// `client_id`, `user`, `password`, `certificate`, `key`, `token`, `nkey`; a relative path counts from the folder of the workload's
    /// file.
    pub file: Option<Spanned<String>>,
    /// A JSON Web Token that each client signs for itself whenever it connects, sent in place of a password.
    pub token: Option<Spanned<TokenForm>>,
}

/// The rules of tokens. A token itself in their place is refused without being shown.
#[derive(Clone, Debug)]
pub(crate) struct TokenForm(pub RawToken);

impl<'de> Deserialize<'de> for TokenForm {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<TokenForm, D::Error> {
        match Form::<WrittenToken, RawToken>::deserialize(deserializer)? {
            Form::Short(none) => match none {},
            Form::Full(rules) => Ok(TokenForm(rules)),
        }
    }
}

/// A token where the rules of tokens belong: there is none.
enum WrittenToken {}

impl<'de> Deserialize<'de> for WrittenToken {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<WrittenToken, D::Error> {
        Err(D::Error::custom(
            "`token` says how clients sign tokens, and is a mapping; a token itself goes where a password does",
        ))
    }
}

impl JsonSchema for TokenForm {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        RawToken::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<RawToken>()
    }
}

/// How JSON Web Tokens are signed (RFC 7519), and what they say.
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping")]
pub(crate) struct RawToken {
    /// `HS256`, `RS256`, `ES256` or `EdDSA`.
    pub algorithm: Word<TokenAlgorithm>,
    /// File with what signs: a private key as PEM (PKCS #8); for HS256 the secret, without the line break at its end.
    pub file: Option<Spanned<String>>,
    /// Environment variable that holds the same, in place of `file`.
    pub key_env: Option<Spanned<String>>,
    /// The `kid` in each token's header, for systems that tell their keys by it.
    pub key_id: Option<Spanned<String>>,
    /// How long a token is valid from when it is signed, in whole seconds; `1h` by default. A client that connects again signs
    /// a new one.
    pub lifetime: Option<Text<DurationText>>,
    /// The claims, such as `{sub: "{device}", aud: broker}`; placeholders in their texts are those of `client_id`, `{user}` and
    /// `{client_id}`. `iat` and `exp` are added.
    pub claims: Option<Spanned<serde_json::Map<String, serde_json::Value>>>,
    /// Over MQTT 5: the token is the authentication data of a method, such as `{method: JWT, before: 10s}`, and each client sends a new
    /// one on its open connection before the old one expires. Without it a token is sent in place of a password, when a client connects.
    pub reauthenticate: Option<Spanned<RawReauthentication>>,
}

/// How a token is renewed on an open connection.
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping with `method` and `before`")]
pub(crate) struct RawReauthentication {
    /// Name of the authentication method, as the system knows it.
    pub method: Spanned<String>,
    /// How long before the token expires a new one is sent, in whole seconds.
    pub before: Text<DurationText>,
}
