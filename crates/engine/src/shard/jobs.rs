//! Requests at the responders of a shard.

use pubmark_protocol::clients::SessionId;
use pubmark_protocol::header::Header;
use pubmark_protocol::requests::ReplyTo;

use super::responder::Responder;

/// A request at a responder. Its memory is reused for later ones.
#[derive(Debug, Default)]
pub(super) struct Job {
    pub(super) session: u32,
    pub(super) address: String,
    pub(super) correlation: Vec<u8>,
    pub(super) publisher: u32,
    pub(super) sequence: u32,
    pub(super) due_ns: u64,
    pub(super) received_ns: u64,
    /// When its reply is due.
    pub(super) reply_due_ns: u64,
    /// The same if no thread of pubmark, the requester's included, is ever late, at the earliest.
    pub(super) may_end_ns: u64,
    /// Upper bound of the generator's part in the time since the request was due, so far, ns.
    pub(super) lag_ns: u64,
    /// Upper bound of how much later than possible the responder started on it, ns; included in `lag_ns`.
    pub(super) late_ns: u64,
    pub(super) measured: bool,
}

/// All requests at the responders of a shard.
#[derive(Debug, Default)]
pub(super) struct Jobs {
    pub(super) all: Vec<Job>,
    pub(super) free: Vec<u32>,
    /// Number of replies passed to the adapter so far.
    pub(super) replies: u32,
}

impl Jobs {
    /// Number of requests without a reply so far.
    pub(super) fn count(&self) -> u64 {
        (self.all.len() - self.free.len()) as u64
    }

    /// The same for requests of the measured window.
    pub(super) fn count_measured(&self) -> u64 {
        let mut held = vec![true; self.all.len()];
        self.free.iter().for_each(|index| held[*index as usize] = false);
        self.all.iter().zip(held).filter(|(job, held)| *held && job.measured).count() as u64
    }

    /// On a thread that is never late, a responder may have worked on one more request, which takes this long, after
    /// the first that ends: the next request that finds no room had none there, either.
    pub(super) fn extend_first(&mut self, responder: &mut Responder, took_ns: u64) {
        if let Some((may_end_ns, index)) = responder.working.pop_first() {
            let job = &mut self.all[index as usize];
            job.may_end_ns = may_end_ns + took_ns;
            responder.working.insert((job.may_end_ns, index));
        }
    }

    pub(super) fn add(
        &mut self,
        session: SessionId,
        to: ReplyTo<'_>,
        header: &Header,
        (received_ns, late_ns): (u64, u64),
        measured: bool,
    ) -> u32 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.all.push(Job::default());
            self.all.len() as u32 - 1
        });
        let job = &mut self.all[index as usize];
        job.session = session.0;
        job.address.clear();
        job.address.push_str(to.address);
        job.correlation.clear();
        job.correlation.extend_from_slice(to.correlation);
        (job.publisher, job.sequence, job.due_ns) = (header.publisher, header.sequence, header.due_ns);
        (job.received_ns, job.reply_due_ns, job.measured) = (received_ns, received_ns, measured);
        (job.lag_ns, job.late_ns) = (header.lag_ns, late_ns);
        index
    }
}
