//! Suggestions for misspelled names: the nearest of the existing names.

/// Maximum number of names in one hint.
const LISTED: usize = 24;

/// A hint for a name that does not exist: the nearest one if it is similar, otherwise (or in addition) the list.
pub(crate) fn among<T: AsRef<str>>(wrong: &str, names: &[T]) -> String {
    let listed = listed(names);
    match nearest(wrong, names.iter().map(AsRef::as_ref)) {
        Some(name) => format!("did you mean `{name}`? There are: {listed}"),
        None if names.is_empty() => "there are none".to_owned(),
        None => format!("there are: {listed}"),
    }
}

/// The name nearest to `wrong`, if it is similar enough.
pub(crate) fn nearest<'a>(wrong: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let wrong = wrong.to_lowercase();
    if wrong.len() > 200 {
        return None;
    }
    let allowed = (wrong.chars().count() / 3).clamp(1, 4);
    names
        .map(|name| (distance(&wrong, &name.to_lowercase()), name))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, _)| *distance <= allowed)
        .map(|(_, name)| name)
}

fn listed<T: AsRef<str>>(names: &[T]) -> String {
    let mut text = names.iter().take(LISTED).map(|name| format!("`{}`", name.as_ref())).collect::<Vec<_>>().join(", ");
    if names.len() > LISTED {
        text.push_str(&format!(" and {} more", names.len() - LISTED));
    }
    text
}

/// Edit distance in which a swap of neighbours is one edit (optimal string alignment; Damerau 1964).
fn distance(left: &str, right: &str) -> usize {
    let (left, right): (Vec<char>, Vec<char>) = (left.chars().collect(), right.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    for i in 1..=left.len() {
        let mut row = vec![i];
        for j in 1..=right.len() {
            let changed = usize::from(left[i - 1] != right[j - 1]);
            let mut best = (last[j - 1] + changed).min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1] {
                best = best.min(before[j - 2] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_found_and_far_ones_are_not() {
        let names = ["smart-home", "smart-city", "pairs"];
        assert_eq!(nearest("smart-hmoe", names.into_iter()), Some("smart-home"));
        assert_eq!(nearest("Pairs", names.into_iter()), Some("pairs"));
        assert_eq!(nearest("fan-in", names.into_iter()), None);
        assert_eq!(distance("ab", "ba"), 1);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
