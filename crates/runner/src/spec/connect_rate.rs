//! Connections started a second: `5000/s`.

use std::fmt;

use pubmark_model::units;

/// Highest rate: one connection every microsecond, which no machine reaches.
const MOST: f64 = 1e6;

/// Connections started a second by all clients together, above 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConnectRate(f64);

impl ConnectRate {
    /// Parses a rate such as `5000/s` or `30/min`.
    ///
    /// # Errors
    /// A sentence for the user.
    pub fn parse(text: &str) -> Result<ConnectRate, String> {
        let rate = units::rate(text).map_err(|error| match error.hint {
            Some(hint) => format!("{}: {hint}", error.message),
            None => error.message,
        })?;
        match rate > 0.0 && rate <= MOST {
            true => Ok(ConnectRate(rate)),
            false => Err(format!("`{text}` is no rate of connects: above 0/s, up to 1000000/s")),
        }
    }

    /// Connections a second.
    pub fn per_s(self) -> f64 {
        self.0
    }
}

impl Default for ConnectRate {
    /// A rate that small brokers accept without refusing connections.
    fn default() -> ConnectRate {
        ConnectRate(2_000.0)
    }
}

impl fmt::Display for ConnectRate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/s", self.0)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_of_connects_is_read_and_written() {
        for (text, per_s, written) in [("5000/s", 5_000.0, "5000/s"), ("30/min", 0.5, "0.5/s")] {
            let rate = ConnectRate::parse(text).unwrap();
            assert_eq!((rate.per_s(), rate.to_string().as_str()), (per_s, written));
            assert_eq!(ConnectRate::parse(written).unwrap(), rate);
        }
        for text in ["0/s", "2000000/s", "5000", "fast", "-1/s"] {
            assert!(ConnectRate::parse(text).is_err(), "{text}");
        }
    }
}
