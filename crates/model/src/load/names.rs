//! Names in a workload file, and limits on the number of its parts.

use std::collections::HashMap;

use super::diagnostic::{Problem, ProblemKind, Span};
use super::shape::Spanned;

/// Maximum number of device groups; a group's number has 16 bits.
pub(super) const MOST_GROUPS: usize = 10_000;
/// Maximum number of subscribers in total.
pub(super) const MOST_SUBSCRIBERS: u64 = 1_000_000;
/// Maximum number of filters of one subscriber.
pub(super) const MOST_FILTERS: usize = 1_000;

/// Names seen so far, with their positions.
#[derive(Default)]
pub(super) struct Names(HashMap<String, Span>);

impl Names {
    pub(super) fn add(&mut self, what: &str, name: &str, span: Span) -> Result<(), Problem> {
        match self.0.insert(name.to_owned(), span) {
            None => Ok(()),
            Some(first) => Err(Problem::new(ProblemKind::BadName, format!("two {what}s are called `{name}`"))
                .at(span, "again")
                .at(first, "first used here")
                .help("give one of them a `name` of its own")),
        }
    }
}

/// Names are used in topics and in dotted paths, so some characters are not allowed.
pub(crate) fn check_name(name: &Spanned<String>) -> Result<(), Problem> {
    let part = |part: &str| {
        !part.is_empty() && part.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_'))
    };
    let text = &name.value;
    if text.len() <= 128 && text.split('/').count() <= 2 && text.split('/').all(part) {
        return Ok(());
    }
    Err(Problem::new(ProblemKind::BadName, format!("`{}` cannot be a name", text.chars().take(60).collect::<String>()))
        .at(name.span, "not a name")
        .help("names have letters, digits, `-` and `_`, with at most one `/` between domain and type"))
}
