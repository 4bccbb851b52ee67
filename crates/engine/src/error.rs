//! Errors of a run, as opposed to failures of the system under test, which are a result.

use pubmark_protocol::clients::OpenError;

/// The reason why a run failed.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// An adapter could not be started.
    #[error("failed to start a shard")]
    Open(#[from] OpenError),
    /// A shard could not wait for events.
    #[error("shard `{shard}` failed to wait for events")]
    Poll {
        /// Name of the shard.
        shard: String,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// A thread could not be started.
    #[error("failed to start a thread for shard `{shard}`")]
    Thread {
        /// Name of the shard.
        shard: String,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// A shard's thread ended without a result: a defect of pubmark.
    #[error("shard `{0}` ended without a result")]
    Lost(String),
    /// A shard waits in its client, which does not return from a call. Its thread cannot be ended and remains.
    #[error("shard `{shard}` did not {what} within {within_s:.0} s")]
    Stuck {
        /// Name of the shard.
        shard: String,
        /// What it was to do, in words.
        what: &'static str,
        /// Time that it had, seconds.
        within_s: f64,
    },
    /// The memory that shards share could not be allocated.
    #[error("failed to allocate shared memory for {shards} shards")]
    Memory {
        /// Number of shards.
        shards: usize,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// A worker process could not be started.
    #[error("failed to start a worker process for shard `{shard}`")]
    Launch {
        /// Name of its first shard.
        shard: String,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// A worker process cannot be sent its order: it is longer than a message may be.
    #[error("an order of {bytes} bytes for a worker process, and at most {longest} can be sent")]
    LongOrder {
        /// Length of the order, bytes.
        bytes: usize,
        /// Length of the longest message, bytes.
        longest: usize,
    },
    /// The files of the message log cannot be created or read.
    #[error("failed to write or read the message log")]
    MessageLog(#[source] std::io::Error),
    /// A worker process could not begin.
    #[error("a worker process failed: {why}")]
    Worker {
        /// Number of its node; 0 in a run without nodes.
        node: u16,
        /// The reason, in words.
        why: String,
    },
    /// The start of the measured window could not be agreed with a shard.
    #[error("shard `{shard}` did not confirm the start of the measured window within {within_s:.0} s")]
    Unprepared {
        /// Name of the shard.
        shard: String,
        /// Time that it had, seconds.
        within_s: f64,
    },
    /// The plan requires something that the engine cannot do.
    #[error("{0}")]
    Unsupported(String),
}
