//! Merges the histograms of several runs into one distribution.

use pubmark_metrics::distribution::{Distribution, NotAHistogram};

use crate::distribution;
use crate::record::{Curve, Summary};

/// One bound of the latency over several runs: the histograms (HdrHistogram V2, ns) are merged. The mean, and counts
/// that a histogram does not store, come from the summaries of the runs. `None` without samples.
pub fn merge(runs: &[(&[u8], &Summary)]) -> Result<Option<(Summary, Curve)>, NotAHistogram> {
    let mut merged: Option<Distribution> = None;
    for (bytes, _) in runs {
        let one = Distribution::from_hdr_v2(bytes)?;
        match &mut merged {
            Some(merged) => merged.merge(&one),
            None => merged = Some(one),
        }
    }
    let Some(merged) = merged else { return Ok(None) };
    let total: u64 = runs.iter().map(|(_, summary)| summary.count).sum();
    let weighted: f64 = runs.iter().map(|(_, summary)| summary.mean * summary.count as f64).sum();
    let (Some(of_merged), Some(curve)) = (distribution::summary(&merged), distribution::curve("latency", &merged))
    else {
        return Ok(None);
    };
    let summary = Summary {
        mean: if total > 0 { weighted / total as f64 } else { of_merged.mean },
        negative: runs.iter().map(|(_, summary)| summary.negative).sum(),
        clipped: runs.iter().map(|(_, summary)| summary.clipped).sum(),
        ..of_merged
    };
    Ok(Some((summary, curve)))
}
