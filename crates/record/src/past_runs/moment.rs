//! Points in time at which a list begins.

use std::time::SystemTime;

use pubmark_model::units;

use crate::time::UtcTime;

/// Pattern of RFC 3339: `0` stands for any digit, other characters for themselves.
const FORM: &str = "0000-00-00T00:00:00Z";
/// Permitted lengths: a day, a minute, a second, and a second with `Z`.
const LENGTHS: [usize; 4] = [10, 16, 19, 20];
/// Seconds per day.
const DAY_S: u64 = 86_400;

/// Parses a point in time into a prefix of RFC 3339, in UTC, which can be compared with a complete timestamp as text:
/// an age (`2h`, `3d`), a day, a minute, a second.
///
/// # Errors
/// A sentence for the user who typed it.
pub fn read(text: &str) -> Result<String, String> {
    let is_place = |(place, letter): (char, char)| if place == '0' { letter.is_ascii_digit() } else { letter == place };
    if LENGTHS.contains(&text.len()) && FORM.chars().zip(text.chars()).all(is_place) {
        return Ok(text.to_owned());
    }
    let ago = match text.strip_suffix('d').map(str::parse::<u32>) {
        Some(Ok(days)) => std::time::Duration::from_secs(u64::from(days) * DAY_S),
        _ => units::duration(text).map_err(|_| {
            format!("`{text}` is no time: a time ago such as `2h` or `3d`, a day such as `2026-03-01`, or `2026-03-01T09:05`")
        })?,
    };
    let moment = SystemTime::now().checked_sub(ago).unwrap_or(SystemTime::UNIX_EPOCH);
    Ok(UtcTime::from_system_time(moment).rfc3339())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_minutes_and_times_ago_are_read() {
        for text in ["2026-03-01", "2026-03-01T09:05", "2026-03-01T09:05:07", "2026-03-01T09:05:07Z"] {
            assert_eq!(read(text).as_deref(), Ok(text));
        }
        assert!(read("3d") < read("1h") && read("1h").is_ok());
        for wrong in ["yesterday", "2026-3-1", "2026-03-01 09:05", "5", "2026", ""] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
