//! The session of one node at the coordinator, from its first message to its last.

use std::error::Error as _;
use std::pin::Pin;
use std::sync::Arc;

use pubmark_model::file_name;
use pubmark_model::placement::{self, Labels};
use pubmark_protocol::clock;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tokio_stream::{Stream, StreamExt};
use tonic::transport::server::TlsConnectInfo;
use tonic::{Code, Request, Response, Status, Streaming};

use super::accept::Peer;
use super::hub::{Hub, NodeInfo, Slot};
use crate::SOURCES;
use crate::address::for_clients;
use crate::credentials::is_same;
use crate::error::Refusal;
use crate::lanes::{Lanes, lanes};
use crate::limits::{self, short};
use crate::machine;
use crate::messages::{
    CoordinatorMessage, FreePorts, FromNode, Join, NodeMessage, Piece, SCHEMA, Time, ToNode, Welcome,
};
use crate::stubs::control_server::Control;

/// The gRPC service that nodes call.
pub(super) struct Service {
    pub hub: Arc<Hub>,
    pub token: String,
    pub version: String,
    /// The run's time − this machine's `CLOCK_MONOTONIC_RAW`, ns.
    pub run_less_raw_ns: i64,
}

/// Longest part of a refused node's name that is shown, characters.
const LONGEST_NAME: usize = 64;
/// Length of a fingerprint of sources ([`SOURCES`]), characters.
const FINGERPRINT_DIGITS: usize = 16;

#[tonic::async_trait]
impl Control for Service {
    type AttendStream = Pin<Box<dyn Stream<Item = Result<ToNode, Status>> + Send>>;

    async fn attend(&self, request: Request<Streaming<FromNode>>) -> Result<Response<Self::AttendStream>, Status> {
        let peer = request.extensions().get::<TlsConnectInfo<Peer>>().map(|info| info.get_ref().clone());
        let peer = peer.ok_or_else(|| Status::internal("a connection without an address"))?;
        let mut inbound = request.into_inner();
        let said = match timeout(limits::INTRODUCTION, inbound.message()).await {
            Ok(Ok(Some(message))) => message.message,
            _ => None,
        };
        let Some(NodeMessage::Join(join)) = said else {
            return Err(self.refused(&peer, None, Code::InvalidArgument, "it did not introduce itself"));
        };
        let labels = match self.check(&join) {
            Ok(labels) => labels,
            Err((code, why)) => return Err(self.refused(&peer, Some(&join.name), code, &why)),
        };
        let (lanes, outbound) = lanes();
        let info = NodeInfo::of(join, labels, peer.address);
        let welcome = Welcome {
            version: self.version.clone(),
            boot: machine::boot(),
            run_less_raw_ns: self.run_less_raw_ns,
            clients_at: info.clients_at.to_string(),
        };
        lanes.say(ToNode { message: Some(CoordinatorMessage::Welcome(welcome)) });
        let name = info.name.clone();
        let slot =
            Slot { info, lanes: lanes.clone(), carried: Arc::clone(&peer.carried), marks: [None; 2], bound_ns: 0 };
        if let Err((why, again)) = self.hub.join(slot) {
            // A node that waits because its name is in use tries twice a second, so its refusals are not reported each
            // time.
            return Err(match again {
                true => Status::unavailable(why),
                false => self.refused(&peer, Some(&name), Code::AlreadyExists, &why),
            });
        }
        let hub = Arc::clone(&self.hub);
        tokio::spawn(async move {
            let why = listen(&hub, &name, inbound, &lanes).await;
            hub.leave(&name, &why);
        });
        Ok(Response::new(Box::pin(outbound.map(Ok))))
    }
}

