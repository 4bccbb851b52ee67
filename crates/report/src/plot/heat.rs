//! Cells of a heat map: the share of a column's samples in each cell, in a few levels that can be distinguished.

/// The levels, faintest first: smallest share of a column's samples, and text of the legend.
pub const LEVELS: [(f64, &str); 6] =
    [(0.0, "below 0.1 %"), (0.001, "0.1 %"), (0.01, "1 %"), (0.03, "3 %"), (0.1, "10 %"), (0.3, "30 % and more")];

/// A shaded rectangle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    /// Start on the x axis.
    pub from: f64,
    /// End on the x axis.
    pub to: f64,
    /// Lower edge on the y axis.
    pub low: f64,
    /// Upper edge on the y axis.
    pub high: f64,
    /// Shade: index into [`LEVELS`].
    pub level: usize,
}

/// The level of a share above 0.
pub fn level_of(share: f64) -> usize {
    LEVELS.iter().rposition(|(least, _)| share >= *least).unwrap_or(0)
}

/// Joins adjacent cells of the same level. `cells` are those of one row, ordered by their start.
pub fn joined(cells: impl Iterator<Item = Cell>) -> Vec<Cell> {
    let mut whole: Vec<Cell> = Vec::new();
    for cell in cells {
        match whole.last_mut().filter(|last| last.level == cell.level && (cell.from - last.to).abs() < 1e-6) {
            Some(last) => last.to = cell.to,
            None => whole.push(cell),
        }
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_has_the_highest_level_that_it_reaches() {
        assert_eq!([0.000_1, 0.001, 0.02, 0.3, 1.0].map(level_of), [0, 1, 2, 5, 5]);
    }

    #[test]
    fn equal_neighbours_are_joined_and_a_gap_is_not() {
        let cell = |from: f64, level| Cell { from, to: from + 1.0, low: 1.0, high: 2.0, level };
        let cells = joined([cell(0.0, 1), cell(1.0, 1), cell(2.0, 2), cell(4.0, 2)].into_iter());
        assert_eq!(cells.len(), 3);
        assert_eq!((cells[0].from, cells[0].to), (0.0, 2.0));
    }
}
