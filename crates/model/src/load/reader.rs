//! The tree as a serde deserializer, so that structs declare the shape of a file; positions are preserved.
//!
//! Two newtype names have a special meaning: [`SPANNED`] returns a value with its position, [`FORM`] a value with its
//! shape.

use serde::de::value::{SeqDeserializer, StrDeserializer};
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, IntoDeserializer, MapAccess, SeqAccess, Unexpected,
    VariantAccess, Visitor,
};

use super::diagnostic::{Problem, ProblemKind, Span};
use super::node::{Entry, Node, Value};
use super::suggest;

/// Newtype name that requests `(source, start, length, value)`.
pub(crate) const SPANNED: &str = "$pubmark::spanned";
/// Newtype name that requests `(shape, value)`, where shape is one of the constants below.
pub(crate) const FORM: &str = "$pubmark::form";
/// Shape of anything but a list or mapping.
pub(crate) const SCALAR: u32 = 0;
/// Shape of a list.
pub(crate) const LIST: u32 = 1;
/// Shape of a mapping.
pub(crate) const MAP: u32 = 2;

/// Reads one node.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a>(pub &'a Node);

impl Reader<'_> {
    /// The node's position; for a block the position of its first key, since the block itself has no position that can be
    /// underlined.
    fn place(self) -> Span {
        match self.0.entries().first() {
            Some(first) if self.0.span.length <= 1 => first.key_span,
            _ => self.0.span,
        }
    }

    fn check_keys(self, fields: &'static [&'static str]) -> Result<(), Problem> {
        match self.0.entries().iter().find(|entry| !fields.contains(&entry.key.as_str())) {
            None => Ok(()),
            Some(entry) => {
                let problem = Problem::new(ProblemKind::UnknownKey, format!("unknown key `{}`", entry.key))
                    .at(entry.key_span, "nothing reads this")
                    .help(meant_by(&entry.key, fields).unwrap_or_else(|| suggest::among(&entry.key, fields)));
                // An unknown key may be a password, or have one as its value.
                Err(match is_of_secrets(fields) {
                    true => hidden(problem, &entry.node),
                    false => problem,
                })
            }
        }
    }
}

/// Equivalent of a key that other tools have, if it is hard to guess.
fn meant_by(key: &str, fields: &[&str]) -> Option<String> {
    let is_rule = ["when", "then", "trigger", "triggers", "receives", "on_message"].contains(&key);
    (is_rule && fields.contains(&"arrival")).then(|| {
        "what a device sends in addition after it received something is its arrival: `arrival: {reaction_to: \"alarm/+\", for: \
         30s}` with `rate: 10/s`; a group of devices that send less has `when: {receives: \"busy/+\", rate: 1/s, for: 30s}`; \
         `client` names the client that receives (docs/how-to/change-rates-over-time.md)"
            .to_owned()
    })
}

/// Whether these fields contain secrets, or the sources of secrets.
fn is_of_secrets(fields: &[&str]) -> bool {
    fields.iter().any(|field| ["password", "token", "key_env"].contains(field))
}

/// Masks the whole content of a node.
fn hidden(problem: Problem, node: &Node) -> Problem {
    match &node.value {
        Value::Map(entries) => entries.iter().fold(problem, |problem, entry| hidden(problem, &entry.node)),
        Value::List(items) => items.iter().fold(problem, hidden),
        _ => problem.hide(node.span),
    }
}

