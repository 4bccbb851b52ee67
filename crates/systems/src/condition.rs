//! Conditions for the parts of a definition.

use serde::Deserialize;

/// One condition, which depends on how a system is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Condition {
    /// Always.
    Always,
    /// The listeners encrypt.
    Tls,
    /// The listeners do not encrypt.
    Plain,
    /// Clients use WebSocket.
    Websocket,
    /// Clients log in.
    Password,
    /// Clients do not log in.
    Anonymous,
    /// The system runs as a program on this machine.
    Process,
    /// The system runs in a container.
    Container,
    /// There is one broker, or there are several that are not connected.
    Alone,
    /// Brokers forward messages to each other over bridges.
    Bridge,
    /// Brokers form a cluster.
    Cluster,
    /// This broker is the first of several that are connected.
    First,
    /// This broker is one of several that are connected, but not the first.
    Further,
    /// The workload needs larger packets than the system accepts by default, and the limit is raised.
    Raised,
    /// The packets that the system accepts by default are large enough.
    Unraised,
}

/// Conditions of a part, all of which must hold: one word or a list of words in a definition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "OneOrMany")]
pub struct When(Vec<Condition>);

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(Condition),
    Many(Vec<Condition>),
}

impl From<OneOrMany> for When {
    fn from(written: OneOrMany) -> When {
        match written {
            OneOrMany::One(condition) => When(vec![condition]),
            OneOrMany::Many(conditions) => When(conditions),
        }
    }
}

/// How the brokers of a system are connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Neighbours {
    /// They are not connected.
    None,
    /// Over bridges.
    Bridge,
    /// As a cluster.
    Cluster,
}

/// The situation in which conditions are evaluated: one broker of one start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Situation {
    /// The listeners encrypt.
    pub tls: bool,
    /// Clients use WebSocket.
    pub websocket: bool,
    /// Clients log in.
    pub password: bool,
    /// The system runs in a container.
    pub container: bool,
    /// How the brokers are connected.
    pub neighbours: Neighbours,
    /// The broker is the first of them.
    pub first: bool,
    /// The packet size is raised above the default.
    pub raised: bool,
}

impl Condition {
    fn holds(self, now: &Situation) -> bool {
        let several = now.neighbours != Neighbours::None;
        match self {
            Condition::Always => true,
            Condition::Tls => now.tls,
            Condition::Plain => !now.tls,
            Condition::Websocket => now.websocket,
            Condition::Password => now.password,
            Condition::Anonymous => !now.password,
            Condition::Process => !now.container,
            Condition::Container => now.container,
            Condition::Alone => !several,
            Condition::Bridge => now.neighbours == Neighbours::Bridge,
            Condition::Cluster => now.neighbours == Neighbours::Cluster,
            Condition::First => several && now.first,
            Condition::Further => several && !now.first,
            Condition::Raised => now.raised,
            Condition::Unraised => !now.raised,
        }
    }
}

impl When {
    /// Does the part apply?
    pub fn applies(&self, now: &Situation) -> bool {
        self.0.iter().all(|condition| condition.holds(now))
    }

    /// Does the list contain this condition?
    pub fn needs(&self, condition: Condition) -> bool {
        self.0.contains(&condition)
    }

    /// For tables: the conditions as in definitions, `always` if there are none.
    pub fn shown(&self) -> String {
        let words: Vec<String> = self.0.iter().map(|condition| format!("{condition:?}").to_lowercase()).collect();
        if words.is_empty() { "always".to_owned() } else { words.join(", ") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Situation = Situation {
        tls: false,
        websocket: false,
        password: false,
        container: false,
        neighbours: Neighbours::None,
        first: true,
        raised: false,
    };

    #[test]
    fn all_conditions_of_a_part_must_hold() {
        let when = When(vec![Condition::Cluster, Condition::Tls]);
        assert!(!when.applies(&PLAIN));
        assert!(!when.applies(&Situation { tls: true, ..PLAIN }));
        assert!(when.applies(&Situation { tls: true, neighbours: Neighbours::Cluster, ..PLAIN }));
        assert!(When::default().applies(&PLAIN));
    }

    #[test]
    fn a_single_broker_is_neither_first_nor_further() {
        assert!(!When(vec![Condition::First]).applies(&PLAIN));
        assert!(When(vec![Condition::First]).applies(&Situation { neighbours: Neighbours::Bridge, ..PLAIN }));
        assert!(When(vec![Condition::Further]).applies(&Situation {
            neighbours: Neighbours::Bridge,
            first: false,
            ..PLAIN
        }));
    }
}
