//! Observing (RFC 7641): whether a notification is newer than the last one.

/// Sequence numbers of observations have 24 bits.
const HALF: u32 = 1 << 23;
/// After this time a notification is newer whatever its number is, ns (RFC 7641 §3.4).
pub const FRESH_FOR_NS: u64 = 128_000_000_000;

/// Is the notification with number `second`, received at `second_at_ns`, newer than the one before (RFC 7641 §3.4)?
pub fn is_fresh(first: u32, first_at_ns: u64, second: u32, second_at_ns: u64) -> bool {
    (first < second && second - first < HALF)
        || (first > second && first - second > HALF)
        || second_at_ns > first_at_ns.saturating_add(FRESH_FOR_NS)
}

/// The lower 24 bits: what an Observe option holds.
pub fn observe_value(sequence: u32) -> u32 {
    sequence & (2 * HALF - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_numbers_are_ahead_by_less_than_half_of_all_or_128_s_later() {
        for (first, second, expected) in [
            (1, 2, true),
            (2, 2, false),
            (2, 1, false),
            (0xff_ffff, 0, true),
            (0, 0xff_ffff, false),
            (0, HALF - 1, true),
            (0, HALF, false),
        ] {
            assert_eq!(is_fresh(first, 10, second, 20), expected, "{first} {second}");
        }
        assert!(is_fresh(5, 0, 5, FRESH_FOR_NS + 1) && !is_fresh(5, 0, 5, FRESH_FOR_NS));
        assert_eq!(observe_value(0x0100_0002), 2);
    }
}
