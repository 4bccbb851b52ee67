//! The order of a worker process, encoded before the process is started: one that cannot be sent starts nothing.

use std::io;

use super::frames;
use super::launcher::Launcher;
use super::messages::ToWorker;
use super::task::WorkerTask;
use crate::error::EngineError;
use crate::plan::RunPlan;
use crate::shares::WorkerLocation;

/// The order of a worker process.
pub(crate) struct Order {
    /// Its shards, by their index in the run.
    pub(super) shards: Vec<u32>,
    /// It sets up an access network.
    pub(super) makes_access: bool,
    /// The message, encoded.
    pub(super) body: Vec<u8>,
}

impl Order {
    /// The order for these shards of a plan, at a location of it.
    ///
    /// # Errors
    /// A file of the plan cannot be read.
    pub fn new(launcher: &dyn Launcher, place: WorkerLocation, plan: &RunPlan, shards: Vec<u32>) -> io::Result<Order> {
        let access = launcher.access(place);
        let makes_access = access.is_some();
        let task = WorkerTask::new(plan, launcher.adapter_names(), shards.clone(), access)?;
        let body = frames::body(&ToWorker::Task(Box::new(task)))?;
        Ok(Order { shards, makes_access, body })
    }

    /// Checks that it can be sent.
    ///
    /// # Errors
    /// [`EngineError::LongOrder`] if it is longer than a message may be.
    pub fn check(&self) -> Result<(), EngineError> {
        self.check_within(frames::LONGEST)
    }

    fn check_within(&self, longest: usize) -> Result<(), EngineError> {
        let bytes = self.body.len();
        if bytes > longest { Err(EngineError::LongOrder { bytes, longest }) } else { Ok(()) }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    use super::*;
    use crate::progress::Progress;
    use crate::remote::launcher::Started;
    use crate::virtual_time::{ONE_TO_ONE, plan};

    /// Starts no process.
    #[derive(Debug)]
    struct Nobody;

    impl Launcher for Nobody {
        fn launch(&self, _: WorkerLocation, _: &[u32], _: &Arc<Progress>, _: &AtomicBool) -> io::Result<Started> {
            let (control, _) = UnixStream::pair()?;
            Ok(Started { control, child: None })
        }

        fn adapter_names(&self) -> [String; 2] {
            ["mqtt5".to_owned(), "mqtt5".to_owned()]
        }
    }

    #[test]
    fn an_order_that_is_longer_than_a_message_is_refused_with_both_lengths() {
        let plan = plan(ONE_TO_ONE, Duration::from_secs(1));
        let place = WorkerLocation { node: 0, network: None, group: None };
        let order = Order::new(&Nobody, place, &plan, vec![0]).unwrap();
        let bytes = order.body.len();
        order.check().unwrap();
        order.check_within(bytes).unwrap();
        let error = order.check_within(bytes - 1).unwrap_err().to_string();
        let expected = format!("an order of {bytes} bytes for a worker process, and at most {} can be sent", bytes - 1);
        assert_eq!(error, expected);
    }
}
