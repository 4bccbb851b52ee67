//! Supervises one broker for the process that started it, or prevents CPU idle states; see `pubmark_systems::supervisor`
//! and `pubmark_systems::awake`.

use std::process::ExitCode;

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some(pubmark_systems::awake::VERB) => {
            pubmark_systems::awake::serve().map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS)
        }
        _ => pubmark_systems::supervisor::main(),
    }
}
