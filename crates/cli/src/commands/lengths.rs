//! Lengths and repetitions of an experiment's runs, in place of those of its file.

use std::time::Duration;

use clap::Args;
use pubmark_model::experiment::{Changes, MOST_REPETITIONS};

use crate::values::{duration, positive_duration};

/// Lengths and repetitions, in place of the file's.
#[derive(Clone, Debug, Args)]
pub struct Lengths {
    /// Short runs and few repetitions, for a first look
    #[arg(long)]
    pub quick: bool,

    /// Repetitions of each combination, in place of the file's or of `--quick`
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_REPETITIONS)))]
    pub repeat: Option<u32>,

    /// Length of each measured window, in place of the file's
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = positive_duration)]
    pub duration: Option<Duration>,

    /// Load before the window that is not measured, in place of the file's and of what the systems' definitions ask for
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = duration)]
    pub warmup: Option<Duration>,

    /// Longest wait for a quiet machine before each run, in place of the file's
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = duration)]
    pub wait: Option<Duration>,
}

impl From<&Lengths> for Changes {
    fn from(lengths: &Lengths) -> Changes {
        Changes {
            quick: lengths.quick,
            repeat: lengths.repeat,
            duration: lengths.duration,
            warmup: lengths.warmup,
            wait: lengths.wait,
            ..Changes::default()
        }
    }
}
