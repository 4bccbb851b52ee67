//! How exactly devices send at their due times: the value of `--pace`.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::units;

/// Minimum quantum: below it, a thread sleeps about as long as it works.
const SHORTEST: Duration = Duration::from_micros(10);
/// Maximum quantum: load tools with coarse timers send every 10 ms.
const LONGEST: Duration = Duration::from_millis(10);

/// How exactly devices send at their due times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pace {
    /// Each message at its due time.
    #[default]
    Exact,
    /// In quanta that are chosen from the latencies of the warm-up and the required limits.
    Auto,
    /// Messages that become due within this time are sent together, at its end.
    Quantum(Duration),
}

impl Pace {
    /// Parses `exact`, `auto` or a time.
    ///
    /// # Errors
    /// The text is none of these, or the time is below 10 µs or above 10 ms. The error is a sentence for the user.
    pub fn parse(text: &str) -> Result<Pace, String> {
        match text {
            "exact" => return Ok(Pace::Exact),
            "auto" => return Ok(Pace::Auto),
            _ => {}
        }
        let quantum = units::duration(text)
            .map_err(|_| format!("`{text}` is no pace: write `exact`, `auto` or a time, for instance `0.2ms`"))?;
        match quantum {
            Duration::ZERO => Err("a quantum of no length is `exact`".to_owned()),
            _ if quantum < SHORTEST => Err(format!("`{text}` is below 10us, the shortest quantum; or write `exact`")),
            _ if quantum > LONGEST => Err(format!("`{text}` is above 10ms, the longest quantum")),
            _ => Ok(Pace::Quantum(quantum)),
        }
    }
}

impl fmt::Display for Pace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pace::Exact => formatter.write_str("exact"),
            Pace::Auto => formatter.write_str("auto"),
            Pace::Quantum(quantum) => formatter.write_str(&units::written(*quantum)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        for text in ["exact", "auto", "200us", "1ms"] {
            assert_eq!(Pace::parse(text).map(|pace| pace.to_string()).as_deref(), Ok(text));
        }
        assert_eq!(Pace::parse("0.2ms"), Ok(Pace::Quantum(Duration::from_micros(200))));
    }

    #[test]
    fn an_invalid_pace_is_refused_with_valid_ones() {
        let told = |text| Pace::parse(text).expect_err("no pace");
        assert!(told("fast").contains("`0.2ms`"));
        assert!(told("0s").contains("`exact`"));
        assert!(told("1us").contains("10us"));
        assert!(told("1s").contains("10ms"));
    }
}
