//! A worker process of a node, and the channel to it.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use pubmark_engine::progress::Progress;
use pubmark_engine::remote::HeartbeatWatch;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::time::sleep;

use super::{InterfaceReading, Launch, MachineReading};
use crate::lanes::Lanes;
use crate::limits;
use crate::machine;
use crate::messages::{Begin, Ended, FromNode, MachineUsage, NodeMessage, PIECE_BYTES, Piece, Report};

/// Most pieces that wait for a worker.
const PIECES: usize = 64;
/// Interval at which it is checked whether a worker has ended.
const LOOK: Duration = Duration::from_millis(10);

/// A worker that was started.
pub(super) struct Worker {
    pub progress: Arc<Progress>,
    own: Vec<u32>,
    child: Child,
    /// Dropped to end the worker.
    to_worker: Option<Sender<Vec<u8>>>,
    /// Start of the measurement: CPU time of the worker and of the node, ns, usage of the machine, and the time.
    measures_since: Option<([u64; 2], Option<MachineReading>, Instant)>,
    measured: ([u64; 2], Option<MachineUsage>, Duration),
    peak_rss_bytes: u64,
    heartbeat: HeartbeatWatch,
    /// Why the worker was killed, if it was frozen.
    frozen: Arc<OnceLock<String>>,
}

impl Worker {
    /// Starts a worker. `prepare` sets the worker's clock before the worker reads it.
    pub fn start(
        begin: &Begin,
        launch: Launch<'_>,
        lanes: &Lanes<FromNode>,
        prepare: impl FnOnce(&Progress),
    ) -> io::Result<Worker> {
        let shards = begin.shards as usize;
        if begin.own.iter().any(|own| *own as usize >= shards) {
            return Err(io::Error::other("a shard that the run does not have"));
        }
        let progress = Progress::new(shards)?;
        prepare(&progress);
        let (ours, theirs) = UnixStream::pair()?;
        let child = launch(OwnedFd::from(theirs), progress.memory().try_clone_to_owned()?)?;
        ours.set_nonblocking(true)?;
        let (from_worker, writing) = tokio::net::UnixStream::from_std(ours)?.into_split();
        let (to_worker, pieces) = mpsc::channel(PIECES);
        let frozen = Arc::new(OnceLock::new());
        tokio::spawn(read(from_worker, begin.number, lanes.clone(), Arc::clone(&frozen)));
        tokio::spawn(write(writing, pieces));
        let progress = Arc::new(progress);
        let first = begin.own.first().map_or(0, |own| *own as usize);
        Ok(Worker {
            heartbeat: HeartbeatWatch::new(Arc::clone(&progress), first),
            frozen,
            progress,
            own: begin.own.clone(),
            child,
            to_worker: Some(to_worker),
            measures_since: None,
            measured: ([0; 2], None, Duration::ZERO),
            peak_rss_bytes: 0,
        })
    }

    /// The queue of pieces for the worker.
    pub fn inbox(&self) -> Option<Sender<Vec<u8>>> {
        self.to_worker.clone()
    }

    /// Counters of the worker's shards, one row after the other.
    pub fn rows(&self) -> Vec<u64> {
        let shards = self.progress.shards();
        self.own.iter().flat_map(|own| shards[*own as usize].row()).collect()
    }

    /// Kills the worker if its heartbeats are missing. To be called several times a second.
    pub fn look(&mut self) {
        if let (Some(length), None) = (self.heartbeat.too_long(), self.frozen.get()) {
            // The reader gets the reason when the channel closes.
            let _ = self.frozen.set(format!("its worker was silent for {} s", length.as_secs()));
            // The worker may have ended by itself meanwhile; its status is read in `Worker::end`.
            let _ = self.child.kill();
        }
    }

    /// The measurement starts or ends now, with this usage of the machine so far.
    pub fn measures(&mut self, on: bool, machine: Option<MachineReading>) {
        let id = self.child.id();
        let cpu_ns = [machine::cpu_ns_of(id).unwrap_or(0), machine::own_cpu_ns()];
        self.peak_rss_bytes = machine::peak_rss_of(id).unwrap_or(self.peak_rss_bytes);
        match (on, self.measures_since.take()) {
            (true, _) => self.measures_since = Some((cpu_ns, machine, Instant::now())),
            (false, Some((before_ns, before, since))) => {
                let machine = before.zip(machine).map(|(before, after)| before.until(&after));
                let spent = [0, 1].map(|of| cpu_ns[of].saturating_sub(before_ns[of]));
                self.measured = (spent, machine, since.elapsed());
            }
            (false, None) => {}
        }
    }

    /// CPU time of the worker and of the node during the measurement, its length, the usage of the machine, and the
    /// largest resident set.
    pub fn usage(&self) -> Report {
        let ([cpu_ns, node_cpu_ns], machine, measured) = self.measured;
        let measured_ns = measured.as_nanos() as u64;
        Report { cpu_ns, node_cpu_ns, measured_ns, peak_rss_bytes: self.peak_rss_bytes, machine, ..Report::default() }
    }