impl Service {
    /// Checks a node's first message; returns its labels if the node may join.
    fn check(&self, join: &Join) -> Result<Labels, (Code, String)> {
        let texts = [
            &join.version,
            &join.host,
            &join.kernel,
            &join.boot,
            &join.discipline,
            &join.token,
            &join.address,
            &join.no_links,
            &join.no_kernel_netem,
            &join.sources,
        ];
        if texts.iter().any(|text| text.len() > limits::WORDS) {
            return Err((Code::InvalidArgument, format!("it says more than {} bytes of itself", limits::WORDS)));
        }
        if join.schema != SCHEMA || join.version != self.version {
            let why = format!(
                "it is pubmark {} (control protocol {}), the coordinator is pubmark {} ({SCHEMA})",
                join.version, join.schema, self.version
            );
            return Err((Code::FailedPrecondition, why));
        }
        if join.sources != SOURCES {
            let why = format!(
                "it is a pubmark {} of other sources ({}) than the coordinator's ({}), which may schedule and count differently: install one build on both machines",
                join.version,
                shown(&join.sources),
                shown(SOURCES)
            );
            return Err((Code::FailedPrecondition, why));
        }
        if !is_same(&join.token, &self.token) {
            return Err((Code::PermissionDenied, "its token is not this cluster's".to_owned()));
        }
        if !join.address.is_empty() {
            let named = join.address.parse().map_err(|_| "is not an IP address").and_then(for_clients);
            named.map_err(|why| (Code::InvalidArgument, format!("its --address {why}")))?;
        }
        if !file_name::is_one(&join.name) {
            return Err((Code::InvalidArgument, format!("it has no name that can be used: {}", file_name::RULE)));
        }
        placement::labels(&join.labels).map_err(|why| (Code::InvalidArgument, format!("its labels: {why}")))
    }

    /// Stores the refusal of a node, and sends it to the node.
    fn refused(&self, peer: &Peer, name: Option<&str>, code: Code, why: &str) -> Status {
        let name = name.map(|name| name.chars().take(LONGEST_NAME).filter(char::is_ascii_graphic).collect());
        self.hub.refuse(Refusal { address: peer.address, name, why: why.to_owned() });
        Status::new(code, why)
    }
}

/// Receives from a node until it disconnects; returns the reason.
async fn listen(hub: &Hub, name: &str, mut inbound: Streaming<FromNode>, lanes: &Lanes<ToNode>) -> String {
    loop {
        let mut message = timeout(limits::NODE_SILENCE, inbound.message()).await;
        if message.is_err() {
            // If this process was delayed, the node's message has arrived by now.
            message = timeout(limits::GRACE, inbound.message()).await;
        }
        let said = match message {
            Ok(Ok(Some(message))) => message.message,
            Ok(Ok(None)) => return "its connection closed".to_owned(),
            Ok(Err(status)) => return format!("its connection broke: {}", words(&status)),
            Err(_) => return format!("it was silent for {} s", limits::NODE_SILENCE.as_secs()),
        };
        let receive_ns = clock::monotonic_ns();
        match said {
            Some(NodeMessage::Ask(ask)) => {
                let largest_bound_ns = hub.clock_bound_ns(name, ask.bound_ns);
                let transmit_ns = clock::monotonic_ns();
                let time = Time { origin_ns: ask.origin_ns, receive_ns, transmit_ns, largest_bound_ns };
                lanes.say(ToNode { message: Some(CoordinatorMessage::Time(time)) });
            }
            Some(NodeMessage::Piece(piece)) => pass_on(hub, name, piece, lanes).await,
            Some(NodeMessage::Rows(rows)) => hub.rows(name, rows.number, &rows.counters),
            Some(NodeMessage::Began(began)) => hub.change(|state| {
                if let Some(run) = state.runs.get_mut(&began.number).filter(|run| run.node == name) {
                    run.began = Some(if began.failure.is_empty() { Ok(()) } else { Err(short(began.failure)) });
                }
            }),
            Some(NodeMessage::Ended(ended)) => hub.change(|state| {
                if let Some(run) = state.runs.get_mut(&ended.number).filter(|run| run.node == name) {
                    run.to_driver = None;
                    if !ended.why.is_empty() {
                        state.without_worker.insert(name.to_owned(), short(ended.why));
                    }
                }
            }),
            Some(NodeMessage::Report(report)) => hub.change(|state| {
                if let Some(run) = state.runs.get_mut(&report.number).filter(|run| run.node == name) {
                    run.report = Some(report);
                }
            }),
            Some(NodeMessage::FreePorts(free)) => hub.change(|state| {
                let (number, asked, answer) = &mut state.ports;
                if *number == free.number && asked == name {
                    *answer = Some(FreePorts { failure: short(free.failure), ..free });
                }
            }),
            Some(NodeMessage::Goodbye(why)) => return format!("it left: {}", short(why)),
            Some(NodeMessage::Join(_)) | None => return "it sent a message that no node sends".to_owned(),
        }
    }
}

