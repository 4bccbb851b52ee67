//! This process and machine, as runs take them.

use pubmark_runner::Host;

/// This machine with this process's call.
pub fn this() -> Host {
    Host { command: command(), ..Host::this() }
}

/// The words of this process's call, as they were typed.
pub fn command() -> Vec<String> {
    std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect()
}
