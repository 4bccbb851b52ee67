//! Faults chosen for a run: `kill:at=30s,for=5s`. Read as a mapping of a workload's `faults` is, with the same checks.

use std::fmt;

use crate::load::{LoadError, faults};
use crate::workload::{Deviation, Workload};

/// In place of a fault: none, whatever the workload has.
pub const NO_FAULT: &str = "none";

/// A fault as it was written on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultChoice {
    text: String,
}

impl FaultChoice {
    /// Reads `KIND:KEY=VALUE,…`; what the keys may say is checked with the workload.
    ///
    /// # Errors
    /// A sentence about what cannot be read.
    pub fn parse(text: &str) -> Result<FaultChoice, String> {
        let text = text.trim();
        let (kind, keys) = text.split_once(':').unwrap_or((text, ""));
        let is_pair =
            |pair: &str| pair.split_once('=').is_some_and(|(key, value)| !key.is_empty() && !value.is_empty());
        if text == NO_FAULT || (!kind.is_empty() && !keys.is_empty() && keys.split(',').all(is_pair)) {
            return Ok(FaultChoice { text: text.to_owned() });
        }
        Err("a fault is written KIND:KEY=VALUE,…, for instance `kill:at=30s,for=5s`, `reset:at=10s,share=20%`, or `none`"
            .to_owned())
    }
}

impl fmt::Display for FaultChoice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

/// Puts the faults chosen in place of the workload's, and names that in its deviations if it had some.
///
/// # Errors
/// What is wrong with one of them.
pub fn apply(workload: &mut Workload, choices: &[FaultChoice]) -> Result<(), LoadError> {
    if choices.is_empty() {
        return Ok(());
    }
    if !workload.faults.is_empty() {
        let named: Vec<String> = choices.iter().map(|choice| format!("`{choice}`")).collect();
        workload.deviations.push(Deviation {
            name: "faults-replaced".to_owned(),
            detail: format!("{} in place of the workload's own faults", named.join(", ")),
        });
    }
    workload.faults.clear();
    for choice in choices.iter().filter(|choice| choice.text != NO_FAULT) {
        let fault = faults::of_text(&choice.text, workload)?;
        workload.faults.push(fault);
    }
    Ok(())
}
