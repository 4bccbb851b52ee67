//! How checks are shown: [`text`] for people, [`json`] for programs, [`junit`] for continuous integration; and the code that they end with.

pub mod json;
pub mod junit;
pub mod text;

use pubmark_record::check::{Checked, Kind};

use crate::exit_code::ExitCode;

/// What a call ends with whose checks came out so.
pub fn exit(checked: &Checked) -> ExitCode {
    match checked.worst() {
        None if checked.is_undecided() => ExitCode::Undecided,
        None => ExitCode::Ok,
        Some(Kind::Verdict) => ExitCode::InvalidRun,
        Some(Kind::Repetitions) => ExitCode::SystemFailed,
        Some(Kind::Required | Kind::FailOn) => ExitCode::ThresholdMissed,
        Some(Kind::Regression) => ExitCode::Regression,
    }
}
