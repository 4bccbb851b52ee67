//! Systems that pubmark can start by itself.

use std::process::{Command, Stdio};

use super::Finding;

/// Is the broker that most runs are made against installed, and which version is it?
pub fn mosquitto() -> Finding {
    // Debian puts it where only root's PATH looks.
    for program in ["mosquitto", "/usr/sbin/mosquitto"] {
        let output = Command::new(program).arg("-h").stdin(Stdio::null()).output();
        if let Ok(output) = output {
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            let version = said.lines().next().unwrap_or("mosquitto, version unknown").to_owned();
            return Finding::good(format!("{version}: `--system mosquitto` works"));
        }
    }
    Finding::limited("not installed: `--system mosquitto` cannot start it", "`apt-get install mosquitto` as root")
}