impl<'de> Deserializer<'de> for Reader<'_> {
    type Error = Problem;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        let read = match &self.0.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Integer(value) => visitor.visit_i64(*value),
            Value::Float(value) => visitor.visit_f64(*value),
            Value::Text(text) => visitor.visit_str(text),
            Value::List(items) => visitor.visit_seq(Items(items.iter())),
            Value::Map(entries) => visitor.visit_map(Entries { rest: entries.iter(), current: None }),
        };
        read.map_err(|problem| problem.or_at(self.place()))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        match self.0.value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Problem> {
        if matches!(self.0.value, Value::List(_)) {
            // Serde would accept a list for a struct, field by field.
            return Err(Problem::invalid_type(Unexpected::Seq, &visitor).at(self.0.span, "here"));
        }
        self.check_keys(fields)?;
        self.deserialize_any(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, Problem> {
        match name {
            SPANNED => visitor.visit_seq(Marked { numbers: place_numbers(self.place()), value: Some(self) }),
            FORM => {
                let shape = match self.0.value {
                    Value::List(_) => LIST,
                    Value::Map(_) => MAP,
                    _ => SCALAR,
                };
                visitor.visit_seq(Marked { numbers: vec![shape].into_iter(), value: Some(self) })
            }
            _ => visitor.visit_newtype_struct(self),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Problem> {
        let Value::Text(word) = &self.0.value else {
            return Err(Problem::new(ProblemKind::WrongKind, format!("expected a word, found {}", self.0.kind()))
                .at(self.place(), "here")
                .help(suggest::among("", variants)));
        };
        visitor.visit_enum(Word(word)).map_err(|problem| problem.or_at(self.place()))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        unit unit_struct seq tuple tuple_struct map identifier ignored_any
    }
}

fn place_numbers(span: Span) -> std::vec::IntoIter<u32> {
    vec![u32::from(span.source), span.start, span.length].into_iter()
}

/// First the numbers, then the value itself.
struct Marked<D> {
    numbers: std::vec::IntoIter<u32>,
    value: Option<D>,
}

impl<'de, D: Deserializer<'de, Error = Problem>> SeqAccess<'de> for Marked<D> {
    type Error = Problem;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Problem> {
        match self.numbers.next() {
            Some(number) => seed.deserialize(number.into_deserializer()).map(Some),
            None => self.value.take().map(|value| seed.deserialize(value)).transpose(),
        }
    }
}

struct Items<'a>(std::slice::Iter<'a, Node>);

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = Problem;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Problem> {
        self.0.next().map(|item| seed.deserialize(Reader(item))).transpose()
    }
}

struct Entries<'a> {
    rest: std::slice::Iter<'a, Entry>,
    current: Option<&'a Entry>,
}

impl<'de> MapAccess<'de> for Entries<'_> {
    type Error = Problem;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Problem> {
        self.current = self.rest.next();
        self.current.map(|entry| seed.deserialize(Key(entry))).transpose()
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Problem> {
        let entry = self.current.ok_or_else(|| Problem::custom("a value was asked for before its key"))?;
        seed.deserialize(Reader(&entry.node)).map_err(|problem| problem.or_at(entry.key_span))
    }
}

/// A mapping's key.
struct Key<'a>(&'a Entry);

impl<'de> Deserializer<'de> for Key<'_> {
    type Error = Problem;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        visitor.visit_str(&self.0.key)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, Problem> {
        if name == SPANNED {
            let value = StrDeserializer::<Problem>::new(&self.0.key);
            visitor.visit_seq(Marked { numbers: place_numbers(self.0.key_span), value: Some(value) })
        } else {
            visitor.visit_newtype_struct(self)
        }
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// A variant without fields, by its name.
struct Word<'a>(&'a str);

impl<'de, 'a> EnumAccess<'de> for Word<'a> {
    type Error = Problem;
    type Variant = Self;

    fn variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<(T::Value, Self), Problem> {
        seed.deserialize(StrDeserializer::<Problem>::new(self.0)).map(|value| (value, self))
    }
}

impl<'de> VariantAccess<'de> for Word<'_> {
    type Error = Problem;

    fn unit_variant(self) -> Result<(), Problem> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, _seed: T) -> Result<T::Value, Problem> {
        Err(Problem::custom("a word takes no value"))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _length: usize, visitor: V) -> Result<V::Value, Problem> {
        SeqDeserializer::<_, Problem>::new(std::iter::empty::<u32>()).deserialize_any(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        _visitor: V,
    ) -> Result<V::Value, Problem> {
        Err(Problem::custom("a word takes no value"))
    }
}
