//! Predicates on JSON payloads: `payload.temperature > 30 && payload.room == "kitchen"`.
//!
//! The language is a subset of CEL (Common Expression Language): comparisons of numbers, texts and Booleans, `&&`, `||`,
//! `!` and parentheses. The reasons for the subset: docs/explanation/workloads.md#content-filters. Start with
//! [`Predicate::parse`].

use std::ops::Range;

use serde::{Deserialize, Serialize};

mod check;
mod document;
mod parse;
mod selector;

pub use document::{Scalar, Unreadable};
pub use selector::SelectorFields;

use document::{Paths, Values};

/// Maximum length of a predicate, bytes.
pub const LONGEST_TEXT_BYTES: usize = 4_096;
/// Maximum number of different paths in one predicate.
pub const MOST_PATHS: usize = 16;
/// Maximum nesting of parentheses and `!`.
pub const MOST_DEPTH: usize = 32;

/// An error in a predicate, and its position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct PredicateError {
    /// Position in the text, bytes.
    pub at: Range<usize>,
    /// What is wrong.
    pub reason: String,
    /// What to write instead.
    pub hint: String,
}

/// A validated predicate.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Predicate {
    text: String,
    root: Node,
    paths: Paths,
}

/// A part of a predicate, with its position in the text.
#[derive(Clone, Debug)]
struct Node {
    at: Range<usize>,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    And(Box<[Node; 2]>),
    Or(Box<[Node; 2]>),
    Not(Box<Node>),
    Compare(Comparison, Box<[Node; 2]>),
    /// A path in the payload, by its number in [`Paths`].
    Path(usize),
    Number(f64),
    Text(String),
    Truth(bool),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Equal,
    Unequal,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

impl Comparison {
    fn is_of_order(self) -> bool {
        !matches!(self, Comparison::Equal | Comparison::Unequal)
    }

    fn holds<T: PartialOrd + ?Sized>(self, left: &T, right: &T) -> bool {
        match self {
            Comparison::Equal => left == right,
            Comparison::Unequal => left != right,
            Comparison::Less => left < right,
            Comparison::AtMost => left <= right,
            Comparison::Greater => left > right,
            Comparison::AtLeast => left >= right,
        }
    }
}

impl Predicate {
    /// The text, as written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the predicate is true for a document.
    ///
    /// # Errors
    ///
    /// The document is not JSON, lacks a field that the predicate needs, or the field has another type.
    pub fn holds(&self, document: &[u8]) -> Result<bool, Unreadable> {
        let values = self.paths.read(document)?;
        match self.root.value(&values)? {
            Scalar::Truth(truth) => Ok(truth),
            _ => Err(Unreadable),
        }
    }
}

impl Node {
    /// Value of the predicate. `&&` and `||` have a value if one side decides, even if the other cannot be evaluated (as in
    /// CEL).
    fn value<'a>(&'a self, values: &'a Values<'_>) -> Result<Scalar<'a>, Unreadable> {
        let truth = |node: &'a Node| match node.value(values)? {
            Scalar::Truth(truth) => Ok(truth),
            _ => Err(Unreadable),
        };
        // If a side has the value `decides`, it determines the result.
        let either = |sides: &'a [Node; 2], decides: bool| match truth(&sides[0]) {
            Ok(left) if left == decides => Ok(Scalar::Truth(decides)),
            left => match truth(&sides[1])? {
                right if right == decides => Ok(Scalar::Truth(decides)),
                right => left.map(|_| Scalar::Truth(right)),
            },
        };
        Ok(match &self.kind {
            Kind::And(sides) => either(sides, false)?,
            Kind::Or(sides) => either(sides, true)?,
            Kind::Not(side) => Scalar::Truth(!truth(side)?),
            Kind::Compare(comparison, sides) => {
                Scalar::Truth(match (sides[0].value(values)?, sides[1].value(values)?) {
                    (Scalar::Number(left), Scalar::Number(right)) => comparison.holds(&left, &right),
                    (Scalar::Text(left), Scalar::Text(right)) => comparison.holds(&*left, &*right),
                    (Scalar::Truth(left), Scalar::Truth(right)) => comparison.holds(&left, &right),
                    _ => return Err(Unreadable),
                })
            }
            Kind::Path(number) => values.get(*number)?,
            Kind::Number(number) => Scalar::Number(*number),
            Kind::Text(text) => Scalar::Text(text.as_str().into()),
            Kind::Truth(truth) => Scalar::Truth(*truth),
        })
    }
}

impl PartialEq for Predicate {
    fn eq(&self, other: &Predicate) -> bool {
        self.text == other.text
    }
}

impl Eq for Predicate {}

impl TryFrom<String> for Predicate {
    type Error = PredicateError;

    fn try_from(text: String) -> Result<Predicate, PredicateError> {
        Predicate::parse(&text)
    }
}

impl From<Predicate> for String {
    fn from(predicate: Predicate) -> String {
        predicate.text
    }
}

#[cfg(test)]
mod tests;
