//! A run that a shard holds up before the schedule begins is a failure, and nobody interrupted it.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use pubmark_engine::error::EngineError;
use pubmark_engine::plan::RunPlan;
use pubmark_engine::progress::Totals;
use pubmark_engine::run::{Observer, Phase, Sides, run};
use pubmark_model::load::{self, LoadOptions};
use pubmark_protocol::clients::{
    Clients, Goodbye, OpenError, Outgoing, SendOutcome, SessionConfig, SessionId, ShardConfig, Waker,
};
use pubmark_protocol::events::{Cause, Connected, Event, Sink};

use crate::late_begin::plan_of;

const WORKLOAD: &str = "
name: unprepared
devices:
  - {name: device, count: 1, arrival: periodic, every: 20ms, payload: 100B, topic: 'unprepared/{device}'}
subscribers: []
";

/// Whether the run has given up.
static IS_OVER: AtomicBool = AtomicBool::new(false);

/// Clients whose shard does nothing else, once they are connected, until the run has given up.
#[derive(Default)]
struct Stuck {
    sessions: u32,
    connecting: Vec<SessionId>,
    are_connected: bool,
}

impl Clients for Stuck {
    fn open(_: ShardConfig) -> Result<Stuck, OpenError> {
        Ok(Stuck::default())
    }

    fn add_session(&mut self, _: SessionConfig) -> SessionId {
        self.sessions += 1;
        SessionId(self.sessions - 1)
    }

    fn connect(&mut self, session: SessionId, _: &mut impl Sink) {
        self.connecting.push(session);
    }

    fn disconnect(&mut self, session: SessionId, _: Goodbye, sink: &mut impl Sink) {
        sink.event(session, Event::Closed(Cause::Ours));
    }

    fn send(&mut self, _: SessionId, _: Outgoing) -> SendOutcome {
        SendOutcome::Accepted
    }

    fn flush(&mut self, _: SessionId, _: &mut impl Sink) {}

    fn wait(&mut self, until_ns: Option<u64>) -> std::io::Result<u64> {
        Ok(crate::sleep_until(until_ns))
    }

    fn has_unread(&self) -> bool {
        false
    }

    fn serve(&mut self, _: u64, sink: &mut impl Sink) {
        while self.are_connected && !IS_OVER.load(Relaxed) {
            std::thread::sleep(Duration::from_millis(1));
        }
        for session in std::mem::take(&mut self.connecting) {
            sink.event(session, Event::Connected(Connected::default()));
            self.are_connected = true;
        }
    }

    fn waker(&self) -> Waker {
        Waker::new(|| {})
    }

    fn unsent_bytes(&self) -> u64 {
        0
    }
}

/// Releases the shard when the run collects its outcomes.
struct Releases;

impl Observer for Releases {
    fn phase(&mut self, phase: Phase) {
        IS_OVER.fetch_or(phase == Phase::Collect, Relaxed);
    }
    fn progress(&mut self, _: Phase, _: Duration, _: Option<Duration>, _: &Totals, _: bool) {}
    fn window_began(&mut self) {}
    fn window_ended(&mut self) {}
}

#[test]
fn a_shard_that_never_learns_the_window_is_named() {
    let workload = load::parse("unprepared.yaml", WORKLOAD, &LoadOptions::default()).unwrap();
    let plan = RunPlan { connect_limit: Duration::from_secs(2), ..plan_of(workload) };
    let found = run(&plan, Sides::both::<Stuck>(), None, &AtomicBool::new(false), &mut Releases);
    let error = found.map(|outcome| outcome.interrupted).unwrap_err();
    assert!(matches!(&error, EngineError::Unprepared { shard, .. } if shard == "publisher 0"), "{error:?}");
    assert_eq!(error.to_string(), "shard `publisher 0` did not confirm the start of the measured window within 2 s");
}
