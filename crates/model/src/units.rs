//! Durations, sizes, rates and chances as people write them: `10ms`, `1.5KB`, `5/s`, `1Mbit/s`, `20%`.
//!
//! A value with a unit contains no space. Every error contains the text that was read and, if it can be guessed, what to
//! write instead.

use std::time::Duration;

/// Reason why a text is not a valid quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct UnitError {
    /// What is wrong, including the value.
    pub message: String,
    /// What to write instead.
    pub hint: Option<String>,
}

/// Maximum duration: ten years.
const LONGEST: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// A unit: its symbol, other spellings that people try, and its value.
struct Unit {
    symbol: &'static str,
    also: &'static [&'static str],
    worth: f64,
}

const fn unit(symbol: &'static str, worth: f64, also: &'static [&'static str]) -> Unit {
    Unit { symbol, also, worth }
}

/// Values in nanoseconds.
const DURATIONS: [Unit; 6] = [
    unit("ns", 1.0, &["nanosecond", "nanoseconds", "nsec"]),
    unit("us", 1e3, &["µs", "μs", "usec", "microsecond", "microseconds"]),
    unit("ms", 1e6, &["msec", "msecs", "millis", "millisecond", "milliseconds"]),
    unit("s", 1e9, &["sec", "secs", "second", "seconds"]),
    unit("m", 60e9, &["min", "mins", "minute", "minutes"]),
    unit("h", 3600e9, &["hr", "hrs", "hour", "hours"]),
];

/// Values in bytes.
const SIZES: [Unit; 7] = [
    unit("B", 1.0, &["b", "byte", "bytes"]),
    unit("KB", 1e3, &["kb", "k", "kilobyte", "kilobytes"]),
    unit("KiB", 1024.0, &["kib"]),
    unit("MB", 1e6, &["mb", "m", "megabyte", "megabytes"]),
    unit("MiB", 1_048_576.0, &["mib"]),
    unit("GB", 1e9, &["gb", "g"]),
    unit("GiB", 1_073_741_824.0, &["gib"]),
];

/// Values in messages per second.
const RATES: [Unit; 3] = [
    unit("/s", 1.0, &["/sec", "/second", "per second", "per s", "hz", "msg/s", "msgs/s", "messages/s"]),
    unit("/min", 1.0 / 60.0, &["/m", "/minute", "per minute", "per min", "msg/min"]),
    unit("/h", 1.0 / 3600.0, &["/hour", "/hr", "per hour", "msg/h"]),
];

/// Values in bits per second. Bits are written `bit`, bytes `B`: `b` alone is ambiguous.
const BIT_RATES: [Unit; 8] = [
    unit("bit/s", 1.0, &["bits/s", "bit/sec", "bits/sec", "bit", "bits"]),
    unit("kbit/s", 1e3, &["kbits/s", "kbit/sec", "kbits/sec", "kbit", "kbits", "kilobit/s", "kilobits/s"]),
    unit("Mbit/s", 1e6, &["mbits/s", "mbit/sec", "mbits/sec", "mbit", "mbits", "megabit/s", "megabits/s"]),
    unit("Gbit/s", 1e9, &["gbits/s", "gbit/sec", "gbits/sec", "gbit", "gbits", "gigabit/s", "gigabits/s"]),
    unit("B/s", 8.0, &["byte/s", "bytes/s"]),
    unit("kB/s", 8e3, &["kilobyte/s", "kilobytes/s"]),
    unit("MB/s", 8e6, &["megabyte/s", "megabytes/s"]),
    unit("GB/s", 8e9, &["gigabyte/s", "gigabytes/s"]),
];

/// Parses a duration such as `10ms`, `1.5s`, `2m`, `1h`.
pub fn duration(text: &str) -> Result<Duration, UnitError> {
    let nanoseconds = quantity(text, "duration", &DURATIONS, "`10s`, `500ms`")?;
    if nanoseconds > LONGEST.as_nanos() as f64 {
        return Err(UnitError { message: format!("`{text}` is longer than ten years"), hint: None });
    }
    Ok(Duration::from_nanos(nanoseconds.round() as u64))
}

/// Formats a duration so that [`duration`] parses it: in the largest unit that gives a whole number.
pub fn written(length: Duration) -> String {
    let ns = length.as_nanos();
    match ns {
        ns if ns.is_multiple_of(1_000_000_000) => format!("{}s", ns / 1_000_000_000),
        ns if ns.is_multiple_of(1_000_000) => format!("{}ms", ns / 1_000_000),
        ns if ns.is_multiple_of(1_000) => format!("{}us", ns / 1_000),
        ns => format!("{ns}ns"),
    }
}

/// Formats a size in bytes so that [`size`] parses it: in the largest unit that gives a whole number.
pub fn written_size(bytes: u64) -> String {
    let is_whole = |unit: &&Unit| bytes > 0 && bytes.is_multiple_of(unit.worth as u64);
    let (worth, symbol) = SIZES.iter().rev().find(is_whole).map_or((1, "B"), |unit| (unit.worth as u64, unit.symbol));
    format!("{}{symbol}", bytes / worth)
}

/// Parses a size in bytes such as `16B`, `1KB` (1,000), `1KiB` (1,024), `1.2MB`; a number without a unit is in bytes.
pub fn size(text: &str) -> Result<f64, UnitError> {
    plain_number(text).map_or_else(|| size_with_unit(text), Ok)
}

/// Parses a size as [`size`] does, and refuses a number without a unit.
pub fn size_with_unit(text: &str) -> Result<f64, UnitError> {
    // Reports write the k of the International System of Units, which is accepted here as well.
    let number = text.strip_suffix("kB").filter(|number| plain_number(number).is_some());
    let written = number.map_or_else(|| text.to_owned(), |number| format!("{number}KB"));
    quantity(&written, "size", &SIZES, "`100B`, `1KB`")
}

/// Parses a rate in messages per second such as `5/s`, `10/min`, `1/h`.
pub fn rate(text: &str) -> Result<f64, UnitError> {
    quantity(text, "rate", &RATES, "`5/s`, `10/min`")
}

/// Parses the rate of a link, in bits per second: `250kbit/s`, `1.5Mbit/s`, or in bytes `12kB/s`.
///
/// `kbps`, `kb/s` and similar units are refused: for `tc` of iproute2 kbps means kilobytes, for most others kilobits.
pub fn bit_rate(text: &str) -> Result<f64, UnitError> {
    let end = text.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
    let (number, symbol) = text.split_at(end);
    // Sizes are written with an upper-case K, which is accepted here as well.
    let symbol = if symbol == "KB/s" { "kB/s" } else { symbol };
    if plain_number(number).is_some()
        && let Some(prefix) = ambiguous_prefix(symbol)
    {
        return Err(UnitError {
            message: format!("`{text}` can be read as bits or as bytes, which are eight times as much"),
            hint: Some(format!("write `{number}{prefix}bit/s` for bits, or `{number}{prefix}B/s` for bytes")),
        });
    }
    quantity(&format!("{number}{symbol}"), "rate of a link", &BIT_RATES, "`1Mbit/s`, `12kB/s`")
}

/// The prefix of a unit that is ambiguous between bits and bytes, in the case that means only a factor.
fn ambiguous_prefix(symbol: &str) -> Option<&'static str> {
    if BIT_RATES.iter().any(|unit| unit.symbol == symbol) {
        return None;
    }
    let lower = symbol.trim().to_lowercase();
    let stem = ["bps", "b/s", "b/sec", "bs"].into_iter().find_map(|ending| lower.strip_suffix(ending))?;
    [("", ""), ("k", "k"), ("m", "M"), ("g", "G")]
        .into_iter()
        .find(|(known, _)| *known == stem)
        .map(|(_, prefix)| prefix)
}

