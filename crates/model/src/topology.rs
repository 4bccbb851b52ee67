//! The brokers of a system and how they are connected, written as `3:bridge` in experiments, on the command line and in
//! records.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Maximum number of brokers of one system: each is a separate process tree with its own ports on one machine.
pub const MOST_BROKERS: u32 = 64;

/// The form of a topology, which ends every error message about an invalid one.
const FORM: &str = "a topology is written N:MODE with the mode bridge, cluster or shard, for instance `3:bridge`";

/// Number of brokers and how they are connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Topology {
    /// Number of brokers, from 1 to [`MOST_BROKERS`].
    pub brokers: u32,
    /// How the brokers work together; `shard` for a single broker, where it has no meaning.
    pub mode: TopologyMode,
}

/// How several brokers work together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TopologyMode {
    /// Each broker forwards messages to the first, and the first to each.
    Bridge,
    /// With the clustering of the system.
    Cluster,
    /// They are independent: devices are distributed over them, and subscribers subscribe at all of them.
    Shard,
}

impl TopologyMode {
    /// The modes with their names.
    pub const ALL: [(TopologyMode, &'static str); 3] =
        [(TopologyMode::Bridge, "bridge"), (TopologyMode::Cluster, "cluster"), (TopologyMode::Shard, "shard")];

    /// Name of the mode.
    pub fn as_str(self) -> &'static str {
        match self {
            TopologyMode::Bridge => "bridge",
            TopologyMode::Cluster => "cluster",
            TopologyMode::Shard => "shard",
        }
    }
}

impl fmt::Display for TopologyMode {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Topology {
    /// One broker.
    pub const ONE: Topology = Topology { brokers: 1, mode: TopologyMode::Shard };

    /// Parses `1`, `3:bridge`, `3:cluster`, `5:shard`; a space may replace the colon. The error is a clause for the user.
    pub fn parse(text: &str) -> Result<Topology, String> {
        let (number, mode) = match text.split_once([':', ' ']) {
            Some((number, mode)) => (number.trim(), mode.trim()),
            None => (text, ""),
        };
        let brokers: u32 = number.parse().map_err(|_| FORM.to_owned())?;
        if !(1..=MOST_BROKERS).contains(&brokers) {
            return Err(format!("{brokers} brokers: from 1 to {MOST_BROKERS} can be started"));
        }
        let known = TopologyMode::ALL.iter().find(|(_, word)| *word == mode).map(|(known, _)| *known);
        match known {
            None if mode.is_empty() && brokers == 1 => Ok(Topology::ONE),
            None if mode.is_empty() => Err(format!("how {brokers} brokers act together: {FORM}")),
            None => Err(format!("there is no mode `{mode}`: {FORM}")),
            Some(_) if brokers == 1 => Ok(Topology::ONE),
            Some(mode) => Ok(Topology { brokers, mode }),
        }
    }
}

impl Default for Topology {
    fn default() -> Topology {
        Topology::ONE
    }
}

impl std::fmt::Display for Topology {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.brokers {
            1 => formatter.write_str("1"),
            brokers => write!(formatter, "{brokers}:{}", self.mode.as_str()),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_topology_reads_what_it_writes() {
        for text in ["1", "3:bridge", "2:cluster", "5:shard"] {
            assert_eq!(Topology::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Topology::parse("1 bridge"), Ok(Topology::ONE));
        assert_eq!(Topology::parse("5 shard"), Topology::parse("5:shard"));
        for wrong in ["", "0", "3", "3:ring", "1:ring", "x:bridge", "-1:bridge", "0:shard", "3:bridge:now", "65:shard"]
        {
            assert!(Topology::parse(wrong).is_err(), "{wrong}");
        }
    }
}
