//! Quality of service of a writer or a reader, and its form in C.

use std::time::Duration;

use crate::library::{CallError, Library};
use crate::raw::{self, INFINITY, Opaque};

/// How many samples of an instance are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum History {
    /// Everything, until it is acknowledged (writer) or taken (reader).
    KeepAll,
    /// The last N samples.
    KeepLast(u16),
}

/// The requested settings. Unset ones have the standard's defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Qos {
    /// Retransmitted until every reader has it.
    pub reliable: bool,
    /// How many samples are stored.
    pub history: History,
    /// Samples of an instance that a late-joining reader gets (durability TRANSIENT_LOCAL); `None` is VOLATILE.
    pub late_joiners_get: Option<u16>,
    /// A writer counts as gone when nothing was received from it for this long; `None` is for ever.
    pub liveliness_lease: Option<Duration>,
    /// A sample is dropped when it is older than this; `None` is never.
    pub lifespan: Option<Duration>,
}

/// `DDS_HISTORY_KEEP_LAST` and `DDS_HISTORY_KEEP_ALL`.
const KEEP_LAST: u32 = 0;
const KEEP_ALL: u32 = 1;
/// `DDS_LENGTH_UNLIMITED`.
const UNLIMITED: i32 = -1;

/// A `dds_qos_t`; deleted when dropped.
pub(crate) struct RawQos {
    cyclone: &'static Library,
    pub(crate) pointer: *mut Opaque,
}

impl RawQos {
    /// # Errors
    /// There is no memory for it.
    pub(crate) fn new(cyclone: &'static Library, qos: &Qos) -> Result<RawQos, CallError> {
        let functions = &cyclone.functions;
        // SAFETY: takes nothing, gives a new object or null.
        let pointer = unsafe { (functions.dds_create_qos)() };
        if pointer.is_null() {
            return Err(CallError { what: "make a quality of service", words: "out of memory".to_owned() });
        }
        let made = RawQos { cyclone, pointer };
        let (kind, depth) = match qos.history {
            History::KeepAll => (KEEP_ALL, UNLIMITED),
            History::KeepLast(depth) => (KEEP_LAST, i32::from(depth)),
        };
        // SAFETY: `pointer` is a live object of the library's, and the values are of its enumerations. The time that a write
        // may block is 0: a writer that is full returns at once.
        unsafe {
            (functions.dds_qset_reliability)(pointer, u32::from(qos.reliable), 0);
            (functions.dds_qset_history)(pointer, kind, depth);
            (functions.dds_qset_durability)(pointer, u32::from(qos.late_joiners_get.is_some()));
            if let Some(depth) = qos.late_joiners_get {
                let depth = i32::from(depth);
                (functions.dds_qset_durability_service)(pointer, 0, KEEP_LAST, depth, UNLIMITED, UNLIMITED, UNLIMITED);
            }
            if let Some(lease) = qos.liveliness_lease {
                (functions.dds_qset_liveliness)(pointer, 0, nanoseconds(lease));
            }
            if let Some(lifespan) = qos.lifespan {
                (functions.dds_qset_lifespan)(pointer, nanoseconds(lifespan));
            }
            // A device that leaves must not dispose of its last samples at the readers.
            (functions.dds_qset_writer_data_lifecycle)(pointer, false);
        }
        Ok(made)
    }
}

fn nanoseconds(time: Duration) -> raw::Duration {
    i64::try_from(time.as_nanos()).unwrap_or(INFINITY)
}

impl Drop for RawQos {
    fn drop(&mut self) {
        // SAFETY: made by the library, deleted once.
        unsafe { (self.cyclone.functions.dds_delete_qos)(self.pointer) };
    }
}
