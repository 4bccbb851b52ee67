//! What a client library does for the adapter; `cyclone` and `rust` do it.

use std::ffi::CStr;
use std::sync::Arc;

use pubmark_cyclone::entities::{Intake, Written};
use pubmark_cyclone::qos::Qos;
use pubmark_cyclone::sample::{Kind, Sample};
use pubmark_protocol::capabilities::Capabilities;

use super::settings::Settings;

/// Wakes the shard; called on threads of the library.
pub type Wake = Arc<dyn Fn() + Send + Sync>;

/// A client library.
pub trait Binding: 'static {
    /// What clients over it can do.
    const CAPABILITIES: Capabilities;
    /// How long a writer may take to match a reader whose participant is known, ns; 0 where it has when it is made.
    const MATCH_NS: u64;
    /// A domain that was joined, with sockets of its own.
    type Domain;
    /// A writer. It may be deleted on another thread.
    type Writer: Writing + Send + 'static;
    /// A reader.
    type Reader: Reading;
    /// Writers that were found.
    type Discovered: Discovering;

    /// Why it cannot be used on this machine, if so.
    fn missing() -> Option<String>;

    /// Its name and version, as far as it reports them; empty if it is missing.
    fn version() -> String;

    /// Joins the domain that the settings name.
    ///
    /// # Errors
    /// Why not, in a sentence.
    fn join(settings: &Settings) -> Result<Self::Domain, String>;

    /// A writer to a topic.
    fn writer(
        domain: &mut Self::Domain,
        topic: &CStr,
        kind: Kind,
        qos: &Qos,
        wake: Wake,
    ) -> Result<Self::Writer, String>;

    /// A reader of a topic, from which samples are taken at this time if the library supports that.
    fn reader(
        domain: &mut Self::Domain,
        topic: &CStr,
        kind: Kind,
        qos: &Qos,
        wake: Wake,
        intake: Intake,
    ) -> Result<Self::Reader, String>;

    /// All writers that are found from now on, and those that are known.
    fn discovered(domain: &mut Self::Domain, wake: Wake) -> Result<Self::Discovered, String>;
}

/// A writer.
pub trait Writing {
    /// Does a reader match at present?
    fn has_matched(&self) -> bool;

    /// Hands over a sample without waiting.
    fn write(&self, topic: &CStr, payload: &[u8]) -> Result<Written, String>;

    /// Has every matching reliable reader acknowledged everything written so far? Does not wait.
    fn all_acknowledged(&self) -> Result<bool, String>;
}

/// A reader.
pub trait Reading {
    /// Has something arrived since the last call? The next call reports what arrives from now on.
    fn take_signal(&self) -> bool;

    /// There is more than was taken: the next [`Reading::take_signal`] returns true.
    fn keep_signal(&self);

    /// Takes the samples that have arrived, at most some dozens of samples; true if there may be more. `each` may be called for a
    /// sample before the next one is taken.
    fn take(&self, each: impl FnMut(Sample<'_>)) -> Result<bool, String>;

    /// Samples that arrived and were dropped because the shard did not take them in time, since the last call: there was no buffer
    /// space, or the reader's depth had no room.
    fn take_missed(&self) -> u64 {
        0
    }
}

/// Writers that were found.
pub trait Discovering {
    /// May any have been discovered since the last call?
    fn take_signal(&self) -> bool;

    /// Next time to check, on the clock of [`pubmark_protocol::clock::monotonic_ns`]; `None` if the shard is woken.
    fn next_check_ns(&self) -> Option<u64>;

    /// Passes on the topic and the type of writers, earlier ones perhaps again.
    fn take(&self, each: impl FnMut(&CStr, &CStr)) -> Result<(), String>;
}
