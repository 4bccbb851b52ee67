//! Faults chosen for a run: `kill:at=30s,for=5s`. Parsed and validated like the mappings of a workload's `faults`.

use std::fmt;

use crate::load::{LoadError, faults};
use crate::workload::{Deviation, Workload};

/// Text that removes all faults of the workload.
pub const NO_FAULT: &str = "none";

/// A fault as it was written on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultChoice {
    text: String,
}

impl FaultChoice {
    /// Parses `KIND:KEY=VALUE,…`; the values of the keys are validated with the workload.
    ///
    /// # Errors
    /// The text cannot be parsed. The error is a sentence.
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

/// Replaces the workload's faults by the chosen ones, and adds a deviation if the workload had some.
///
/// # Errors
/// One of the faults is not valid.
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
