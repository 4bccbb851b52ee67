//! What a topic name and a topic filter may look like (MQTT 5.0 §4.7).

/// Why a text is no topic filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// It is empty.
    #[error("topic filter is empty")]
    Empty,
    /// `#` stands somewhere else than alone in the last level.
    #[error("`#` must be the whole last level of a topic filter")]
    Hash,
    /// `+` is not alone in its level.
    #[error("`+` must be a whole level of a topic filter")]
    Plus,
    /// `$share/name/filter` without name or filter.
    #[error("a shared subscription is written `$share/name/filter`")]
    Share,
}

/// Is `topic` a topic name: not empty, no wildcard? U+0000 is looked for where text is read.
pub fn check_topic(topic: &str) -> bool {
    !topic.is_empty() && !topic.bytes().any(|byte| matches!(byte, b'+' | b'#'))
}

/// Checks a topic filter, `$share/name/filter` included.
///
/// # Errors
/// A [`FilterError`] with the reason.
pub fn check_filter(filter: &str) -> Result<(), FilterError> {
    if filter.is_empty() {
        return Err(FilterError::Empty);
    }
    let levels = match filter.strip_prefix("$share/") {
        None => filter,
        Some(shared) => match shared.split_once('/') {
            Some((name, rest)) if check_topic(name) && !rest.is_empty() => rest,
            _ => return Err(FilterError::Share),
        },
    };
    let mut levels = levels.split('/').peekable();
    while let Some(level) = levels.next() {
        if level.contains('#') && (level.len() > 1 || levels.peek().is_some()) {
            return Err(FilterError::Hash);
        }
        if level.contains('+') && level.len() > 1 {
            return Err(FilterError::Plus);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_judged_as_the_standard_says() {
        for good in ["a", "/", "+", "#", "a/+/b", "a/#", "+/+/#", "$SYS/#", "$share/g/a/#", "/finance"] {
            assert_eq!(check_filter(good), Ok(()), "{good}");
        }
        for (bad, expected) in [
            ("", FilterError::Empty),
            ("a/#/b", FilterError::Hash),
            ("a#", FilterError::Hash),
            ("a/b+", FilterError::Plus),
            ("$share/g", FilterError::Share),
            ("$share//a", FilterError::Share),
            ("$share/g/", FilterError::Share),
            ("$share/+/a", FilterError::Share),
        ] {
            assert_eq!(check_filter(bad), Err(expected), "{bad}");
        }
        assert!(check_topic("a/b") && check_topic("/") && !check_topic("") && !check_topic("a/+"));
    }
}
