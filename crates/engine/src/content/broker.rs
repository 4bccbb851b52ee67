//! Filters by content that the system applies: selectors of subscribers, the fields that publishers send beside their
//! payloads for them, and the subscribers that a message does not match.

use std::collections::HashMap;
use std::sync::Arc;

use pubmark_model::fleet::{Device, StreamSource};
use pubmark_model::predicate::SelectorFields;
use pubmark_model::workload::SubscriberGroup;

use crate::plan::RunPlan;

/// The filters of a run; empty if each client filters for itself.
pub struct BrokerFilters {
    /// By subscriber group: the selector that the system filters by.
    pub selectors: Vec<Option<Arc<str>>>,
    /// Fields that the selectors use.
    fields: Option<Arc<SelectorFields>>,
    /// By publisher: subscriber groups with a selector, with their audiences that receive its messages.
    filtered: HashMap<u32, Vec<(u16, u32)>>,
}

impl BrokerFilters {
    /// The filters of a plan, whose subscribers receive from these publishers and belong to these audiences.
    pub fn of(plan: &RunPlan, streams: &[Arc<[StreamSource]>], audiences: &[u32]) -> BrokerFilters {
        let groups = &plan.workload.subscribers;
        let mut filtered: HashMap<u32, Vec<(u16, u32)>> = HashMap::new();
        let mut counted = 0;
        for ((subscriber, sources), audience) in plan.fleet.subscribers().iter().zip(streams).zip(audiences) {
            // Audiences are numbered in the order of their first members.
            if *audience < counted {
                continue;
            }
            counted += 1;
            let is_filtered = groups[usize::from(subscriber.group)].broker_filter().is_some();
            for entry in sources.iter().filter(|_| is_filtered) {
                let of_publisher = filtered.entry(entry.publisher).or_default();
                match of_publisher.iter_mut().find(|(group, _)| *group == subscriber.group) {
                    Some((_, count)) => *count += 1,
                    None => of_publisher.push((subscriber.group, 1)),
                }
            }
        }
        let fields = SelectorFields::of(groups.iter().filter_map(SubscriberGroup::broker_filter));
        BrokerFilters {
            selectors: groups.iter().map(selector).collect(),
            fields: (!filtered.is_empty()).then(|| Arc::new(fields)),
            filtered,
        }
    }

    /// Subscriber groups with a selector, with their audiences that receive this publisher's messages.
    pub fn of_publisher(&self, publisher: u32) -> Vec<(u16, u32)> {
        self.filtered.get(&publisher).cloned().unwrap_or_default()
    }

    /// Fields to be sent beside the payloads of a session that carries these devices, if the messages of any of them
    /// are filtered.
    pub fn fields_of(&self, members: &[Device]) -> Option<Arc<SelectorFields>> {
        let is_filtered = members.iter().any(|device| self.filtered.contains_key(&device.publisher));
        self.fields.clone().filter(|_| is_filtered)
    }
}

/// The selector of a group, if it has one. An invalid selector was refused when the workload was loaded.
fn selector(group: &SubscriberGroup) -> Option<Arc<str>> {
    group.broker_filter().and_then(|predicate| predicate.selector().ok()).map(Into::into)
}
