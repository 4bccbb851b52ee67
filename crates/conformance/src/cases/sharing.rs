//! Groups of sessions that share the messages of a subscription.

use pubmark_protocol::clients::{SessionConfig, SessionOptions};
use pubmark_testing::{assert_count, assert_count_eq};

use super::Target;
use crate::peer::{publisher, subscriber};

/// So many that each of three members gets some, if a server chooses among them at all.
const COUNT: u32 = 300;

pub fn each_message_goes_to_one_member(target: &mut Target) {
    let name = target.capabilities.name;
    if !target.capabilities.features.shared_subscriptions {
        return pubmark_testing::skip(format_args!("{name} has no shared groups"));
    }
    for qos in target.capabilities.qos() {
        let mut peer = target.peer();
        // A group name for each level: a server may take a moment to notice that the members of the last level are gone.
        let group = format!("workers-{}", qos.level()).into();
        let options = SessionOptions { shared: Some(group), ..SessionOptions::default() };
        let members: Vec<_> = (0..3)
            .map(|number| subscriber(&format!("member-{number}"), "jobs/#", qos))
            .map(|config| peer.join(SessionConfig { options: options.clone(), ..config }))
            .collect();
        let alone = peer.join(subscriber("no-member", "jobs/#", qos));
        let sender = peer.join(publisher("jobs", "jobs/a", qos));
        (0..COUNT).for_each(|_| peer.send(sender, 100));
        peer.wait("all messages, twice", |record| record.arrived.len() >= 2 * COUNT as usize);
        peer.linger(100);
        let mut all: Vec<u32> = members.iter().flat_map(|member| peer.record.sequences(*member)).collect();
        all.sort_unstable();
        assert_eq!(all, (1..=COUNT).collect::<Vec<_>>(), "{qos:?}: once each, whoever got it");
        assert_count_eq!(peer.record.sequences(alone).len(), COUNT as usize, "{qos:?}: who is in no group gets all");
        for member in members {
            assert_count!(!peer.record.sequences(member).is_empty(), "{qos:?}: a member got nothing");
        }
    }
}