    /// Ends the worker: by closing its channel, and by killing it if that does not help.
    pub async fn end(&mut self) {
        self.peak_rss_bytes = machine::peak_rss_of(self.child.id()).unwrap_or(self.peak_rss_bytes);
        self.to_worker = None;
        let until = Instant::now() + limits::WORKER_END;
        while Instant::now() < until {
            match self.child.try_wait() {
                Ok(None) => sleep(LOOK).await,
                _ => return,
            }
        }
        // The worker may have ended by itself meanwhile; a killed process can always be waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl MachineReading {
    /// Usage between this reading and a later one.
    fn until(&self, later: &MachineReading) -> MachineUsage {
        let interfaces = self.interface.as_ref().zip(later.interface.as_ref());
        let carried = interfaces.and_then(|(before, after)| before.until(after));
        MachineUsage {
            cpu_ns: later.cpu_ns.saturating_sub(self.cpu_ns),
            used_bytes: self.used_bytes.zip(later.used_bytes).map(|(before, after)| before.max(after)),
            received_bytes: carried.map(|(received, _)| received),
            sent_bytes: carried.map(|(_, sent)| sent),
            steal: self.steal_until(later),
        }
    }

    /// Share of the CPU time between this reading and a later one that was stolen; `None` if no clock tick passed.
    fn steal_until(&self, later: &MachineReading) -> Option<f64> {
        let passed_ns = later.total_ns.checked_sub(self.total_ns).filter(|passed_ns| *passed_ns > 0)?;
        let stolen_ns = later.stolen_ns?.saturating_sub(self.stolen_ns?);
        Some(stolen_ns as f64 / passed_ns as f64)
    }
}

impl InterfaceReading {
    /// Bytes received and sent between this reading and a later one; `None` if that is of another interface, or the
    /// counters restarted.
    fn until(&self, later: &InterfaceReading) -> Option<(u64, u64)> {
        let received = later.received_bytes.checked_sub(self.received_bytes)?;
        let sent = later.sent_bytes.checked_sub(self.sent_bytes)?;
        (later.name == self.name).then_some((received, sent))
    }
}

impl Drop for Worker {
    /// Ends the worker in any case, however the node's session ends.
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Forwards a worker's output, then reports its end.
async fn read(mut from: OwnedReadHalf, number: u32, lanes: Lanes<FromNode>, frozen: Arc<OnceLock<String>>) {
    let mut buffer = vec![0; PIECE_BYTES];
    // An error means the same as the end of the stream: the worker has ended.
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        let piece = Piece { number, bytes: buffer[..length].to_vec() };
        if !lanes.pass(FromNode { message: Some(NodeMessage::Piece(piece)) }).await {
            return;
        }
    }
    let why = frozen.get().cloned().unwrap_or_default();
    lanes.pass(FromNode { message: Some(NodeMessage::Ended(Ended { number, why })) }).await;
}

/// Forwards input to a worker, until all senders are dropped.
async fn write(mut to: OwnedWriteHalf, mut pieces: Receiver<Vec<u8>>) {
    while let Some(piece) = pieces.recv().await {
        if to.write_all(&piece).await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(interface: Option<(&str, u64, u64)>) -> MachineReading {
        let interface = interface.map(|(name, received_bytes, sent_bytes)| InterfaceReading {
            name: name.to_owned(),
            received_bytes,
            sent_bytes,
        });
        MachineReading { cpu_ns: 5, total_ns: 100, stolen_ns: Some(10), used_bytes: Some(7), interface }
    }

    #[test]
    fn steal_is_a_share_of_all_cpu_time() {
        let before = reading(None);
        let later = MachineReading { total_ns: 300, stolen_ns: Some(60), ..reading(None) };
        assert_eq!(before.until(&later).steal, Some(0.25));
        assert_eq!(before.until(&before).steal, None, "no tick passed");
        let unknown = MachineReading { stolen_ns: None, ..later };
        assert_eq!(before.until(&unknown).steal, None, "not 0");
    }

    #[test]
    fn an_interface_that_is_not_there_for_the_whole_time_has_no_figure() {
        let before = reading(Some(("eth0", 100, 10)));
        let carried = |later: Option<(&str, u64, u64)>| {
            let usage = before.until(&reading(later));
            (usage.received_bytes, usage.sent_bytes)
        };
        assert_eq!(carried(Some(("eth0", 150, 10))), (Some(50), Some(0)));
        assert_eq!(carried(Some(("eth1", 150, 10))), (None, None));
        assert_eq!(carried(Some(("eth0", 3, 20))), (None, None), "it went away and came back");
        assert_eq!(carried(None), (None, None));
        let usage = reading(None).until(&before);
        assert_eq!((usage.received_bytes, usage.used_bytes), (None, Some(7)));
    }
}
