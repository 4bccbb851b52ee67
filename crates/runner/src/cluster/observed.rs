//! Measurements of the observer nodes, as the coordinator collects them.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use pubmark_cluster::Cluster;
use pubmark_record::cost::{HostUsage, ResourceRow, Usage};
use pubmark_systems::environment;

use super::channel::Channel;
use super::observer::{ObserverMessage, Seen, Window};
use crate::error::{ErrorKind, RunError};

/// Longest wait for a response.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// Observers of a run that are measuring.
#[derive(Debug)]
pub struct Observed {
    observers: Vec<Observer>,
}

#[derive(Debug)]
struct Observer {
    name: String,
    channel: Channel,
}

impl Observed {
    /// Starts the measurement of all observers.
    ///
    /// # Errors
    /// An observer is lost, or finds no process to measure.
    pub fn begin(cluster: &Cluster) -> Result<Observed, RunError> {
        let begin = |name: &str| -> Result<Observer, RunError> {
            let lost = |error: &io::Error| unable(name, &error.to_string());
            let channel = cluster
                .begin_without_clients(name, &AtomicBool::new(false))
                .map_err(|error| RunError::from_error(ErrorKind::System, &error))?;
            let mut observer = Observer { name: name.to_owned(), channel: Channel::new(channel) };
            match observer.receive() {
                Ok(ObserverMessage::Observing) => Ok(observer),
                Ok(ObserverMessage::Unable(why)) => Err(unable(name, &why)
                    .hint("start the system before the run, or name its process: `pubmark node --observe NAME`")),
                Ok(ObserverMessage::Observed(_)) => Err(unable(name, "it reported before the request")),
                Err(error) => Err(lost(&error)),
            }
        };
        let observers = cluster.observers().iter().map(|node| begin(&node.name)).collect::<Result<_, _>>()?;
        Ok(Observed { observers })
    }

    /// Returns their combined measurements for the window between two times of the run's clock. The figures of an observer that was lost
    /// are missing; its name in the record shows that.
    pub fn finish(self, (start_ns, end_ns): (u64, u64)) -> Seen {
        let seen = self.observers.into_iter().map(|mut observer| {
            observer.ask(Window { start_ns, end_ns }).unwrap_or_else(|error| {
                let url = format!("`{}` (lost: {error})", observer.name);
                Seen { host: Some(HostUsage { url, failed_readings: 1, ..HostUsage::default() }), ..Seen::default() }
            })
        });
        together(seen.collect())
    }
}

fn unable(name: &str, why: &str) -> RunError {
    RunError::new(ErrorKind::System, format!("`{name}` cannot observe the system: {why}"))
}

impl Observer {
    fn ask(&mut self, window: Window) -> io::Result<Seen> {
        self.channel.send(&window)?;
        match self.receive()? {
            ObserverMessage::Observed(seen) => {
                let (url, is_this_machine) = (format!("`{}`", self.name), Some(is_this_machine(&seen.machine)));
                let host = seen.host.map(|host| HostUsage { url, is_this_machine, ..host });
                Ok(Seen { host, ..*seen })
            }
            ObserverMessage::Observing => Err(io::Error::other("it sent an unexpected message")),
            ObserverMessage::Unable(why) => Err(io::Error::other(why)),
        }
    }

    fn receive(&mut self) -> io::Result<ObserverMessage> {
        self.channel.receive_within(ANSWER_LIMIT, &AtomicBool::new(false))
    }
}

/// Whether a machine with this boot id, empty if unknown, is that of this process.
pub(super) fn is_this_machine(boot_id: &str) -> bool {
    !boot_id.is_empty() && boot_id == environment::boot_id()
}

/// Combines all measurements; the processes only where every observer measured some.
fn together(seen: Vec<Seen>) -> Seen {
    let systems: Option<Vec<Usage>> = seen.iter().map(|seen| seen.system).collect();
    let system = systems.and_then(|systems| systems.into_iter().reduce(Usage::and));
    // Rows of several machines do not have the same times.
    let rows = match seen.as_slice() {
        [one] => one.rows.clone(),
        _ => vec![],
    };
    Seen { system, host: all_machines(&seen), rows, ..Seen::default() }
}

/// The sum of these machines, if each was measured. Observers of several processes of one machine see the same cores and
/// memory, which count once, and those of one network namespace the same interfaces.
fn all_machines(seen: &[Seen]) -> Option<HostUsage> {
    let parts = seen.iter().enumerate().map(|(index, one)| {
        let host = one.host.clone()?;
        let same: Vec<&Seen> =
            seen[..index].iter().filter(|other| !one.machine.is_empty() && other.machine == one.machine).collect();
        if same.is_empty() {
            let own = BTreeMap::from([(host.url.clone(), host.steal)]);
            let steal_by_machine = if seen.len() > 1 { own } else { BTreeMap::new() };
            return Some(HostUsage { steal_by_machine, ..host });
        }
        let is_counted = same.iter().any(|other| other.network == one.network);
        let interfaces = |bytes: Option<u64>| if is_counted { Some(0) } else { bytes };
        Some(HostUsage {
            cores_total: Some(0),
            cores: Some(0.0),
            memory_bytes: Some(0),
            peak_used_bytes: Some(0),
            received_bytes: interfaces(host.received_bytes),
            sent_bytes: interfaces(host.sent_bytes),
            steal_by_machine: BTreeMap::new(),
            ..host
        })
    });
    parts.collect::<Option<Vec<HostUsage>>>()?.into_iter().reduce(HostUsage::and)
}

