//! Load tools of others, measured in the same call.

use std::net::SocketAddr;
use std::process::{Command, Stdio};

use crate::usage;

/// Messages that redis-benchmark publishes.
const MESSAGES: u32 = 500_000;

/// CPU seconds of redis-benchmark per million messages of 16 B that it publishes over one connection, 16 at a time.
pub fn redis_benchmark(server: SocketAddr) -> Result<f64, String> {
    let before = usage::children_cpu_s();
    let (host, port, messages) = (server.ip().to_string(), server.port().to_string(), MESSAGES.to_string());
    let status = Command::new("redis-benchmark")
        .args([
            "-h",
            &host,
            "-p",
            &port,
            "-c",
            "1",
            "-n",
            &messages,
            "-P",
            "16",
            "-q",
            "PUBLISH",
            "bench",
            "0123456789abcdef",
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .map_err(|error| format!("failed to start redis-benchmark (Debian: redis-tools): {error}"))?;
    if !status.success() {
        return Err(format!("redis-benchmark ended with {status}"));
    }
    Ok((usage::children_cpu_s() - before) / (f64::from(MESSAGES) / 1e6))
}
