//! The order of runs: randomised complete blocks. Each repetition is a block in which every cell is run once, in a
//! different order, so that slow changes of the machine (heat, other work) affect all cells equally.

use super::cells::PlannedCell;
use crate::random::{self, Stream};

/// Purpose of the draws.
const ORDER: u64 = 1;

/// One run of the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Position in the order, from 1.
    pub order: u32,
    /// Repetition, from 1: the block.
    pub repetition: u32,
    /// Index of its cell.
    pub cell: usize,
}

/// All runs in their order: a pure function of the seed, the cells' ids, and the number of repetitions.
pub fn order(cells: &[PlannedCell], repetitions: u32, seed: u64) -> Vec<Turn> {
    let keys: Vec<u64> = cells.iter().map(|cell| random::fold(0, cell.id.as_bytes())).collect();
    let mut turns = Vec::with_capacity(cells.len() * repetitions as usize);
    for repetition in 1..=repetitions {
        let draw = |cell: usize| Stream::new(seed ^ keys[cell], ORDER).bits(u64::from(repetition));
        let mut block: Vec<usize> = (0..cells.len()).collect();
        block.sort_by_key(|cell| (draw(*cell), *cell));
        let before = turns.len() as u32;
        let turn = |(place, cell): (usize, usize)| Turn { order: before + place as u32 + 1, repetition, cell };
        turns.extend(block.into_iter().enumerate().map(turn));
    }
    turns
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::experiment::{cells, parse};

    fn planned(axes: &str) -> Vec<PlannedCell> {
        cells(&parse("t", &format!("{{name: t, workload: hello, axes: {{{axes}}}}}"), &|_, _| Ok(())).unwrap())
    }

    #[test]
    fn each_repetition_runs_every_cell_once() {
        let cells = planned("system: [a, b, c], qos: [0, 1]");
        let turns = order(&cells, 20, 7);
        assert_eq!(turns.len(), 120);
        assert!(turns.iter().zip(1..).all(|(turn, place)| turn.order == place));
        for block in turns.chunks(6) {
            let mut found: Vec<usize> = block.iter().map(|turn| turn.cell).collect();
            found.sort_unstable();
            assert_eq!(found, [0, 1, 2, 3, 4, 5]);
            assert!(block.iter().all(|turn| turn.repetition == block[0].repetition));
        }
    }

    #[test]
    fn the_order_is_the_seeds_and_differs_between_blocks() {
        let cells = planned("system: [a, b, c, d]");
        let turns = order(&cells, 10, 7);
        assert_eq!(turns, order(&cells, 10, 7));
        assert_ne!(turns, order(&cells, 10, 8));
        let block = |number: usize| turns[number * 4..][..4].iter().map(|turn| turn.cell).collect::<Vec<_>>();
        assert!((1..10).any(|number| block(number) != block(0)));
        // The first turns are the same for a larger number of repetitions.
        assert_eq!(order(&cells, 12, 7)[..40], turns);
    }

    #[test]
    fn each_of_two_cells_comes_first_about_as_often() {
        let cells = planned("system: [a, b]");
        let first = order(&cells, 1_000, 1).chunks(2).filter(|block| block[0].cell == 0).count();
        // Five standard deviations of a fair coin.
        assert!((421..=579).contains(&first), "{first} of 1000");
    }
}
