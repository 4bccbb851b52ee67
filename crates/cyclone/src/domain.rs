//! A domain with one participant, which takes part in discovery.

use std::ffi::CStr;
use std::ptr::null;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::entities::{DiscoveredWriters, Handle, Intake, Reader, Topic, Writer};
use crate::library::{CallError, Library};
use crate::qos::Qos;
use crate::raw::DISCOVERED_WRITERS;
use crate::sample::Kind;
use crate::signal::Signal;

/// A domain of this process with one participant. It has its own sockets and threads: the library would pass samples between
/// two participants of one domain in one process without the network.
pub struct Domain {
    cyclone: &'static Library,
    participant: i32,
    // Deleted when dropped, and with it everything in it.
    _domain: Handle,
}

impl Domain {
    /// Opens a domain with these settings: an XML document in the library's format. The environment variables of the user are
    /// not read. The document names the domain on the network as `Discovery/ExternalDomainId`; in this process it gets a number
    /// of its own.
    ///
    /// # Errors
    /// With the library's text, which is short.
    pub fn open(cyclone: &'static Library, settings: &CStr) -> Result<Domain, CallError> {
        // The library has one table of domains in a process, so their numbers must be unique in the process.
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let functions = &cyclone.functions;
        // SAFETY: the settings are a C string; the participant has default quality and no listener.
        let domain = unsafe { (functions.dds_create_domain)(number, settings.as_ptr()) };
        let domain = Handle::new(cyclone, cyclone.check("open a DDS domain", domain)?);
        // SAFETY: as above.
        let participant = unsafe { (functions.dds_create_participant)(number, null(), null()) };
        let participant = cyclone.check("join a DDS domain", participant)?;
        Ok(Domain { cyclone, participant, _domain: domain })
    }

    /// A topic by its name on the network.
    ///
    /// # Errors
    /// For example a name with characters other than letters, digits, `_` and `/`.
    pub fn topic(&self, name: &CStr, kind: Kind) -> Result<Topic, CallError> {
        // SAFETY: the descriptor is a constant, the name a C string; default quality, no listener.
        let topic = unsafe {
            let create = self.cyclone.functions.dds_create_topic;
            create(self.participant, kind.descriptor(), name.as_ptr(), null(), null())
        };
        Ok(Topic(Handle::new(self.cyclone, self.cyclone.check("make a DDS topic", topic)?)))
    }

    /// A writer to a topic of this domain.
    ///
    /// # Errors
    /// With the library's text.
    pub fn writer(&self, topic: &Topic, qos: &Qos, signal: Arc<Signal>) -> Result<Writer, CallError> {
        Writer::create(self.cyclone, self.participant, topic, qos, signal)
    }

    /// A reader of a topic of this domain.
    ///
    /// # Errors
    /// With the library's text.
    pub fn reader(&self, topic: &Topic, qos: &Qos, signal: Arc<Signal>, intake: Intake) -> Result<Reader, CallError> {
        Reader::create(self.cyclone, self.participant, topic.0.entity(), Some(qos), signal, intake)
    }

    /// All writers that this domain's participant discovers, including its own.
    ///
    /// # Errors
    /// With the library's text.
    pub fn discovered_writers(&self, signal: Arc<Signal>) -> Result<DiscoveredWriters, CallError> {
        Reader::create(self.cyclone, self.participant, DISCOVERED_WRITERS, None, signal, Intake::WhenAsked)
            .map(DiscoveredWriters)
    }
}
