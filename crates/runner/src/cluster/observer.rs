//! The process with which an observer node measures the resources of a system on its machine. The coordinator starts it, and sends it the
//! measured window afterwards; in between it sends nothing.

use std::io;
use std::sync::Arc;

use pubmark_engine::progress::Progress;
use pubmark_engine::remote;
use pubmark_protocol::clock;
use pubmark_record::cost::{HostUsage, ResourceRow, Usage};
use pubmark_systems::cgroup::CostSource;
use pubmark_systems::meter::Workers;
use pubmark_systems::node_exporter::HostWatch;
use pubmark_systems::sampler::Sampler;
use pubmark_systems::{environment, tree};
use serde::{Deserialize, Serialize};

use super::channel::Channel;
use crate::sampling;
use crate::workers;

/// The measured window, ns of the run's time.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Window {
    pub start_ns: u64,
    pub end_ns: u64,
}

/// Messages of the process, a line of JSON each.
#[derive(Debug, Serialize, Deserialize)]
pub enum ObserverMessage {
    /// It is measuring.
    Observing,
    /// It cannot measure, with the reason.
    Unable(String),
    /// The measurements of the window.
    Observed(Box<Seen>),
}

/// Resources used on a machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    /// Used by the system's processes; `None` if none were named.
    pub system: Option<Usage>,
    /// Used by the whole machine.
    pub host: Option<HostUsage>,
    /// The machine: boot id of its kernel; empty if unknown.
    pub machine: String,
    /// The network namespace, whose interfaces alone are counted.
    pub network: String,
    /// Samples of the processes over time.
    pub rows: Vec<ResourceRow>,
}

/// Measures processes (or only the whole machine, if none are named) until the other end of standard input has received the measurements,
/// or closes.
pub fn observe(process: &str) -> io::Result<()> {
    let (control, memory) = workers::ends()?;
    let progress = Arc::new(Progress::of_run(memory)?);
    remote::beat(&progress, 0)?;
    remote::follow_clock(&progress, workers::end)?;
    let mut channel = Channel::new(control);
    let looking = match Looking::begin(process) {
        Ok(looking) => looking,
        Err(why) => return channel.send(&ObserverMessage::Unable(why)),
    };
    channel.send(&ObserverMessage::Observing)?;
    let Some(window) = channel.receive()? else { return Ok(()) };
    channel.send(&ObserverMessage::Observed(Box::new(looking.finish(window))))
}

/// A measurement in progress.
struct Looking {
    sampler: Sampler,
    host: HostWatch,
}

impl Looking {
    fn begin(process: &str) -> Result<Looking, String> {
        let sampler =
            Sampler::start(&places(process)?, &[], Workers::default(), false).map_err(|error| error.to_string())?;
        let host = HostWatch::own(&environment::host_name()).map_err(|error| error.to_string())?;
        Ok(Looking { sampler, host })
    }

    fn finish(self, window: Window) -> Seen {
        // Samples are stamped by this machine's clock. The drift between the two clocks within a window is far below the interval between
        // samples.
        let ahead_ns = pubmark_systems::clock::monotonic_ns().wrapping_sub(clock::monotonic_ns());
        let [start_ns, end_ns] = [window.start_ns, window.end_ns].map(|run_ns| run_ns.wrapping_add(ahead_ns));
        self.host.read_soon();
        let samples = self.sampler.finish();
        let system = samples.resources(start_ns, end_ns).system;
        let rows = if system.is_some() { samples.rows(start_ns, end_ns) } else { vec![] };
        let host = self.host.finish().map(|readings| readings.usage(start_ns, end_ns));
        let (machine, network) = (environment::boot_id(), environment::network());
        Seen { system, host, machine, network, rows: sampling::of_system(rows) }
    }
}

/// Used in place of a name: all other containers of this pod, or the container whose processes this one shares.
pub const POD: &str = "pod:";

/// The root processes of the trees that a name or a number selects.
fn places(process: &str) -> Result<Vec<CostSource>, String> {
    let of = |pid: u32| CostSource { pid, cgroup: None };
    if process.is_empty() {
        return Ok(vec![]);
    }
    if process == POD {
        return match tree::beside() {
            found if found.is_empty() => {
                Err("no other container runs beside this one, or they do not share their processes: deploy with \
                     `--no-observer`"
                    .to_owned())
            }
            found => Ok(found.into_iter().map(of).collect()),
        };
    }
    let found = match process.parse() {
        Ok(pid) if std::path::Path::new(&format!("/proc/{pid}")).exists() => vec![pid],
        Ok(_) => vec![],
        Err(_) => tree::called(process),
    };
    if found.is_empty() {
        return Err(format!("there is no process `{process}` on {}", environment::host_name()));
    }
    Ok(found.into_iter().map(of).collect())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_found_by_name_and_by_number() {
        let own = std::process::id();
        let name = std::env::current_exe().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
        for process in [own.to_string(), name] {
            let found = places(&process).unwrap();
            assert!(found.iter().any(|place| place.pid == own), "{process}: {found:?}");
        }
        assert_eq!(places("").unwrap().len(), 0);
        for process in ["no such program", "4194304999"] {
            assert!(places(process).unwrap_err().contains(process));
        }
    }
}
