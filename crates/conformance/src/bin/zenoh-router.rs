//! A Zenoh router for the suite, the library's own: `zenoh-router CONFIGURATION`. It ends by a signal.

use std::process::ExitCode;

use zenoh::Wait as _;

fn main() -> ExitCode {
    let configuration = std::env::args().nth(1).unwrap_or_default();
    let opened = zenoh::Config::from_file(configuration).and_then(|config| zenoh::open(config).wait());
    match opened {
        Ok(_router) => loop {
            std::thread::park();
        },
        Err(error) => {
            // The only way for a test to hear of it.
            use std::io::Write;
            let _ = writeln!(std::io::stderr(), "zenoh-router: {error}");
            ExitCode::FAILURE
        }
    }
}
