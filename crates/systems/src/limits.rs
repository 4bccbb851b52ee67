//! Resource limits of a system as people write them: `cpu=0.5,memory=256MB,cores=1`, or the name of a set.

use pubmark_model::units;

use crate::affinity;

/// Limits of each broker of a system.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceLimits {
    /// The limits as written: `cpu=0.5,memory=256MB`, or the name of a set.
    pub requested: String,
    /// CPU seconds per second: 0.5 is half a core.
    pub cpu: Option<f64>,
    /// Memory, bytes; no swap is allowed.
    pub memory_bytes: Option<u64>,
    /// Number of cores that the broker may use.
    pub cores: Option<u32>,
}

/// A named set of limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitSet {
    /// Name on the command line.
    pub name: &'static str,
    /// Cores.
    pub cores: u32,
    /// Memory, bytes.
    pub memory_bytes: u64,
    /// What the set represents, and its source, in one phrase.
    pub source: &'static str,
}

const GIB: u64 = 1 << 30;

/// All named sets. They limit the number of cores, not their speed: a limited server is still a server, only a smaller
/// one.
pub const LIMIT_SETS: &[LimitSet] = &[
    LimitSet { name: "mq-bench-1", cores: 1, memory_bytes: 2 * GIB, source: "mq-bench (CCGrid 2026), VM vm12" },
    LimitSet { name: "mq-bench-2", cores: 2, memory_bytes: 4 * GIB, source: "mq-bench (CCGrid 2026), VM vm24" },
    LimitSet { name: "mq-bench-4", cores: 4, memory_bytes: 8 * GIB, source: "mq-bench (CCGrid 2026), VM vm48" },
    LimitSet {
        name: "raspberry-pi-zero-2",
        cores: 4,
        memory_bytes: GIB / 2,
        source: "size of a Raspberry Pi Zero 2 W (product brief); not the speed of its cores",
    },
    LimitSet {
        name: "raspberry-pi-3",
        cores: 4,
        memory_bytes: GIB,
        source: "size of a Raspberry Pi 3 (product brief); not the speed of its cores",
    },
];

/// Word on the command line for no limits.
pub const NO_LIMITS: &str = "none";
/// Smallest CPU limit, CPU seconds per second: with less, a scheduling period would be longer than 100 ms.
pub const LEAST_CPU: f64 = 0.01;
/// Smallest memory limit, bytes: with less, programs fail before they print a message.
pub const LEAST_MEMORY_BYTES: u64 = 4_000_000;
/// Example that errors show.
const EXAMPLE: &str = "cpu=0.5,memory=256MB,cores=1";

/// Why limits cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LimitError {
    /// Neither the name of a set nor a list of limits.
    #[error("`{written}` is no limit: write `{EXAMPLE}`, or one of {}, {NO_LIMITS}", set_names())]
    Unknown {
        /// What was written.
        written: String,
    },
    /// The same limit is written twice.
    #[error("`{name}` is limited twice: write it once, like `{EXAMPLE}`")]
    Repeated {
        /// The limit.
        name: String,
    },
    /// A value that is not valid for the limit.
    #[error("`{name}={value}` cannot be used: {reason}; for instance `{name}={example}`")]
    Value {
        /// The limit.
        name: &'static str,
        /// The value written.
        value: String,
        /// What is wrong with it.
        reason: String,
        /// A value that can be used.
        example: &'static str,
    },
    /// More CPU time than the limited number of cores can give: the limit would have no effect.
    #[error(
        "limit `{requested}` requests CPU time of {cpu} cores on {}: write `cpu={cores}`, or more cores",
        counted_cores(.cores)
    )]
    MoreThanCores {
        /// The limits as written.
        requested: String,
        /// CPU seconds per second.
        cpu: String,
        /// Number of cores.
        cores: u32,
    },
    /// More than the machine has: the limit would have no effect.
    #[error("limit `{requested}` requests {wanted}, this machine has {present}: request no more than that")]
    MoreThanThere {
        /// The limits as written.
        requested: String,
        /// The required amount.
        wanted: String,
        /// The amount that the machine has.
        present: String,
    },
}

/// `1 core`, `2 cores`.
fn counted_cores(cores: &u32) -> String {
    format!("{cores} {}", if *cores == 1 { "core" } else { "cores" })
}

