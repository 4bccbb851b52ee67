//! Correction for many tests: one in a hundred succeeds by chance, so a hundred tests together need a stricter level.

/// The p values after Holm's step-down correction (Holm 1979), in the order given. If `p < α` counts as significant,
/// the probability of at least one false positive is at most α, whatever the dependence between the tests.
pub fn adjust(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut largest = 0.0_f64;
    for (done, index) in order.into_iter().enumerate() {
        largest = largest.max(p_values[index] * (p_values.len() - done) as f64).min(1.0);
        adjusted[index] = largest;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_smallest_is_corrected_most() {
        // R: p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm")
        let found = adjust(&[0.01, 0.04, 0.03, 0.005]);
        for (found, expected) in found.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((found - expected).abs() < 1e-12, "{found} is not {expected}");
        }
        assert!(adjust(&[]).is_empty());
    }

    proptest! {
        #[test]
        fn no_value_becomes_smaller_and_the_order_stays(p_values in proptest::collection::vec(0.0f64..=1.0, 0..40)) {
            let adjusted = adjust(&p_values);
            for (p, after) in p_values.iter().zip(&adjusted) {
                prop_assert!(after >= p && *after <= 1.0);
                prop_assert!(*after <= (p * p_values.len() as f64).max(*p).min(1.0) + 1e-15, "above Bonferroni");
            }
            for (p, after) in p_values.iter().zip(&adjusted) {
                for (other, other_after) in p_values.iter().zip(&adjusted) {
                    prop_assert!(p > other || after <= other_after);
                }
            }
        }
    }
}
