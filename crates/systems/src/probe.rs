//! Tests whether a system works over a protocol for which pubmark has no adapter. It uses the probe of the definition:
//! a message is published and received with the protocol's own commands.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::condition::{Neighbours, Situation};
use crate::definition::{Definition, Line, Probe};
use crate::launch::Endpoint;
use crate::process::run_to_end;
use crate::programs::{find_program, folder_text};
use crate::template::Values;

/// Most bytes that are read from a connection for one expected text. Responses are short lines.
const MOST_RECEIVED: usize = 1 << 20;
/// Longest part of the received text that is shown, characters.
const MOST_SHOWN: usize = 200;

/// Publishes and receives a message over `protocol` once, at a system that listens at `endpoint`, within the given
/// time.
///
/// # Errors
/// What failed, as a phrase: the definition has no probe for the protocol, the connection encrypts (no probe does), a
/// response did not arrive, a command failed.
pub fn run(definition: &Definition, protocol: &str, endpoint: &Endpoint, within: Duration) -> Result<(), String> {
    let offer = definition.offer(protocol).map_err(|error| error.to_string())?;
    let Some(probe) = &offer.probe else {
        return Err(format!("the definition of `{}` has no probe for {protocol}", definition.name));
    };
    let values = values(endpoint, &offer.listener);
    match probe {
        Probe::Dialogue(_) if endpoint.authority.is_some() => {
            Err(format!("the probe of `{}` for {protocol} does not encrypt", definition.name))
        }
        Probe::Dialogue(lines) => dialogue(lines, endpoint, &values, within),
        Probe::Command(words) => command(definition, words, &values, within),
    }
}

/// A token that no other probe uses: 16 letters and digits.
fn token() -> String {
    format!("{:016x}", RandomState::new().hash_one(std::process::id()))
}

fn values(endpoint: &Endpoint, listener: &str) -> Values {
    // All values of the start, including its folders.
    let mut values = endpoint.values.clone();
    values.set("token", token());
    values.set("host", endpoint.address.ip().to_string());
    values.set(&format!("port:{listener}"), endpoint.address.port().to_string());
    values.set("programs", folder_text());
    let login = endpoint.credentials.as_ref();
    values.set("login_user", login.map_or("", |login| &login.user));
    values.set("login_password", login.map_or("", |login| login.password.expose()));
    values.set("authority", endpoint.authority.as_ref().map_or(String::new(), |path| path.display().to_string()));
    values
}

fn dialogue(lines: &[Line], endpoint: &Endpoint, values: &Values, within: Duration) -> Result<(), String> {
    let now = Situation {
        tls: false,
        websocket: false,
        password: endpoint.credentials.is_some(),
        container: false,
        neighbours: Neighbours::None,
        first: true,
        raised: false,
    };
    let deadline = Instant::now() + within;
    let mut connections: BTreeMap<&str, Connection> = BTreeMap::new();
    for line in lines.iter().filter(|line| line.when.applies(&now)) {
        let connection = match connections.entry(&line.on) {
            std::collections::btree_map::Entry::Occupied(found) => found.into_mut(),
            std::collections::btree_map::Entry::Vacant(place) => {
                place.insert(Connection::open(endpoint.address, deadline)?)
            }
        };
        if let Some(words) = &line.say {
            connection.say(values.fill(words).as_bytes(), deadline)?;
        }
        if let Some(words) = &line.hear {
            connection.await_text(&values.fill(words), deadline).map_err(|why| format!("{}: {why}", line.on))?;
        }
    }
    Ok(())
}

/// One connection of a dialogue, and the received text that no step has processed yet.
struct Connection {
    stream: TcpStream,
    received: Vec<u8>,
}

impl Connection {
    fn open(address: SocketAddr, deadline: Instant) -> Result<Connection, String> {
        let stream = TcpStream::connect_timeout(&address, left(deadline)?)
            .map_err(|error| format!("no connection to {address}: {error}"))?;
        Ok(Connection { stream, received: Vec::new() })
    }

    fn say(&mut self, words: &[u8], deadline: Instant) -> Result<(), String> {
        self.stream
            .set_write_timeout(Some(left(deadline)?))
            .and_then(|()| self.stream.write_all(words))
            .map_err(|error| format!("failed to send: {error}"))
    }

    /// Reads until `words` has arrived; discards the text up to its end.
    fn await_text(&mut self, words: &str, deadline: Instant) -> Result<(), String> {
        let missing =
            |received: &[u8], why: &str| Err(format!("{why} before {words:?} came; heard {}", shown(received)));
        loop {
            if let Some(at) = self.received.windows(words.len().max(1)).position(|part| part == words.as_bytes()) {
                self.received.drain(..at + words.len());
                return Ok(());
            }
            let Ok(time_left) = left(deadline) else { return missing(&self.received, "the time was over") };
            if self.received.len() > MOST_RECEIVED {
                return missing(&self.received, "too many bytes came");
            }
            self.stream.set_read_timeout(Some(time_left)).map_err(|error| error.to_string())?;
            let mut some = [0; 4_096];
            match self.stream.read(&mut some) {
                Ok(0) => return missing(&self.received, "the connection was closed"),
                Ok(count) => self.received.extend_from_slice(&some[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    return missing(&self.received, "the time was over");
                }
                Err(error) => return missing(&self.received, &error.to_string()),
            }
        }
    }
}

/// Time until the deadline; an error after it has passed.
fn left(deadline: Instant) -> Result<Duration, String> {
    match deadline.saturating_duration_since(Instant::now()) {
        Duration::ZERO => Err("the time was over".to_owned()),
        time => Ok(time),
    }
}

/// The end of the received text, on one line.
fn shown(received: &[u8]) -> String {
    if received.is_empty() {
        return "nothing".to_owned();
    }
    let text = String::from_utf8_lossy(received);
    let skipped = text.chars().count().saturating_sub(MOST_SHOWN);
    format!("{:?}", text.chars().skip(skipped).collect::<String>())
}

fn command(definition: &Definition, words: &[String], values: &Values, within: Duration) -> Result<(), String> {
    let Some((program, arguments)) = words.split_first() else { return Err("the probe names no program".to_owned()) };
    let path = match &definition.back_ends.process {
        Some(back_end) => find_program(program, back_end).map_err(|error| error.to_string())?,
        None => program.into(),
    };
    let mut command = Command::new(path);
    command.args(arguments.iter().map(|argument| values.fill(argument)));
    match run_to_end(command, within) {
        Ok((status, _)) if status.success() => Ok(()),
        Ok((status, output)) => Err(format!("`{program}` failed ({status}); it printed {}", shown(output.as_bytes()))),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_has_sixteen_letters_and_digits_and_is_not_used_twice() {
        let (one, other) = (token(), token());
        assert!(one.len() == 16 && one.chars().all(|letter| letter.is_ascii_alphanumeric()), "{one}");
        assert_ne!(one, other);
    }

    #[test]
    fn only_the_end_of_a_long_response_is_shown() {
        assert_eq!(shown(b""), "nothing");
        assert_eq!(shown(b"+OK\r\n"), r#""+OK\r\n""#);
        assert_eq!(shown(&[b'x'; 5_000]).len(), MOST_SHOWN + 2);
    }
}
