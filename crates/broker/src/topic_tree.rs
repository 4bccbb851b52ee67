//! Subscriptions in a tree: one step for each level of a topic filter.

use std::collections::HashMap;

/// Most levels of a topic filter: limits the depth of the tree, which is traversed recursively.
pub(crate) const MAXIMUM_LEVELS: usize = 128;

/// Subscriptions under topic filters: subscribers `S` with their options `O`.
#[derive(Debug)]
pub(crate) struct TopicTree<S, O> {
    root: Node<S, O>,
}

#[derive(Debug)]
struct Node<S, O> {
    children: HashMap<Box<str>, Node<S, O>>,
    /// Below `+`.
    any: Option<Box<Node<S, O>>>,
    /// Filters that end here.
    here: Vec<(S, O)>,
    /// Filters that end here with `#`.
    rest: Vec<(S, O)>,
}

impl<S, O> Node<S, O> {
    fn new() -> Node<S, O> {
        Node { children: HashMap::new(), any: None, here: Vec::new(), rest: Vec::new() }
    }

    fn is_empty(&self) -> bool {
        self.children.is_empty() && self.any.is_none() && self.here.is_empty() && self.rest.is_empty()
    }
}

/// Has the filter too many levels?
pub(crate) fn is_too_deep(filter: &str) -> bool {
    filter.bytes().filter(|byte| *byte == b'/').count() >= MAXIMUM_LEVELS
}

impl<S: Copy + PartialEq, O> TopicTree<S, O> {
    pub(crate) fn new() -> TopicTree<S, O> {
        TopicTree { root: Node::new() }
    }

    /// Adds a subscription, or replaces the options of an existing one; true if it is new.
    pub(crate) fn insert(&mut self, filter: &str, subscriber: S, options: O) -> bool {
        let mut node = &mut self.root;
        let mut ends_with_rest = false;
        for level in filter.split('/') {
            match level {
                "#" => ends_with_rest = true,
                "+" => node = node.any.get_or_insert_with(|| Box::new(Node::new())),
                // Looked up twice so that a level's text is copied only where it is new.
                _ if node.children.contains_key(level) => {
                    node = node.children.get_mut(level).expect("the key was just found");
                }
                _ => node = node.children.entry(level.into()).or_insert_with(Node::new),
            }
        }
        let list = if ends_with_rest { &mut node.rest } else { &mut node.here };
        match list.iter_mut().find(|(other, _)| *other == subscriber) {
            Some((_, old)) => {
                *old = options;
                false
            }
            None => {
                list.push((subscriber, options));
                true
            }
        }
    }

    /// Removes a subscription; false if there was none.
    pub(crate) fn remove(&mut self, filter: &str, subscriber: S) -> bool {
        fn remove<S: Copy + PartialEq, O>(node: &mut Node<S, O>, filter: Option<&str>, subscriber: S) -> bool {
            let Some(filter) = filter else {
                return take(&mut node.here, subscriber);
            };
            let (level, deeper) = match filter.split_once('/') {
                Some((level, deeper)) => (level, Some(deeper)),
                None => (filter, None),
            };
            match level {
                "#" => take(&mut node.rest, subscriber),
                "+" => {
                    let Some(child) = &mut node.any else { return false };
                    let found = remove(child, deeper, subscriber);
                    if child.is_empty() {
                        node.any = None;
                    }
                    found
                }
                _ => {
                    let Some(child) = node.children.get_mut(level) else { return false };
                    let found = remove(child, deeper, subscriber);
                    if child.is_empty() {
                        node.children.remove(level);
                    }
                    found
                }
            }
        }
        remove(&mut self.root, Some(filter), subscriber)
    }

    /// Calls `found` for every subscription whose filter matches `topic`. A topic that begins with `$` is not matched by a
    /// wildcard in the first level (MQTT 5.0 §4.7.2).
    pub(crate) fn matching(&self, topic: &str, mut found: impl FnMut(S, &O)) {
        fn walk<S: Copy, O>(node: &Node<S, O>, topic: Option<&str>, reserved: bool, found: &mut impl FnMut(S, &O)) {
            if !reserved {
                node.rest.iter().for_each(|(subscriber, options)| found(*subscriber, options));
            }
            let Some(topic) = topic else {
                node.here.iter().for_each(|(subscriber, options)| found(*subscriber, options));
                return;
            };
            let (level, deeper) = match topic.split_once('/') {
                Some((level, deeper)) => (level, Some(deeper)),
                None => (topic, None),
            };
            if let Some(child) = node.children.get(level) {
                walk(child, deeper, false, found);
            }
            if let (Some(child), false) = (&node.any, reserved) {
                walk(child, deeper, false, found);
            }
        }
        walk(&self.root, Some(topic), topic.starts_with('$'), &mut found);
    }
}

fn take<S: PartialEq, O>(list: &mut Vec<(S, O)>, subscriber: S) -> bool {
    match list.iter().position(|(other, _)| *other == subscriber) {
        Some(index) => {
            list.remove(index);
            true
        }
        None => false,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use pubmark_model::topic::TopicFilter;

    fn level() -> impl Strategy<Value = &'static str> {
        prop::sample::select(vec!["a", "b", "", "$x"])
    }

    fn filter() -> impl Strategy<Value = String> {
        let step = prop_oneof![3 => level(), 1 => Just("+")];
        (prop::collection::vec(step, 1..4), any::<bool>()).prop_map(|(mut steps, rest)| {
            if rest {
                steps.push("#");
            }
            steps.join("/")
        })
    }

    fn found(tree: &TopicTree<usize, ()>, topic: &str) -> Vec<usize> {
        let mut found = Vec::new();
        tree.matching(topic, |subscriber, ()| found.push(subscriber));
        found.sort_unstable();
        found
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn the_tree_finds_what_comparing_each_filter_finds(
            filters in prop::collection::vec(filter(), 0..12),
            topic in prop::collection::vec(level(), 1..5),
            removed in any::<prop::sample::Index>(),
        ) {
            let topic = topic.join("/");
            let mut tree = TopicTree::new();
            for (subscriber, filter) in filters.iter().enumerate() {
                prop_assert!(tree.insert(filter, subscriber, ()));
                prop_assert!(!tree.insert(filter, subscriber, ()));
            }
            let mut expected: Vec<usize> = (0..filters.len())
                .filter(|index| TopicFilter(filters[*index].clone()).matches(&topic))
                .collect();
            prop_assert_eq!(&found(&tree, &topic), &expected);
            if !filters.is_empty() {
                let gone = removed.index(filters.len());
                prop_assert!(tree.remove(&filters[gone], gone));
                prop_assert!(!tree.remove(&filters[gone], gone));
                expected.retain(|index| *index != gone);
                prop_assert_eq!(found(&tree, &topic), expected);
            }
            for (subscriber, filter) in filters.iter().enumerate() {
                tree.remove(filter, subscriber);
            }
            prop_assert!(tree.root.is_empty());
        }
    }

    #[test]
    fn a_filter_of_129_levels_is_too_deep() {
        assert!(!is_too_deep(&"a/".repeat(127)) && is_too_deep(&"a/".repeat(128)));
    }
}
