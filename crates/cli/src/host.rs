//! This process and machine, as runs need them.

use pubmark_runner::Host;

/// This machine, with the command line of this process.
pub fn this() -> Host {
    Host { command: command(), ..Host::this() }
}

/// The command line of this process, as it was typed.
pub fn command() -> Vec<String> {
    std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect()
}
