//! When a part of a definition applies.

use serde::Deserialize;

/// One condition of a start.
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
    /// The system runs as a program of this machine.
    Process,
    /// The system runs in a container.
    Container,
    /// There is one broker, or several that know nothing of each other.
    Alone,
    /// Brokers forward to each other over bridges.
    Bridge,
    /// Brokers form a cluster.
    Cluster,
    /// This broker is the first of several that know each other.
    First,
    /// This broker is one of several that know each other, but not the first.
    Further,
    /// The workload needs larger packets than the system takes by default, and they are allowed.
    Raised,
    /// The packets that the system takes by default are large enough.
    Unraised,
}

/// Conditions of a part, all of which must hold: one word or a list of words.
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

/// How brokers of a system know each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Neighbours {
    /// Not at all.
    None,
    /// Over bridges.
    Bridge,
    /// As a cluster.
    Cluster,
}

/// What conditions are evaluated for: one broker of one start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Situation {
    /// The listeners encrypt.
    pub tls: bool,
    /// Clients use WebSocket.
    pub websocket: bool,
    /// Clients log in.
    pub password: bool,
    /// It runs in a container.
    pub container: bool,
    /// How the brokers know each other.
    pub neighbours: Neighbours,
    /// It is the first of them.
    pub first: bool,
    /// Larger packets than the default are allowed.
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

    /// Is this condition among them?
    pub fn needs(&self, condition: Condition) -> bool {
        self.0.contains(&condition)
    }

    /// For tables: the conditions as written, `always` where there are none.
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
