//! Tests of the fleet: numbers, names, and which subscriber receives from which publisher.
#![allow(clippy::unwrap_used)]

use std::collections::HashSet;

use proptest::prelude::*;

use super::*;
use crate::arrival::Arrival;
use crate::placement::Placement;
use crate::schedule::tests::fixtures::{group, listeners, workload};

fn devices(name: &str, count: u32, topic: &str) -> DeviceGroup {
    let mut group = group(name, count, Arrival::Flood);
    group.topic.0 = topic.to_owned();
    group
}

/// Sources of each subscriber, found by comparing every filter with every device.
fn tried_out(fleet: &Fleet, workload: &Workload) -> Vec<Vec<StreamSource>> {
    let topics: Vec<String> = fleet.devices().iter().map(|device| fleet.topic(workload, device)).collect();
    let hears = |subscriber: &Subscriber| {
        let filters = fleet.filters(workload, subscriber);
        (0..)
            .zip(&topics)
            .map(|(publisher, topic)| {
                let matching = filters.iter().filter(|filter| TopicFilter((*filter).clone()).matches(topic));
                StreamSource { publisher, filters: matching.count() as u16 }
            })
            .filter(|heard| heard.filters > 0)
            .collect()
    };
    fleet.subscribers().iter().map(hears).collect()
}

#[test]
fn devices_are_numbered_by_copy_group_and_index() {
    let workload = workload(vec![devices("a/x", 2, "t"), devices("b/y", 1, "t")], vec![listeners("s", 2, &["t"])]);
    let fleet = Fleet::new(&workload, 2);
    let found: Vec<_> = fleet.devices().iter().map(|d| (d.publisher, d.copy, d.group, d.index)).collect();
    assert_eq!(found, [(0, 0, 0, 0), (1, 0, 0, 1), (2, 0, 1, 0), (3, 1, 0, 0), (4, 1, 0, 1), (5, 1, 1, 0)]);
    assert_eq!(fleet.subscribers().len(), 2, "listening once, not once a copy");
}

#[test]
fn placement_determines_what_a_second_node_adds() {
    let mut workload = workload(vec![devices("a/x", 3, "t")], vec![listeners("s", 1, &["t"])]);
    let sizes = |workload: &Workload| {
        let fleet = Fleet::on_nodes(workload, NodeLabels::unknown(5));
        (fleet.devices().len(), fleet.subscribers().len())
    };
    assert_eq!(sizes(&workload), (3, 1));
    workload.placement.subscribers = Placement::Replicate;
    assert_eq!(sizes(&workload), (3, 5));
    workload.placement.devices = Placement::Replicate;
    assert_eq!(sizes(&workload), (15, 5));
}

#[test]
fn a_topic_template_is_filled_in() {
    let template = "{workload}/{group}/{domain}/{type}/{qos}/{device}/{copy}/{index}/{unknown}/{";
    let workload = workload(vec![devices("home/lamp", 2, template), devices("plain", 1, "{domain}/{type}")], vec![]);
    let fleet = Fleet::new(&workload, 2);
    assert_eq!(fleet.topic(&workload, &fleet.devices()[4]), "test/home/lamp/home/lamp/1/1-1/1/1/{unknown}/{");
    assert_eq!(fleet.topic(&workload, &fleet.devices()[2]), "test/plain");
}

#[test]
fn client_identifiers_are_unique_and_fit_every_server() {
    let workload = workload(vec![devices("a/x", 300, "t")], vec![listeners("s", 300, &["t"])]);
    let fleet = Fleet::new(&workload, 1);
    let mut identifiers: Vec<String> = fleet.devices().iter().map(|device| fleet.client_id(u32::MAX, device)).collect();
    identifiers.extend(fleet.subscribers().iter().map(|subscriber| fleet.subscriber_client_id(u32::MAX, subscriber)));
    let last = Device { publisher: u32::MAX, group: 0, copy: 0, index: 0, ..Device::default() };
    identifiers.push(fleet.client_id(u32::MAX, &last));
    assert!(identifiers.iter().all(|id| id.len() <= 23 && id.bytes().all(|byte| byte.is_ascii_alphanumeric())));
    assert_eq!(identifiers.iter().collect::<HashSet<_>>().len(), 601);
}

#[test]
fn each_pair_receives_only_its_own_messages() {
    let workload = workload(
        vec![devices("pairs/sender", 5_000, "pair/{index}")],
        vec![listeners("receiver", 5_000, &["pair/{index}"])],
    );
    let fleet = Fleet::new(&workload, 1);
    let streams = fleet.streams(&workload);
    assert_eq!(streams.len(), 5_000);
    assert!((0..).zip(&streams).all(|(number, heard)| **heard == [StreamSource { publisher: number, filters: 1 }]));
    assert_eq!(fleet.topic_count(&workload), 5_000);
}

#[test]
fn overlapping_filters_are_counted_and_repeated_ones_are_not() {
    let workload = workload(
        vec![devices("a/x", 1, "a/x"), devices("a/y", 1, "a/y"), devices("b/x", 2, "b/x")],
        vec![listeners("s", 1, &["a/#", "+/x", "a/x", "a/x", "a"])],
    );
    let heard = |publisher, filters| StreamSource { publisher, filters };
    let streams = Fleet::new(&workload, 1).streams(&workload);
    assert_eq!(*streams[0], [heard(0, 3), heard(1, 1), heard(2, 1), heard(3, 1)]);
}

#[test]
fn members_of_a_shared_group_are_one_audience() {
    let mut groups = vec![listeners("a", 2, &["t"]), listeners("b", 3, &["t", "u"]), listeners("c", 2, &["{copy}"])];
    groups[1].shared = Some("w".to_owned());
    groups[2].shared = Some("v".to_owned());
    let mut workload = workload(vec![devices("a/x", 1, "t")], groups);
    assert_eq!(Fleet::new(&workload, 1).audiences(&workload), [0, 1, 2, 2, 2, 3, 3]);
    // Copies share a list where their filters are equal.
    workload.placement.subscribers = Placement::Replicate;
    assert_eq!(Fleet::new(&workload, 2).audiences(&workload), [0, 1, 2, 2, 2, 3, 3, 4, 5, 2, 2, 2, 6, 6]);
}

#[test]
fn subscribers_with_the_same_filters_share_their_list() {
    let workload = workload(vec![devices("a/x", 10_000, "a/{index}")], vec![listeners("s", 5, &["#", "a/+"])]);
    let streams = Fleet::new(&workload, 1).streams(&workload);
    assert!(streams.iter().all(|heard| heard.len() == 10_000 && Arc::ptr_eq(heard, &streams[0])));
}

proptest! {
    #[test]
    fn streams_agree_with_trying_every_filter_on_every_topic(
        topics in proptest::collection::vec("[ab$]{0,2}(/[ab]{0,2}){0,3}", 1..8),
        filters in proptest::collection::vec("([ab$]{0,2}|\\+)(/([ab]{0,2}|\\+)){0,3}(/#)?|#", 1..8),
    ) {
        let groups = topics.iter().map(|topic| devices("a/x", 2, topic)).collect();
        let filters: Vec<&str> = filters.iter().map(String::as_str).collect();
        let workload = workload(groups, vec![listeners("s", 1, &filters), listeners("t", 2, &filters[..1])]);
        let fleet = Fleet::new(&workload, 1);
        let found: Vec<Vec<StreamSource>> = fleet.streams(&workload).iter().map(|heard| heard.to_vec()).collect();
        prop_assert_eq!(found, tried_out(&fleet, &workload));
    }
}