/// Parses a chance or share, `20%` or `0.2`, as a number; the caller checks the range.
pub fn chance(text: &str) -> Result<f64, UnitError> {
    if let Some(value) = plain_number(text) {
        return Ok(value);
    }
    if let Some(value) = text.strip_suffix('%').and_then(plain_number) {
        return Ok(value / 100.0);
    }
    let hint = text
        .trim_end()
        .trim_end_matches("percent")
        .trim_end_matches('%')
        .trim_end()
        .parse::<f64>()
        .ok()
        .map(|number| format!("write `{number}%`"));
    Err(UnitError {
        message: format!("`{text}` is not a chance"),
        hint: hint.or_else(|| Some("write it as `20%` or `0.2`".to_owned())),
    })
}

/// Digits with at most one point, no sign, no exponent.
fn plain_number(text: &str) -> Option<f64> {
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    let points = text.bytes().filter(|byte| *byte == b'.').count();
    (digits > 0 && points <= 1 && digits + points == text.len() && text.len() <= 30)
        .then(|| text.parse().ok())
        .flatten()
}

fn quantity(text: &str, what: &str, units: &[Unit], examples: &str) -> Result<f64, UnitError> {
    let end = text.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
    let (number, symbol) = text.split_at(end);
    let fail = |message: String, hint: String| Err(UnitError { message, hint: Some(hint) });
    let Some(value) = plain_number(number) else {
        return fail(format!("`{text}` is not a {what}"), format!("write it like {examples}"));
    };
    if let Some(unit) = units.iter().find(|unit| unit.symbol == symbol) {
        return Ok(value * unit.worth);
    }
    if symbol.is_empty() {
        return fail(format!("`{text}` has no unit"), without_unit(number, units));
    }
    let lower = symbol.trim().to_lowercase();
    let meant =
        units.iter().find(|unit| unit.symbol.to_lowercase() == lower || unit.also.iter().any(|other| *other == lower));
    let message = format!("`{text}` is not a {what}");
    match meant {
        Some(unit) => fail(message, format!("write `{number}{}`", unit.symbol)),
        None => fail(message, format!("units are {}", listed(units))),
    }
}