/// Enters measurements of a system into the generator's rows: into each, the one with the nearest end, if within half a second.
pub fn beside(rows: &mut [ResourceRow], seen: &[ResourceRow]) {
    for row in rows {
        let nearest =
            seen.iter().min_by(|one, other| (one.t_s - row.t_s).abs().total_cmp(&(other.t_s - row.t_s).abs()));
        let Some(nearest) = nearest.filter(|nearest| (nearest.t_s - row.t_s).abs() <= 0.5) else { continue };
        let (generator_cores, generator_rss_bytes) = (row.generator_cores, row.generator_rss_bytes);
        *row = ResourceRow { t_s: row.t_s, generator_cores, generator_rss_bytes, ..*nearest };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_did_not_see_is_not_summed() {
        let usage = |cpu_seconds| Some(Usage { cpu_seconds, threads: Some(2), ..Usage::default() });
        let host = |url: &str, cores| Some(HostUsage { url: url.to_owned(), cores, ..HostUsage::default() });
        let rows = vec![ResourceRow::default()];
        let one = Seen { system: usage(1.0), host: host("`a`", Some(0.5)), rows, ..Seen::default() };
        let other = Seen { system: usage(2.0), host: host("`b`", None), ..Seen::default() };
        let both = together(vec![one.clone(), other]);
        assert_eq!(both.system.map(|system| (system.cpu_seconds, system.threads)), Some((3.0, Some(4))));
        assert_eq!(both.host.map(|host| (host.url, host.cores)), Some(("`a` and `b`".to_owned(), None)));
        assert_eq!(together(vec![one.clone()]), one);
        let on = |machine: &str, url, cores| Seen {
            host: host(url, Some(cores)),
            machine: machine.into(),
            ..Seen::default()
        };
        let cores = |seen: Vec<Seen>| together(seen).host.map(|host| (host.url, host.cores));
        let of_one = vec![on("one", "`a`", 1.9), on("one", "`b`", 1.9)];
        assert_eq!(cores(of_one), Some(("`a` and `b`".to_owned(), Some(1.9))), "two processes of one machine");
        assert_eq!(cores(vec![on("one", "`a`", 1.5), on("two", "`b`", 0.5)]).and_then(|(_, cores)| cores), Some(2.0));
        assert_eq!(together(vec![one, Seen::default()]).system, None);
    }

    #[test]
    fn each_machine_has_its_own_steal() {
        let on = |machine: &str, url: &str, steal| {
            let host = Some(HostUsage { url: url.to_owned(), steal, ..HostUsage::default() });
            Seen { host, machine: machine.to_owned(), ..Seen::default() }
        };
        let found = |seen: &[Seen]| all_machines(seen).map(|host| (host.steal, host.steal_by_machine));
        let of = |machines: &[(&str, Option<f64>)]| -> BTreeMap<String, Option<f64>> {
            machines.iter().map(|(url, steal)| ((*url).to_owned(), *steal)).collect()
        };
        let (one, two) = (on("one", "`a`", Some(0.01)), on("two", "`b`", Some(0.2)));
        let both = of(&[("`a`", Some(0.01)), ("`b`", Some(0.2))]);
        assert_eq!(found(&[one.clone(), two]), Some((Some(0.2), both)));
        let unknown = of(&[("`a`", Some(0.01)), ("`b`", None)]);
        assert_eq!(found(&[one.clone(), on("two", "`b`", None)]), Some((Some(0.01), unknown)), "as far as it is known");
        let once = of(&[("`a`", Some(0.01))]);
        assert_eq!(found(&[one.clone(), on("one", "`b`", Some(0.01))]), Some((Some(0.01), once)), "one machine");
        assert_eq!(found(&[one]), Some((Some(0.01), BTreeMap::new())));
    }

    #[test]
    fn rows_are_put_beside_the_nearest() {
        let row = |t_s, cores| ResourceRow { t_s, system_cores: cores, ..ResourceRow::default() };
        let mut rows = [0.25, 0.5, 3.0].map(|t_s| ResourceRow { generator_cores: Some(1.0), ..row(t_s, None) });
        beside(&mut rows, &[row(0.2, Some(0.1)), row(0.45, Some(0.2))]);
        assert_eq!(rows.map(|row| row.system_cores), [Some(0.1), Some(0.2), None]);
        assert_eq!(rows.map(|row| (row.t_s, row.generator_cores)), [0.25, 0.5, 3.0].map(|t_s| (t_s, Some(1.0))));
    }
}
