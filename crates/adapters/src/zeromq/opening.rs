//! From TCP to an exchange of what both sides are: greeting, mechanism, READY (37/ZMTP; PLAIN: 24/ZMTP-PLAIN).

use pubmark_protocol::events::{Cause, Reason};
use pubmark_wire::zmtp::{
    Command, Greeting, LONGEST_LOG_IN_BYTES, Mechanism, Metadata, SocketType, encode_greeting_front,
    encode_greeting_rest, encode_hello, encode_initiate, encode_ready,
};

use crate::connection::{Link, Shared};

/// Codes of libzmq's ERROR that are not about the log-in: try again later, and a fault of the peer's (27/ZAP).
const NOT_THE_LOG_IN: [&str; 2] = ["300", "500"];

/// What is awaited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The peer's greeting.
    Greeting,
    /// PLAIN: the response to our log-in.
    Welcome,
    /// What it is.
    Ready,
    /// Nothing: subscriptions and messages flow.
    Up,
}

/// TCP is connected. Sends the greeting up to the major version: with that a peer sends all of its greeting, including its
/// mechanism. If we named a mechanism that it does not want, libzmq would close silently.
///
/// The side that accepts the connection sends everything at once, or two of ours would wait for each other; it supports no
/// log-ins.
pub fn begin(link: &mut Link, shared: &mut Shared, accepts: bool) -> Result<(), Cause> {
    if accepts {
        link.outbox.append(&mut shared.pool, |out| {
            encode_greeting_front(out);
            encode_greeting_rest(Mechanism::Null, out);
        });
        return Ok(());
    }
    let log_in = link.config.log_in(&shared.config);
    let is_too_long = |text: &str| text.len() > LONGEST_LOG_IN_BYTES;
    if log_in.as_ref().is_some_and(|log_in| is_too_long(log_in.user) || is_too_long(&log_in.password)) {
        let words = format!("PLAIN has no room for a user name or password of more than {LONGEST_LOG_IN_BYTES} B");
        return Err(Cause::Refused(Reason::words(words)));
    }
    if !link.config.subscriptions.is_empty() && !link.config.publications.is_empty() {
        return Err(Cause::Refused(Reason::words(
            "a socket of ZeroMQ's publishes or subscribes, this session does both",
        )));
    }
    link.outbox.append(&mut shared.pool, encode_greeting_front);
    Ok(())
}

/// The peer's greeting: ours is completed, with what begins the mechanism.
pub fn on_greeting(
    link: &mut Link,
    shared: &mut Shared,
    (ours, accepts): (SocketType, bool),
    greeting: Greeting,
) -> Result<Stage, Cause> {
    let log_in = link.config.log_in(&shared.config).filter(|_| !accepts);
    let mechanism = if log_in.is_some() { Mechanism::Plain } else { Mechanism::Null };
    match (mechanism, greeting.mechanism) {
        (Mechanism::Null, Mechanism::Plain) => {
            return Err(Cause::NotAuthorized(Reason::words("it asks for a user name and a password (PLAIN)")));
        }
        (Mechanism::Plain, Mechanism::Null) => {
            return Err(Cause::Refused(Reason::words("it takes no log-in (its mechanism is NULL)")));
        }
        (_, Mechanism::Other) => {
            return Err(Cause::Refused(Reason::words("it asks for another mechanism than NULL or PLAIN")));
        }
        _ => {}
    }
    link.outbox.append(&mut shared.pool, |out| {
        if !accepts {
            encode_greeting_rest(mechanism, out);
        }
        match &log_in {
            Some(log_in) => encode_hello(log_in.user.as_bytes(), log_in.password.as_bytes(), out),
            None => encode_ready(ours, out),
        }
    });
    Ok(if log_in.is_some() { Stage::Welcome } else { Stage::Ready })
}

/// The next command of the handshake; what is awaited then.
pub fn on_command(
    link: &mut Link,
    shared: &mut Shared,
    (stage, ours): (Stage, SocketType),
    command: &Command<'_>,
) -> Result<Stage, Cause> {
    match (stage, command) {
        (Stage::Welcome, Command::Welcome) => {
            link.outbox.append(&mut shared.pool, |out| encode_initiate(ours, out));
            Ok(Stage::Ready)
        }
        (Stage::Ready, Command::Ready(metadata)) => check_peer(ours, metadata).map(|()| Stage::Up),
        (stage, Command::Error(reason)) => {
            let reason = String::from_utf8_lossy(reason).into_owned();
            let is_of_log_in = stage == Stage::Welcome && !NOT_THE_LOG_IN.contains(&reason.as_str());
            let reason = Reason::words(format!("ERROR {reason}"));
            Err(if is_of_log_in { Cause::NotAuthorized(reason) } else { Cause::Refused(reason) })
        }
        (_, command) => Err(Cause::Protocol(format!("{} in place of its {}", name(command), expected(stage)))),
    }
}

fn expected(stage: Stage) -> &'static str {
    match stage {
        Stage::Greeting => "greeting",
        Stage::Welcome => "WELCOME",
        Stage::Ready | Stage::Up => "READY",
    }
}

/// A command's name, for messages.
pub fn name(command: &Command<'_>) -> String {
    match command {
        Command::Ready(_) => "READY".to_owned(),
        Command::Error(_) => "ERROR".to_owned(),
        Command::Hello { .. } => "HELLO".to_owned(),
        Command::Welcome => "WELCOME".to_owned(),
        Command::Initiate(_) => "INITIATE".to_owned(),
        Command::Ping { .. } => "PING".to_owned(),
        Command::Pong { .. } => "PONG".to_owned(),
        Command::Subscribe(_) => "SUBSCRIBE".to_owned(),
        Command::Cancel(_) => "CANCEL".to_owned(),
        Command::Other(name) => format!("the command {}", name.escape_ascii()),
    }
}

/// Can we talk to a peer of that kind? A proxy's two sockets are of different kinds, and easily mixed up.
fn check_peer(ours: SocketType, metadata: &Metadata<'_>) -> Result<(), Cause> {
    let Some(named) = metadata.get("Socket-Type") else {
        return Err(Cause::Protocol("READY without a Socket-Type".to_owned()));
    };
    let refused = |what: String| Err(Cause::Refused(Reason::words(what)));
    match SocketType::of(named) {
        Some(theirs) if theirs.subscribes() != ours.subscribes() => Ok(()),
        Some(theirs) if ours.subscribes() => {
            refused(format!("it is a socket of type {}, where publishers connect", theirs.name()))
        }
        Some(theirs) => refused(format!("it is a socket of type {}, where subscribers connect", theirs.name())),
        None => refused(format!("it is a socket of type {}, not one of publish/subscribe", named.escape_ascii())),
    }
}
