//! Filters in MQTT's syntax as the patterns of PSUBSCRIBE, and what those match.
//!
//! A pattern's `*` does not stop at a slash, so `+` can be expressed only as far as no channel has more levels; callers that
//! know the channels check with [`filter_matches`].

/// The pattern for a filter with wildcards, `None` for one without; and the channel `a` that `a/#` means besides `a/*`. A
/// parent with wildcards of its own is left out: its pattern would match what lies below as well, a second time.
pub fn pattern(filter: &str) -> Option<(String, Option<String>)> {
    if !filter.contains(['+', '#']) {
        return None;
    }
    let mut pattern = String::with_capacity(filter.len());
    for (index, level) in filter.split('/').enumerate() {
        if index > 0 {
            pattern.push('/');
        }
        match level {
            "+" | "#" => pattern.push('*'),
            level => level.chars().for_each(|c| {
                if matches!(c, '*' | '?' | '[' | ']' | '\\') {
                    pattern.push('\\');
                }
                pattern.push(c);
            }),
        }
    }
    let parent = filter.strip_suffix("/#").filter(|parent| !parent.contains('+')).map(str::to_owned);
    Some((pattern, parent))
}

/// Does a subscription to a filter, in the form of [`pattern`], receive messages of a channel?
pub fn filter_matches(filter: &str, channel: &str) -> bool {
    match pattern(filter) {
        None => filter == channel,
        Some((pattern, parent)) => matches(&pattern, channel) || parent.is_some_and(|parent| parent == channel),
    }
}

/// Does a pattern that [`pattern`] made match a channel? As the server does: `*` is any number of any characters, `\` takes
/// the next character as it is.
fn matches(pattern: &str, channel: &str) -> bool {
    let (pattern, channel) = (pattern.as_bytes(), channel.as_bytes());
    let (mut at, mut from) = (0, 0);
    // Where to go on if what follows the last `*` does not fit: behind it, one character further.
    let mut last: Option<(usize, usize)> = None;
    while from < channel.len() {
        match pattern.get(at) {
            Some(b'*') => {
                last = Some((at + 1, from));
                at += 1;
                continue;
            }
            Some(b'\\') if pattern.get(at + 1) == Some(&channel[from]) => {
                (at, from) = (at + 2, from + 1);
                continue;
            }
            Some(byte) if *byte != b'\\' && *byte == channel[from] => {
                (at, from) = (at + 1, from + 1);
                continue;
            }
            _ => {}
        }
        let Some((behind, tried)) = last else { return false };
        last = Some((behind, tried + 1));
        (at, from) = (behind, tried + 1);
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_become_patterns() {
        assert_eq!(pattern("a/b"), None);
        assert_eq!(pattern("a/+/c"), Some(("a/*/c".to_owned(), None)));
        assert_eq!(pattern("a/#"), Some(("a/*".to_owned(), Some("a".to_owned()))));
        assert_eq!(pattern("#"), Some(("*".to_owned(), None)));
        assert_eq!(pattern("+/#"), Some(("*/*".to_owned(), None)));
        assert_eq!(pattern("a*/#"), Some(("a\\*/*".to_owned(), Some("a*".to_owned()))));
        assert_eq!(pattern("a[1]/*/?/\\/+"), Some(("a\\[1\\]/\\*/\\?/\\\\/*".to_owned(), None)));
    }

    #[test]
    fn a_channel_of_another_depth_is_received_unlike_in_the_standard() {
        assert!(filter_matches("a/#", "a") && filter_matches("a/#", "a/b/c") && filter_matches("a/b", "a/b"));
        assert!(filter_matches("a/+", "a/b/c"), "which a workload with such topics must not ask for");
        assert!(!filter_matches("+/#", "a"), "nor this one");
    }

    #[test]
    fn patterns_match_as_the_server_does() {
        let cases = [
            ("a/*", "a/b", true),
            ("a/*", "a/", true),
            ("a/*", "a", false),
            ("a/*/c", "a/b/c", true),
            ("a/*/c", "a/b/x/c", true),
            ("a/*/c", "a/b/c/d", false),
            ("*", "anything/at/all", true),
            ("*a*a*", "banana", true),
            ("*a*x", "banana", false),
            ("a\\*", "a*", true),
            ("a\\*", "ab", false),
            ("", "", true),
            ("", "a", false),
        ];
        for (pattern, channel, expected) in cases {
            assert_eq!(matches(pattern, channel), expected, "{pattern} {channel}");
        }
    }
}