/// Resources of a machine, for comparison with limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Cores that this process may use.
    pub cores: u32,
    /// Memory, bytes; `None` if it cannot be read.
    pub memory_bytes: Option<u64>,
}

impl Machine {
    /// Resources of this machine.
    pub fn this() -> Machine {
        Machine { cores: affinity::own_cores().len().max(1) as u32, memory_bytes: memory_bytes() }
    }
}

/// Parses limits and compares them with this machine. `none` gives limits that limit nothing.
pub fn parse(text: &str) -> Result<ResourceLimits, LimitError> {
    parse_for(text, Machine::this())
}

/// Parses limits and compares them with a given machine.
pub fn parse_for(text: &str, machine: Machine) -> Result<ResourceLimits, LimitError> {
    let requested = text.trim().to_owned();
    let limits = match LIMIT_SETS.iter().find(|set| set.name == requested) {
        Some(set) => {
            ResourceLimits { requested, cpu: None, memory_bytes: Some(set.memory_bytes), cores: Some(set.cores) }
        }
        None if requested == NO_LIMITS => ResourceLimits { requested, cpu: None, memory_bytes: None, cores: None },
        None => parse_list(&requested)?,
    };
    fits(&limits, machine)?;
    Ok(limits)
}

impl ResourceLimits {
    /// Is nothing limited (`none`)?
    pub fn is_empty(&self) -> bool {
        self.cpu.is_none() && self.memory_bytes.is_none() && self.cores.is_none()
    }
}

fn parse_list(requested: &str) -> Result<ResourceLimits, LimitError> {
    let unknown = || LimitError::Unknown { written: requested.to_owned() };
    let mut limits = ResourceLimits { requested: requested.to_owned(), cpu: None, memory_bytes: None, cores: None };
    for part in requested.split(',') {
        let (name, value) = part.split_once('=').ok_or_else(unknown)?;
        let (name, value) = (name.trim(), value.trim());
        let repeated = match name {
            "cpu" => limits.cpu.replace(cpu(value)?).is_some(),
            "memory" => limits.memory_bytes.replace(memory(value)?).is_some(),
            "cores" => limits.cores.replace(cores(value)?).is_some(),
            _ => return Err(LimitError::Unknown { written: part.trim().to_owned() }),
        };
        if repeated {
            return Err(LimitError::Repeated { name: name.to_owned() });
        }
    }
    Ok(limits)
}

fn cpu(value: &str) -> Result<f64, LimitError> {
    let wrong = |reason: String| LimitError::Value { name: "cpu", value: value.to_owned(), reason, example: "0.5" };
    match value.parse::<f64>() {
        Ok(cpu) if cpu.is_finite() && cpu >= LEAST_CPU => Ok(cpu),
        Ok(_) => Err(wrong(format!("it must be at least {LEAST_CPU} (1 is one core)"))),
        Err(_) => Err(wrong("it is a number of cores".to_owned())),
    }
}

fn memory(value: &str) -> Result<u64, LimitError> {
    let wrong =
        |reason: String| LimitError::Value { name: "memory", value: value.to_owned(), reason, example: "256MB" };
    let bytes = units::size(value).map_err(|error| wrong(error.message))?;
    if !(bytes >= LEAST_MEMORY_BYTES as f64 && bytes < 2f64.powi(62)) {
        return Err(wrong(format!("it must be at least {} MB", LEAST_MEMORY_BYTES / 1_000_000)));
    }
    Ok(bytes as u64)
}

fn cores(value: &str) -> Result<u32, LimitError> {
    match value.parse::<u32>() {
        Ok(cores) if cores >= 1 => Ok(cores),
        _ => Err(LimitError::Value {
            name: "cores",
            value: value.to_owned(),
            reason: "it is a whole number, at least 1".to_owned(),
            example: "1",
        }),
    }
}

