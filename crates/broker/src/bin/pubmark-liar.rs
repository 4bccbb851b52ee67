//! The lying broker of the truth tests; see `pubmark_broker::liar`.
#![allow(clippy::print_stderr)]

use std::error::Error;
use std::process::ExitCode;

fn main() -> ExitCode {
    match pubmark_broker::liar::serve_liar(std::env::args().skip(1), &mut std::io::stdout()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            let mut cause = error.source();
            while let Some(error) = cause {
                eprintln!("  because: {error}");
                cause = error.source();
            }
            ExitCode::FAILURE
        }
    }
}