/// Passes a piece to the driver of the worker. If that takes long, no messages of the node are read, but heartbeats are
/// sent to it.
async fn pass_on(hub: &Hub, name: &str, piece: Piece, lanes: &Lanes<ToNode>) {
    let to_driver: Option<mpsc::Sender<Vec<u8>>> = {
        let state = hub.state();
        state.runs.get(&piece.number).filter(|run| run.node == name).and_then(|run| run.to_driver.clone())
    };
    let Some(to_driver) = to_driver else { return };
    let handed_over = to_driver.send(piece.bytes);
    tokio::pin!(handed_over);
    loop {
        tokio::select! {
            // The driver has ended: it does not need the worker's output any more.
            _ = &mut handed_over => return,
            () = sleep(limits::HEARTBEAT) => {
                lanes.say(ToNode { message: Some(CoordinatorMessage::Time(Time::default())) });
            }
        }
    }
}

/// A gRPC error in words: the innermost cause, without the layers above it.
pub(crate) fn words(status: &Status) -> String {
    let mut deepest: &dyn std::error::Error = match status.source() {
        Some(source) => source,
        None => return status.message().to_owned(),
    };
    while let Some(deeper) = deepest.source() {
        deepest = deeper;
    }
    let words = deepest.to_string();
    match words.contains("close_notify") {
        true => "connection closed without close_notify".to_owned(),
        false => words,
    }
}

/// A fingerprint of sources as it is printed: a node may say anything, and a build without the sources of all crates has none.
fn shown(sources: &str) -> String {
    let digits: String = sources.chars().filter(char::is_ascii_hexdigit).take(FINGERPRINT_DIGITS).collect();
    if digits.is_empty() { "unknown".to_owned() } else { digits }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Result of the check for a node of the coordinator's version, with a change.
    fn checked(change: impl FnOnce(&mut Join)) -> Result<Labels, (Code, String)> {
        let service =
            Service { hub: Arc::default(), token: "t".to_owned(), version: "1".to_owned(), run_less_raw_ns: 0 };
        let mut join = Join {
            schema: SCHEMA,
            version: "1".to_owned(),
            sources: SOURCES.to_owned(),
            token: "t".to_owned(),
            name: "edge".to_owned(),
            ..Join::default()
        };
        change(&mut join);
        service.check(&join)
    }

    #[test]
    fn a_node_of_another_control_protocol_is_refused_though_its_version_is_the_same() {
        let (code, why) = checked(|join| join.schema = SCHEMA - 1).unwrap_err();
        assert_eq!(code, Code::FailedPrecondition);
        assert!(
            why.contains(&format!("(control protocol {})", SCHEMA - 1)) && why.contains(&format!("({SCHEMA})")),
            "{why}"
        );
    }

    #[test]
    fn a_node_of_other_sources_is_refused_though_its_version_and_control_protocol_are_the_same() {
        assert!(checked(|_| {}).is_ok());
        for (other, printed) in
            [("0123456789abcdef", "0123456789abcdef"), ("0123456789abcdef01", "0123456789abcdef"), ("zz", "unknown")]
        {
            let (code, why) = checked(|join| join.sources = other.to_owned()).unwrap_err();
            assert_eq!(code, Code::FailedPrecondition);
            let texts =
                [format!("({printed})"), format!("({})", shown(SOURCES)), "install one build on both".to_owned()];
            assert!(texts.iter().all(|text| why.contains(text)), "{why}");
        }
    }

    #[test]
    fn labels_of_a_node_are_few_short_and_plain() {
        let with =
            |labels: &[&str]| checked(|join| join.labels = labels.iter().map(|label| (*label).to_owned()).collect());
        assert_eq!(placement::written(&with(&["zone=a", "site=edge-1"]).unwrap()), "site=edge-1 zone=a");
        assert_eq!(with(&[]), Ok(Labels::new()));
        let many = vec!["a=b".to_owned(); 50_000];
        let long = vec!["x".repeat(900_000)];
        let terminal = vec!["site=\u{1b}]0;owned\u{7}".to_owned()];
        let twice = vec!["site=a".to_owned(), "site=b".to_owned()];
        for labels in [many, long, terminal, twice] {
            let (code, why) = checked(|join| join.labels = labels).unwrap_err();
            assert_eq!(code, Code::InvalidArgument);
            assert!(why.starts_with("its labels: ") && why.len() < 400 && !why.contains(char::is_control), "{why}");
        }
    }
}
