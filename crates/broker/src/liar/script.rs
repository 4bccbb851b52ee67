//! The lies of a script, and the events that they apply to.

use std::time::Duration;

use pubmark_model::qos::Qos;
use pubmark_model::topic::TopicFilter;

/// Selects the events of a lie. Matching events are counted from 1; every `every`-th from `from` on is selected, `count` at most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector {
    /// Topics (for subscriptions: topic filters compared as topics) that match; all if absent.
    pub topic: Option<TopicFilter>,
    /// Client identifier of the publisher (of the subscriber if a lie is about one); all if absent.
    pub client: Option<String>,
    /// First matching event that is selected, from 1.
    pub from: u64,
    /// Distance between selected events, from 1.
    pub every: u64,
    /// Most events that are selected.
    pub count: u64,
    seen: u64,
    taken: u64,
}

impl Selector {
    /// Selects every event.
    pub const ALL: Selector =
        Selector { topic: None, client: None, from: 1, every: 1, count: u64::MAX, seen: 0, taken: 0 };

    /// Counts an event and returns whether it is selected.
    pub(crate) fn takes(&mut self, client: &str, topic: &str) -> bool {
        if self.client.as_deref().is_some_and(|wanted| wanted != client)
            || self.topic.as_ref().is_some_and(|filter| !filter.matches(topic))
        {
            return false;
        }
        self.seen += 1;
        let is_due = self.seen >= self.from && (self.seen - self.from).is_multiple_of(self.every);
        let takes = is_due && self.taken < self.count;
        self.taken += u64::from(takes);
        takes
    }
}

/// How a connection is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Only the sending direction is closed and reading continues, so that the journal has every message that was in flight.
    Close,
    /// The connection is reset: what was in flight is lost, and its amount is unknown.
    Reset,
}

/// One kind of lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lie {
    /// Copies are sent this much later.
    Delay(Duration),
    /// The message is acknowledged and sent to no subscriber.
    Drop,
    /// All subscribers get another copy, after N further messages were received (0: at once).
    Duplicate {
        /// Messages received in between.
        after: u64,
    },
    /// The message is sent after the next one of its publisher and topic (or after a second without one).
    Swap,
    /// The publisher's connection ends.
    CutPublisher {
        /// After the acknowledgement, or before it is written.
        after_ack: bool,
        /// Subscribers get the message anyway.
        forward: bool,
        /// How it ends.
        ending: Ending,
    },
    /// The connections of subscribers that get the message end after it.
    CutSubscriber {
        /// How they end.
        ending: Ending,
    },
    /// The message is refused (5.0, QoS 1 and 2 only).
    Refuse {
        /// Reason code, 0x80 or above.
        code: u8,
        /// Subscribers get it anyway.
        deliver: bool,
    },
    /// All subscribers get another copy with another run's number.
    Foreign,
    /// All subscribers get another copy with a sequence number that its publisher has not used, as if it had sent one more.
    Forge,
    /// All subscribers get another copy with the retain flag, as if a retained message were replayed.
    RetainedCopy,
    /// Each message takes this much of the broker's time, in which it does nothing else.
    Slow(Duration),
    /// The broker does nothing for a time.
    Stall {
        /// Start of the stall, since the first message.
        at: Duration,
        /// Length of the stall.
        lasting: Duration,
    },
    /// Subscriptions get this level at most.
    Grant(Qos),
    /// Subscriptions are refused with this code.
    RefuseSubscribe(u8),
    /// Clients are refused with this code.
    RefuseConnect(u8),
    /// A new token on an open connection is refused with this code, and the connection ended.
    RefuseReauthentication(u8),
    /// Clients need this user name and password.
    Login {
        /// User name.
        user: String,
        /// Password.
        password: String,
    },
    /// A client gets one copy for each of its matching filters.
    Overlap,
    /// A new subscription gets the last message of each matching topic as a retained one, even if it was sent without the retain flag.
    Replay,
}

/// A lie and the events that it applies to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The lie.
    pub lie: Lie,
    /// The events.
    pub selector: Selector,
}

/// All lies of a run; without any the broker is correct and writes a journal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// The lies; each counts its events separately.
    pub rules: Vec<Rule>,
}

/// How one message is treated.
#[derive(Debug, Default)]
pub(crate) struct Decision {
    pub(crate) is_dropped: bool,
    pub(crate) delay: Duration,
    pub(crate) duplicates: u32,
    pub(crate) later: Vec<u64>,
    pub(crate) is_swapped: bool,
    pub(crate) cut_publisher: Option<CutPublisher>,
    pub(crate) cut_subscriber: Option<Ending>,
    pub(crate) refusal: Option<(u8, bool)>,
    pub(crate) foreign: u32,
    pub(crate) forged: u32,
    pub(crate) retained: u32,
    pub(crate) slow: Duration,
    pub(crate) has_overlap: bool,
}

/// The values of [`Lie::CutPublisher`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CutPublisher {
    pub(crate) after_ack: bool,
    pub(crate) forward: bool,
    pub(crate) ending: Ending,
}

