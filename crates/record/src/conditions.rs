//! Conditions that were imposed on the run: emulated links and faults.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::faults::FaultFigures;
use crate::links::LinkFigures;

/// Conditions that were imposed on the fleet and the system.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunConditions {
    /// Emulated links; `null` without links.
    #[serde(default)]
    pub links: Option<LinkFigures>,
    /// Faults and their effects; `null` if no fault was injected.
    #[serde(default)]
    pub faults: Option<FaultFigures>,
}
