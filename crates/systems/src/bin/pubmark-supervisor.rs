//! Supervises one broker for the process that started it; see `pubmark_systems::supervisor`.

use std::process::ExitCode;

fn main() -> ExitCode {
    pubmark_systems::supervisor::main()
}
