//! DDS against programs of other vendors. They return each sample, so that each run tests both directions.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::any::type_name;
use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use pubmark_adapters::dds::{CycloneClients, RustClients};
use pubmark_conformance::dds::Domain;
use pubmark_conformance::deadline::Deadline;
use pubmark_conformance::peer::{Peer, publisher, subscriber};
use pubmark_conformance::processes::find;
use pubmark_model::qos::Qos;
use pubmark_protocol::clients::Clients;
use pubmark_testing::{assert_count, assert_count_eq};

const SIZES: [u32; 6] = [16, 100, 1_000, 65_000, 70_000, 1_200_000];
/// Types, and the setting that selects them.
const KINDS: [(&str, &str); 2] = [("plain", "?topic=per-topic"), ("keyed", "?topic=keyed")];
/// Sizes that survive both directions at best effort.
const SMALL: usize = 3;
/// Sizes that arrive from Cyclone DDS 0.10.2 at Fast DDS 2.9.1: 1.2 MB does not, and blocks later samples.
const FAST_DDS: usize = 5;
/// Sizes that RustDDS is offered for.
const RUST_DDS: usize = 5;

/// A program compiled from `dds_peers/`, in a separate folder.
struct Compiled {
    folder: tempfile::TempDir,
}

impl Compiled {
    fn program(&self) -> PathBuf {
        self.folder.path().join("program")
    }
}

/// Compiles a program, or returns what is missing.
fn compile(compiler: &str, source: &str, header: &str, idl: bool, libraries: &[&str]) -> Result<Compiled, String> {
    let compiler = find(compiler, &[]).ok_or_else(|| format!("there is no compiler `{compiler}`"))?;
    if !Path::new("/usr/include").join(header).is_file() {
        return Err(format!("there is no {header} in /usr/include"));
    }
    let folder = tempfile::tempdir().unwrap();
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/dds_peers");
    let mut command = Command::new(compiler);
    command.current_dir(folder.path()).args(["-O1", "-o", "program"]).arg(sources.join(source));
    if idl {
        let idlc = find("idlc", &[]).ok_or("there is no `idlc` (`apt-get install cyclonedds-tools`)")?;
        let status = Command::new(idlc)
            .current_dir(folder.path())
            .arg(sources.join("../../../cyclone/message.idl"))
            .status()
            .unwrap();
        assert!(status.success(), "idlc failed");
        command.args(["-I", ".", "message.c"]);
    }
    let output = command.args(libraries.iter().map(|library| format!("-l{library}"))).output().unwrap();
    assert!(output.status.success(), "{source}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(Compiled { folder })
}

/// A running echo; ends when dropped, as its standard input does.
struct Echo(Child);

impl Echo {
    fn start(program: &Path, domain: &Domain, kind: &str, [there, back]: [&str; 2], level: &str) -> Echo {
        let number = domain.number.to_string();
        let arguments = [OsStr::new(&number), kind.as_ref(), there.as_ref(), back.as_ref(), level.as_ref()];
        let mut child = Command::new(program)
            .args(arguments)
            .env("CYCLONEDDS_URI", settings())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Echo(child)
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        // It ends by itself, but a failed test does not wait for that.
        let _ = self.0.kill();
        self.0.wait().unwrap();
    }
}

/// Cyclone DDS on the loopback interface, without multicast.
fn settings() -> &'static str {
    "<General><Interfaces><NetworkInterface address=\"127.0.0.1\"/></Interfaces><AllowMulticast>false</AllowMulticast></General>\
     <Discovery><ParticipantIndex>auto</ParticipantIndex><MaxAutoParticipantIndex>20</MaxAutoParticipantIndex>\
     <Peers><Peer address=\"127.0.0.1\"/></Peers></Discovery>"
}

/// Sends every size to an echo and receives it again, at both levels, with and without a key.
fn there_and_back<C: Clients + 'static>(program: &Path, kinds: &[(&str, &str)], reliable_sizes: &[u32]) {
    let separate = ["pubmark_topic/echo/there", "pubmark_topic/echo/back"];
    for (kind, settings) in kinds {
        for (qos, level) in [(Qos::AtLeastOnce, "reliable"), (Qos::BestEffort, "best-effort")] {
            let _deadline = Deadline::start(&format!("{kind} {level} samples over {}", type_name::<C>()));
            let domain = Domain::free().with(settings);
            let topics = if *kind == "plain" { separate } else { ["pubmark_keyed"; 2] };
            let echo = Echo::start(program, &domain, kind, topics, level);
            let mut peer = Peer::<C>::open(domain.at());
            let receiver = peer.join(subscriber("echo-in", "echo/back", qos));
            let sender = peer.join(publisher("echo-out", "echo/there", qos));
            peer.discover(sender);
            let sizes = if qos == Qos::BestEffort { &SIZES[..SMALL] } else { reliable_sizes };
            sizes.iter().for_each(|size| peer.send(sender, *size));
            peer.wait("all sizes back", |record| record.arrived.len() >= sizes.len());
            let arrived: Vec<u32> = peer.record.arrived.iter().map(|one| one.payload_bytes as u32).collect();
            assert_count_eq!(arrived, sizes, "{kind} {level}");
            assert_count!(peer.record.arrived.iter().all(|one| one.intact && one.session == receiver));
            if qos > Qos::BestEffort {
                peer.wait("acknowledged", |record| record.acknowledged() >= sizes.len());
            }
            drop(echo);
        }
    }
}

#[test]
fn cyclone_programs_understand_us_and_we_them() {
    match compile("cc", "cyclone.c", "dds/dds.h", true, &["ddsc"]) {
        Ok(compiled) => {
            there_and_back::<CycloneClients>(&compiled.program(), &KINDS, &SIZES);
            there_and_back::<RustClients>(&compiled.program(), &KINDS[..1], &SIZES[..RUST_DDS]);
        }
        Err(why) => pubmark_testing::skip(format_args!("{why} (`apt-get install cyclonedds-dev cyclonedds-tools`)")),
    }
}

#[test]
#[ignore = "compiles for half a minute: make test-all"]
fn fast_dds_programs_understand_us_and_we_them() {
    let header = "fastdds/dds/domain/DomainParticipant.hpp";
    match compile("c++", "fastdds.cpp", header, false, &["fastrtps", "fastcdr"]) {
        Ok(compiled) => {
            there_and_back::<CycloneClients>(&compiled.program(), &KINDS[..1], &SIZES[..FAST_DDS]);
            there_and_back::<RustClients>(&compiled.program(), &KINDS[..1], &SIZES[..RUST_DDS]);
        }
        Err(why) => pubmark_testing::skip(format_args!("{why} (`apt-get install libfastrtps-dev`)")),
    }
}
