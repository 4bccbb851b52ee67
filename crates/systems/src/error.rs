//! Errors of systems under test.

use std::path::PathBuf;

use crate::container::ContainerError;

/// A system could not be defined, started, or stopped.
#[derive(Debug, thiserror::Error)]
pub enum SystemError {
    /// No definition of that name.
    #[error("unknown system `{name}`: known are {known}, or the path of a definition")]
    Unknown {
        /// The name given.
        name: String,
        /// The existing names.
        known: String,
    },
    /// A definition that cannot be used.
    #[error("wrong definition `{origin}`: {reason}")]
    Definition {
        /// The definition's file.
        origin: String,
        /// What is wrong, with the position in the file if it is known.
        reason: String,
    },
    /// The system has no such profile.
    #[error("`{system}` has no profile `{profile}`: it has {known}")]
    Profile {
        /// The system.
        system: String,
        /// The requested profile.
        profile: String,
        /// The existing profiles.
        known: String,
    },
    /// The profile has settings for clients of other protocols only.
    #[error("profile `{profile}` of `{system}` is for clients over {protocols} only")]
    ProfileOfOthers {
        /// The system.
        system: String,
        /// The requested profile.
        profile: String,
        /// The protocols that it has settings for.
        protocols: String,
    },
    /// The system does not support that protocol.
    #[error("`{system}` does not speak {protocol}: it speaks {known}")]
    Protocol {
        /// The system.
        system: String,
        /// The requested protocol.
        protocol: String,
        /// The supported protocols.
        known: String,
    },
    /// The system cannot encrypt this protocol.
    #[error("`{system}` does not offer {protocol} over TLS")]
    NoTls {
        /// The system.
        system: String,
        /// The requested protocol.
        protocol: String,
    },
    /// No certificates could be created for the system.
    #[error("failed to make certificates: {reason}")]
    Certificates {
        /// The reason.
        reason: String,
    },
    /// The system has no listener for this protocol over WebSocket.
    #[error("`{system}` does not offer {protocol} over WebSocket")]
    NoWebSocket {
        /// The system.
        system: String,
        /// The requested protocol.
        protocol: String,
    },
    /// The system cannot be configured to require a log-in.
    #[error("`{system}` cannot be started with a log-in: its definition has no part `when: password`")]
    NoLogin {
        /// The system.
        system: String,
    },
    /// There is no back end to start.
    #[error("`{system}` cannot be started: {reason}")]
    NoBackEnd {
        /// The system.
        system: String,
        /// Why no back end can be used.
        reason: String,
    },
    /// The system does not offer that topology.
    #[error("`{system}` cannot run {brokers} brokers as a {mode}: it offers {known}")]
    Topology {
        /// The system.
        system: String,
        /// Requested number of brokers.
        brokers: u32,
        /// Requested mode.
        mode: &'static str,
        /// The supported topologies.
        known: String,
    },
    /// The workload's packets are larger than the system accepts.
    #[error("the workload needs packets of {needed} bytes, `{system}` takes {most} at most")]
    Packet {
        /// The system.
        system: String,
        /// Bytes needed.
        needed: u32,
        /// Largest packet that it accepts, bytes, after the limit was raised if that is possible.
        most: u32,
    },
    /// A limit that cannot be enforced on this machine.
    #[error("limit `{requested}` cannot be set: {reason}; {remedy}")]
    Limit {
        /// The requested limits.
        requested: String,
        /// What is missing.
        reason: String,
        /// What would help.
        remedy: &'static str,
    },
    /// The supervisor could not be used.
    #[error("`{program}` cannot supervise a system: {reason}")]
    Supervisor {
        /// The program.
        program: String,
        /// What went wrong.
        reason: String,
    },
    /// An environment variable names a file that is not a program.
    #[error("environment variable {variable} names `{value}`, which is not a program")]
    NotAProgram {
        /// The variable.
        variable: String,
        /// The variable's value.
        value: String,
    },
    /// A program that other users could have changed.
    #[error("`{program}` is not run: `{}`: {why}", path.display())]
    Untrusted {
        /// The program.
        program: String,
        /// The path of the program, or a folder that contains it.
        path: PathBuf,
        /// Its owner, or the users who can change it.
        why: String,
    },
    /// The program was not found.
    #[error("{program} is not installed{}", by(.install))]
    Missing {
        /// The program.
        program: String,
        /// The command that installs it.
        install: String,
    },
    /// No free port was found.
    #[error("no free port found between {first} and {last} on 127.0.0.1")]
    NoPort {
        /// First port tried.
        first: u16,
        /// Last port of the range.
        last: u16,
    },
    /// A file or folder could not be used.
    #[error("failed to {action} `{path}`")]
    File {
        /// The operation.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// A program could not be run.
    #[error("failed to run `{program}`")]
    Run {
        /// The program.
        program: String,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// A command that prepares the start, or prints the version, failed.
    #[error("`{command}` {outcome}{}", quoted(.output))]
    Command {
        /// The command.
        command: String,
        /// How it ended.
        outcome: String,
        /// The end of its output.
        output: String,
    },
    /// The program ended before it was ready.
    #[error("`{system}` ended while it was starting ({status}){}", quoted(.log_tail))]
    Exited {
        /// The system.
        system: String,
        /// How it ended.
        status: String,
        /// The end of its log.
        log_tail: String,
    },
    /// The program did not become ready in time.
    #[error("`{system}` was not ready after {seconds} s: {reason}{}", quoted(.log_tail))]
    NotReady {
        /// The system.
        system: String,
        /// Longest time that it had, seconds.
        seconds: f64,
        /// What was still missing.
        reason: String,
        /// The end of its log.
        log_tail: String,
    },
    /// The caller requested a stop while the system was starting.
    #[error("interrupted while `{system}` was starting")]
    Interrupted {
        /// The system.
        system: String,
    },
    /// A container could not be started.
    #[error(transparent)]
    Container(#[from] ContainerError),
}

impl SystemError {
    /// Is the error caused by this machine or by the call, and not by the system? Then another folder, other
    /// permissions or other arguments would help.
    pub fn is_local(&self) -> bool {
        match self {
            SystemError::Unknown { .. }
            | SystemError::Definition { .. }
            | SystemError::Profile { .. }
            | SystemError::ProfileOfOthers { .. }
            | SystemError::Protocol { .. }
            | SystemError::NoTls { .. }
            | SystemError::Certificates { .. }
            | SystemError::NoWebSocket { .. }
            | SystemError::NoLogin { .. }
            | SystemError::NoBackEnd { .. }
            | SystemError::Topology { .. }
            | SystemError::Packet { .. }
            | SystemError::Limit { .. }
            | SystemError::NotAProgram { .. }
            | SystemError::Untrusted { .. }
            | SystemError::NoPort { .. }
            | SystemError::File { .. }
            | SystemError::Container(ContainerError::Limit { .. }) => true,
            SystemError::Supervisor { .. }
            | SystemError::Missing { .. }
            | SystemError::Run { .. }
            | SystemError::Command { .. }
            | SystemError::Exited { .. }
            | SystemError::NotReady { .. }
            | SystemError::Interrupted { .. }
            | SystemError::Container(_) => false,
        }
    }
}

/// The command that installs a program, as the end of a message; a script of several lines is not shown.
fn by(install: &str) -> String {
    if install.trim_end().contains('\n') { String::new() } else { format!(": `{}`", install.trim_end()) }
}

/// Text before the output of another program in a message.
const OUTPUT: &str = "; it printed:";

/// The output of a program, as the end of a message.
pub(crate) fn quoted(text: &str) -> String {
    if text.is_empty() { "; it printed nothing".to_owned() } else { format!("{OUTPUT}\n{text}") }
}

/// A message without the output of another program, because that output names hosts and addresses of one machine.
pub fn without_output(message: &str) -> &str {
    message.split(OUTPUT).next().unwrap_or_default()
}
