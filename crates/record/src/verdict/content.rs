//! Rule on content filters: subscribers and publishers must agree on which messages match.

use super::{Finding, Measure, VerdictInput};
use crate::content::{ContentRow, FilterPlace};
use crate::quantity::count;
use crate::record::{CheckUnit, VerdictStatus};

/// Rule V30; `None` if no subscriber has a predicate.
pub(super) fn filters_consistent(input: &VerdictInput) -> Option<Finding> {
    let rows = input.content;
    let matched: u64 = rows.first().map(|_| rows.iter().map(|row| row.matched).sum())?;
    let compared: Option<Vec<(u64, &ContentRow)>> = rows.iter().map(|row| Some((difference(row)?, row))).collect();
    let Some(compared) = compared else {
        let text =
            "the expected matches are not known for all messages: a cap was reached, or a part of the run is lost";
        let hint = "a shorter run, or fewer messages: publishers note half a billion with each thread";
        return Some(Finding::new(VerdictStatus::Suspect, text.to_owned(), hint));
    };
    let measure = Measure::none_allowed(compared.iter().map(|(difference, _)| difference).sum(), CheckUnit::Messages);
    let Some((_, row)) = compared.into_iter().find(|(difference, _)| *difference > 0) else {
        if let Some(row) = rows.iter().find(|row| row.at == FilterPlace::Broker && row.filtered > 0) {
            return Some(let_through(row));
        }
        let text = format!("{} messages matched, as many as should of those that arrived", count(matched));
        return Some(Finding::valid(text).of(measure));
    };
    let differing = match row.differing_subscribers {
        Some(1..) => format!("; {} of these subscribers differ", count(row.differing_subscribers.unwrap_or_default())),
        _ => String::new(),
    };
    let text = format!(
        "subscribers `{}`: {} matched and {} filtered; {} arrived, and {} of them should match{differing}",
        row.group,
        count(row.matched),
        count(row.filtered),
        count(row.arrived.unwrap_or_default()),
        count(row.should_match.unwrap_or_default())
    );
    let hint =
        "find out how the system changes payloads; if it changes none, this is an error in pubmark: please report it";
    Some(Finding::new(VerdictStatus::Invalid, text, hint).of(measure))
}

/// The broker did not filter by the predicate, or filtered by another one.
fn let_through(row: &ContentRow) -> Finding {
    let text = format!(
        "subscribers `{}`: {} messages arrived that do not match their predicate, although the system accepted the filter",
        row.group,
        count(row.filtered)
    );
    let hint = "the system ignores filters that it accepts: `at: client` filters what arrives";
    Finding::new(VerdictStatus::Suspect, text, hint).of(Measure::suspect_above(
        row.filtered as f64,
        0.0,
        CheckUnit::Messages,
    ))
}

/// Messages by which the two sides differ: for the group, or for each of its subscribers, where a surplus of one would
/// hide a deficit of another.
fn difference(row: &ContentRow) -> Option<u64> {
    let of_group = row.matched.abs_diff(row.should_match?).max((row.matched + row.filtered).abs_diff(row.arrived?));
    Some(of_group.max(row.differing_messages.unwrap_or(0)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::record::Check;
    use crate::sample;
    use crate::verdict::judge;

    fn check(change: impl FnOnce(&mut ContentRow)) -> Check {
        let mut record = sample::record();
        let mut row = sample::content();
        change(&mut row);
        record.delivery.content = vec![row];
        let verdict = judge(&VerdictInput::of(&record));
        verdict.checks.into_iter().find(|check| check.code == "V30").unwrap()
    }

    #[test]
    fn both_sides_must_agree() {
        assert_eq!(check(|_| {}).status, VerdictStatus::Valid);
        for change in [
            (|row| row.matched += 1) as fn(&mut ContentRow),
            |row| row.filtered -= 1,
            |row| row.should_match = Some(0),
            |row| row.arrived = Some(0),
        ] {
            let check = check(change);
            assert_eq!(check.status, VerdictStatus::Invalid, "{}", check.text);
            assert!(check.text.contains("subscribers `alarms`"), "{}", check.text);
        }
        // The sums agree, but two subscribers do not.
        let single = check(|row| (row.differing_subscribers, row.differing_messages) = (Some(2), Some(6)));
        assert_eq!((single.status, single.value), (VerdictStatus::Invalid, Some(6.0)), "{}", single.text);
        assert!(single.text.ends_with("; 2 of these subscribers differ"), "{}", single.text);
        let unknown = check(|row| row.should_match = None);
        assert_eq!((unknown.status, unknown.value), (VerdictStatus::Suspect, None), "{}", unknown.text);
    }

    #[test]
    fn a_broker_that_lets_through_what_it_should_keep_back_makes_a_run_suspect() {
        let filters = |filtered| {
            check(|row| {
                (row.at, row.filtered_out, row.filtered) = (FilterPlace::Broker, Some(3_880 - filtered), filtered);
                row.arrived = Some(row.matched + row.filtered);
            })
        };
        assert_eq!(filters(0).status, VerdictStatus::Valid);
        let ignored = filters(17);
        assert_eq!((ignored.status, ignored.value), (VerdictStatus::Suspect, Some(17.0)), "{}", ignored.text);
        assert!(ignored.limits.is_some_and(|limits| limits.suspect.is_none()), "no number of them makes it invalid");
    }

    #[test]
    fn a_run_without_predicates_has_no_such_check() {
        let verdict = judge(&VerdictInput::of(&sample::record()));
        assert!(verdict.checks.iter().all(|check| check.code != "V30"));
    }
}
