//! What was done to the run from outside: emulated links and faults.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::faults::FaultFigures;
use crate::links::LinkFigures;

/// Conditions under which the fleet and the system worked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunConditions {
    /// Emulated links; `null` where there are none.
    #[serde(default)]
    pub links: Option<LinkFigures>,
    /// Faults and what followed from them; `null` where nothing was broken.
    #[serde(default)]
    pub faults: Option<FaultFigures>,
}
