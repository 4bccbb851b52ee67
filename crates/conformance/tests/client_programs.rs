//! Client programs in other languages: each passes the cases for the features that it claims, against mosquitto or
//! between themselves.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use pubmark_adapters::client_program::{ProgramClients, capabilities, hello_of};
use pubmark_conformance::cases::run_opened;
use pubmark_conformance::dds::Domain;
use pubmark_conformance::mosquitto::Mosquitto;
use pubmark_conformance::server::{Listener, Server};
use pubmark_protocol::any::{self, AnyClients, Open};
use pubmark_protocol::client_program::ClientProgram;
use pubmark_protocol::clients::{OpenError, ShardConfig};

/// A program of the repository.
trait Program {
    /// The command that starts it, or the reason why it cannot be started.
    fn words() -> Result<Vec<String>, String>;
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A program below target/clients or of the machine, with a file of clients/ as its argument.
fn with_library(interpreter: &str, library: &str, client: &str) -> Result<Vec<String>, String> {
    let library = root().join("target/clients").join(library);
    if !library.exists() {
        return Err(format!("{} is not there (`.ci/install-clients`)", library.display()));
    }
    let installed = root().join("target/clients").join(interpreter);
    let interpreter = if installed.exists() { installed.display().to_string() } else { interpreter.to_owned() };
    Ok(vec![interpreter, root().join("clients").join(client).display().to_string()])
}

enum Paho {}

impl Program for Paho {
    fn words() -> Result<Vec<String>, String> {
        with_library("paho/bin/python3", "paho/bin/python3", "paho/client.py")
    }
}

/// It compresses each body before it publishes it and decompresses it on arrival.
enum Transforming {}

impl Program for Transforming {
    fn words() -> Result<Vec<String>, String> {
        with_library("paho/bin/python3", "paho/bin/python3", "transforming/client.py")
    }
}

enum SixtyLines {}

impl Program for SixtyLines {
    fn words() -> Result<Vec<String>, String> {
        with_library("paho/bin/python3", "paho/bin/python3", "sixty-lines/client.py")
    }
}

enum MqttJs {}

impl Program for MqttJs {
    fn words() -> Result<Vec<String>, String> {
        with_library("node", "mqttjs/node_modules/mqtt", "mqttjs/client.js")
    }
}

enum FastDds {}

impl Program for FastDds {
    fn words() -> Result<Vec<String>, String> {
        static COMPILED: OnceLock<Result<String, String>> = OnceLock::new();
        let compile = || {
            if !Path::new("/usr/include/fastdds").is_dir() {
                return Err("Fast DDS is not installed (`apt-get install libfastrtps-dev`)".to_owned());
            }
            let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fast-dds-client");
            let source = root().join("clients/fastdds/client.cpp");
            let mut command = Command::new("c++");
            command.args(["-O1", "-std=c++17", "-o"]).arg(&program).arg(source).args(["-lfastrtps", "-lfastcdr"]);
            let output = command.output().map_err(|error| format!("c++ is not installed: {error}"))?;
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            Ok(program.display().to_string())
        };
        COMPILED.get_or_init(compile).clone().map(|program| vec![program])
    }
}

fn open<P: Program>(protocol: &str, mut config: ShardConfig) -> Result<Box<dyn AnyClients>, OpenError> {
    let words = P::words().map_err(OpenError::Library)?;
    config.connections.program =
        Some(Arc::new(ClientProgram { words, protocol: protocol.to_owned(), whole_payloads: false }));
    any::open::<ProgramClients>(config)
}

fn mqtt5<P: Program>(config: ShardConfig) -> Result<Box<dyn AnyClients>, OpenError> {
    open::<P>("mqtt5", config)
}

fn mqtt311<P: Program>(config: ShardConfig) -> Result<Box<dyn AnyClients>, OpenError> {
    open::<P>("mqtt311", config)
}

fn dds<P: Program>(config: ShardConfig) -> Result<Box<dyn AnyClients>, OpenError> {
    open::<P>("dds", config)
}

const LEFT_OUT: &[(&str, &str)] =
    &[("a reader held up shows in its stamps", "the program reads by itself, whatever the shard does")];

/// The example omits features, to fit on a page.
const LEFT_OUT_OF_EXAMPLE: &[(&str, &str)] = &[
    LEFT_OUT[0],
    ("many clients hear many, and leave no socket", "the example has a thread for each connection"),
    ("a wrong password is reported as one", "the example takes no log-in"),
    ("a server that stops answering is noticed", "the example's library looks at its keep-alive once a second only"),
];

/// As for pubmark's own clients over DDS.
const LEFT_OUT_OF_DDS: &[(&str, &str)] = &[
    LEFT_OUT[0],
    ("the in-flight window is kept", "DDS has no window of messages; a writer's history limits it"),
    ("a port without listener is unreachable", "nobody has to listen anywhere"),
    ("unanswered messages of a lost session are reported", "without readers there is nobody who owes an answer"),
    ("a killed server is noticed", "there is no server"),
    ("a server that stops answering is noticed", "there is no server"),
];

fn run<P: Program, S: Server + 'static>(open: Open, protocol: &str, listener: Listener, left_out: &[(&str, &str)]) {
    let words = match P::words() {
        Ok(words) => words,
        Err(missing) => return pubmark_testing::skip(missing),
    };
    let own = pubmark_protocols::find(protocol).unwrap().capabilities;
    let hello = hello_of(&words).unwrap();
    let claims = hello.claims(protocol).unwrap();
    run_opened::<S>(open, false, capabilities(&own, claims), listener, left_out);
}

