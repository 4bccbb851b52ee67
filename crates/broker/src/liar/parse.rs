//! Scripts as text: one lie per line, a word and then `key=value`.
//!
//! ```text
//! # a comment
//! delay 5ms topic=pairs/#
//! drop every=10 from=10 count=1000
//! duplicate message=77 after=60000
//! swap every=50
//! cut-publisher when=before-ack forward=no how=close message=500
//! cut-subscriber how=close message=700
//! refuse code=0x97 deliver=no every=100
//! foreign message=5
//! forge message=5
//! retained-copy message=6
//! slow 100us
//! stall at=2s for=1s
//! grant qos=0 topic=filter/+
//! refuse-subscribe code=0x87 client=subscriber-1
//! refuse-connect code=0x88 count=3
//! refuse-reauthentication code=0x87 from=2
//! login user=device password=secret
//! overlap
//! replay
//! ```
//!
//! `topic=`, `client=`, `from=`, `every=`, `count=` choose the events ([`Selector`]); `message=N` is `from=N count=1`; `every=N`
//! without `from=` begins with the N-th.

use std::time::Duration;

use pubmark_model::qos::Qos;
use pubmark_model::topic::TopicFilter;

use super::script::{Ending, Lie, Rule, Script, Selector};

/// Why a script is invalid.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    /// A word that names no lie.
    #[error("line {line}: `{word}` is no lie known here")]
    Word {
        /// Line, from 1.
        line: usize,
        /// The word.
        word: String,
    },
    /// A key that this lie does not have, or a part that is not `key=value`.
    #[error("line {line}: `{part}` does not belong there")]
    Part {
        /// Line, from 1.
        line: usize,
        /// The part.
        part: String,
    },
    /// An invalid value.
    #[error("line {line}: `{value}` is no value for `{key}`")]
    Value {
        /// Line, from 1.
        line: usize,
        /// The key.
        key: &'static str,
        /// The value.
        value: String,
    },
    /// A key that this lie requires.
    #[error("line {line}: `{key}` is missing")]
    Missing {
        /// Line, from 1.
        line: usize,
        /// The key.
        key: &'static str,
    },
}

impl Script {
    /// Reads a script. Lines that begin with `#` are comments.
    ///
    /// # Errors
    /// A [`ScriptError`] that names the line.
    pub fn parse(text: &str) -> Result<Script, ScriptError> {
        let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
        let lies = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let rules = lies.map(|(number, line)| rule(number, line)).collect::<Result<_, _>>()?;
        Ok(Script { rules })
    }
}

fn rule(line: usize, text: &str) -> Result<Rule, ScriptError> {
    let mut words = text.split_whitespace();
    let word = words.next().unwrap_or_default();
    let mut parts = Parts { line, list: words.collect() };
    let lie = match word {
        "delay" => Lie::Delay(parts.bare_duration("time")?),
        "slow" => Lie::Slow(parts.bare_duration("time")?),
        "drop" => Lie::Drop,
        "duplicate" => Lie::Duplicate { after: parts.number("after")?.unwrap_or(0) },
        "swap" => Lie::Swap,
        "cut-publisher" => Lie::CutPublisher {
            after_ack: parts.choice("when", &["before-ack", "after-ack"])? == "after-ack",
            forward: parts.choice("forward", &["no", "yes"])? == "yes",
            ending: parts.ending()?,
        },
        "cut-subscriber" => Lie::CutSubscriber { ending: parts.ending()? },
        "refuse" => Lie::Refuse { code: parts.code()?, deliver: parts.choice("deliver", &["no", "yes"])? == "yes" },
        "foreign" => Lie::Foreign,
        "forge" => Lie::Forge,
        "retained-copy" => Lie::RetainedCopy,
        "stall" => Lie::Stall { at: parts.duration("at")?, lasting: parts.duration("for")? },
        "grant" => Lie::Grant(parts.qos()?),
        "refuse-subscribe" => Lie::RefuseSubscribe(parts.code()?),
        "refuse-connect" => Lie::RefuseConnect(parts.code()?),
        "refuse-reauthentication" => Lie::RefuseReauthentication(parts.code()?),
        "login" => Lie::Login { user: parts.needed("user")?.into(), password: parts.needed("password")?.into() },
        "overlap" => Lie::Overlap,
        "replay" => Lie::Replay,
        _ => return Err(ScriptError::Word { line, word: word.to_string() }),
    };
    let selector = parts.selector()?;
    match parts.list.first() {
        Some(part) => Err(ScriptError::Part { line, part: part.to_string() }),
        None => Ok(Rule { lie, selector }),
    }
}

/// The parts of a line that were not parsed yet.
struct Parts<'a> {
    line: usize,
    list: Vec<&'a str>,
}

