//! Resource usage in a repetition: samples of the system and of pubmark, readings of the system's machine if it has a
//! node_exporter, and measurements of nodes beside the system.

use std::collections::BTreeSet;

use pubmark_protocol::clock;
use pubmark_record::cost::{Cost, ResourceRow};
use pubmark_systems::meter::Workers;
use pubmark_systems::node_exporter::{HostWatch, ScrapeError, Scraper};
use pubmark_systems::sampler::{LiveUsage, Sampler};

use crate::cluster::{self, FinishedSystem, Observed};
use crate::error::{ErrorKind, RunError};
use crate::target::Target;

/// Resource usage in a repetition.
pub struct Sampled {
    /// Over the measured window.
    pub resources: Cost,
    /// Over time.
    pub rows: Vec<ResourceRow>,
    /// Time that threads of the system waited for a CPU during the drain, ns.
    pub drain_wait_ns: Option<u64>,
}

/// The sampling of a running repetition.
pub struct Sampling {
    sampler: Sampler,
    host: Option<HostWatch>,
    observed: Option<Observed>,
    elsewhere: Option<FinishedSystem>,
}

impl Sampling {
    /// Starts before any client connects. `node_exporter` is the address of the exporter on the system's machine; if it
    /// does not respond now, that is a failure; if it stops responding later, that is counted. `observed` measures a
    /// system on other machines. `sees_clients`: the sockets of clients are in this thread's network.
    pub fn start(
        target: &Target,
        node_exporter: Option<&str>,
        observed: Option<Observed>,
        workers: Workers,
        sees_clients: bool,
    ) -> Result<Sampling, RunError> {
        let host = node_exporter.map(watch).transpose()?;
        let places = target.running.as_ref().map(|running| running.cost_sources()).unwrap_or_default();
        let both = target.publish_at.endpoints().iter().chain(target.subscribe_at.endpoints().iter());
        // Each port once; otherwise its traffic would be counted twice.
        let ports: BTreeSet<u16> = both.map(|endpoint| endpoint.address.port()).collect();
        let ports: Vec<u16> = ports.into_iter().collect();
        let sampler = Sampler::start(&places, &ports, workers, sees_clients).map_err(|error| {
            RunError::from_error(ErrorKind::Internal, &error).during("failed to sample processor time and memory")
        })?;
        Ok(Sampling { sampler, host, observed, elsewhere: None })
    }

    /// Marks an edge of the measured window at the current time.
    pub fn edge(&self) {
        self.sampler.sample_now();
        if let Some(host) = &self.host {
            host.read_soon();
        }
    }

    /// Sets the system's resource usage, which was measured on the node that started the system.
    pub fn measured_elsewhere(&mut self, system: FinishedSystem) {
        self.elsewhere = Some(system);
    }

    /// The current resource usage of both sides.
    pub fn usage_now(&self) -> LiveUsage {
        self.sampler.usage_now()
    }

    /// Whether threads of the system now wait for a CPU. See [`Sampler::system_waits`].
    pub fn system_waits(&self) -> bool {
        self.sampler.system_waits()
    }

    /// Marks the end of the drain at the current time.
    pub fn drained(&self) {
        self.sampler.sample_now();
    }

    /// Ends, and returns the resource usage in the window between two times of the run's clock, in the drain of that
    /// length after it, and over time.
    pub fn finish(self, window_ns: (u64, u64), drain_ns: u64) -> Sampled {
        let (start_ns, end_ns) = window_ns;
        // The run uses the coordinator's raw clock, samples use this machine's: within hours of one cluster the clocks
        // drift apart.
        let ahead_ns = pubmark_systems::clock::monotonic_ns().wrapping_sub(clock::monotonic_ns());
        let [start_ns, end_ns] = [start_ns, end_ns].map(|run_ns: u64| run_ns.wrapping_add(ahead_ns));
        let readings = self.host.and_then(HostWatch::finish);
        let samples = self.sampler.finish();
        let drain_wait_ns = Some(drain_ns)
            .filter(|drain_ns| *drain_ns > 0)
            .and_then(|drain_ns| samples.system_run_queue_wait_ns(end_ns, end_ns + drain_ns));
        let host = readings.map(|readings| readings.usage(start_ns, end_ns));
        let mut rows = if end_ns > start_ns { samples.rows(start_ns, end_ns) } else { vec![] };
        let resources = Cost { host, ..samples.resources(start_ns, end_ns) };
        if let Some(FinishedSystem { cost, rows: theirs, drain_wait_ns, .. }) = self.elsewhere {
            cluster::beside(&mut rows, &theirs);
            let Cost { system, limits, host, .. } = cost;
            return Sampled { resources: Cost { system, limits, host, ..resources }, rows, drain_wait_ns };
        }
        let Some(observed) = self.observed else { return Sampled { resources, rows, drain_wait_ns } };
        let seen = observed.finish(window_ns);
        cluster::beside(&mut rows, &seen.rows);
        Sampled { resources: Cost { system: seen.system, host: seen.host, ..resources }, rows, drain_wait_ns }
    }
}

/// Rows without the usage of this process, for a process that generates no load.
pub fn of_system(rows: Vec<ResourceRow>) -> Vec<ResourceRow> {
    rows.into_iter().map(|row| ResourceRow { generator_cores: None, generator_rss_bytes: None, ..row }).collect()
}

fn watch(url: &str) -> Result<HostWatch, RunError> {
    Scraper::new(url).and_then(HostWatch::start).map_err(|error| {
        let kind = if matches!(error, ScrapeError::Url { .. }) { ErrorKind::Input } else { ErrorKind::System };
        RunError::from_error(kind, &error).hint(
            "`--node-exporter http://HOST:9100` takes the address at which a node_exporter of that machine answers",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_generates_no_load_is_not_shown_as_the_generator() {
        let row = ResourceRow {
            t_s: 0.5,
            system_cores: Some(0.3),
            generator_cores: Some(0.01),
            generator_rss_bytes: Some(30_000_000),
            ..ResourceRow::default()
        };
        let found = of_system(vec![row]);
        assert_eq!(found, [ResourceRow { t_s: 0.5, system_cores: Some(0.3), ..ResourceRow::default() }]);
    }
}
