//! Measurements in child processes: each starts with a clean memory and leaves its own CPU time.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Runs this program as the child `kind` with a task as JSON; returns its result.
pub fn run_child<Order: Serialize, Finding: DeserializeOwned>(kind: &str, order: &Order) -> Result<Finding, String> {
    let order = serde_json::to_string(order).map_err(|error| error.to_string())?;
    let output = this_program()?
        .args(["child", kind, &order])
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("failed to start a child: {error}"))?;
    if !output.status.success() {
        return Err(format!("the child `{kind}` ended with {}", output.status));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("the child `{kind}` said something else: {error}"))
}

/// A child that serves until it is dropped.
pub struct Server {
    child: Child,
    /// Address on which it listens.
    pub address: String,
}

impl Server {
    /// Starts the child `kind`, which prints its address first.
    pub fn start(kind: &str) -> Result<Server, String> {
        let mut child = this_program()?
            .args(["child", kind, "null"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("failed to start a child: {error}"))?;
        let out = child.stdout.take().ok_or("the child has no standard output")?;
        let mut address = String::new();
        BufReader::new(out).read_line(&mut address).map_err(|error| error.to_string())?;
        Ok(Server { child, address: address.trim().to_owned() })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It ends by itself when its standard input closes; a kill is faster and always takes effect.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn this_program() -> Result<Command, String> {
    let path = std::env::current_exe().map_err(|error| format!("failed to find this program: {error}"))?;
    Ok(Command::new(path))
}