/// A limit above what the machine, or another limit, has would have no effect, and a record that names it would mislead.
fn fits(limits: &ResourceLimits, machine: Machine) -> Result<(), LimitError> {
    if let (Some(cpu), Some(cores)) = (limits.cpu, limits.cores)
        && cpu > f64::from(cores)
    {
        let (requested, cpu) = (limits.requested.clone(), cpu.to_string());
        return Err(LimitError::MoreThanCores { requested, cpu, cores });
    }
    let more = |wanted: String, present: String| {
        Err(LimitError::MoreThanThere { requested: limits.requested.clone(), wanted, present })
    };
    if let Some(cores) = limits.cores.filter(|cores| *cores > machine.cores) {
        return more(format!("{cores} cores"), machine.cores.to_string());
    }
    if let Some(cpu) = limits.cpu.filter(|cpu| *cpu > f64::from(machine.cores)) {
        return more(format!("CPU time of {cpu} cores"), machine.cores.to_string());
    }
    if let (Some(wanted), Some(present)) = (limits.memory_bytes, machine.memory_bytes)
        && wanted > present
    {
        return more(format!("{} MB of memory", wanted / 1_000_000), format!("{} MB", present / 1_000_000));
    }
    Ok(())
}

fn set_names() -> String {
    LIMIT_SETS.iter().map(|set| set.name).collect::<Vec<_>>().join(", ")
}

fn memory_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1_024)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const BIG: Machine = Machine { cores: 4, memory_bytes: Some(16 * GIB) };

    #[test]
    fn a_list_of_limits_is_read_with_its_units() {
        let read = parse_for("cpu=0.5, memory=256MB,cores=1", BIG).unwrap();
        assert_eq!((read.cpu, read.memory_bytes, read.cores), (Some(0.5), Some(256_000_000), Some(1)));
        assert_eq!(parse_for("memory=256MiB", BIG).unwrap().memory_bytes, Some(256 << 20));
        assert_eq!(parse_for("memory=1GB", BIG).unwrap().memory_bytes, Some(1_000_000_000));
        assert!(parse_for("none", BIG).unwrap().is_empty());
    }

    #[test]
    fn every_named_set_can_be_requested() {
        for set in LIMIT_SETS {
            let read = parse_for(set.name, BIG).unwrap();
            assert_eq!((read.memory_bytes, read.cores), (Some(set.memory_bytes), Some(set.cores)), "{}", set.name);
            assert!(!read.is_empty() && read.requested == set.name && !set.source.is_empty());
        }
    }

    #[test]
    fn an_invalid_limit_is_refused_with_a_reason_and_a_hint() {
        let small = Machine { cores: 2, memory_bytes: Some(GIB) };
        for (written, expected) in [
            ("cpu=0.5,cpu=1", "`cpu` is limited twice: write it once, like `cpu=0.5,memory=256MB,cores=1`"),
            ("cpu=0", "`cpu=0` cannot be used: it must be at least 0.01 (1 is one core); for instance `cpu=0.5`"),
            ("cpu=half", "`cpu=half` cannot be used: it is a number of cores; for instance `cpu=0.5`"),
            ("cpu=NaN", "`cpu=NaN` cannot be used: it must be at least 0.01 (1 is one core); for instance `cpu=0.5`"),
            ("memory=1KB", "`memory=1KB` cannot be used: it must be at least 4 MB; for instance `memory=256MB`"),
            ("memory=256 MB", "`memory=256 MB` cannot be used: "),
            ("cores=0", "`cores=0` cannot be used: it is a whole number, at least 1; for instance `cores=1`"),
            ("cores=3", "limit `cores=3` requests 3 cores, this machine has 2: request no more than that"),
            ("cpu=3", "limit `cpu=3` requests CPU time of 3 cores, this machine has 2"),
            ("cpu=3,cores=1", "limit `cpu=3,cores=1` requests CPU time of 3 cores on 1 core: write `cpu=1`, or more"),
            ("mq-bench-4", "limit `mq-bench-4` requests 4 cores, this machine has 2"),
            ("mq-bench-1", "limit `mq-bench-1` requests 2147 MB of memory, this machine has 1073 MB"),
            ("speed=1", "`speed=1` is no limit: write `cpu=0.5,memory=256MB,cores=1`, or one of mq-bench-1,"),
            ("", "`` is no limit: write"),
            ("cpu", "`cpu` is no limit: write"),
        ] {
            let error = parse_for(written, small).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{written}: {error}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in "[a-z0-9=,. KMGiB-]{0,40}") {
            let _ = parse_for(&text, BIG);
        }
    }
}
