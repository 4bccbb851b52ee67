//! Calendar time in UTC, limited to what a record needs: a timestamp with a resolution of one second, in two formats.

use std::time::{SystemTime, UNIX_EPOCH};

/// A point in time in UTC, with a resolution of one second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UtcTime {
    year: i64,
    month: u32,
    day: u32,
    second_of_day: u32,
}

impl UtcTime {
    /// Converts a system time; times before 1970 become 1970-01-01T00:00:00.
    pub fn from_system_time(moment: SystemTime) -> UtcTime {
        let seconds = moment.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        UtcTime::from_unix_seconds(seconds)
    }

    /// Converts a number of seconds since 1970-01-01T00:00:00Z.
    pub fn from_unix_seconds(seconds: u64) -> UtcTime {
        const SECONDS_A_DAY: u64 = 86_400;
        let (year, month, day) = civil_from_days((seconds / SECONDS_A_DAY) as i64);
        UtcTime { year, month, day, second_of_day: (seconds % SECONDS_A_DAY) as u32 }
    }

    /// RFC 3339, for instance `2026-03-01T09:05:07Z`.
    pub fn rfc3339(self) -> String {
        let (hour, minute, second) = self.clock();
        format!("{:04}-{:02}-{:02}T{hour:02}:{minute:02}:{second:02}Z", self.year, self.month, self.day)
    }

    /// Format of folder names, for instance `20260301-090507`; names sort by time.
    pub fn compact(self) -> String {
        let (hour, minute, second) = self.clock();
        format!("{:04}{:02}{:02}-{hour:02}{minute:02}{second:02}", self.year, self.month, self.day)
    }

    fn clock(self) -> (u32, u32, u32) {
        (self.second_of_day / 3600, self.second_of_day / 60 % 60, self.second_of_day % 60)
    }
}

/// Year, month and day for a number of days since 1970-01-01.
///
/// Source: `civil_from_days` in Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms",
/// <https://howardhinnant.github.io/date_algorithms.html>.
fn civil_from_days(days: i64) -> (i64, u32, u32) {
    let shifted = days + 719_468; // days since 0000-03-01: a year begins in March, so that a leap day is its last
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = (day_of_year - (153 * month_from_march + 2) / 5 + 1) as u32;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 } as u32;
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected values are from `date -u -d @N +%FT%TZ`.
    #[test]
    fn known_moments_are_spelled_right() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (1_767_225_599, "2025-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(UtcTime::from_unix_seconds(seconds).rfc3339(), expected);
        }
    }

    #[test]
    fn the_compact_form_sorts_like_the_time() {
        let stamps: Vec<String> =
            (0..2_000u64).map(|step| UtcTime::from_unix_seconds(step * 86_399 * 7).compact()).collect();
        assert!(stamps.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(UtcTime::from_unix_seconds(951_782_400).compact(), "20000229-000000");
    }
}
