//! What the tests with real programs share.
#![allow(dead_code, clippy::print_stderr, clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use pubmark_systems::launch::find_program;
use pubmark_systems::{Definition, Endpoint, StartOptions};

/// Options of a start in these tests, with the supervisor that is built for them: a test program is not a supervisor.
pub fn options(protocol: &str) -> StartOptions {
    StartOptions { supervisor: Some(env!("CARGO_BIN_EXE_pubmark-supervisor").into()), ..StartOptions::new(protocol) }
}

/// Listens on a port below the range for outgoing connections. Another test may bind a port that was free a moment ago.
pub fn listen() -> TcpListener {
    let mut tries = (0..10).map(|_| TcpListener::bind(("127.0.0.1", pubmark_systems::ports::free(1).unwrap()[0])));
    tries.find_map(Result::ok).expect("one of ten free ports can be had")
}

/// Is mosquitto installed? Records a skip if not.
pub fn mosquitto_is_installed() -> bool {
    let definition = Definition::load("mosquitto").unwrap();
    let found = find_program("mosquitto", definition.back_ends.process.as_ref().unwrap()).is_ok();
    if !found {
        pubmark_testing::skip("mosquitto is not installed (`apt-get install mosquitto`)");
    }
    found
}

/// A system that is a shell script, with its port in `$1`; `extra` is added to its back end.
pub fn script_with(text: &str, ready_within_s: f64, stop_within_s: f64, extra: &str) -> Definition {
    let yaml = format!(
        "name: script\ntitle: script\ndescription: a script\nranked: false\n\
         listeners: {{mqtt: {{scheme: mqtt}}}}\n\
         protocols: {{mqtt5: {{listener: mqtt, highest_qos: 0}}}}\n\
         back_ends:\n  process:\n    program: sh\n    install: apt-get install dash\n    \
         arguments: [{{add: [\"{{directory}}/script\", \"{{port:mqtt}}\", \"{{index}}\"]}}]\n    \
         ready_within_s: {ready_within_s}\n    stop_within_s: {stop_within_s}\n{extra}\
         files: [{{name: script, parts: [{{text: {text:?}}}]}}]\n\
         profiles: {{default: {{description: as it is}}}}\n"
    );
    Definition::parse(&yaml, "script.yaml").unwrap()
}

/// A system that is a shell script, without additions to its back end.
pub fn script(text: &str, ready_within_s: f64, stop_within_s: f64) -> Definition {
    script_with(text, ready_within_s, stop_within_s, "")
}

/// Connects as an MQTT 3.1.1 client and returns the broker's return code (MQTT 3.1.1 §3.2.2.3).
pub fn mqtt_connect(endpoint: &Endpoint, login: Option<(&str, &str)>) -> Result<u8, String> {
    let mut stream = TcpStream::connect(endpoint.address).map_err(|error| error.to_string())?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).map_err(|error| error.to_string())?;
    let field = |text: &str| [&(text.len() as u16).to_be_bytes()[..], text.as_bytes()].concat();
    let flags = if login.is_some() { 0b1100_0010 } else { 0b0000_0010 };
    let mut body = [&field("MQTT")[..], &[4, flags, 0, 30], &field("pubmarktest")].concat();
    if let Some((user, password)) = login {
        body.extend([field(user), field(password)].concat());
    }
    let packet = [&[0x10, body.len() as u8][..], &body].concat();
    stream.write_all(&packet).map_err(|error| error.to_string())?;
    let mut answer = [0; 4];
    stream.read_exact(&mut answer).map_err(|error| error.to_string())?;
    if answer[0] == 0x20 { Ok(answer[3]) } else { Err(format!("{answer:?} is no CONNACK")) }
}

/// Is there a process of that id that has not ended?
pub fn is_alive(pid: u32) -> bool {
    // The state is the first field after the name in brackets; Z is a zombie, which its parent has not waited for yet.
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z')))
}

/// Waits until `holds` returns true, at most 10 s; false if it does not.
pub fn becomes_true(holds: impl Fn() -> bool) -> bool {
    let deadline = Instant::now() + Duration::from_secs(10);
    while Instant::now() < deadline {
        if holds() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    holds()
}
