//! Queue of samples that the library's receive thread takes out of a reader as they arrive.
//!
//! A reader with a short history (KEEP_LAST) drops samples that its owner does not take in time, and an owner that must be
//! woken first does not take the sixth sample of a burst in time. Programs with a listener (`on_data_available`) take each
//! sample as it arrives; so does this queue.

use std::collections::VecDeque;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::entities::take_raw;
use crate::library::{CallError, Library};
use crate::raw::{Entity, OnData};
use crate::sample::{RawSample, Sample};
use crate::signal::Signal;

/// Most bytes in the queue; samples beyond that are dropped and counted.
const MOST_BYTES: usize = 64 << 20;
/// Most samples in the queue.
const MOST_SAMPLES: usize = 1 << 20;
/// Most samples that the owner takes at once: what else it has to do must not wait for long.
const SAMPLES_A_TAKE: usize = 1_024;
/// Most memory that is reused for the next samples, in bytes.
const KEPT_BYTES: usize = 4 << 20;

/// A sample in the queue. Its topic and its payload follow those of the sample before it.
struct Waiting {
    topic_end: usize,
    end: usize,
    source_ns: i64,
    taken_ns: u64,
}

/// The content of the queue.
#[derive(Default)]
struct Post {
    bytes: Vec<u8>,
    samples: VecDeque<Waiting>,
    /// Where the first sample begins.
    begin: usize,
    missed: u64,
    /// The library's last error, if it returned no samples.
    error: Option<CallError>,
}

/// Queue between the library's thread and the reader's owner.
pub(crate) struct Inbox {
    cyclone: &'static Library,
    signal: Arc<Signal>,
    now_ns: fn() -> u64,
    post: Mutex<Post>,
    /// What the owner has taken out of the queue and not handled yet.
    taken: Mutex<Post>,
}

