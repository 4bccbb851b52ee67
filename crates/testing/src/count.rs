//! Assertions about counts. They are marked, so that their failure is never attributed to a busy machine.

/// Like `assert!`, for a statement about how many messages, packets, bytes or connections there were:
/// `assert_count!(lost == 0)`. The failure's message starts with `COUNT:`, so that `.ci/again` does not repeat the
/// test.
#[macro_export]
macro_rules! assert_count {
    ($holds:expr $(,)?) => {
        assert!($holds, "COUNT: {}", stringify!($holds))
    };
    ($holds:expr, $($words:tt)+) => {
        assert!($holds, "COUNT: {}: {}", stringify!($holds), format_args!($($words)+))
    };
}

/// Like `assert_eq!`, for numbers of messages, packets, bytes or connections, and for lists whose length is such a
/// number: `assert_count_eq!(delivered, sent)`. The failure's message starts with `COUNT:`, so that `.ci/again` does
/// not repeat the test.
#[macro_export]
macro_rules! assert_count_eq {
    ($left:expr, $right:expr $(,)?) => {
        $crate::assert_count_eq!($left, $right, "{}", concat!(stringify!($left), " == ", stringify!($right)))
    };
    ($left:expr, $right:expr, $($words:tt)+) => {
        match (&$left, &$right) {
            (left, right) => assert!(
                *left == *right,
                "COUNT: {}\n  left: {left:?}\n right: {right:?}",
                format_args!($($words)+)
            ),
        }
    };
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    /// Message of a failed assertion.
    fn words(assertion: impl FnOnce() + std::panic::UnwindSafe) -> String {
        let words = catch_unwind(assertion).unwrap_err();
        words.downcast_ref::<String>().cloned().unwrap_or_else(|| (*words.downcast_ref::<&str>().unwrap()).to_owned())
    }

    #[test]
    fn what_holds_passes() {
        assert_count!([1].len() == 1);
        assert_count!(1 < 2, "{}", 3);
        assert_count_eq!(vec![1, 2], [1, 2]);
        assert_count_eq!(2_u64, 2, "of {}", "both");
    }

    #[test]
    fn a_failed_count_is_marked_and_shows_the_difference() {
        let lost = 1;
        assert_eq!(words(|| assert_count!(lost == 0)), "COUNT: lost == 0");
        assert_eq!(words(|| assert_count!(lost == 0, "of {}", 7)), "COUNT: lost == 0: of 7");
        assert_eq!(words(|| assert_count_eq!(lost, 0)), "COUNT: lost == 0\n  left: 1\n right: 0");
        assert_eq!(words(|| assert_count_eq!(lost, 0, "of {}", 7)), "COUNT: of 7\n  left: 1\n right: 0");
    }

    #[test]
    fn operands_are_evaluated_once() {
        let mut calls = 0;
        let mut next = || {
            calls += 1;
            calls
        };
        assert_count_eq!(next(), 1);
        assert_count!(next() == 2);
    }
}
