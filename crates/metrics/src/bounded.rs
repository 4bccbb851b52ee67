//! Deserialises lists and tables of bounded length: an empty histogram is a few bytes when transmitted and a quarter of
//! a megabyte in memory.

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

struct Bounded<T, const N: usize>(PhantomData<T>);

/// Reads a list of at most `N` elements.
///
/// # Errors
/// The list is longer, or an element cannot be read.
pub fn at_most<'de, const N: usize, T, D>(from: D) -> Result<Vec<T>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    from.deserialize_seq(Bounded::<Vec<T>, N>(PhantomData))
}

/// Reads a table of at most `N` rows.
///
/// # Errors
/// The table is longer, or a row cannot be read.
pub fn map_of_at_most<'de, const N: usize, K, V, D>(from: D) -> Result<HashMap<K, V>, D::Error>
where
    K: Deserialize<'de> + Eq + Hash,
    V: Deserialize<'de>,
    D: Deserializer<'de>,
{
    from.deserialize_map(Bounded::<HashMap<K, V>, N>(PhantomData))
}

impl<'de, T: Deserialize<'de>, const N: usize> Visitor<'de> for Bounded<Vec<T>, N> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at most {N}")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Vec<T>, A::Error> {
        let mut list = vec![];
        while let Some(next) = from.next_element()? {
            if list.len() == N {
                return Err(A::Error::invalid_length(N + 1, &self));
            }
            list.push(next);
        }
        Ok(list)
    }
}

impl<'de, K, V, const N: usize> Visitor<'de> for Bounded<HashMap<K, V>, N>
where
    K: Deserialize<'de> + Eq + Hash,
    V: Deserialize<'de>,
{
    type Value = HashMap<K, V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at most {N} rows")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<HashMap<K, V>, A::Error> {
        let mut table = HashMap::new();
        while let Some((key, value)) = from.next_entry()? {
            if table.len() == N {
                return Err(A::Error::invalid_length(N + 1, &self));
            }
            table.insert(key, value);
        }
        Ok(table)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde::{Deserialize, Serialize};

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Few {
        #[serde(deserialize_with = "at_most::<3, _, _>")]
        list: Vec<u8>,
        #[serde(deserialize_with = "map_of_at_most::<2, _, _, _>")]
        table: HashMap<u8, u8>,
    }

    #[test]
    fn a_list_longer_than_its_limit_is_an_error() {
        let read = |list: usize, rows: u8| {
            let few = Few { list: vec![1; list], table: (0..rows).map(|key| (key, key)).collect() };
            postcard::from_bytes::<Few>(&postcard::to_allocvec(&few).unwrap()).is_ok_and(|read| read == few)
        };
        assert!(read(3, 2) && read(0, 0));
        assert!(!read(4, 0) && !read(0, 3));
    }
}
