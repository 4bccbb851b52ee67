//! The handshake with a program.

use std::time::{Duration, Instant};

use pubmark_protocol::client_program::{FromProgram, Hello, LONGEST_HANDSHAKE, next_frame};

use super::running::{ReadOutcome, Running};

/// How long a program may take until its hello.
const HELLO_WITHIN: Duration = Duration::from_secs(10);
/// Time between two looks.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Starts a program and reads its hello; why it is of no use, otherwise, without these secrets.
pub fn start(words: &[String], secrets: &[&str]) -> Result<(Running, Hello), String> {
    let mut running = Running::start(words).map_err(|error| error.to_string())?;
    let deadline = Instant::now() + HELLO_WITHIN;
    loop {
        if let Some(hello) = hello_in(&mut running)? {
            return Ok((running, hello));
        }
        running.read_errors();
        match running.read().map_err(|error| error.to_string())? {
            ReadOutcome::Bytes => {}
            ReadOutcome::End => {
                let how = running.how_it_ended();
                return Err(format!("before its hello it {how}{}", running.error_output(secrets)));
            }
            ReadOutcome::Nothing if Instant::now() >= deadline => {
                return Err(format!(
                    "it sent no hello within {} s{}",
                    HELLO_WITHIN.as_secs(),
                    running.error_output(secrets)
                ));
            }
            ReadOutcome::Nothing => std::thread::sleep(POLL_INTERVAL),
        }
    }
}

/// The hello among what was read, if it is whole.
fn hello_in(running: &mut Running) -> Result<Option<Hello>, String> {
    let broken = |what: String| format!("its first frame is no hello: {what}");
    let Some(frame) = next_frame(&running.input, LONGEST_HANDSHAKE).map_err(|error| broken(error.to_string()))? else {
        return Ok(None);
    };
    match frame.from_program().map_err(|error| broken(error.to_string()))? {
        FromProgram::Hello(json) => {
            let hello = Hello::read(json).map_err(|error| error.to_string())?;
            let bytes = frame.bytes;
            running.input.drain(..bytes);
            Ok(Some(hello))
        }
        _ => Err(broken(format!("it is of kind 0x{:02x}", frame.kind))),
    }
}

/// Starts a program to learn what it is, and ends it.
///
/// # Errors
/// Why it is of no use.
pub fn hello_of(words: &[String]) -> Result<Hello, String> {
    start(words, &[]).map(|(_, hello)| hello)
}
