//! The built-in broker as a process, for the suite.

use std::process::ExitCode;

fn main() -> ExitCode {
    match pubmark_broker::serve_process(std::env::args().skip(1), &mut std::io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The only way for a test to hear of it.
            use std::io::Write;
            let _ = writeln!(std::io::stderr(), "builtin-broker: {error}");
            ExitCode::FAILURE
        }
    }
}
