//! Descriptions of faults for people.

use super::occurrence::seconds;
use super::{Fault, FaultKind, Occurrence, Scope, Timing};

impl Fault {
    /// What the fault affects: `all connections`, `20 % of the connections of sensors`, `link far`, `the system`, `server
    /// 2`.
    pub fn target(&self) -> String {
        match self.kind.scope() {
            Scope::System => match self.server {
                Some(number) => format!("server {number}"),
                None => "the system".to_owned(),
            },
            Scope::Connections => {
                let share = match self.share {
                    1.0 => "all connections".to_owned(),
                    share => format!("{} % of the connections", three_digits(share * 100.0)),
                };
                match &self.group {
                    Some(group) => format!("{share} of {group}"),
                    None => share,
                }
            }
            Scope::Links => match (&self.link, &self.group) {
                (Some(link), _) => format!("link {link}"),
                (None, Some(group)) => format!("group {group}"),
                (None, None) => "no link".to_owned(),
            },
        }
    }

    /// The mean times of a random fault: `mean time to failure 30 s, to repair 5 s`.
    pub fn chance(&self) -> Option<String> {
        let ns = |time: std::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        match self.timing {
            Timing::Once { .. } => None,
            Timing::Random { mttf, mttr } => Some(format!(
                "mean time to failure {}, to repair {}, both exponential",
                seconds(ns(mttf)),
                seconds(ns(mttr))
            )),
        }
    }
}

impl Occurrence {
    /// The time of the fault in words: `at 30 s for 5 s`.
    pub fn time(&self) -> String {
        let at = seconds(self.at_ns);
        match (self.length_ns, self.kind) {
            (Some(length_ns), _) if length_ns > 0 => format!("at {at} for {}", seconds(length_ns)),
            (None, FaultKind::Cut) => format!("at {at}, until the clients notice"),
            _ => format!("at {at}"),
        }
    }
}

/// A percentage with at most three significant digits.
fn three_digits(value: f64) -> String {
    let digits = if value >= 100.0 {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn fault(kind: FaultKind, share: f64, group: Option<&str>) -> Fault {
        let timing = Timing::Once { at: Duration::from_secs(30), length: None };
        Fault { kind, timing, share, group: group.map(str::to_owned), link: None, server: None }
    }

    #[test]
    fn targets_and_times_are_described() {
        assert_eq!(fault(FaultKind::Kill, 1.0, None).target(), "the system");
        assert_eq!(fault(FaultKind::Reset, 0.2, Some("sensors")).target(), "20 % of the connections of sensors");
        assert_eq!(fault(FaultKind::Cut, 1.0, None).target(), "all connections");
        assert_eq!(fault(FaultKind::Partition, 1.0, Some("sensors")).target(), "group sensors");
        let at = |kind, length_ns| Occurrence { fault: 0, kind, at_ns: 30_500_000_000, length_ns }.time();
        assert_eq!(at(FaultKind::Kill, Some(5_000_000_000)), "at 30.5 s for 5 s");
        assert_eq!(at(FaultKind::Cut, None), "at 30.5 s, until the clients notice");
        assert_eq!(at(FaultKind::Reset, None), "at 30.5 s");
    }
}
