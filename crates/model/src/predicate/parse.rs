//! Parses text to a predicate: tokens, then a tree. Precedence, from the lowest: `||`, `&&`, comparisons, `!`.

use std::ops::Range;

use super::document::Paths;
use super::{Comparison, Kind, LONGEST_TEXT_BYTES, MOST_DEPTH, MOST_PATHS, Node, Predicate, PredicateError};

/// A token of the text.
#[derive(Clone, Debug, PartialEq)]
enum Word {
    Name(String),
    Number(f64),
    Text(String),
    Sign(&'static str),
    End,
}

/// Longer signs come first.
const SIGNS: [&str; 14] = ["&&", "||", "==", "!=", "<=", ">=", "<", ">", "!", "(", ")", ".", "[", "]"];

const COMPARISONS: [(&str, Comparison); 6] = [
    ("==", Comparison::Equal),
    ("!=", Comparison::Unequal),
    ("<", Comparison::Less),
    ("<=", Comparison::AtMost),
    (">", Comparison::Greater),
    (">=", Comparison::AtLeast),
];

impl Predicate {
    /// Parses a predicate.
    ///
    /// # Errors
    ///
    /// The text cannot be parsed. The error has the position.
    pub fn parse(text: &str) -> Result<Predicate, PredicateError> {
        if text.len() > LONGEST_TEXT_BYTES {
            let reason = format!("a predicate of {} B, {LONGEST_TEXT_BYTES} B at most", text.len());
            return Err(error(0..text.len(), reason, "write a shorter one"));
        }
        let mut parser = Parser { words: words(text)?, next: 0, paths: Paths::new(), depth: 0 };
        let root = parser.either()?;
        match parser.peek() {
            (Word::End, _) => Ok(Predicate { text: text.to_owned(), root, paths: parser.paths }),
            (_, at) => Err(error(at, "the expression is over before this".to_owned(), "join parts with `&&` or `||`")),
        }
    }
}

pub(super) fn error(at: Range<usize>, reason: String, hint: &str) -> PredicateError {
    PredicateError { at, reason, hint: hint.to_owned() }
}

fn words(text: &str) -> Result<Vec<(Word, Range<usize>)>, PredicateError> {
    let mut words = Vec::new();
    let mut at = 0;
    loop {
        at += text[at..].len() - text[at..].trim_start().len();
        let rest = &text[at..];
        let length = |is_part: fn(char) -> bool| rest.find(|letter| !is_part(letter)).unwrap_or(rest.len());
        let (word, bytes) = match rest.chars().next() {
            None => break,
            Some(quote @ ('"' | '\'')) => string(rest, quote, at)?,
            Some('0'..='9' | '-') => {
                let bytes = length(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-' | '+'));
                let number = rest[..bytes].parse().ok().filter(|number: &f64| number.is_finite());
                let wrong =
                    || error(at..at + bytes, format!("`{}` is no number", &rest[..bytes]), "write it like `-3.5`");
                (Word::Number(number.ok_or_else(wrong)?), bytes)
            }
            Some('a'..='z' | 'A'..='Z' | '_') => {
                let bytes = length(|letter| letter.is_ascii_alphanumeric() || letter == '_');
                (Word::Name(rest[..bytes].to_owned()), bytes)
            }
            Some(letter) => match SIGNS.into_iter().find(|sign| rest.starts_with(sign)) {
                Some(sign) => (Word::Sign(sign), sign.len()),
                None => {
                    let hint = match letter {
                        '=' => "equality is `==`",
                        '&' => "and is `&&`",
                        '|' => "or is `||`",
                        _ => "an expression is like `payload.temperature > 30 && payload.room == \"hall\"`",
                    };
                    return Err(error(at..at + letter.len_utf8(), format!("unexpected `{letter}`"), hint));
                }
            },
        };
        words.push((word, at..at + bytes));
        at += bytes;
    }
    words.push((Word::End, text.len()..text.len()));
    Ok(words)
}

/// A text in quotes, and its length including them.
fn string(rest: &str, quote: char, at: usize) -> Result<(Word, usize), PredicateError> {
    let mut value = String::new();
    let mut letters = rest.char_indices().skip(1);
    while let Some((place, letter)) = letters.next() {
        match letter {
            letter if letter == quote => return Ok((Word::Text(value), place + 1)),
            '\\' => match letters.next() {
                Some((_, escaped @ ('\\' | '"' | '\''))) => value.push(escaped),
                Some((_, 'n')) => value.push('\n'),
                Some((_, 't')) => value.push('\t'),
                _ => {
                    let hint = "escapes are `\\\\`, `\\\"`, `\\'`, `\\n`, `\\t`";
                    return Err(error(at + place..at + place + 1, "an unknown escape".to_owned(), hint));
                }
            },
            letter => value.push(letter),
        }
    }
    Err(error(at..at + rest.len(), "a text without its end".to_owned(), "end it with the quote that it begins with"))
}

struct Parser {
    words: Vec<(Word, Range<usize>)>,
    next: usize,
    paths: Paths,
    depth: usize,
}

impl Parser {
    fn peek(&self) -> (&Word, Range<usize>) {
        let (word, at) = &self.words[self.next.min(self.words.len() - 1)];
        (word, at.clone())
    }

    fn take(&mut self) -> (Word, Range<usize>) {
        let taken = self.words[self.next.min(self.words.len() - 1)].clone();
        self.next += 1;
        taken
    }

    fn takes(&mut self, sign: &'static str) -> bool {
        let found = *self.peek().0 == Word::Sign(sign);
        self.next += usize::from(found);
        found
    }

    fn either(&mut self) -> Result<Node, PredicateError> {
        let mut left = self.both()?;
        while self.takes("||") {
            left = pair(Kind::Or, left, self.both()?);
        }
        Ok(left)
    }

    fn both(&mut self) -> Result<Node, PredicateError> {
        let mut left = self.comparison()?;
        while self.takes("&&") {
            left = pair(Kind::And, left, self.comparison()?);
        }
        Ok(left)
    }

    fn comparison(&mut self) -> Result<Node, PredicateError> {
        let left = self.operand()?;
        let Some((_, comparison)) = COMPARISONS.into_iter().find(|(sign, _)| self.takes(sign)) else { return Ok(left) };
        Ok(pair(|sides| Kind::Compare(comparison, sides), left, self.operand()?))
    }

    fn operand(&mut self) -> Result<Node, PredicateError> {
        let (word, at) = self.take();
        let kind = match word {
            Word::Number(number) => Kind::Number(number),
            Word::Text(text) => Kind::Text(text),
            Word::Name(name) if name == "true" || name == "false" => Kind::Truth(name == "true"),
            Word::Name(name) if name == "payload" => return self.path(at),
            Word::Name(name) => {
                let hint = format!("fields are written `payload.{name}`, texts in quotes");
                return Err(error(at, format!("`{name}` is not known"), &hint));
            }
            Word::Sign("!") => {
                self.deeper(&at)?;
                let inner = self.operand()?;
                self.depth -= 1;
                return Ok(Node { at: at.start..inner.at.end, kind: Kind::Not(Box::new(inner)) });
            }
            Word::Sign("(") => {
                self.deeper(&at)?;
                let inner = self.either()?;
                self.depth -= 1;
                return match self.takes(")") {
                    true => Ok(inner),
                    false => Err(error(at, "a parenthesis that is not closed".to_owned(), "close it with `)`")),
                };
            }
            Word::Sign(sign) => {
                return Err(error(
                    at,
                    format!("`{sign}` where a value should be"),
                    "write a field, a number or a text",
                ));
            }
            Word::End => {
                return Err(error(
                    at,
                    "the expression ends where a value should be".to_owned(),
                    "write a value behind it",
                ));
            }
        };
        Ok(Node { at, kind })
    }

    fn deeper(&mut self, at: &Range<usize>) -> Result<(), PredicateError> {
        self.depth += 1;
        match self.depth > MOST_DEPTH {
            true => Err(error(at.clone(), format!("nested more than {MOST_DEPTH} deep"), "write a simpler expression")),
            false => Ok(()),
        }
    }

    /// What follows `payload`: `.name`, `["any name"]`.
    fn path(&mut self, from: Range<usize>) -> Result<Node, PredicateError> {
        let mut keys = Vec::new();
        let mut at = from;
        loop {
            let hint = "write `payload.temperature`, or `payload[\"air temperature\"]`";
            if self.takes(".") {
                match self.take() {
                    (Word::Name(name), place) => {
                        keys.push(name);
                        at.end = place.end;
                    }
                    (_, place) => return Err(error(place, "no name of a field behind the dot".to_owned(), hint)),
                }
            } else if self.takes("[") {
                match self.take() {
                    (Word::Text(name), _) => keys.push(name),
                    (_, place) => return Err(error(place, "no name of a field in quotes".to_owned(), hint)),
                }
                at.end = self.peek().1.end;
                if !self.takes("]") {
                    return Err(error(at, "a bracket that is not closed".to_owned(), hint));
                }
            } else if keys.is_empty() {
                return Err(error(at, "the whole payload is no value".to_owned(), hint));
            } else {
                break;
            }
        }
        match self.paths.add(&keys) {
            Some(number) => Ok(Node { at, kind: Kind::Path(number) }),
            None => Err(error(at, format!("more than {MOST_PATHS} different fields"), "write a simpler expression")),
        }
    }
}

fn pair(kind: impl FnOnce(Box<[Node; 2]>) -> Kind, left: Node, right: Node) -> Node {
    Node { at: left.at.start..right.at.end, kind: kind(Box::new([left, right])) }
}
