//! Values that have the same text form in a specification and on the command line: `10s`, `sensors=lte`, `3:bridge`,
//! `cpu=0.5,memory=256MB`.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use pubmark_model::fault::choice::FaultChoice;
use pubmark_model::link::choice::LinkChoice;
use pubmark_model::pace::Pace;
use pubmark_model::placement::{LabelsInTurn, PlacementChoice};
use pubmark_model::topology::Topology;
use pubmark_model::units;
use pubmark_systems::limits::{self, ResourceLimits};
use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};

use super::connect_rate::ConnectRate;
use super::source_addresses::SourceAddresses;

/// A value with one text form.
pub trait Text: Sized {
    /// Parses the value; the error is a sentence for the user.
    fn read(text: &str) -> Result<Self, String>;
    /// Writes the value in a form that [`Text::read`] parses.
    fn write(&self) -> String;

    /// What is expected, for the error about a value that is no text.
    fn expected() -> &'static str {
        "a text as on the command line"
    }
}

impl Text for Duration {
    fn read(text: &str) -> Result<Duration, String> {
        units::duration(text).map_err(|error| match error.hint {
            Some(hint) => format!("{}: {hint}", error.message),
            None => error.message,
        })
    }

    fn write(&self) -> String {
        units::written(*self)
    }
}

impl Text for LinkChoice {
    fn read(text: &str) -> Result<LinkChoice, String> {
        LinkChoice::parse(text)
    }

    fn write(&self) -> String {
        self.to_string()
    }
}

impl Text for FaultChoice {
    fn read(text: &str) -> Result<FaultChoice, String> {
        FaultChoice::parse(text)
    }

    fn write(&self) -> String {
        self.to_string()
    }
}

impl Text for Topology {
    fn read(text: &str) -> Result<Topology, String> {
        Topology::parse(text)
    }

    fn write(&self) -> String {
        self.to_string()
    }
}

impl Text for ConnectRate {
    fn read(text: &str) -> Result<ConnectRate, String> {
        ConnectRate::parse(text)
    }

    fn write(&self) -> String {
        self.to_string()
    }
}

impl Text for Pace {
    fn read(text: &str) -> Result<Pace, String> {
        Pace::parse(text)
    }

    fn write(&self) -> String {
        self.to_string()
    }
}

impl Text for PlacementChoice {
    fn read(text: &str) -> Result<PlacementChoice, String> {
        PlacementChoice::parse(text)
    }

    fn write(&self) -> String {
        self.to_string()
    }
}

impl Text for LabelsInTurn {
    fn read(text: &str) -> Result<LabelsInTurn, String> {
        LabelsInTurn::parse(text)
    }

    fn write(&self) -> String {
        self.to_string()
    }
}

impl Text for ResourceLimits {
    fn read(text: &str) -> Result<ResourceLimits, String> {
        limits::parse(text).map_err(|error| error.to_string())
    }

    fn write(&self) -> String {
        self.requested.clone()
    }
}

impl Text for SourceAddresses {
    fn read(text: &str) -> Result<SourceAddresses, String> {
        SourceAddresses::parse(text)
    }

    fn write(&self) -> String {
        self.0.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
    }
}

/// A setting of a workload, `KEY=VALUE`.
impl Text for (String, String) {
    fn read(text: &str) -> Result<(String, String), String> {
        match text.split_once('=') {
            Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.trim().to_owned())),
            _ => Err("a setting is written KEY=VALUE, for instance `interval=10ms`".to_owned()),
        }
    }

    fn write(&self) -> String {
        format!("{}={}", self.0, self.1)
    }

    fn expected() -> &'static str {
        "a text `KEY=VALUE`, such as `interval=10ms`"
    }
}

/// Makes a [`Text`] serialisable with serde.
struct Written<T>(T);

impl<T: Text> Serialize for Written<&T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.write())
    }
}

impl<'de, T: Text> Deserialize<'de> for Written<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Written<T>, D::Error> {
        struct Reader<T>(PhantomData<T>);
        impl<T: Text> Visitor<'_> for Reader<T> {
            type Value = Written<T>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(T::expected())
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Written<T>, E> {
                T::read(text).map(Written).map_err(E::custom)
            }

