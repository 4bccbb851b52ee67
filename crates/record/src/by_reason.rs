//! Groups cells by reason, so that one sentence names all cells with the same reason.

/// Most cells named in a sentence; the others are only counted.
const CELLS_NAMED: usize = 6;

/// Reasons with the labels of their cells, both in the order in which they first occur.
pub fn by_reason<L, R: PartialEq>(cells: impl IntoIterator<Item = (L, R)>) -> Vec<(R, Vec<L>)> {
    let mut groups: Vec<(R, Vec<L>)> = vec![];
    for (label, reason) in cells {
        match groups.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, labels)) => labels.push(label),
            None => groups.push((reason, vec![label])),
        }
    }
    groups
}

/// The first labels, and the number of the others.
pub fn named(labels: &[&str]) -> String {
    let rest = labels.len().saturating_sub(CELLS_NAMED);
    let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    format!("{}{more}", labels[..labels.len() - rest].join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_with_one_reason_are_named_together() {
        let groups = by_reason([("a", 1), ("b", 2), ("c", 1)]);
        assert_eq!(groups, [(1, vec!["a", "c"]), (2, vec!["b"])]);
        assert_eq!(named(&groups[0].1), "a; c");
        assert_eq!(named(&["1", "2", "3", "4", "5", "6", "7", "8"]), "1; 2; 3; 4; 5; 6 and 2 more");
    }
}
