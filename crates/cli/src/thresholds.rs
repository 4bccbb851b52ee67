//! Limits on the command line: read, and shown with the place underlined where they cannot be.

use pubmark_record::threshold::{ThresholdError, metrics};

use crate::failure::Failure;
use pubmark_runner::suggestion;

/// The failure for limits that cannot be read, given by `flag`.
pub fn unread(flag: &str, error: &ThresholdError) -> Failure {
    let hint = match &error.unknown_name {
        Some(name) => suggestion::choices(name, metrics::names()),
        None => error.hint.clone(),
    };
    Failure::usage(format!("{}\n{}", error.message, error.drawing()))
        .during(format!("failed to read `{flag}`"))
        .hint(hint)
}