impl Script {
    /// Decides about a message. `can_refuse`: its publisher can receive a refusal.
    pub(crate) fn judge(&mut self, client: &str, topic: &str, can_refuse: bool) -> Decision {
        let mut decision = Decision::default();
        for Rule { lie, selector } in &mut self.rules {
            let is_about_messages = match lie {
                Lie::Refuse { .. } => can_refuse,
                Lie::Grant(_) | Lie::RefuseSubscribe(_) | Lie::RefuseConnect(_) | Lie::Login { .. } => false,
                Lie::RefuseReauthentication(_) => false,
                Lie::Replay | Lie::Stall { .. } => false,
                _ => true,
            };
            if is_about_messages && selector.takes(client, topic) {
                decision.add(lie);
            }
        }
        decision
    }

    /// The level granted to a subscription that requests `asked`, or the code of its refusal.
    pub(crate) fn grant(&mut self, client: &str, filter: &str, asked: Qos) -> Result<Qos, u8> {
        let mut granted = asked;
        for Rule { lie, selector } in &mut self.rules {
            match lie {
                Lie::Grant(highest) if selector.takes(client, filter) => granted = granted.min(*highest),
                Lie::RefuseSubscribe(code) if selector.takes(client, filter) => return Err(*code),
                _ => {}
            }
        }
        Ok(granted)
    }

    /// The code with which a client is refused, if it is; `login` has the credentials that it sent.
    pub(crate) fn refuse_connect(&mut self, client: &str, login: (Option<&str>, Option<&[u8]>)) -> Option<u8> {
        const BAD_USER_NAME_OR_PASSWORD: u8 = pubmark_wire::mqtt::reason::BAD_USER_NAME_OR_PASSWORD;
        for Rule { lie, selector } in &mut self.rules {
            match lie {
                Lie::RefuseConnect(code) if selector.takes(client, "") => return Some(*code),
                Lie::Login { user, password }
                    if login != (Some(user.as_str()), Some(password.as_bytes())) && selector.takes(client, "") =>
                {
                    return Some(BAD_USER_NAME_OR_PASSWORD);
                }
                _ => {}
            }
        }
        None
    }

    /// The code with which a new token of a client is refused, if it is.
    pub(crate) fn refuse_reauthentication(&mut self, client: &str) -> Option<u8> {
        self.rules.iter_mut().find_map(|Rule { lie, selector }| match lie {
            Lie::RefuseReauthentication(code) if selector.takes(client, "") => Some(*code),
            _ => None,
        })
    }

    /// Is a new subscription to be told of earlier messages?
    pub(crate) fn replays(&mut self, client: &str, filter: &str) -> bool {
        let mut replays = false;
        for Rule { lie, selector } in &mut self.rules {
            replays |= *lie == Lie::Replay && selector.takes(client, filter);
        }
        replays
    }

    /// Must the last message of each topic be stored?
    pub(crate) fn has_replays(&self) -> bool {
        self.rules.iter().any(|rule| rule.lie == Lie::Replay)
    }

    /// All stalls, the first at the end.
    pub(crate) fn stalls(&self) -> Vec<(Duration, Duration)> {
        let stalls = self.rules.iter().filter_map(|rule| match rule.lie {
            Lie::Stall { at, lasting } => Some((at, lasting)),
            _ => None,
        });
        let mut list: Vec<_> = stalls.collect();
        list.sort_unstable_by(|a, b| b.cmp(a));
        list
    }
}

impl Decision {
    fn add(&mut self, lie: &Lie) {
        match lie {
            Lie::Delay(delay) => self.delay += *delay,
            Lie::Drop => self.is_dropped = true,
            Lie::Duplicate { after: 0 } => self.duplicates += 1,
            Lie::Duplicate { after } => self.later.push(*after),
            Lie::Swap => self.is_swapped = true,
            Lie::CutPublisher { after_ack, forward, ending } => {
                self.cut_publisher = Some(CutPublisher { after_ack: *after_ack, forward: *forward, ending: *ending });
            }
            Lie::CutSubscriber { ending } => self.cut_subscriber = Some(*ending),
            Lie::Refuse { code, deliver } => self.refusal = Some((*code, *deliver)),
            Lie::Foreign => self.foreign += 1,
            Lie::Forge => self.forged += 1,
            Lie::RetainedCopy => self.retained += 1,
            Lie::Slow(time) => self.slow += *time,
            Lie::Overlap => self.has_overlap = true,
            Lie::Grant(_)
            | Lie::RefuseReauthentication(_)
            | Lie::RefuseSubscribe(_)
            | Lie::RefuseConnect(_)
            | Lie::Login { .. } => {}
            Lie::Replay | Lie::Stall { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(mut selector: Selector, events: u64) -> Vec<u64> {
        (1..=events).filter(|_| selector.takes("c", "a/b")).collect()
    }

    #[test]
    fn a_selector_counts_matching_events_only() {
        assert_eq!(taken(Selector { from: 3, every: 3, ..Selector::ALL }, 10), [3, 6, 9]);
        assert_eq!(taken(Selector { from: 2, count: 2, ..Selector::ALL }, 10), [2, 3]);
        let mut selector = Selector { topic: Some(TopicFilter("x/#".to_string())), from: 2, ..Selector::ALL };
        assert_eq!(["x/1", "a", "x/2"].map(|topic| selector.takes("c", topic)), [false, false, true]);
        let mut selector = Selector { client: Some("c".to_string()), ..Selector::ALL };
        assert!(!selector.takes("d", "a") && selector.takes("c", "a"));
    }
}