            // `3` is a text as well, where a text is expected.
            fn visit_i64<E: Error>(self, value: i64) -> Result<Written<T>, E> {
                self.visit_str(&value.to_string())
            }

            fn visit_u64<E: Error>(self, value: u64) -> Result<Written<T>, E> {
                self.visit_str(&value.to_string())
            }

            fn visit_f64<E: Error>(self, value: f64) -> Result<Written<T>, E> {
                self.visit_str(&value.to_string())
            }
        }
        // The error about a map or a list is then ours, not the parser's, which does not know what is expected.
        match deserializer.is_human_readable() {
            true => deserializer.deserialize_any(Reader(PhantomData)),
            false => deserializer.deserialize_str(Reader(PhantomData)),
        }
    }
}

/// Serialisation of one value.
pub mod one {
    use super::{Deserialize, Deserializer, Serialize, Serializer, Text, Written};

    /// Serialises the value.
    pub fn serialize<T: Text, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
        Written(value).serialize(serializer)
    }

    /// Deserialises the value.
    pub fn deserialize<'de, T: Text, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
        Written::deserialize(deserializer).map(|written| written.0)
    }
}

/// Serialisation of an optional value.
pub mod maybe {
    use super::{Deserialize, Deserializer, Serialize, Serializer, Text, Written};

    /// Serialises the value, if there is one.
    pub fn serialize<T: Text, S: Serializer>(value: &Option<T>, serializer: S) -> Result<S::Ok, S::Error> {
        value.as_ref().map(Written).serialize(serializer)
    }

    /// Deserialises the value.
    pub fn deserialize<'de, T: Text, D: Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
        Ok(Option::<Written<T>>::deserialize(deserializer)?.map(|written| written.0))
    }
}

/// Serialisation of a list.
pub mod list {
    use super::{Deserializer, PhantomData, SeqAccess, Serializer, Text, Visitor, Written, fmt};

    /// Serialises each value.
    pub fn serialize<T: Text, S: Serializer>(values: &[T], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(values.iter().map(Written))
    }

    /// Deserialises each value.
    pub fn deserialize<'de, T: Text, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
        struct Each<T>(PhantomData<T>);
        impl<'de, T: Text> Visitor<'de> for Each<T> {
            type Value = Vec<T>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(formatter, "a list, each entry {}", T::expected())
            }

            fn visit_seq<List: SeqAccess<'de>>(self, mut list: List) -> Result<Vec<T>, List::Error> {
                let mut values = vec![];
                while let Some(Written(value)) = list.next_element()? {
                    values.push(value);
                }
                Ok(values)
            }
        }
        match deserializer.is_human_readable() {
            true => deserializer.deserialize_any(Each(PhantomData)),
            false => deserializer.deserialize_seq(Each(PhantomData)),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn again<T: Text>(text: &str) -> String {
        T::read(text).unwrap().write()
    }

    #[test]
    fn what_is_written_is_what_was_read() {
        assert_eq!(again::<Duration>("1.5s"), "1500ms");
        assert_eq!(again::<LinkChoice>("sensors=lte"), "sensors=lte");
        assert_eq!(again::<FaultChoice>("kill:at=1s,for=100ms"), "kill:at=1s,for=100ms");
        assert_eq!(again::<Topology>("3:bridge"), "3:bridge");
        assert_eq!(again::<PlacementChoice>("cameras = site=edge-1"), "cameras=site=edge-1");
        assert_eq!(again::<LabelsInTurn>("site=edge-1,edge-2"), "site=edge-1,edge-2");
        assert_eq!(again::<ResourceLimits>("cpu=0.5"), "cpu=0.5");
        assert_eq!(again::<SourceAddresses>("127.0.0.1-127.0.0.2"), "127.0.0.1,127.0.0.2");
        assert_eq!(again::<(String, String)>("every = 1s"), "every=1s");
    }
}
