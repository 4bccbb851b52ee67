//! Supervises one broker for the process that started it, or keeps cores from sleeping; see `pubmark_systems::supervisor`
//! and `pubmark_systems::awake`.

use std::process::ExitCode;

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some(pubmark_systems::awake::VERB) => match pubmark_systems::awake::serve() {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        },
        _ => pubmark_systems::supervisor::main(),
    }
}
