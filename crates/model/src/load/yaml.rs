//! Parses text to a tree with serde-saphyr, within limits that are far above normal files.

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{DuplicateKeyPolicy, Spanned};

use super::diagnostic::{Problem, ProblemKind, Span};
use super::node::{Entry, Node, Value};

/// Maximum size of a file, in bytes.
pub(crate) const LARGEST_FILE_BYTES: usize = 4 * 1024 * 1024;
/// Maximum depth.
const DEEPEST: usize = 32;
/// Maximum number of values, including those repeated by aliases.
const MOST_NODES: usize = 400_000;

/// Parses one document.
pub(crate) fn parse(text: &str) -> Result<Node, Problem> {
    if text.len() > LARGEST_FILE_BYTES {
        let message = format!("the file has {} bytes; {LARGEST_FILE_BYTES} is the most that is read", text.len());
        return Err(Problem::new(ProblemKind::Syntax, message));
    }
    let read: Result<Spanned<Read>, _> = serde_saphyr::from_str_with_options(text, options());
    match read {
        Ok(read) => Ok(node(read, text)),
        Err(error) => Err(problem(&error, text)),
    }
}

fn options() -> serde_saphyr::Options {
    let mut limits = serde_saphyr::options::AliasLimits::default();
    limits.max_total_replayed_events = MOST_NODES;
    limits.max_alias_expansions_per_anchor = 10_000;
    serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_depth: DEEPEST, max_nodes: MOST_NODES, max_documents: 1 },
        alias_limits: limits,
        duplicate_keys: DuplicateKeyPolicy::Error,
        strict_booleans: true,
        with_snippet: false,
    }
}

fn node(read: Spanned<Read>, text: &str) -> Node {
    let span = place(&read.defined, text);
    let value = match read.value {
        Read::Scalar(value) => value,
        Read::List(items) => Value::List(items.into_iter().map(|item| node(item, text)).collect()),
        Read::Map(entries) => Value::Map(
            entries
                .into_iter()
                .map(|(key, value)| Entry {
                    key_span: place(&key.defined, text),
                    key: key.value,
                    node: node(value, text),
                })
                .collect(),
        ),
    };
    Node { span, value }
}

fn place(location: &serde_saphyr::Location, text: &str) -> Span {
    let span = location.span();
    let (Some(start), length) = (span.byte_offset(), span.byte_len().unwrap_or(0)) else {
        return by_line(location, text);
    };
    Span { source: 0, start: start as u32, length: length as u32 }
}

/// The rest of the line from a (line, column); some errors have no offset.
fn by_line(location: &serde_saphyr::Location, text: &str) -> Span {
    let mut start = 0;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        if number as u64 + 1 == location.line() {
            let column = location.column().saturating_sub(1) as usize;
            let inside: usize = line.chars().take(column).map(char::len_utf8).sum();
            let length = line.trim_end().len().saturating_sub(inside).max(1);
            return Span { source: 0, start: (start + inside) as u32, length: length as u32 };
        }
        start += line.len();
    }
    Span { source: 0, start: text.len() as u32, length: 0 }
}

fn problem(error: &serde_saphyr::Error, text: &str) -> Problem {
    let error = error.without_snippet();
    let location = error.location();
    let said = error.to_string();
    // The label shows the position, so the library's "at line 3, column 5" is removed.
    let said = said.rsplit_once(" at line ").map_or(said.as_str(), |(before, _)| before);
    let found = match said.strip_prefix("duplicate mapping key: ").and_then(|rest| rest.split(',').next()) {
        Some(key) => {
            Problem::new(ProblemKind::BadName, format!("the key `{key}` is given twice")).help("keep one of the two")
        }
        None => Problem::new(ProblemKind::Syntax, format!("this is not YAML that can be read: {said}"))
            .help("check indentation (spaces, no tabs), brackets, and quote texts that contain `: `, `{` or `#`"),
    };
    match location {
        Some(location) => found.at(place(&location, text), "here"),
        None => found,
    }
}

/// A node as serde reads it.
enum Read {
    Scalar(Value),
    List(Vec<Spanned<Read>>),
    Map(Vec<(Spanned<String>, Spanned<Read>)>),
}

impl<'de> Deserialize<'de> for Read {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Read, D::Error> {
        deserializer.deserialize_any(ReadVisitor)
    }
}

struct ReadVisitor;

impl<'de> Visitor<'de> for ReadVisitor {
    type Value = Read;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Read, E> {
        Ok(Read::Scalar(Value::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Read, E> {
        Ok(Read::Scalar(Value::Bool(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Read, E> {
        Ok(Read::Scalar(Value::Integer(value)))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Read, E> {
        Ok(Read::Scalar(i64::try_from(value).map_or(Value::Float(value as f64), Value::Integer)))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Read, E> {
        Ok(Read::Scalar(Value::Float(value)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Read, E> {
        Ok(Read::Scalar(Value::Text(value.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Read, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Read::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Read, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = access.next_entry()? {
            entries.push(entry);
        }
        Ok(Read::Map(entries))
    }
}
