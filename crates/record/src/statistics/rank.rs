//! Tests whether two samples differ, without assuming a distribution of the noise: the rank test of Wilcoxon (1945),
//! Mann and Whitney (1947), exact for ties too.

/// Number of values in both samples above which the exact distribution is replaced by the normal one.
const EXACT_UP_TO: usize = 80;

/// Two-sided probability of a rank difference at least as large as that of the two samples, if every assignment of the
/// values to the samples is equally likely. 1 if a sample is empty.
///
/// It assumes no distribution, only that the order of the runs is random. Its smallest value is 2 / C(n + m, n): 0.1
/// with three values each, 0.008 with five.
pub fn exact_p(first: &[f64], second: &[f64]) -> f64 {
    if first.is_empty() || second.is_empty() {
        return 1.0;
    }
    let doubled = doubled_ranks(first, second);
    let observed: usize = doubled[..first.len()].iter().sum();
    if doubled.len() > EXACT_UP_TO {
        return approximate_p(&doubled, first.len(), observed);
    }
    let ways = ways_by_sum(&doubled, first.len());
    let total: f64 = ways.iter().sum();
    // The mean of the doubled rank sum is n (N + 1).
    let middle = first.len() * (doubled.len() + 1);
    let distance = observed.abs_diff(middle);
    let as_far: f64 =
        ways.iter().enumerate().filter(|(sum, _)| sum.abs_diff(middle) >= distance).map(|(_, ways)| ways).sum();
    (as_far / total).min(1.0)
}

/// Whether every value of one sample is below every value of the other.
pub fn are_apart(first: &[f64], second: &[f64]) -> bool {
    let range = |values: &[f64]| {
        values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(*v), high.max(*v)))
    };
    let ((first_low, first_high), (second_low, second_high)) = (range(first), range(second));
    first_high < second_low || second_high < first_low
}

/// Twice the rank of each value, first sample first; ties share their mean rank, which may be half an integer, hence
/// doubled.
fn doubled_ranks(first: &[f64], second: &[f64]) -> Vec<usize> {
    let values: Vec<f64> = first.iter().chain(second).copied().collect();
    let rank = |value: &f64| {
        let below = values.iter().filter(|other| *other < value).count();
        let equal = values.iter().filter(|other| *other == value).count();
        2 * below + equal + 1
    };
    values.iter().map(rank).collect()
}

/// For each sum, the number of ways to choose `count` of the ranks with that sum.
fn ways_by_sum(ranks: &[usize], count: usize) -> Vec<f64> {
    let largest: usize = ranks.iter().sum();
    let mut ways = vec![vec![0.0; largest + 1]; count + 1];
    ways[0][0] = 1.0;
    for rank in ranks {
        for taken in (1..=count).rev() {
            let (fewer, more) = ways.split_at_mut(taken);
            for sum in *rank..=largest {
                more[0][sum] += fewer[taken - 1][sum - rank];
            }
        }
    }
    ways.swap_remove(count)
}

fn approximate_p(doubled: &[usize], count: usize, observed: usize) -> f64 {
    let all = doubled.len() as f64;
    let middle = (all + 1.0) * count as f64;
    let spread: f64 = doubled.iter().map(|rank| (*rank as f64 - all - 1.0).powi(2)).sum::<f64>() / (all - 1.0);
    let variance = spread * count as f64 * (all - count as f64) / all;
    if variance == 0.0 {
        return 1.0;
    }
    let distance = (observed as f64 - middle).abs();
    (2.0 * super::distributions::normal_at_most(-distance / libm::sqrt(variance))).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn samples_apart_have_the_smallest_probability_there_is() {
        assert!((exact_p(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]) - 0.1).abs() < 1e-12);
        assert!((exact_p(&[1.0, 2.0, 3.0, 4.0, 5.0], &[6.0, 7.0, 8.0, 9.0, 10.0]) - 2.0 / 252.0).abs() < 1e-12);
        // Computed by hand: ranks 1, 2, 4, 5 of 9; 1 + 1 + 2 of 126 choices have a sum of 12 or less, and as many are
        // at the other end.
        assert!((exact_p(&[1.1, 2.2, 3.3, 4.4], &[2.5, 5.5, 6.6, 7.7, 8.8]) - 8.0 / 126.0).abs() < 1e-12);
    }

    #[test]
    fn equal_values_say_nothing() {
        assert_eq!(exact_p(&[5.0; 6], &[5.0; 6]), 1.0);
        assert_eq!(exact_p(&[5.0; 60], &[5.0; 60]), 1.0);
        assert_eq!(exact_p(&[], &[1.0]), 1.0);
        assert!(!are_apart(&[1.0, 2.0], &[2.0, 3.0]) && are_apart(&[1.0, 2.0], &[2.5, 3.0]));
    }

    #[test]
    fn the_approximation_meets_the_exact_distribution() {
        let first: Vec<f64> = (0..40).map(|index| f64::from(index) * 1.3).collect();
        let second: Vec<f64> = (0..40).map(|index| f64::from(index) * 1.3 + 9.1).collect();
        let exact = exact_p(&first, &second);
        let ranks = doubled_ranks(&first, &second);
        let approximate = approximate_p(&ranks, 40, ranks[..40].iter().sum());
        assert!((exact - approximate).abs() < 0.005, "{exact} and {approximate}");
    }

    proptest! {
        #[test]
        fn counting_every_assignment_gives_the_same(
            values in proptest::collection::vec(0u8..6, 2..9), split in 1usize..8
        ) {
            let split = split.min(values.len() - 1);
            let values: Vec<f64> = values.into_iter().map(f64::from).collect();
            let (first, second) = values.split_at(split);
            let ranks = doubled_ranks(first, second);
            let middle = split * (values.len() + 1);
            let distance = ranks[..split].iter().sum::<usize>().abs_diff(middle);
            let (mut all, mut as_far) = (0.0, 0.0);
            for chosen in 0u32..(1 << values.len()) {
                if chosen.count_ones() as usize != split {
                    continue;
                }
                let sum: usize = ranks.iter().enumerate().filter(|(bit, _)| chosen >> bit & 1 == 1).map(|(_, r)| r).sum();
                all += 1.0;
                as_far += f64::from(sum.abs_diff(middle) >= distance);
            }
            prop_assert!((exact_p(first, second) - as_far / all).abs() < 1e-12);
        }
    }
}