#[test]
fn program_paho_mqtt_5_plain() {
    run::<Paho, Mosquitto>(mqtt5::<Paho>, "mqtt5", Listener::Plain, LEFT_OUT);
}

#[test]
fn program_paho_mqtt_5_encrypted() {
    run::<Paho, Mosquitto>(mqtt5::<Paho>, "mqtt5", Listener::Encrypted, LEFT_OUT);
}

#[test]
fn program_paho_mqtt_311_plain() {
    run::<Paho, Mosquitto>(mqtt311::<Paho>, "mqtt311", Listener::Plain, LEFT_OUT);
}

#[test]
fn program_mqttjs_mqtt_5_plain() {
    run::<MqttJs, Mosquitto>(mqtt5::<MqttJs>, "mqtt5", Listener::Plain, LEFT_OUT);
}

#[test]
fn program_mqttjs_mqtt_5_encrypted() {
    run::<MqttJs, Mosquitto>(mqtt5::<MqttJs>, "mqtt5", Listener::Encrypted, LEFT_OUT);
}

#[test]
fn program_mqttjs_mqtt_311_plain() {
    run::<MqttJs, Mosquitto>(mqtt311::<MqttJs>, "mqtt311", Listener::Plain, LEFT_OUT);
}

#[test]
fn program_that_transforms_bodies() {
    run::<Transforming, Mosquitto>(mqtt5::<Transforming>, "mqtt5", Listener::Plain, LEFT_OUT);
}

#[test]
fn program_of_sixty_lines() {
    run::<SixtyLines, Mosquitto>(mqtt311::<SixtyLines>, "mqtt311", Listener::Plain, LEFT_OUT_OF_EXAMPLE);
}

#[test]
fn program_fast_dds() {
    run::<FastDds, Domain>(dds::<FastDds>, "dds", Listener::Plain, LEFT_OUT_OF_DDS);
}

/// Starts a program. Returns it with the other end of its standard input and output.
fn start(mut command: Command) -> (Child, UnixStream) {
    let (own, its) = UnixStream::pair().unwrap();
    own.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    command.stdin(OwnedFd::from(its.try_clone().unwrap())).stdout(OwnedFd::from(its));
    // The command, which holds the program's end, too, is dropped here.
    (command.spawn().unwrap(), own)
}

