//! Links of a workload: what is told of them before a run, and whether a run can have them.

use pubmark_model::workload::Workload;

use crate::commands::setup::{Netem, Setup};
use crate::failure::Failure;
use crate::linked;
use crate::target::Wanted;
use crate::wrapping::wrap;

/// Refuses what links cannot carry, before anything starts.
///
/// # Errors
/// A system that runs elsewhere, options that speak of this machine's network.
pub fn carried_out(workload: &Workload, wanted: &Wanted, setup: &Setup) -> Result<(), Failure> {
    if workload.links_in_use().is_empty() {
        return Ok(());
    }
    let refused = |why: &str, hint: &str| Err(Failure::usage(why).hint(hint));
    match wanted {
        Wanted::Started { .. } | Wanted::Brokerless { .. } => {}
        Wanted::External { .. } => {
            return refused(
                "links lead to a system that pubmark starts, not to one that runs already",
                "`--system NAME` in place of `--endpoint`, or `--link none`",
            );
        }
    }
    if setup.netem == Netem::Kernel {
        if matches!(wanted, Wanted::Brokerless { .. }) {
            return refused(
                "links by `--netem kernel` lead to a broker, and clients that meet without one need links to each other",
                "leave `--netem kernel` out, or a system with a broker (`pubmark list systems`)",
            );
        }
        linked::by_kernel(workload)?;
    }
    if setup.source_addresses.is_some() {
        return refused(
            "`--source-addresses` are this machine's, and links have addresses of their own",
            "leave one out",
        );
    }
    Ok(())
}

/// The links of a workload in words, for `--dry-run`; empty without any.
pub fn told(workload: &Workload) -> String {
    let mut text = String::new();
    for (link, groups) in workload.links_in_use() {
        text.push_str(&wrap(&format!("  link {:<16} ", link.name), 24, &format!("for {}", groups.join(", "))));
        for line in link.lines() {
            text.push_str(&wrap(&" ".repeat(24), 26, &line));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::printer::COLUMNS;
    use pubmark_model::link::choice::LinkChoice;
    use pubmark_model::load::{LoadOptions, load};

    fn smart_home(links: &[&str]) -> Workload {
        let links = links.iter().map(|text| LinkChoice::parse(text).expect("a choice")).collect();
        load("smart-home", &LoadOptions { links, ..LoadOptions::default() }).expect("a built-in workload")
    }

    #[test]
    fn links_are_told_with_their_groups() {
        let text = told(&smart_home(&["gprs"]));
        assert!(
            text.contains("link gprs") && text.contains("up: 500 ms ± 100 ms (normal), 20 kbit/s (2.5 kB/s)"),
            "{text}"
        );
        assert!(text.lines().all(|line| line.chars().count() <= COLUMNS), "{text}");
        assert_eq!(told(&smart_home(&[])), "");
    }
}
