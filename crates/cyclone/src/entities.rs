//! Topics, writers and readers.

use std::any::Any;
use std::ffi::{CStr, c_void};
use std::mem::MaybeUninit;
use std::ptr::{from_ref, null, null_mut};
use std::sync::Arc;

use crate::inbox::{Inbox, ON_DATA_TAKEN};
use crate::library::{CallError, Library};
use crate::qos::{Qos, RawQos};
use crate::raw::{DiscoveredEndpoint, Entity, Opaque, SampleInfo, TIMEOUT};
use crate::sample::{RawSample, Sample};
use crate::signal::{ON_DATA, ON_MATCHED, Signal};

/// Most samples taken from a reader in one call.
const SAMPLES: usize = 64;

/// An entity of the library's; deleted when dropped.
pub(crate) struct Handle {
    cyclone: &'static Library,
    entity: Entity,
    /// The argument of its listeners. Dropped after the entity: the listeners are not called after its deletion.
    listener_data: Option<Arc<dyn Any + Send + Sync>>,
}

impl Handle {
    pub(crate) fn new(cyclone: &'static Library, entity: Entity) -> Handle {
        Handle { cyclone, entity, listener_data: None }
    }

    pub(crate) fn entity(&self) -> Entity {
        self.entity
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: a handle; one that is not valid any more is refused. The library's calls of listeners end before it returns.
        unsafe { (self.cyclone.functions.dds_delete)(self.entity) };
        // Its domain was deleted first, and the entity with it: its listeners are not called any more.
        self.listener_data = None;
    }
}

/// A `dds_listener_t`; entities copy it when they are made.
struct Listener {
    cyclone: &'static Library,
    pointer: *mut Opaque,
}

impl Listener {
    fn new<Told>(cyclone: &'static Library, listener_data: &Arc<Told>) -> Result<Listener, CallError> {
        let argument: *mut c_void = Arc::as_ptr(listener_data).cast_mut().cast();
        // SAFETY: the argument is only stored.
        let pointer = unsafe { (cyclone.functions.dds_create_listener)(argument) };
        if pointer.is_null() {
            return Err(CallError { what: "make a listener", words: "out of memory".to_owned() });
        }
        Ok(Listener { cyclone, pointer })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // SAFETY: made by the library, deleted once.
        unsafe { (self.cyclone.functions.dds_delete_listener)(self.pointer) };
    }
}

/// A topic.
pub struct Topic(pub(crate) Handle);

/// A writer.
pub struct Writer {
    handle: Handle,
    signal: Arc<Signal>,
}

/// Result of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// The library accepted the sample.
    Yes,
    /// Would block: the library stores as many unacknowledged samples as it may.
    Full,
}

impl Writer {
    pub(crate) fn create(
        cyclone: &'static Library,
        participant: Entity,
        topic: &Topic,
        qos: &Qos,
        signal: Arc<Signal>,
    ) -> Result<Writer, CallError> {
        let functions = &cyclone.functions;
        let qos = RawQos::new(cyclone, qos)?;
        let listener = Listener::new(cyclone, &signal)?;
        // SAFETY: both objects live until the call has copied them; the signal lives as long as the handle.
        let writer = unsafe {
            (functions.dds_lset_publication_matched)(listener.pointer, ON_MATCHED);
            (functions.dds_create_writer)(participant, topic.0.entity, qos.pointer, listener.pointer)
        };
        let entity = cyclone.check("make a DDS writer", writer)?;
        let listener_data: Arc<Signal> = Arc::clone(&signal);
        Ok(Writer { handle: Handle { cyclone, entity, listener_data: Some(listener_data) }, signal })
    }

    /// Number of readers that match now.
    pub fn matched(&self) -> u32 {
        self.signal.matched()
    }

    /// Did the matching readers change?
    pub fn take_signal(&self) -> bool {
        self.signal.take()
    }

    /// Writes a sample; does not block.
    ///
    /// # Errors
    /// With the library's text.
    pub fn write(&self, topic: &CStr, payload: &[u8]) -> Result<Written, CallError> {
        const WHAT: &str = "write a DDS sample";
        let too_long = || CallError { what: WHAT, words: "longer than 4 GiB".to_owned() };
        let length = u32::try_from(payload.len()).map_err(|_| too_long())?;
        let sample = RawSample::borrowing(topic, payload, length);
        let cyclone = self.handle.cyclone;
        // SAFETY: the sample is of the topic's type, and is copied before the call returns.
        let code = unsafe { (cyclone.functions.dds_write)(self.handle.entity, from_ref(&sample).cast()) };
        if code == TIMEOUT {
            return Ok(Written::Full);
        }
        cyclone.check(WHAT, code).map(|_| Written::Yes)
    }

    /// Has every matching reliable reader acknowledged everything written so far? Does not wait.
    ///
    /// # Errors
    /// With the library's text.
    pub fn all_acknowledged(&self) -> Result<bool, CallError> {
        let cyclone = self.handle.cyclone;
        // SAFETY: a handle and a time.
        let code = unsafe { (cyclone.functions.dds_wait_for_acks)(self.handle.entity, 0) };
        if code == TIMEOUT {
            return Ok(false);
        }
        cyclone.check("ask a DDS writer for acknowledgements", code).map(|_| true)
    }
}

/// A reader.
pub struct Reader {
    handle: Handle,
    signal: Arc<Signal>,
    /// Queue of samples that are taken out as they arrive.
    inbox: Option<Arc<Inbox>>,
}

