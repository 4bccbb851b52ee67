//! Building blocks of the file's shape: values with positions, texts with units, short and full forms, named lists.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::diagnostic::Span;
use super::reader::{FORM, LIST, MAP, SPANNED};

/// A value with its position.
#[derive(Clone, Debug)]
pub(crate) struct Spanned<T> {
    /// The value.
    pub value: T,
    /// Position of the value.
    pub span: Span,
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Spanned<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Spanned<T>, D::Error> {
        struct Place<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Place<T> {
            type Value = Spanned<T>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a value with its place")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Spanned<T>, A::Error> {
                let source: u32 = next(&mut access)?;
                let (start, length) = (next(&mut access)?, next(&mut access)?);
                let value = next(&mut access)?;
                Ok(Spanned { value, span: Span { source: source as u16, start, length } })
            }
        }
        deserializer.deserialize_newtype_struct(SPANNED, Place(PhantomData))
    }
}

fn next<'de, A: SeqAccess<'de>, T: Deserialize<'de>>(access: &mut A) -> Result<T, A::Error> {
    access.next_element()?.ok_or_else(|| A::Error::custom("a place without its value"))
}

impl<T: JsonSchema> JsonSchema for Spanned<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<T>()
    }
}

/// A word of a fixed list, or a Boolean. Before parameters are replaced it may be `${name}`, which its schema allows.
#[derive(Clone, Debug)]
pub(crate) struct Word<T> {
    /// The word.
    pub value: T,
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Word<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Word<T>, D::Error> {
        T::deserialize(deserializer).map(|value| Word { value })
    }
}

impl<T: JsonSchema> JsonSchema for Word<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [
            generator.subschema_for::<T>(),
            { "type": "string", "pattern": r"^\$\{[^}]+\}$" },
        ] })
    }
}

/// A scalar as it was written; `K` defines which texts are valid.
#[derive(Clone, Debug)]
pub(crate) struct Text<K> {
    /// The scalar in its plain form.
    pub text: String,
    /// Position of the scalar.
    pub span: Span,
    kind: PhantomData<K>,
}

/// Defines the valid texts of a scalar.
pub(crate) trait TextKind {
    /// With its article, for messages: `a duration such as `5s``.
    const EXPECTED: &'static str;
    /// Name of its definition in the JSON Schema.
    const NAME: &'static str;
    /// Regular expression of its texts, in the JSON Schema.
    const PATTERN: &'static str;
    /// JSON types that it may have.
    const TYPES: &'static [&'static str];
}

/// Declares the kinds of scalars; one row each.
macro_rules! text_kinds {
    ($($(#[$about:meta])* $kind:ident = $name:literal, $expected:literal, $pattern:literal, $types:expr;)*) => {$(
        $(#[$about])*
        #[derive(Clone, Debug)]
        pub(crate) enum $kind {}

        impl TextKind for $kind {
            const EXPECTED: &'static str = $expected;
            const NAME: &'static str = $name;
            const PATTERN: &'static str = $pattern;
            const TYPES: &'static [&'static str] = $types;
        }
    )*};
}
pub(crate) use text_kinds;

text_kinds! {
    /// `10ms`, `1.5s`, `2m`, `1h`.
    DurationText = "Duration", "a duration such as `5s`",
        r"^([0-9]*\.?[0-9]+(ns|us|ms|s|m|h)|.*\$\{.+\}.*)$", &["string"];
    /// `16B`, `1KB`, `1KiB`, `1.2MB`, `100`.
    SizeText = "Size", "a size such as `1KB`",
        r"^([0-9]*\.?[0-9]+(B|kB|KB|KiB|MB|MiB|GB|GiB)?|.*\$\{.+\}.*)$", &["string", "number"];
    /// `5/s`, `10/min`, `1/h`.
    RateText = "Rate", "a rate such as `5/s`",
        r"^([0-9]*\.?[0-9]+/(s|min|h)|.*\$\{.+\}.*)$", &["string"];
    /// `10%` of the mean, or a size.
    SpreadText = "Spread", "a share of the mean such as `10%`, or a size such as `20B`",
        r"^([0-9]*\.?[0-9]+(%|B|kB|KB|KiB|MB|MiB|GB|GiB)?|.*\$\{.+\}.*)$", &["string", "number"];
    /// `20% every 5s`.
    CheckText = "Check", "a chance and a period such as `20% every 5s`",
        r"^([0-9]*\.?[0-9]+%? every [0-9]*\.?[0-9]+(ns|us|ms|s|m|h)|.*\$\{.+\}.*)$", &["string"];
    /// `30%`.
    ChanceText = "Chance", "a chance such as `30%`",
        r"^([0-9]*\.?[0-9]+%?|.*\$\{.+\}.*)$", &["string", "number"];
    /// A number of devices for each unit of the scale.
    ShareText = "Share", "a number such as `10`, or `0.2` for one in five",
        r"^([0-9]*\.?[0-9]+|.*\$\{.+\}.*)$", &["string", "number"];
    /// `20ms`, `exponential 20ms`.
    ThinkText = "Think", "a time such as `20ms` or `exponential 20ms`",
        r"^((exponential )?[0-9]*\.?[0-9]+(ns|us|ms|s|m|h)|.*\$\{.+\}.*)$", &["string"];
    /// A whole number.
    CountText = "Count", "a whole number",
        r"^([0-9]+|.*\$\{.+\}.*)$", &["string", "integer"];
    /// A number.
    NumberText = "Number", "a number",
        r"^([0-9]*\.?[0-9]+|.*\$\{.+\}.*)$", &["string", "number"];
    /// `0`, `1`, `2` or the words.
    QosText = "Qos", "a delivery level: `0`, `1`, `2`",
        r"^([012]|best-effort|at-least-once|exactly-once|.*\$\{.+\}.*)$", &["string", "integer"];
    /// `split`, `replicate`, `site=edge-1`, `each site`.
    PlacementText = "Placement", "a placement such as `split`, `replicate`, `site=edge-1` or `each site`",
        r"^(split|once|replicate|every-node|each [^ =]+|[^ =]+=[^ =]+|.*\$\{.+\}.*)$", &["string"];
    /// Any scalar.
    AnyText = "Scalar", "a text or a number", "", &["string", "number", "boolean"];
}

impl<K> Text<K> {
    /// A part of another text.
    pub fn new(text: String, span: Span) -> Text<K> {
        Text { text, span, kind: PhantomData }
    }
}

impl<'de, K: TextKind> Deserialize<'de> for Text<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Text<K>, D::Error> {
        struct Scalar<K>(String, PhantomData<K>);
        impl<'de, K: TextKind> Deserialize<'de> for Scalar<K> {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Scalar<K>, D::Error> {
                let text = deserializer.deserialize_any(ScalarVisitor::<K>(PhantomData))?;
                Ok(Scalar(text, PhantomData))
            }
        }
        let Spanned { value, span } = Spanned::<Scalar<K>>::deserialize(deserializer)?;
        Ok(Text { text: value.0, span, kind: PhantomData })
    }
}

