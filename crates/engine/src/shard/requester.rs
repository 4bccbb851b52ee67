//! Additional state of a publisher whose messages are requests.

use std::collections::BTreeMap;

use pubmark_model::requests::Requests;

use crate::requests::RequesterBook;

/// A request that waits for its reply.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenRequest {
    /// When it was passed to the adapter, ns of `CLOCK_MONOTONIC`: its time-out counts from here.
    pub(super) submitted_ns: u64,
    /// When its first byte was written to the socket; `None` until its last byte was accepted.
    pub(super) write_start_ns: Option<u64>,
    /// It was due in the measured window.
    pub(super) measured: bool,
    /// Its connection ended while it was open.
    pub(super) orphaned: bool,
}

/// A requester.
#[derive(Debug)]
pub struct Requester {
    pub(super) timeout_ns: u64,
    in_flight: usize,
    /// The subscription for its replies was granted, so requests may be sent.
    pub(super) may_request: bool,
    pub(super) open: BTreeMap<u32, OpenRequest>,
    /// A task for the time-out of the oldest open request is scheduled.
    pub(super) armed: bool,
    /// Index of its message accounting, and of its stream of replies.
    pub(super) book: u32,
}

impl Requester {
    /// A requester that has sent no request, with a new entry in `books`.
    pub fn new(requests: Requests, group: u16, books: &mut Vec<RequesterBook>) -> Requester {
        let book = books.len() as u32;
        books.push(RequesterBook { group, stream: book, ..RequesterBook::default() });
        Requester {
            timeout_ns: requests.timeout.as_nanos() as u64,
            in_flight: usize::from(requests.in_flight),
            may_request: false,
            open: BTreeMap::new(),
            armed: false,
            book,
        }
    }

    /// May one more request be sent?
    pub fn has_room(&self) -> bool {
        self.may_request && self.open.len() < self.in_flight
    }

    /// A request was written to the socket completely.
    pub(super) fn note_written(&mut self, sequence: u32, write_start_ns: u64) {
        if let Some(open) = self.open.get_mut(&sequence) {
            open.write_start_ns = Some(write_start_ns);
        }
    }

    /// Its subscription for replies was granted or not.
    pub(super) fn note_granted(&mut self, granted: bool) {
        self.may_request = granted;
    }

    /// Its connection ended. The outcome of its open requests stays unknown, unless a reply arrives.
    pub(super) fn orphan(&mut self) {
        self.may_request = false;
        self.open.values_mut().for_each(|open| open.orphaned = true);
    }
}
