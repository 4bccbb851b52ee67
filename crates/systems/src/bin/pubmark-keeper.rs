//! Holds one broker for whoever started it; see `pubmark_systems::keeper`.

use std::process::ExitCode;

fn main() -> ExitCode {
    pubmark_systems::keeper::main()
}