struct ScalarVisitor<K>(PhantomData<K>);

impl<K: TextKind> Visitor<'_> for ScalarVisitor<K> {
    type Value = String;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(K::EXPECTED)
    }

    fn visit_bool<E>(self, value: bool) -> Result<String, E> {
        Ok(value.to_string())
    }

    fn visit_i64<E>(self, value: i64) -> Result<String, E> {
        Ok(value.to_string())
    }

    fn visit_f64<E>(self, value: f64) -> Result<String, E> {
        Ok(value.to_string())
    }

    fn visit_str<E>(self, value: &str) -> Result<String, E> {
        Ok(value.to_owned())
    }
}

impl<K: TextKind> JsonSchema for Text<K> {
    fn schema_name() -> Cow<'static, str> {
        K::NAME.into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let description = format!("Expected: {}.", K::EXPECTED);
        if K::PATTERN.is_empty() {
            json_schema!({ "description": description, "type": K::TYPES })
        } else {
            json_schema!({ "description": description, "type": K::TYPES, "pattern": K::PATTERN })
        }
    }
}

/// A scalar in short, a mapping in full.
#[derive(Clone, Debug)]
pub(crate) enum Form<S, F> {
    /// The scalar.
    Short(S),
    /// The mapping.
    Full(F),
}

impl<'de, S: Deserialize<'de>, F: Deserialize<'de>> Deserialize<'de> for Form<S, F> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Form<S, F>, D::Error> {
        struct Shape<S, F>(PhantomData<(S, F)>);
        impl<'de, S: Deserialize<'de>, F: Deserialize<'de>> Visitor<'de> for Shape<S, F> {
            type Value = Form<S, F>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a value or a mapping")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Form<S, F>, A::Error> {
                match next::<A, u32>(&mut access)? {
                    MAP => next(&mut access).map(Form::Full),
                    _ => next(&mut access).map(Form::Short),
                }
            }
        }
        deserializer.deserialize_newtype_struct(FORM, Shape(PhantomData))
    }
}

impl<S: JsonSchema, F: JsonSchema> JsonSchema for Form<S, F> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("{}Or{}", S::schema_name(), F::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [generator.subschema_for::<S>(), generator.subschema_for::<F>()] })
    }
}

/// One item, or a list of them.
#[derive(Clone, Debug)]
pub(crate) struct OneOrMany<T>(pub Vec<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for OneOrMany<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<OneOrMany<T>, D::Error> {
        struct Shape<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Shape<T> {
            type Value = OneOrMany<T>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a value or a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<OneOrMany<T>, A::Error> {
                match next::<A, u32>(&mut access)? {
                    LIST => next(&mut access).map(OneOrMany),
                    _ => next(&mut access).map(|item| OneOrMany(vec![item])),
                }
            }
        }
        deserializer.deserialize_newtype_struct(FORM, Shape(PhantomData))
    }
}

impl<T: JsonSchema> JsonSchema for OneOrMany<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("OneOrMany{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [generator.subschema_for::<T>(), generator.subschema_for::<Vec<T>>()] })
    }
}

/// A mapping from names to values, in the order of the file.
#[derive(Clone, Debug)]
pub(crate) struct Named<T>(pub Vec<(Spanned<String>, T)>);

impl<T> Default for Named<T> {
    fn default() -> Named<T> {
        Named(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Named<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Named<T>, D::Error> {
        struct Names<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Names<T> {
            type Value = Named<T>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a mapping from names")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Named<T>, A::Error> {
                let mut names = Vec::new();
                while let Some(entry) = access.next_entry()? {
                    names.push(entry);
                }
                Ok(Named(names))
            }
        }
        deserializer.deserialize_map(Names(PhantomData))
    }
}

impl<T: JsonSchema> JsonSchema for Named<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("Named{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object", "additionalProperties": generator.subschema_for::<T>() })
    }
}
