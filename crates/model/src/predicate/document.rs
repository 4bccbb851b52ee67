//! Reads the values that a predicate needs from a JSON document, without building a tree.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::MOST_PATHS;

/// A document on which a predicate cannot be evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no JSON with the fields of the predicate")]
pub struct Unreadable;

/// A value that is not an object or array.
#[derive(Clone, Debug, PartialEq)]
pub enum Scalar<'a> {
    /// A number.
    Number(f64),
    /// A text.
    Text(Cow<'a, str>),
    /// A Boolean.
    Truth(bool),
}

/// The paths that a predicate uses, as a tree of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Paths {
    /// The first node is the whole document.
    places: Vec<PathNode>,
    count: usize,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct PathNode {
    children: Vec<(String, usize)>,
    /// Number of the path that ends at this node.
    number: Option<usize>,
}

/// The values of one document, by the number of their path.
pub(super) struct Values<'a>([Option<Scalar<'a>>; MOST_PATHS]);

impl<'a> Values<'a> {
    pub(super) fn get(&'a self, number: usize) -> Result<Scalar<'a>, Unreadable> {
        match &self.0[number] {
            Some(Scalar::Text(text)) => Ok(Scalar::Text(Cow::Borrowed(text))),
            Some(other) => Ok(other.clone()),
            None => Err(Unreadable),
        }
    }
}

impl Paths {
    pub(super) fn new() -> Paths {
        Paths { places: vec![PathNode::default()], count: 0 }
    }

    /// The number of a path; `None` if there are more than [`MOST_PATHS`].
    pub(super) fn add(&mut self, keys: &[String]) -> Option<usize> {
        let mut place = 0;
        for key in keys {
            let known = self.places[place].children.iter().find(|(known, _)| known == key).map(|(_, child)| *child);
            place = known.unwrap_or_else(|| {
                let child = self.places.len();
                self.places.push(PathNode::default());
                self.places[place].children.push((key.clone(), child));
                child
            });
        }
        if let Some(number) = self.places[place].number {
            return Some(number);
        }
        let number = self.count;
        (number < MOST_PATHS).then_some(())?;
        self.places[place].number = Some(number);
        self.count += 1;
        Some(number)
    }

    /// Number of paths.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// The keys of a path, from the root of the document.
    pub(super) fn keys(&self, number: usize) -> Vec<&str> {
        fn find<'a>(places: &'a [PathNode], at: usize, number: usize, keys: &mut Vec<&'a str>) -> bool {
            let place = &places[at];
            place.number == Some(number)
                || place.children.iter().any(|(key, child)| {
                    keys.push(key);
                    find(places, *child, number, keys) || keys.pop().is_none()
                })
        }
        let mut keys = Vec::new();
        find(&self.places, 0, number, &mut keys);
        keys
    }

    /// Reads the values of a document.
    pub(super) fn read<'a>(&self, document: &'a [u8]) -> Result<Values<'a>, Unreadable> {
        let mut values = Values([const { None }; MOST_PATHS]);
        let mut deserializer = serde_json::Deserializer::from_slice(document);
        let whole = Reading { paths: self, place: 0, values: &mut values };
        whole.deserialize(&mut deserializer).and_then(|()| deserializer.end()).map_err(|_| Unreadable)?;
        Ok(values)
    }
}

/// Reads the value at a node of the tree.
struct Reading<'p, 'v, 'a> {
    paths: &'p Paths,
    place: usize,
    values: &'v mut Values<'a>,
}

impl<'a> Reading<'_, '_, 'a> {
    fn note(self, value: Scalar<'a>) {
        if let Some(number) = self.paths.places[self.place].number {
            self.values.0[number] = Some(value);
        }
    }
}

impl<'a> DeserializeSeed<'a> for Reading<'_, '_, 'a> {
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'a> Visitor<'a> for Reading<'_, '_, 'a> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        self.note(Scalar::Truth(value));
        Ok(())
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        self.note(Scalar::Number(value as f64));
        Ok(())
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        self.note(Scalar::Number(value as f64));
        Ok(())
    }

    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        self.note(Scalar::Number(value));
        Ok(())
    }

    fn visit_borrowed_str<E: Error>(self, value: &'a str) -> Result<(), E> {
        self.note(Scalar::Text(Cow::Borrowed(value)));
        Ok(())
    }

    /// A text that contains escapes.
    fn visit_str<E>(self, value: &str) -> Result<(), E> {
        self.note(Scalar::Text(Cow::Owned(value.to_owned())));
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut access: A) -> Result<(), A::Error> {
        while access.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'a>>(self, mut access: A) -> Result<(), A::Error> {
        let children = &self.paths.places[self.place].children;
        while let Some(child) = access.next_key_seed(Key(children))? {
            match child {
                Some(place) => {
                    access.next_value_seed(Reading { paths: self.paths, place, values: &mut *self.values })?;
                }
                None => {
                    access.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

/// Finds the child with this key.
struct Key<'p>(&'p [(String, usize)]);

impl<'a> DeserializeSeed<'a> for Key<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<Option<usize>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Key<'_> {
    type Value = Option<usize>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<Option<usize>, E> {
        Ok(self.0.iter().find(|(known, _)| known == key).map(|(_, place)| *place))
    }
}
