//! Filters in MQTT's syntax as ZeroMQ's subscriptions, which are prefixes of topics.

/// The longest common prefix of all topics that a filter matches: a subscription to it receives all of them, and others
/// besides. `a/#` matches `a` as well, so its prefix has no slash.
pub fn prefix(filter: &str) -> &str {
    let literal = filter.find(['+', '#']).map_or(filter, |end| &filter[..end]);
    match filter.strip_suffix("/#") {
        Some(parent) if parent.len() < literal.len() => parent,
        _ => literal,
    }
}

#[cfg(test)]
mod tests {
    use super::prefix;

    #[test]
    fn a_prefix_ends_before_the_first_wildcard() {
        for (filter, expected) in [
            ("a/b", "a/b"),
            ("a/+/c", "a/"),
            ("a/b/#", "a/b"),
            ("a/+/#", "a/"),
            ("#", ""),
            ("+/a", ""),
            ("/#", ""),
            ("//#", "/"),
            ("", ""),
        ] {
            assert_eq!(prefix(filter), expected, "{filter}");
        }
    }
}
