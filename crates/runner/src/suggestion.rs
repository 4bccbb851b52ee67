//! "Did you mean": the valid name that is closest to a wrong one.

/// The name in `names` with the smallest edit distance, if the distance is at most a third of the longer name's
/// letters.
pub fn nearest<'a>(wrong: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    names
        .into_iter()
        .map(|name| (edits(&wrong.to_lowercase(), &name.to_lowercase()), name))
        .filter(|(distance, name)| *distance * 3 <= name.chars().count().max(wrong.chars().count()))
        .min()
        .map(|(_, name)| name)
}

/// The hint for a wrong name: the closest valid name, and all names.
pub fn choices<'a>(wrong: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    let list = names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    match nearest(wrong, names.iter().copied()) {
        Some(name) => format!("did you mean `{name}`? There are: {list}"),
        None => format!("there are: {list}"),
    }
}

/// Insertions, deletions and replacements between two words (Wagner and Fischer 1974, two rows).
fn edits(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut above: Vec<usize> = (0..=to.len()).collect();
    for (row, letter) in from.chars().enumerate() {
        let mut current = vec![row + 1];
        for (column, other) in to.iter().enumerate() {
            let replaced = above[column] + usize::from(letter != *other);
            current.push(replaced.min(above[column + 1] + 1).min(current[column] + 1));
        }
        above = current;
    }
    above[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_finds_the_name() {
        let names = ["smart-home", "smart-factory", "pairs", "hello"];
        assert_eq!(nearest("smart-hme", names), Some("smart-home"));
        assert_eq!(nearest("Pairs", names), Some("pairs"));
        assert_eq!(nearest("smart_factory", names), Some("smart-factory"));
    }

    #[test]
    fn a_different_word_finds_nothing() {
        assert_eq!(nearest("weather", ["smart-home", "pairs"]), None);
        assert_eq!(choices("weather", ["smart-home", "pairs"]), "there are: `smart-home`, `pairs`");
    }

    #[test]
    fn edits_are_counted_both_ways() {
        assert_eq!(edits("kitten", "sitting"), 3);
        assert_eq!(edits("", "abc"), 3);
        assert_eq!(edits("abc", ""), 3);
    }
}
