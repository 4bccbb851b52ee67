//! Points in time as text of a fixed length.

/// Bytes of `2026-01-31T12:00:00.000Z`.
pub(super) const ISO_BYTES: usize = 24;
/// Bytes of `1769860800000`.
pub(super) const UNIX_MS_BYTES: usize = 13;

/// The times whose ms since 1970 have 13 digits: 2001 to 2286. Other times are replaced by the nearest of them.
const FIRST_MS: u64 = 1_000_000_000_000;
const LAST_MS: u64 = 9_999_999_999_999;
const MS_A_DAY: u64 = 86_400_000;

fn milliseconds(unix_ns: u64) -> u64 {
    (unix_ns / 1_000_000).clamp(FIRST_MS, LAST_MS)
}

pub(super) fn append_unix_ms(unix_ns: u64, out: &mut Vec<u8>) {
    append_digits(milliseconds(unix_ns), UNIX_MS_BYTES, out);
}

/// RFC 3339 with milliseconds, in UTC.
pub(super) fn append_iso(unix_ns: u64, out: &mut Vec<u8>) {
    let ms = milliseconds(unix_ns);
    let (year, month, day) = date(ms / MS_A_DAY);
    let of_day = ms % MS_A_DAY;
    let parts = [
        (year, 4, b'-'),
        (month, 2, b'-'),
        (day, 2, b'T'),
        (of_day / 3_600_000, 2, b':'),
        (of_day / 60_000 % 60, 2, b':'),
        (of_day / 1_000 % 60, 2, b'.'),
        (of_day % 1_000, 3, b'Z'),
    ];
    for (value, digits, end) in parts {
        append_digits(value, digits, out);
        out.push(end);
    }
}

fn append_digits(mut value: u64, digits: usize, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + digits, b'0');
    for byte in out[start..].iter_mut().rev() {
        *byte = b'0' + (value % 10) as u8;
        value /= 10;
    }
}

/// Year, month and day of a day since 1970-01-01. Source: `civil_from_days` in Howard Hinnant, "chrono-Compatible Low-Level Date
/// Algorithms", for days after 1970 only.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let era = days / 146_097;
    let of_era = days % 146_097;
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_written_as_rfc_3339_and_as_milliseconds() {
        for (ms, iso) in [
            (1_000_000_000_000, "2001-09-09T01:46:40.000Z"),
            (1_709_164_799_999, "2024-02-28T23:59:59.999Z"),
            (1_709_164_800_000, "2024-02-29T00:00:00.000Z"),
            (1_769_860_800_007, "2026-01-31T12:00:00.007Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            let (mut text, mut number) = (Vec::new(), Vec::new());
            append_iso(ms * 1_000_000 + 999_999, &mut text);
            append_unix_ms(ms * 1_000_000, &mut number);
            assert_eq!(String::from_utf8(text).as_deref(), Ok(iso));
            assert_eq!(String::from_utf8(number), Ok(ms.to_string()));
        }
    }

    #[test]
    fn a_wrong_clock_changes_no_length() {
        for unix_ns in [0, u64::MAX] {
            let (mut text, mut number) = (Vec::new(), Vec::new());
            append_iso(unix_ns, &mut text);
            append_unix_ms(unix_ns, &mut number);
            assert_eq!((text.len(), number.len()), (ISO_BYTES, UNIX_MS_BYTES));
        }
    }
}