impl Inbox {
    /// An empty queue; `signal` notifies its owner, `now_ns` is the clock of its timestamps.
    pub(crate) fn new(cyclone: &'static Library, signal: Arc<Signal>, now_ns: fn() -> u64) -> Arc<Inbox> {
        Arc::new(Inbox { cyclone, signal, now_ns, post: Mutex::default(), taken: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, Post> {
        locked(&self.post)
    }

    /// Takes all samples of a reader, and notifies the owner.
    pub(crate) fn fill(&self, reader: Entity) {
        {
            // Locked during the whole call, so that samples taken by two threads stay in order.
            let mut post = self.lock();
            let taken_ns = (self.now_ns)();
            loop {
                let more = take_raw(self.cyclone, reader, |sample, info| {
                    // SAFETY: samples of this reader are of the struct's type, and on loan while this runs.
                    let sample = unsafe { (*sample.cast::<RawSample>()).view() };
                    post.push(&Sample { source_ns: info.source_timestamp, ..sample }, taken_ns);
                });
                // A reader that is still being created returns nothing; its creator calls this again.
                post.error = more.as_ref().err().cloned();
                if !matches!(more, Ok(true)) {
                    break;
                }
            }
        }
        self.signal.ring();
    }

    /// Passes the first of the queued samples to the owner; true if there may be more.
    pub(crate) fn take(&self, mut each: impl FnMut(Sample<'_>)) -> Result<bool, CallError> {
        locked(&self.taken).give_of(&self.post, &mut each)
    }

    /// Samples dropped for lack of buffer space since the last call.
    pub(crate) fn take_missed(&self) -> u64 {
        std::mem::take(&mut self.lock().missed)
    }
}

/// A panic elsewhere cannot leave this data in an inconsistent state.
fn locked(post: &Mutex<Post>) -> MutexGuard<'_, Post> {
    post.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Post {
    fn push(&mut self, sample: &Sample<'_>, taken_ns: u64) {
        let bytes = self.bytes.len() + sample.topic.len() + sample.payload.len();
        // One sample is always accepted, however large it is: the library has it in memory anyway.
        if (bytes > MOST_BYTES || self.samples.len() >= MOST_SAMPLES) && !self.samples.is_empty() {
            self.missed += 1;
            return;
        }
        self.bytes.extend_from_slice(sample.topic);
        let topic_end = self.bytes.len();
        self.bytes.extend_from_slice(sample.payload);
        let (end, source_ns) = (self.bytes.len(), sample.source_ns);
        self.samples.push_back(Waiting { topic_end, end, source_ns, taken_ns });
    }

    /// Takes over samples and error of the queue; it has none itself.
    fn refill(&mut self, queue: &mut Post) {
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_BYTES);
        self.begin = 0;
        std::mem::swap(&mut self.bytes, &mut queue.bytes);
        std::mem::swap(&mut self.samples, &mut queue.samples);
        self.error = queue.error.take();
    }

    /// Passes on some of what was taken over, or of the queue if nothing is left of that; true if there may be more.
    fn give_of(&mut self, queue: &Mutex<Post>, each: &mut impl FnMut(Sample<'_>)) -> Result<bool, CallError> {
        let is_rest = !self.samples.is_empty();
        if !is_rest {
            self.refill(&mut locked(queue));
        }
        if self.give(SAMPLES_A_TAKE, each) {
            return Ok(true);
        }
        // The signal was lowered before this call: nothing else says that samples arrived since they were taken over.
        self.error.take().map_or(Ok(is_rest), Err)
    }

    /// Passes on at most `most` samples, in the order of their arrival. Returns true if samples are left.
    fn give(&mut self, most: usize, each: &mut impl FnMut(Sample<'_>)) -> bool {
        for _ in 0..most {
            let Some(Waiting { topic_end, end, source_ns, taken_ns }) = self.samples.pop_front() else { break };
            let (topic, payload) = (&self.bytes[self.begin..topic_end], &self.bytes[topic_end..end]);
            self.begin = end;
            each(Sample { topic, payload, source_ns, taken_ns: Some(taken_ns) });
        }
        !self.samples.is_empty()
    }
}

pub(crate) const ON_DATA_TAKEN: OnData = on_data;

extern "C" fn on_data(reader: Entity, inbox: *mut c_void) {
    // SAFETY: the argument is the inbox that the reader's owner holds until the reader is deleted, and the library ends its
    // calls before a deletion returns (`entities::Handle`).
    let inbox = unsafe { &*inbox.cast::<Inbox>() };
    inbox.fill(reader);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample<'a>(topic: &'a [u8], payload: &'a [u8]) -> Sample<'a> {
        Sample { topic, payload, source_ns: 7, taken_ns: None }
    }

    #[test]
    fn samples_come_out_as_they_went_in() {
        let mut post = Post::default();
        post.push(&sample(b"a/b", b"one"), 1);
        post.push(&sample(b"", b""), 2);
        post.push(&sample(b"c", b"three"), 3);
        let mut taken = Post::default();
        taken.refill(&mut post);
        post.push(&sample(b"later", b"four"), 4);
        let mut seen = vec![];
        let mut give = |taken: &mut Post, most: usize| {
            taken.give(most, &mut |found| {
                seen.push((found.topic.to_vec(), found.payload.to_vec(), found.taken_ns, found.source_ns));
            })
        };
        assert!(give(&mut taken, 2), "one is left");
        assert!(!give(&mut taken, 2));
        taken.refill(&mut post);
        assert!(!give(&mut taken, 2));
        let expected = [(&b"a/b"[..], &b"one"[..], 1), (b"", b"", 2), (b"c", b"three", 3), (b"later", b"four", 4)];
        let expected = expected.map(|(topic, payload, at)| (topic.to_vec(), payload.to_vec(), Some(at), 7));
        assert_eq!(seen, expected);
        assert!(post.samples.is_empty());
    }

    #[test]
    fn what_arrives_while_the_rest_of_many_samples_waits_is_taken_without_a_further_signal() {
        let (queue, mut taken) = (Mutex::new(Post::default()), Post::default());
        (0..SAMPLES_A_TAKE + 1).for_each(|_| locked(&queue).push(&sample(b"a", b"1"), 1));
        let mut seen = 0;
        assert_eq!(taken.give_of(&queue, &mut |_| seen += 1).ok(), Some(true));
        locked(&queue).push(&sample(b"a", b"last"), 2);
        while taken.give_of(&queue, &mut |_| seen += 1).is_ok_and(|more| more) {}
        assert_eq!(seen, SAMPLES_A_TAKE + 2);
    }

    #[test]
    fn arrivals_beyond_the_buffer_are_counted() {
        let mut post = Post::default();
        let large = vec![0; MOST_BYTES + 1];
        post.push(&sample(b"large", &large), 1);
        post.push(&sample(b"small", b"1"), 2);
        assert_eq!((post.samples.len(), post.missed), (1, 1));
    }
}
