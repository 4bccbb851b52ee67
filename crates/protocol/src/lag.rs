//! Times in one byte, rounded up: with four significant bits they are at most an eighth too long, and never too short.

/// Unit of the smallest times, ns.
const UNIT_NS: u64 = 64;
/// Digits behind the leading one.
const DIGITS: u32 = 3;
/// The code of a time that is longer than every other code.
const UNKNOWN: u8 = u8::MAX;

/// The code of the shortest time that is not below `time_ns`.
pub fn code(time_ns: u64) -> u8 {
    let units = time_ns.div_ceil(UNIT_NS);
    if units < 1 << DIGITS {
        return units as u8;
    }
    let mut exponent = units.ilog2() - DIGITS;
    let mut digits = units.div_ceil(1 << exponent);
    if digits == 2 << DIGITS {
        (exponent, digits) = (exponent + 1, 1 << DIGITS);
    }
    let code = u64::from(exponent << DIGITS) + digits;
    u8::try_from(code).unwrap_or(UNKNOWN)
}

/// The time of a code, ns; `u64::MAX` for one that is too long for a code (16 minutes).
pub fn value_ns(code: u8) -> u64 {
    if code == UNKNOWN {
        return u64::MAX;
    }
    let code = u64::from(code);
    if code < 2 << DIGITS {
        return code * UNIT_NS;
    }
    let exponent = (code >> DIGITS) - 1;
    ((code - (exponent << DIGITS)) << exponent) * UNIT_NS
}

/// The shortest time that a time of a code can have been before it was rounded up, ns.
pub fn at_least_ns(rounded_ns: u64) -> u64 {
    value_ns(code(rounded_ns).saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn codes_and_their_times_rise_together_and_belong_together() {
        assert_eq!((value_ns(0), value_ns(1), code(0)), (0, UNIT_NS, 0));
        for number in 1..UNKNOWN {
            assert!(value_ns(number - 1) < value_ns(number));
            assert_eq!(code(value_ns(number)), number);
            assert_eq!(code(value_ns(number) + 1), number + 1, "rounded up");
        }
        assert_eq!((code(u64::MAX), value_ns(UNKNOWN)), (UNKNOWN, u64::MAX));
    }

    proptest! {
        #[test]
        fn a_code_s_time_is_never_too_short_and_at_most_an_eighth_too_long(time_ns in 0u64..900_000_000_000) {
            let shown = value_ns(code(time_ns));
            prop_assert!(shown >= time_ns);
            prop_assert!(shown - time_ns <= (time_ns + UNIT_NS) / 8 + UNIT_NS, "{} {}", shown, time_ns);
            prop_assert!(at_least_ns(shown) <= time_ns, "{} {}", at_least_ns(shown), time_ns);
        }
    }
}
