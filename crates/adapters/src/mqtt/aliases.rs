//! Topic aliases: numbers that stand for topics on one connection (MQTT 5.0 §3.3.2.3.4).
//!
//! The alias of a publication is its index in the session's list plus one, as far as the server accepts aliases. It stands for
//! the topic once a message with both was sent, and only on that connection.

/// The aliases of a session's present connection.
#[derive(Debug, Default)]
pub struct Aliases {
    /// Highest alias that the server accepts; 0 for none.
    most: u16,
    /// By publication: was its topic named with its alias?
    named: Vec<bool>,
}

/// A message's alias.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alias {
    /// The number.
    pub number: u16,
    /// The server does not know it yet: the topic goes with it.
    pub is_new: bool,
}

impl Aliases {
    /// A connection begins, on which aliases up to `most` may be used; 0 for none.
    pub fn begin(&mut self, most: u16) {
        self.most = most;
        self.named.clear();
    }

    /// The alias for the next message of a publication, if it may have one.
    pub fn of(&self, publication: u16) -> Option<Alias> {
        if publication >= self.most {
            return None;
        }
        let is_new = !self.named.get(usize::from(publication)).copied().unwrap_or(false);
        Some(Alias { number: publication + 1, is_new })
    }

    /// A message of this publication was sent with topic and alias.
    pub fn note(&mut self, publication: u16) {
        let place = usize::from(publication);
        if self.named.len() <= place {
            self.named.resize(place + 1, false);
        }
        self.named[place] = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alias_is_new_once_on_each_connection_and_never_above_the_maximum() {
        let mut aliases = Aliases::default();
        assert_eq!(aliases.of(0), None);
        aliases.begin(2);
        assert_eq!(aliases.of(1), Some(Alias { number: 2, is_new: true }));
        aliases.note(1);
        assert_eq!(aliases.of(1), Some(Alias { number: 2, is_new: false }));
        assert_eq!(aliases.of(0), Some(Alias { number: 1, is_new: true }));
        assert_eq!(aliases.of(2), None);
        aliases.begin(u16::MAX);
        assert_eq!(aliases.of(1), Some(Alias { number: 2, is_new: true }));
        assert_eq!(aliases.of(u16::MAX), None);
        assert_eq!(aliases.of(u16::MAX - 1), Some(Alias { number: u16::MAX, is_new: true }));
    }
}