fn without_unit(number: &str, units: &[Unit]) -> String {
    format!(
        "say which: {}",
        units.iter().map(|unit| format!("`{number}{}`", unit.symbol)).collect::<Vec<_>>().join(", ")
    )
}

fn listed(units: &[Unit]) -> String {
    units.iter().map(|unit| format!("`{}`", unit.symbol)).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read() {
        assert_eq!(duration("10ms").unwrap(), Duration::from_millis(10));
        assert_eq!(duration("1.5s").unwrap(), Duration::from_millis(1500));
        assert_eq!(duration("2m").unwrap(), Duration::from_secs(120));
        assert_eq!(duration("1h").unwrap(), Duration::from_secs(3600));
        assert_eq!(duration("698ms").unwrap(), Duration::from_nanos(698_000_000));
        assert_eq!(size("16B").unwrap(), 16.0);
        assert_eq!(size("1KB").unwrap(), 1000.0);
        assert_eq!([size("1kB").unwrap(), size("1.2kB").unwrap()], [1000.0, 1200.0]);
        assert_eq!(size("1KiB").unwrap(), 1024.0);
        assert_eq!(size("1.2MB").unwrap(), 1_200_000.0);
        assert_eq!(size("208.4B").unwrap(), 208.4);
        assert_eq!(size("11").unwrap(), 11.0);
        assert_eq!(rate("5/s").unwrap(), 5.0);
        assert_eq!(rate("30/min").unwrap(), 0.5);
        assert_eq!(bit_rate("250kbit/s").unwrap(), 250_000.0);
        assert_eq!(bit_rate("1.5Mbit/s").unwrap(), 1_500_000.0);
        assert_eq!(bit_rate("12kB/s").unwrap(), 96_000.0);
        assert_eq!(bit_rate("12KB/s").unwrap(), 96_000.0);
        assert_eq!(bit_rate("1GB/s").unwrap(), 8e9);
        assert_eq!(chance("20%").unwrap(), 0.2);
        assert_eq!(chance("0.2").unwrap(), 0.2);
    }

    #[test]
    fn a_written_size_is_read_back() {
        for (bytes, written) in
            [(0, "0B"), (1_500, "1500B"), (2 << 30, "2GiB"), (512_000_000, "512MB"), (512 << 20, "512MiB")]
        {
            assert_eq!((written_size(bytes).as_str(), size(written).unwrap()), (written, bytes as f64));
        }
    }

    #[test]
    fn near_misses_come_with_a_correction() {
        for (result, hint) in [
            (duration("10 sec").unwrap_err(), "write `10s`"),
            (duration("10 minutes").unwrap_err(), "write `10m`"),
            (duration("10S").unwrap_err(), "write `10s`"),
            (size("1 kb").unwrap_err(), "write `1KB`"),
            (size("1kb").unwrap_err(), "write `1KB`"),
            (
                size_with_unit("100").unwrap_err(),
                "say which: `100B`, `100KB`, `100KiB`, `100MB`, `100MiB`, `100GB`, `100GiB`",
            ),
            (size("12 bytes").unwrap_err(), "write `12B`"),
            (rate("5 per second").unwrap_err(), "write `5/s`"),
            (rate("5hz").unwrap_err(), "write `5/s`"),
            (chance("20 %").unwrap_err(), "write `20%`"),
            (bit_rate("1 Mbit/s").unwrap_err(), "write `1Mbit/s`"),
            (bit_rate("1mbit").unwrap_err(), "write `1Mbit/s`"),
            (bit_rate("64 kilobits/s").unwrap_err(), "write `64kbit/s`"),
            (
                bit_rate("100").unwrap_err(),
                "say which: `100bit/s`, `100kbit/s`, `100Mbit/s`, `100Gbit/s`, `100B/s`, `100kB/s`, `100MB/s`, `100GB/s`",
            ),
            (duration("5").unwrap_err(), "say which: `5ns`, `5us`, `5ms`, `5s`, `5m`, `5h`"),
            (duration("5 parsecs").unwrap_err(), "units are `ns`, `us`, `ms`, `s`, `m`, `h`"),
            (duration("soon").unwrap_err(), "write it like `10s`, `500ms`"),
        ] {
            assert_eq!(result.hint.as_deref(), Some(hint), "{}", result.message);
        }
    }

    #[test]
    fn a_rate_that_can_be_read_two_ways_is_refused_with_both() {
        for (text, bits, bytes) in [
            ("100kbps", "`100kbit/s`", "`100kB/s`"),
            ("100Kbps", "`100kbit/s`", "`100kB/s`"),
            ("1mbps", "`1Mbit/s`", "`1MB/s`"),
            ("1Mbps", "`1Mbit/s`", "`1MB/s`"),
            ("1 Mb/s", "`1Mbit/s`", "`1MB/s`"),
            ("1.5kb/s", "`1.5kbit/s`", "`1.5kB/s`"),
            ("1KBps", "`1kbit/s`", "`1kB/s`"),
            ("9600bps", "`9600bit/s`", "`9600B/s`"),
            ("9600b/s", "`9600bit/s`", "`9600B/s`"),
            ("1gbps", "`1Gbit/s`", "`1GB/s`"),
        ] {
            let error = bit_rate(text).unwrap_err();
            let hint = error.hint.clone().unwrap_or_default();
            assert!(hint.contains(bits) && hint.contains(bytes), "{text}: {hint}");
            assert!(error.message.contains("bits or as bytes"), "{text}: {error}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "-1s", "1e9s", "1.2.3s", "s", ".s", "١s", "99999999999h", "NaN", "inf"] {
            assert!(duration(text).is_err(), "{text}");
        }
        for text in ["", "-1bit/s", "kbit/s", "1kbit/h", "1parsec", "1ps"] {
            assert!(bit_rate(text).is_err(), "{text}");
        }
        for text in ["", "-1", "NaN", "inf%", "%"] {
            assert!(chance(text).is_err(), "{text}");
        }
    }
}