/// When samples are taken out of a reader.
#[derive(Clone, Copy, Debug)]
pub enum Intake {
    /// When its owner takes them.
    WhenAsked,
    /// As they arrive, by the library's thread, with a timestamp of this clock: a reader with a short history loses none.
    AtOnce(fn() -> u64),
}

impl Reader {
    pub(crate) fn create(
        cyclone: &'static Library,
        participant: Entity,
        topic: Entity,
        qos: Option<&Qos>,
        signal: Arc<Signal>,
        intake: Intake,
    ) -> Result<Reader, CallError> {
        let functions = &cyclone.functions;
        let qos = qos.map(|qos| RawQos::new(cyclone, qos)).transpose()?;
        let inbox = match intake {
            Intake::WhenAsked => None,
            Intake::AtOnce(now_ns) => Some(Inbox::new(cyclone, Arc::clone(&signal), now_ns)),
        };
        let (listener, on_data, listener_data): (_, _, Arc<dyn Any + Send + Sync>) = match &inbox {
            None => (Listener::new(cyclone, &signal)?, ON_DATA, Arc::clone(&signal) as _),
            Some(inbox) => (Listener::new(cyclone, inbox)?, ON_DATA_TAKEN, Arc::clone(inbox) as _),
        };
        let qos = qos.as_ref().map_or(null(), |qos| qos.pointer.cast_const());
        // SAFETY: both objects live until the call has copied them (`qos` is borrowed from above); the listener's argument
        // lives as long as the handle, and has the type that the function expects.
        let reader = unsafe {
            (functions.dds_lset_data_available)(listener.pointer, on_data);
            (functions.dds_create_reader)(participant, topic, qos, listener.pointer)
        };
        let entity = cyclone.check("make a DDS reader", reader)?;
        // Samples that arrived before the listener was set are in the reader already.
        match &inbox {
            None => signal.raise(),
            Some(inbox) => inbox.fill(entity),
        }
        Ok(Reader { handle: Handle { cyclone, entity, listener_data: Some(listener_data) }, signal, inbox })
    }

    /// Has something arrived since the last call? The next call reports what arrives from now on.
    pub fn take_signal(&self) -> bool {
        self.signal.take()
    }

    /// There is more than was taken: the next [`Reader::take_signal`] returns true.
    pub fn keep_signal(&self) {
        self.signal.raise();
    }

    /// Takes the samples that have arrived, at most some dozens, or a thousand that were taken at once; true if there may be more.
    ///
    /// # Errors
    /// With the library's text.
    pub fn take(&self, mut each: impl FnMut(Sample<'_>)) -> Result<bool, CallError> {
        if let Some(inbox) = &self.inbox {
            return inbox.take(each);
        }
        take_raw(self.handle.cyclone, self.handle.entity, |sample, info| {
            // SAFETY: samples of this reader are of the struct's type, and on loan while this runs.
            let sample = unsafe { (*sample.cast::<RawSample>()).view() };
            each(Sample { source_ns: info.source_timestamp, ..sample });
        })
    }

    /// Samples that arrived and were dropped for lack of buffer space, since the last call.
    pub fn take_missed(&self) -> u64 {
        self.inbox.as_ref().map_or(0, |inbox| inbox.take_missed())
    }
}

/// Takes samples out of a reader; true if there may be more.
pub(crate) fn take_raw(
    cyclone: &'static Library,
    reader: Entity,
    mut each: impl FnMut(*const c_void, &SampleInfo),
) -> Result<bool, CallError> {
    let mut samples = [null_mut::<c_void>(); SAMPLES];
    let mut infos = [const { MaybeUninit::<SampleInfo>::uninit() }; SAMPLES];
    // SAFETY: the arrays have the capacity that the call is given. The first pointer is null, which requests a loan.
    let code = unsafe {
        let infos = infos.as_mut_ptr().cast::<SampleInfo>();
        (cyclone.functions.dds_take)(reader, samples.as_mut_ptr(), infos, SAMPLES, SAMPLES as u32)
    };
    let count = cyclone.check("take DDS samples", code)?;
    if count == 0 {
        return Ok(false);
    }
    for (sample, info) in samples.iter().zip(&infos).take(count as usize) {
        // SAFETY: the call has written that many infos.
        let info = unsafe { info.assume_init_ref() };
        // Without data it reports that an instance is disposed of or has no writers.
        if info.valid_data {
            each(*sample, info);
        }
    }
    // SAFETY: the loan of the call above, returned once.
    let code = unsafe { (cyclone.functions.dds_return_loan)(reader, samples.as_mut_ptr(), count) };
    cyclone.check("give DDS samples back", code)?;
    Ok(count as usize == SAMPLES)
}

/// Writers that were discovered.
pub struct DiscoveredWriters(pub(crate) Reader);

impl DiscoveredWriters {
    /// Were any discovered since the last call?
    pub fn take_signal(&self) -> bool {
        self.0.take_signal()
    }

    /// Passes the topic and the type of each writer discovered since the last call, by their names on the network.
    ///
    /// # Errors
    /// With the library's text.
    pub fn take(&self, mut each: impl FnMut(&CStr, &CStr)) -> Result<(), CallError> {
        loop {
            let more = take_raw(self.0.handle.cyclone, self.0.handle.entity, |sample, _| {
                // SAFETY: samples of this reader are of the library's own type; its names are C strings if they are there.
                unsafe {
                    let found = &*sample.cast::<DiscoveredEndpoint>();
                    if !found.topic_name.is_null() && !found.type_name.is_null() {
                        each(CStr::from_ptr(found.topic_name), CStr::from_ptr(found.type_name));
                    }
                }
            })?;
            if !more {
                return Ok(());
            }
        }
    }
}
