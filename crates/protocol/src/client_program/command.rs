//! The command that starts a client program.

use serde::{Deserialize, Serialize};

/// A client program: its command, and the protocol of its clients.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientProgram {
    /// Program and arguments; at least the program.
    pub words: Vec<String>,
    /// Name of the protocol.
    pub protocol: String,
    /// It must report whole payloads: the run looks into them (`where`, `transform`).
    #[serde(default)]
    pub whole_payloads: bool,
}

/// Why a text is not a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// Nothing in it.
    #[error("it is empty")]
    Empty,
    /// A quotation mark or a backslash that nothing follows.
    #[error("a quotation mark in it is not closed")]
    Unclosed,
}

impl ClientProgram {
    /// Splits a command line into words: blanks separate, `'…'`, `"…"` and `\` quote, as in a shell. No shell is executed, and
    /// nothing is substituted.
    ///
    /// # Errors
    /// It is empty, or a quotation mark is not closed.
    pub fn words(line: &str) -> Result<Vec<String>, CommandError> {
        let mut words = Vec::new();
        let mut word: Option<String> = None;
        let mut letters = line.chars();
        while let Some(letter) = letters.next() {
            match letter {
                '\'' | '"' => {
                    let word = word.get_or_insert_default();
                    loop {
                        match letters.next().ok_or(CommandError::Unclosed)? {
                            end if end == letter => break,
                            '\\' if letter == '"' => word.push(letters.next().ok_or(CommandError::Unclosed)?),
                            within => word.push(within),
                        }
                    }
                }
                '\\' => word.get_or_insert_default().push(letters.next().ok_or(CommandError::Unclosed)?),
                blank if blank.is_whitespace() => words.extend(word.take()),
                letter => word.get_or_insert_default().push(letter),
            }
        }
        words.extend(word);
        if words.first().is_none_or(String::is_empty) { Err(CommandError::Empty) } else { Ok(words) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_taken_apart_as_a_shell_does() {
        let words = |line: &str| ClientProgram::words(line).map(|words| words.join("|"));
        assert_eq!(words(" python3  a.py "), Ok("python3|a.py".to_owned()));
        assert_eq!(
            words("'my client' --name \"a \\\"b\\\"\" c\\ d ''"),
            Ok("my client|--name|a \"b\"|c d|".to_owned())
        );
        assert_eq!(words("  "), Err(CommandError::Empty));
        assert_eq!(words("'' a"), Err(CommandError::Empty));
        for unclosed in ["a 'b", "a \"b", "a \\", "\"a\\"] {
            assert_eq!(words(unclosed), Err(CommandError::Unclosed), "{unclosed}");
        }
    }
}
