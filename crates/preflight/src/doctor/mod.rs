//! Is this machine fit to measure? One file per group of checks, one table row per check. Each check reports its result, and
//! a fix if there is a problem.

mod containers;
mod isolation;
pub mod kernel;
mod limits;
mod programs;

use pubmark_report::wrapping::wrap;

/// Result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fitness {
    /// No problem.
    Good,
    /// Some runs will be limited, or their measurements less precise.
    Limited,
    /// Runs will fail.
    Bad,
}

impl Fitness {
    /// The name of the result in machine-readable output.
    pub fn as_str(self) -> &'static str {
        match self {
            Fitness::Good => "good",
            Fitness::Limited => "limited",
            Fitness::Bad => "bad",
        }
    }

    /// The symbol at the start of the line.
    pub fn mark(self) -> char {
        match self {
            Fitness::Good => '✓',
            Fitness::Limited => '!',
            Fitness::Bad => '✗',
        }
    }
}

/// Finding of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The result.
    pub fitness: Fitness,
    /// What the check found, with figures.
    pub text: String,
    /// What to type or do; present if the result is not good.
    pub fix: Option<String>,
}

impl Finding {
    fn good(text: impl Into<String>) -> Finding {
        Finding { fitness: Fitness::Good, text: text.into(), fix: None }
    }

    fn limited(text: impl Into<String>, fix: impl Into<String>) -> Finding {
        Finding { fitness: Fitness::Limited, text: text.into(), fix: Some(fix.into()) }
    }

    fn bad(text: impl Into<String>, fix: impl Into<String>) -> Finding {
        Finding { fitness: Fitness::Bad, text: text.into(), fix: Some(fix.into()) }
    }
}

/// A row of the table: what is checked, and the function that checks it.
pub type Check = (&'static str, fn() -> Finding);

/// All checks, in the order they are shown.
pub const CHECKS: &[Check] = &[
    ("descriptors", limits::descriptors),
    ("ports", limits::ports),
    ("memory", limits::memory),
    ("load", limits::load),
    ("cores", isolation::cores),
    ("governor", kernel::governor),
    ("clock", kernel::clock_source),
    ("realtime", kernel::realtime),
    ("wake-ups", kernel::wake_ups),
    ("precision", kernel::precision),
    ("stamps", kernel::receive_stamps),
    ("systems", programs::systems),
    ("containers", containers::containers),
    ("cgroups", isolation::control_groups),
    ("namespaces", isolation::namespaces),
    ("tun", kernel::tun),
    ("links", isolation::links),
    ("netem", isolation::netem),
];

/// Executes all checks. Returns the findings as text, at most 80 columns wide, and the worst result.
pub fn examine() -> (String, Fitness) {
    let mut text = String::new();
    let mut worst = Fitness::Good;
    for (name, check) in CHECKS {
        let finding = check();
        worst = worst.max(finding.fitness);
        lay_out(&mut text, name, &finding);
    }
    (text, worst)
}

/// Column at which the text of a finding starts.
const INDENT: usize = 14;

fn lay_out(text: &mut String, name: &str, finding: &Finding) {
    let first = format!("{} {name:<11} ", finding.fitness.mark());
    text.push_str(&wrap(&first, INDENT, &finding.text));
    if let Some(fix) = &finding.fix {
        text.push_str(&wrap(&" ".repeat(INDENT), INDENT, &format!("fix: {fix}")));
    }
}

/// The content of a file without white space around it; `None` if it cannot be read.
fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_check_that_is_not_good_names_a_fix() {
        for (name, check) in CHECKS {
            let finding = check();
            assert_eq!(finding.fix.is_none(), finding.fitness == Fitness::Good, "{name}: {finding:?}");
        }
    }
}