/// Sends a frame of this kind to a program.
fn send(program: &mut UnixStream, kind: u8, fields: &[u8]) {
    let length = u32::try_from(1 + fields.len()).unwrap();
    program.write_all(&[&length.to_le_bytes()[..], &[kind], fields].concat()).unwrap();
}

/// The next frame of this kind from a program, with its kind.
fn receive(program: &mut UnixStream, kind: u8) -> Vec<u8> {
    loop {
        let mut length = [0; 4];
        program.read_exact(&mut length).unwrap();
        let mut frame = vec![0; usize::try_from(u32::from_le_bytes(length)).unwrap()];
        program.read_exact(&mut frame).unwrap();
        if frame[0] == kind {
            return frame;
        }
    }
}

/// `connect` of the first client without a log-in: two numbers of 4 bytes, two of 2, one of 1, and three empty texts.
const CONNECT: [u8; 19] = [0; 19];

#[test]
fn program_paho_is_not_held_up_by_a_server_that_reads_no_goodbye() {
    let words = match Paho::words() {
        Ok(words) => words,
        Err(missing) => return pubmark_testing::skip(missing),
    };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    let (mut child, mut program) = start(command);
    receive(&mut program, 0x81);
    let begin = format!(
        r#"{{"protocol": "mqtt311", "keep_alive_s": 60, "endpoints": [{{"host": "127.0.0.1", "port": {port}}}]}}"#
    );
    send(&mut program, 1, begin.as_bytes());
    // `topic`: client, publication, QoS 0, not retained, the topic `t`, and an empty device type.
    send(&mut program, 4, &[&[0; 8][..], &[1, 0, b't'], &[0, 0]].concat());
    send(&mut program, 5, &CONNECT);
    let (mut server, _) = listener.accept().unwrap();
    server.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    assert!(server.read(&mut [0; 1_024]).unwrap() > 0);
    server.write_all(&[0x20, 2, 0, 0]).unwrap();
    receive(&mut program, 0x84);
    // `publish` of more than the buffers of both ends hold, and `disconnect` behind it.
    send(&mut program, 7, &vec![0; 30 + (16 << 20)]);
    send(&mut program, 8, &[0; 9]);
    send(&mut program, 2, &7u64.to_le_bytes());
    let pong = receive(&mut program, 0x82);
    assert_eq!(&pong[1..9], 7u64.to_le_bytes(), "it serves its other clients");
    drop(program);
    assert!(child.wait().unwrap().success());
}

/// In place of MQTT.js: a connection fails for a reason of 401 bytes.
const FAILING_LIBRARY: &str = "
    const { EventEmitter } = require('node:events');
    exports.connect = () => {
      const client = Object.assign(new EventEmitter(), { end() {} });
      process.nextTick(() => {
        client.emit('error', new Error('a' + 'é'.repeat(200)));
        client.emit('close');
      });
      return client;
    };";

#[test]
fn program_mqttjs_cuts_a_long_reason_between_letters() {
    if Command::new("node").arg("--version").output().is_err() {
        return pubmark_testing::skip("node is not installed");
    }
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("node_modules/mqtt");
    fs::create_dir_all(&library).unwrap();
    fs::write(library.join("package.json"), r#"{"name": "mqtt", "version": "0", "main": "index.js"}"#).unwrap();
    fs::write(library.join("index.js"), FAILING_LIBRARY).unwrap();
    let program = folder.path().join("client.js");
    fs::copy(root().join("clients/mqttjs/client.js"), &program).unwrap();
    let mut command = Command::new("node");
    command.arg(&program);
    let (mut child, mut own) = start(command);
    send(&mut own, 1, br#"{"protocol": "mqtt5", "keep_alive_s": 60, "endpoints": [{"host": "localhost", "port": 1}]}"#);
    send(&mut own, 5, &CONNECT);
    let closed = receive(&mut own, 0x85);
    // Its reason comes after the kind, two numbers of 4 bytes, the end and the code.
    assert_eq!(std::str::from_utf8(&closed[11..]).unwrap(), format!("a{}", "é".repeat(127)));
    drop(own);
    child.wait().unwrap();
}
