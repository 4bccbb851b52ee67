//! A Zenoh router for the suite, from the Zenoh library: `zenoh-router CONFIGURATION`. It runs until a signal ends it.

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
            // A test reads the address from standard output; there is no other way to learn it.
            use std::io::Write;
            let _ = writeln!(std::io::stderr(), "zenoh-router: {error}");
            ExitCode::FAILURE
        }
    }
}
