//! Waiting until all brokers of a start are ready.

use std::net::TcpStream;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use crate::error::SystemError;
use crate::launch::Endpoint;
use crate::launch::broker::Broker;
use crate::launch::plan::{BackEnd, Plan};
use crate::running::{end_of, log_tail};
use crate::tree;

/// Time between two checks of a system that is starting.
const POLL_INTERVAL: Duration = Duration::from_millis(3);
/// Longest wait for one TCP connect to the loopback address.
const CONNECT: Duration = Duration::from_millis(500);

/// Publishes a message at an endpoint and receives it, or returns what is missing.
pub(super) type Ready<'a> = &'a mut dyn FnMut(&Endpoint) -> Result<(), String>;

/// Waits for all brokers. They share the machine, so each adds its time to the deadline.
pub(super) fn wait(plan: &Plan, brokers: &mut [Broker], ready: Ready) -> Result<(), SystemError> {
    let within = match &plan.back_end {
        BackEnd::Process { found, .. } => found.ready_within(),
        BackEnd::Container { found, .. } => found.ready_within(),
    } * brokers.len() as u32;
    let deadline = Instant::now() + within;
    for number in 0..brokers.len() {
        wait_for_one(plan, brokers, number, (deadline, within), ready)?;
    }
    Ok(())
}

fn wait_for_one(
    plan: &Plan,
    brokers: &mut [Broker],
    number: usize,
    (deadline, within): (Instant, Duration),
    ready: Ready,
) -> Result<(), SystemError> {
    let system = || plan.definition.name.clone();
    loop {
        if plan.options.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            return Err(SystemError::Interrupted { system: system() });
        }
        let outcome = look(plan, &brokers[number], ready);
        // Checked last: a program that has ended is not ready, even if another program accepts connections on its port.
        if let Some((which, end)) = end_of(brokers) {
            return Err(SystemError::Exited {
                system: system(),
                status: end.how,
                log_tail: log_tail(&brokers[which].log),
            });
        }
        let Err(reason) = outcome else { return Ok(()) };
        if Instant::now() >= deadline {
            let log_tail = log_tail(&brokers[number].log);
            return Err(SystemError::NotReady { system: system(), seconds: within.as_secs_f64(), reason, log_tail });
        }
        thread::sleep(POLL_INTERVAL);
    }
}

/// Does the broker listen, does the port really belong to it, and does it deliver messages?
fn look(plan: &Plan, broker: &Broker, ready: Ready) -> Result<(), String> {
    if plan.over_datagrams() {
        return ready(&broker.endpoint);
    }
    for address in [Some(broker.endpoint.address), broker.endpoint.subscribers].into_iter().flatten() {
        TcpStream::connect_timeout(&address, CONNECT)
            .map_err(|error| format!("no connection to {address}: {error}"))?;
        if root_process(plan, broker).and_then(|root| tree::listens(root, address.port())) == Some(false) {
            return Err(format!("another program listens on {address}"));
        }
    }
    ready(&broker.endpoint)
}

/// Root of the broker's processes; `None` if they are not visible here. Containers are in this network namespace (`--network
/// host`), but not always below the command that started them.
fn root_process(plan: &Plan, broker: &Broker) -> Option<u32> {
    let command = broker.held.pid();
    match (&plan.back_end, &broker.container) {
        (BackEnd::Container { engine, .. }, Some(container)) => engine.root_process(&container.name, command),
        _ => Some(command),
    }
}
