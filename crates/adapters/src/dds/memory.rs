//! A library for tests, without a network: a thread's readers, and the topics that are announced to it.

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, CString};

use pubmark_cyclone::entities::{Intake, Written};
use pubmark_cyclone::qos::Qos;
use pubmark_cyclone::sample::{Kind, PLAIN_NAME, Sample};
use pubmark_protocol::capabilities::Capabilities;

use super::CAPABILITIES;
use super::binding::{Binding, Discovering, Reading, Wake, Writing};
use super::settings::Settings;

thread_local! {
    static ANNOUNCED: RefCell<Vec<CString>> = const { RefCell::new(Vec::new()) };
    static REFUSED_READERS: Cell<usize> = const { Cell::new(0) };
    static FULL_WRITES: Cell<usize> = const { Cell::new(0) };
}

/// A writer to a topic is found.
pub(super) fn announce(name: CString) {
    ANNOUNCED.with_borrow_mut(|announced| announced.push(name));
}

/// The next readers cannot be made.
pub(super) fn refuse_readers(readers: usize) {
    REFUSED_READERS.set(readers);
}

/// The next writes find a writer that is full.
pub(super) fn fill_writers(writes: usize) {
    FULL_WRITES.set(writes);
}

fn take_one(left: &'static std::thread::LocalKey<Cell<usize>>) -> bool {
    let before = left.get();
    left.set(before.saturating_sub(1));
    before > 0
}

/// The library.
pub(super) enum Memory {}

pub(super) struct MemoryWriter;

pub(super) struct MemoryReader;

/// How many announced topics were passed on.
pub(super) struct MemoryDiscovery(Cell<usize>);

impl Binding for Memory {
    const CAPABILITIES: Capabilities = CAPABILITIES;
    const MATCH_NS: u64 = 0;
    type Domain = ();
    type Writer = MemoryWriter;
    type Reader = MemoryReader;
    type Discovered = MemoryDiscovery;

    fn missing() -> Option<String> {
        None
    }

    fn version() -> String {
        String::new()
    }

    fn join(_: &Settings) -> Result<(), String> {
        Ok(())
    }

    fn writer(_: &mut (), _: &CStr, _: Kind, _: &Qos, _: Wake) -> Result<MemoryWriter, String> {
        Ok(MemoryWriter)
    }

    fn reader(_: &mut (), _: &CStr, _: Kind, _: &Qos, _: Wake, _: Intake) -> Result<MemoryReader, String> {
        if take_one(&REFUSED_READERS) { Err("refused".to_owned()) } else { Ok(MemoryReader) }
    }

    fn discovered(_: &mut (), _: Wake) -> Result<MemoryDiscovery, String> {
        Ok(MemoryDiscovery(Cell::new(0)))
    }
}

impl Writing for MemoryWriter {
    fn has_matched(&self) -> bool {
        true
    }

    fn write(&self, _: &CStr, _: &[u8]) -> Result<Written, String> {
        Ok(if take_one(&FULL_WRITES) { Written::Full } else { Written::Yes })
    }

    fn all_acknowledged(&self) -> Result<bool, String> {
        Ok(true)
    }
}

impl Reading for MemoryReader {
    fn take_signal(&self) -> bool {
        false
    }

    fn keep_signal(&self) {}

    fn take(&self, _: impl FnMut(Sample<'_>)) -> Result<bool, String> {
        Ok(false)
    }
}

impl Discovering for MemoryDiscovery {
    fn take_signal(&self) -> bool {
        ANNOUNCED.with_borrow(|announced| announced.len() > self.0.get())
    }

    fn next_check_ns(&self) -> Option<u64> {
        None
    }

    fn take(&self, mut each: impl FnMut(&CStr, &CStr)) -> Result<(), String> {
        ANNOUNCED.with_borrow(|announced| {
            announced[self.0.get()..].iter().for_each(|name| each(name, PLAIN_NAME));
            self.0.set(announced.len());
        });
        Ok(())
    }
}
