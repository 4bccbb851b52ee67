//! A domain with its participant: what finds others and is found.

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

/// A domain of this process with a participant in it. It has sockets and threads of its own: the library would let two participants
/// of one domain in one process hand samples to each other without the network.
pub struct Domain {
    cyclone: &'static Library,
    participant: i32,
    // Deleted when dropped, and with it everything in it.
    _domain: Handle,
}

impl Domain {
    /// Opens a domain with these settings: an XML document as the library reads it. The user's environment is not looked at. The
    /// document names the domain on the network as `Discovery/ExternalDomainId`; in this process it gets a number of its own.
    ///
    /// # Errors
    /// In the library's words, which are few.
    pub fn open(cyclone: &'static Library, settings: &CStr) -> Result<Domain, CallError> {
        // The library's table of domains is the process's, so are the numbers in it.
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
    /// A name that has other signs than letters, digits, `_` and `/`, among others.
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
    /// In the library's words.
    pub fn writer(&self, topic: &Topic, qos: &Qos, signal: Arc<Signal>) -> Result<Writer, CallError> {
        Writer::create(self.cyclone, self.participant, topic, qos, signal)
    }

    /// A reader of a topic of this domain.
    ///
    /// # Errors
    /// In the library's words.
    pub fn reader(&self, topic: &Topic, qos: &Qos, signal: Arc<Signal>, intake: Intake) -> Result<Reader, CallError> {
        Reader::create(self.cyclone, self.participant, topic.0.entity(), Some(qos), signal, intake)
    }

    /// All writers that this domain's participant finds, its own among them.
    ///
    /// # Errors
    /// In the library's words.
    pub fn discovered_writers(&self, signal: Arc<Signal>) -> Result<DiscoveredWriters, CallError> {
        Reader::create(self.cyclone, self.participant, DISCOVERED_WRITERS, None, signal, Intake::WhenAsked)
            .map(DiscoveredWriters)
    }
}
