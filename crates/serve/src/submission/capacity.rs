//! A search for capacity.

use std::time::Duration;

use pubmark_experiment::capacity::objectives;
use pubmark_record::headline::Kind;
use pubmark_runner::spec::text::{self, Text as _};
use pubmark_runner::{RunError, RunSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Submission, What, refused};
use crate::allow::Allow;
use crate::problem::Problem;

/// A search for the highest load that a system carries within objectives, as `pubmark capacity` makes it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CapacitySubmission {
    /// The workload.
    pub capacity: String,
    /// System to start, `builtin` if left out.
    #[serde(default)]
    pub system: Option<String>,
    /// URL of a system that runs already. A password in it would be seen in the list of processes, and is refused.
    #[serde(default)]
    pub endpoint: Option<String>,
    /// Protocol of clients.
    #[serde(default)]
    pub protocol: Option<String>,
    /// What must hold, `p99<50ms,loss=0` if left out.
    #[serde(default)]
    pub slo: Option<String>,
    /// What is varied.
    #[serde(default)]
    pub vary: Option<Vary>,
    /// Delivery level of all devices and subscribers.
    #[serde(default)]
    #[schemars(range(max = 2))]
    pub qos: Option<u8>,
    /// Start no further trial after this time.
    #[serde(default, with = "text::maybe")]
    #[schemars(with = "Option<String>")]
    pub within: Option<Duration>,
    /// Length of each trial's window.
    #[serde(default, with = "text::maybe")]
    #[schemars(with = "Option<String>")]
    pub duration: Option<Duration>,
    /// Load before each window.
    #[serde(default, with = "text::maybe")]
    #[schemars(with = "Option<String>")]
    pub warmup: Option<Duration>,
    /// Largest factor of the workload to try.
    #[serde(default)]
    pub most: Option<f64>,
}

/// What a search varies.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Vary {
    /// Messages per second.
    Rate,
    /// Number of devices.
    Scale,
}

impl CapacitySubmission {
    /// Loads the workload and looks at what is named.
    pub(super) fn judged(self, allow: &Allow) -> Result<Submission, Problem> {
        allow.names(&self.capacity, self.system.as_deref(), self.endpoint.as_deref()).map_err(refused)?;
        if self.endpoint.as_deref().is_some_and(|url| url.contains('@')) {
            return Err(Problem::from(RunError::input("the endpoint of a search may not hold a password"))
                .hint("others on the machine would see it in the list of processes"));
        }
        if let Some(slo) = &self.slo {
            objectives("`slo`", slo)?;
        }
        let workload = RunSpec::new(&self.capacity).load()?;
        let system = self.system.clone().unwrap_or_else(|| match self.endpoint {
            Some(_) => "endpoint".to_owned(),
            None => "builtin".to_owned(),
        });
        let what = What::Capacity { options: self.options() };
        Ok(Submission { kind: Kind::Capacity, name: workload.name, systems: vec![system], what, notes: vec![] })
    }

    fn options(&self) -> Vec<String> {
        let vary = self.vary.map(|vary| match vary {
            Vary::Rate => "rate".to_owned(),
            Vary::Scale => "scale".to_owned(),
        });
        let time = |time: Option<Duration>| time.map(|time| time.write());
        let options = [
            ("system", self.system.clone()),
            ("endpoint", self.endpoint.clone()),
            ("protocol", self.protocol.clone()),
            ("slo", self.slo.clone()),
            ("vary", vary),
            ("qos", self.qos.map(|qos| qos.to_string())),
            ("within", time(self.within)),
            ("duration", time(self.duration)),
            ("warmup", time(self.warmup)),
            ("most", self.most.map(|most| most.to_string())),
        ];
        let given = options.into_iter().filter_map(|(name, value)| Some(format!("--{name}={}", value?)));
        [self.capacity.clone()].into_iter().chain(given).collect()
    }
}
