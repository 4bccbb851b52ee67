//! The process that holds a broker.

use std::process::ExitCode;

/// What the keeper's program does.
pub fn main() -> ExitCode {
    ExitCode::SUCCESS
}
