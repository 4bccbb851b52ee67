//! Names that become file names, validated where they are read: of systems, of their listeners and profiles, of nodes.

/// The rule, for messages.
pub const RULE: &str = "a name has 1 to 64 letters, digits, `.`, `_` and `-`, and begins with a letter or digit";
/// Longest name, bytes.
const LONGEST: usize = 64;

/// Whether this is a safe name for a file: it cannot lead out of its folder on any operating system. Only ASCII.
pub fn is_one(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    name.len() <= LONGEST
        && name.bytes().all(fits)
        && name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_in_their_folder() {
        for good in ["mosquitto", "zeromq-peers", "a.b_c-1", "9", &"x".repeat(64)] {
            assert!(is_one(good), "{good}");
        }
        for bad in [
            "",
            ".",
            "..",
            "../x",
            "a/b",
            "/etc/passwd",
            ".hidden",
            "-rf",
            "a b",
            "a\0",
            "ä",
            "a\n",
            "\u{202e}a",
            &"x".repeat(65),
        ] {
            assert!(!is_one(bad), "{bad:?}");
        }
    }
}
