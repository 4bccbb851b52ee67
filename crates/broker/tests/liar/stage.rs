//! A lying broker on a thread of its own, and its journal afterwards.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;

use pubmark_broker::liar::{Liar, LiarSettings, Script};
use pubmark_model::qos::Qos;
use pubmark_protocol::header;
use pubmark_wire::mqtt::{PublishHead, SubscribeRequest, Version};

use crate::client::{Client, head};

pub const RUN: u32 = 0x0001_0203;
pub const DUE_NS: u64 = 1_000;

pub struct Stage {
    pub address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
    folder: tempfile::TempDir,
}

/// What the broker left when it had ended.
pub struct Ended {
    pub journal: String,
    /// The message accounting that the independent program computes; `None` if Python is not installed.
    pub figures: Option<BTreeMap<String, u64>>,
}

impl Stage {
    pub fn start(script: &str) -> Stage {
        let script = Script::parse(script).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let journal = folder.path().join("journal");
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let (tell, told) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
            let mut liar =
                Liar::bind(LiarSettings { listen, tls: None, websocket: false, nagle: false, script, journal })
                    .unwrap();
            tell.send(liar.local_address().unwrap()).unwrap();
            liar.run(&stopped).unwrap();
        });
        Stage { address: told.recv().unwrap(), stop, thread, folder }
    }

    /// A subscriber to `#` with no session.
    pub fn subscriber(&self, qos: Qos) -> Client {
        let mut subscriber = Client::simple(self.address, Version::V5, "subscriber");
        assert_eq!(subscriber.subscribe(SubscribeRequest::new("#", qos)), qos.level());
        subscriber
    }

    pub fn publisher(&self) -> Client {
        Client::simple(self.address, Version::V5, "publisher")
    }

    pub fn end(self) -> Ended {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
        let path = self.folder.path().join("journal");
        Ended { journal: std::fs::read_to_string(&path).unwrap(), figures: figures(&path) }
    }
}

fn script_path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/truth").join(name)
}

fn figures(journal: &Path) -> Option<BTreeMap<String, u64>> {
    // The window ends far in the future, so that nothing is late.
    let window = [RUN.to_string(), "0".to_string(), (1u64 << 62).to_string()];
    let program = script_path("compare.py");
    let output = Command::new("python3").arg("-B").arg(program).arg("--print").arg(journal).args(window).output();
    let Ok(output) = output else {
        pubmark_testing::skip("the journal is not worked out: python3 is not installed");
        return None;
    };
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    Some(serde_json::from_str(&text).unwrap())
}

impl Ended {
    /// Checks the named figures, and that all others are 0.
    pub fn check(&self, expected: &[(&str, u64)]) {
        let Some(figures) = &self.figures else { return };
        let told: BTreeMap<&str, u64> =
            figures.iter().filter(|(_, value)| **value > 0).map(|(name, value)| (name.as_str(), *value)).collect();
        assert_eq!(told, expected.iter().copied().collect(), "{}", self.journal);
    }

    /// Time (ns) and fields after the event's name, without checksum, of all lines of one event.
    pub fn lines(&self, event: &str) -> Vec<(u64, Vec<&str>)> {
        let lines = self.journal.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        let chosen = lines.filter(|fields| fields[2] == event);
        chosen.map(|fields| (fields[1].parse().unwrap(), fields[3..fields.len() - 1].to_vec())).collect()
    }
}

/// A payload of 32 B with a header of this run, publisher 1.
pub fn payload(sequence: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    header::write(&mut bytes, 32, RUN, 1, sequence, DUE_NS);
    bytes.resize(32, 0);
    bytes
}

/// Sends messages of this run to `a/b` in one write, each with its sequence as packet identifier.
pub fn publish(publisher: &mut Client, qos: Qos, sequences: impl IntoIterator<Item = u32>) {
    let mut bytes = Vec::new();
    for sequence in sequences {
        let packet_id = (qos != Qos::BestEffort).then_some(sequence as u16);
        let payload = payload(sequence);
        let publish = pubmark_wire::mqtt::Publish { head: head("a/b", qos, packet_id), payload: &payload };
        pubmark_wire::mqtt::encode_publish(Version::V5, &publish, &mut bytes).unwrap();
    }
    publisher.send_bytes(&bytes);
}

/// The next message: its sequence, or nothing for another run's, with flags.
pub fn next(subscriber: &mut Client) -> (Option<u32>, crate::client::Arrived) {
    let (_, payload, arrived) = subscriber.expect_message();
    let header = header::read(&payload, DUE_NS).filter(|header| header::is_of_run(header, RUN));
    (header.map(|header| header.sequence), arrived)
}

pub fn sequences(subscriber: &mut Client, count: usize) -> Vec<Option<u32>> {
    (0..count).map(|_| next(subscriber).0).collect()
}

pub fn some(sequences: impl IntoIterator<Item = u32>) -> Vec<Option<u32>> {
    sequences.into_iter().map(Some).collect()
}

/// For messages that need other flags.
pub fn plain_head() -> PublishHead<'static> {
    head("a/b", Qos::BestEffort, None)
}
