//! How the library's threads notify an entity's owner: a flag, a count, and a wake-up with the first of several events.

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::raw::{Entity, MatchedStatus, OnData, OnMatched};

/// What happened at an entity since the last call of [`Signal::take`].
pub struct Signal {
    raised: AtomicBool,
    /// Entities that match it now.
    matched: AtomicU32,
    wake: Arc<dyn Fn() + Send + Sync>,
}

impl Signal {
    /// A signal that calls `wake` when it is raised, from a thread of the library's.
    pub fn new(wake: Arc<dyn Fn() + Send + Sync>) -> Arc<Signal> {
        Arc::new(Signal { raised: AtomicBool::new(false), matched: AtomicU32::new(0), wake })
    }

    /// Was it raised? Lowers it. What happens after this call raises it again.
    pub fn take(&self) -> bool {
        // A load is cheaper than a swap, and the flag is usually not raised.
        self.raised.load(Ordering::Relaxed) && self.raised.swap(false, Ordering::AcqRel)
    }

    /// Entities that match now: for a writer, its readers.
    pub fn matched(&self) -> u32 {
        self.matched.load(Ordering::Acquire)
    }

    /// Raises it without a wake-up: the owner has not taken everything.
    pub fn raise(&self) {
        self.raised.store(true, Ordering::Release);
    }

    /// Raises it, and wakes the owner if it was not raised.
    pub fn ring(&self) {
        if !self.raised.swap(true, Ordering::AcqRel) {
            (self.wake)();
        }
    }
}

pub(crate) const ON_DATA: OnData = on_data;
pub(crate) const ON_MATCHED: OnMatched = on_matched;

extern "C" fn on_data(_entity: Entity, signal: *mut c_void) {
    // SAFETY: the argument is the signal that the entity's owner holds until the entity is deleted, and the library ends its
    // calls before a deletion returns (`entities::Handle`).
    let signal = unsafe { &*signal.cast::<Signal>() };
    signal.ring();
}

extern "C" fn on_matched(_entity: Entity, status: MatchedStatus, signal: *mut c_void) {
    // SAFETY: as in `on_data`.
    let signal = unsafe { &*signal.cast::<Signal>() };
    signal.matched.store(status.current, Ordering::Release);
    signal.ring();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_raises_wake_once_until_it_is_lowered() {
        let woken = Arc::new(AtomicU32::new(0));
        let counter = Arc::clone(&woken);
        let signal = Signal::new(Arc::new(move || {
            counter.fetch_add(1, Ordering::Relaxed);
        }));
        assert!(!signal.take());
        signal.ring();
        signal.ring();
        assert!(signal.take() && !signal.take());
        signal.ring();
        assert_eq!(woken.load(Ordering::Relaxed), 2);
    }
}
