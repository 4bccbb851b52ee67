//! A queue that empties at a rate: first in, first out, bounded in bytes, one packet in service.

use std::collections::VecDeque;

use pubmark_model::link::Rate;

use super::Queued;

/// Work of sending a packet is counted in bits × 10⁹, so that a rate in bits a second times nanoseconds is work done.
const WORK_PER_BYTE: u128 = 8 * 1_000_000_000;

/// The packet that is being sent.
#[derive(Debug)]
struct Service<P> {
    held: Queued<P>,
    /// Work left at `since_ns`.
    work: u128,
    since_ns: u64,
}

/// The queue and the packet in service. Ends of service are computed from the scheduled end before, never from the time
/// of the call, so the rate is exact however late that is.
#[derive(Debug)]
pub struct Bottleneck<P> {
    rate: Option<Rate>,
    service: Option<Service<P>>,
    waiting: VecDeque<Queued<P>>,
    waiting_bytes: u64,
    high_water_bytes: u64,
    /// When the last service ended, ns: a packet that comes with an earlier time is served from then on.
    free_ns: u64,
}

impl<P> Bottleneck<P> {
    /// An idle one.
    pub fn new(rate: Option<Rate>) -> Bottleneck<P> {
        Bottleneck { rate, service: None, waiting: VecDeque::new(), waiting_bytes: 0, high_water_bytes: 0, free_ns: 0 }
    }

    /// Does nothing wait, and would nothing have to?
    pub fn is_absent(&self) -> bool {
        self.rate.is_none() && self.service.is_none()
    }

    /// Most bytes that waited at once, since [`forget_high_water`](Self::forget_high_water); the packet in service does not
    /// wait.
    pub fn high_water_bytes(&self) -> u64 {
        self.high_water_bytes
    }

    /// Counts the most bytes that wait anew: from now on.
    pub fn forget_high_water(&mut self) {
        self.high_water_bytes = self.waiting_bytes;
    }

    /// Queues a packet at `now_ns`; returns it if there is no rate to wait for (`Ok`) or no buffer space (`Err`).
    pub fn take(&mut self, now_ns: u64, held: Queued<P>) -> Result<Option<Queued<P>>, Queued<P>> {
        let Some(rate) = self.rate else { return Ok(Some(held)) };
        if self.service.is_none() {
            self.serve(now_ns.max(self.free_ns), held, 0);
        } else if self.waiting_bytes + held.bytes > rate.queue_bytes {
            return Err(held);
        } else {
            self.waiting_bytes += held.bytes;
            self.high_water_bytes = self.high_water_bytes.max(self.waiting_bytes);
            self.waiting.push_back(held);
        }
        Ok(None)
    }

    /// When the packet in service has been sent, ns.
    pub fn end_ns(&self) -> Option<u64> {
        let (service, rate) = (self.service.as_ref()?, self.rate?);
        let duration = service.work.div_ceil(u128::from(rate.bits_per_second.max(1)));
        Some(service.since_ns.saturating_add(u64::try_from(duration).unwrap_or(u64::MAX)))
    }

    /// The packet in service, sent at `end_ns`, and the next one into service from then on.
    pub fn finish(&mut self, end_ns: u64) -> Option<Queued<P>> {
        let rate = u128::from(self.rate?.bits_per_second.max(1));
        let sent = self.service.take()?;
        self.free_ns = end_ns;
        // The part of the last nanosecond that was not needed goes to the next packet: nothing is lost by rounding.
        let spare = (rate * u128::from(end_ns - sent.since_ns)).saturating_sub(sent.work);
        if let Some(next) = self.next_waiting() {
            self.serve(end_ns, next, spare);
        }
        Some(sent.held)
    }

    /// Changes the rate at `now_ns`. The rest of the packet in service and the queue go on at the new rate; without a
    /// new one all of them are given back, sent at once.
    pub fn change(&mut self, now_ns: u64, rate: Option<Rate>) -> Vec<Queued<P>> {
        if let (Some(service), Some(old)) = (&mut self.service, self.rate) {
            let done = u128::from(old.bits_per_second.max(1)) * u128::from(now_ns.saturating_sub(service.since_ns));
            service.work = service.work.saturating_sub(done);
            service.since_ns = now_ns;
        }
        self.rate = rate;
        if rate.is_none() { self.empty() } else { Vec::new() }
    }

    /// Returns all queued packets, oldest first.
    pub fn empty(&mut self) -> Vec<Queued<P>> {
        self.waiting_bytes = 0;
        self.service.take().map(|service| service.held).into_iter().chain(self.waiting.drain(..)).collect()
    }

    fn next_waiting(&mut self) -> Option<Queued<P>> {
        let next = self.waiting.pop_front()?;
        self.waiting_bytes -= next.bytes;
        Some(next)
    }

    fn serve(&mut self, since_ns: u64, held: Queued<P>, spare: u128) {
        let work = (u128::from(held.bytes) * WORK_PER_BYTE).saturating_sub(spare);
        self.service = Some(Service { held, work, since_ns });
    }
}