impl<'a> Parts<'a> {
    fn take(&mut self, key: &str) -> Option<&'a str> {
        let value_of = |part: &&'a str| part.strip_prefix(key).and_then(|rest| rest.strip_prefix('='));
        let index = self.list.iter().position(|part| value_of(part).is_some())?;
        value_of(&self.list.remove(index))
    }

    fn needed(&mut self, key: &'static str) -> Result<&'a str, ScriptError> {
        self.take(key).ok_or(ScriptError::Missing { line: self.line, key })
    }

    fn wrong(&self, key: &'static str, value: &str) -> ScriptError {
        ScriptError::Value { line: self.line, key, value: value.to_string() }
    }

    fn number(&mut self, key: &'static str) -> Result<Option<u64>, ScriptError> {
        let Some(value) = self.take(key) else { return Ok(None) };
        value.replace('_', "").parse().map(Some).map_err(|_| self.wrong(key, value))
    }

    /// A number that counts from 1.
    fn ordinal(&mut self, key: &'static str) -> Result<Option<u64>, ScriptError> {
        match self.number(key)? {
            Some(0) => Err(self.wrong(key, "0")),
            other => Ok(other),
        }
    }

    fn duration(&mut self, key: &'static str) -> Result<Duration, ScriptError> {
        let value = self.needed(key)?;
        read_duration(value).ok_or_else(|| self.wrong(key, value))
    }

    fn bare_duration(&mut self, key: &'static str) -> Result<Duration, ScriptError> {
        if self.list.is_empty() {
            return Err(ScriptError::Missing { line: self.line, key });
        }
        let value = self.list.remove(0);
        read_duration(value).ok_or_else(|| self.wrong(key, value))
    }

    /// One of the words; the first if the key is absent.
    fn choice(&mut self, key: &'static str, words: &[&'static str]) -> Result<&'static str, ScriptError> {
        let Some(value) = self.take(key) else { return Ok(words[0]) };
        words.iter().copied().find(|word| *word == value).ok_or_else(|| self.wrong(key, value))
    }

    fn ending(&mut self) -> Result<Ending, ScriptError> {
        let is_reset = self.choice("how", &["close", "reset"])? == "reset";
        Ok(if is_reset { Ending::Reset } else { Ending::Close })
    }

    /// A reason code of a refusal, decimal or with `0x`.
    fn code(&mut self) -> Result<u8, ScriptError> {
        let value = self.needed("code")?;
        let code = match value.strip_prefix("0x") {
            Some(digits) => u8::from_str_radix(digits, 16),
            None => value.parse(),
        };
        code.ok().filter(|code| *code >= 0x80).ok_or_else(|| self.wrong("code", value))
    }

    fn qos(&mut self) -> Result<Qos, ScriptError> {
        let value = self.needed("qos")?;
        let level = value.parse().ok().and_then(Qos::from_level);
        level.ok_or_else(|| self.wrong("qos", value))
    }

    fn selector(&mut self) -> Result<Selector, ScriptError> {
        let mut selector = Selector::ALL;
        selector.topic = self.take("topic").map(|topic| TopicFilter(topic.to_string()));
        selector.client = self.take("client").map(str::to_string);
        if let Some(every) = self.ordinal("every")? {
            (selector.every, selector.from) = (every, every);
        }
        if let Some(from) = self.ordinal("from")? {
            selector.from = from;
        }
        if let Some(count) = self.number("count")? {
            selector.count = count;
        }
        if let Some(message) = self.ordinal("message")? {
            (selector.from, selector.every, selector.count) = (message, 1, 1);
        }
        Ok(selector)
    }
}

/// A whole number with `s`, `ms`, `us` or `ns`.
fn read_duration(text: &str) -> Option<Duration> {
    let digits = text.find(|character: char| !character.is_ascii_digit())?;
    let number: u64 = text[..digits].parse().ok()?;
    match &text[digits..] {
        "s" => Some(Duration::from_secs(number)),
        "ms" => Some(Duration::from_millis(number)),
        "us" => Some(Duration::from_micros(number)),
        "ns" => Some(Duration::from_nanos(number)),
        _ => None,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn every_lie_can_be_written() {
        let text = include_str!("parse.rs");
        let example: Vec<&str> = text
            .lines()
            .skip_while(|line| *line != "//! ```text")
            .skip(1)
            .take_while(|line| *line != "//! ```")
            .map(|line| line.trim_start_matches("//!"))
            .collect();
        let script = Script::parse(&example.join("\n")).unwrap();
        assert_eq!(script.rules.len(), example.len() - 1);
        assert_eq!(script.rules[0].lie, Lie::Delay(Duration::from_millis(5)));
        assert_eq!(script.rules[0].selector.topic, Some(TopicFilter("pairs/#".to_string())));
        assert_eq!((script.rules[1].selector.every, script.rules[1].selector.count), (10, 1_000));
        assert_eq!(script.rules[2].lie, Lie::Duplicate { after: 60_000 });
        assert_eq!((script.rules[3].selector.from, script.rules[3].selector.every), (50, 50));
        assert_eq!(script.stalls(), [(Duration::from_secs(2), Duration::from_secs(1))]);
    }

    #[test]
    fn errors_name_the_line_and_the_part() {
        let part = |part: &str| ScriptError::Part { line: 1, part: part.to_string() };
        let value = |key, value: &str| ScriptError::Value { line: 1, key, value: value.to_string() };
        for (text, expected) in [
            ("\nlose", ScriptError::Word { line: 2, word: "lose".to_string() }),
            ("delay", ScriptError::Missing { line: 1, key: "time" }),
            ("delay 5", value("time", "5")),
            ("drop evry=3", part("evry=3")),
            ("drop every=0", value("every", "0")),
            ("refuse", ScriptError::Missing { line: 1, key: "code" }),
            ("refuse code=0x10", value("code", "0x10")),
            ("grant qos=3", value("qos", "3")),
            ("cut-publisher when=never", value("when", "never")),
        ] {
            assert_eq!(Script::parse(text), Err(expected), "{text}");
        }
    }
}
