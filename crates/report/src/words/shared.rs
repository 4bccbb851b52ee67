//! Text of the command line, of the trials of a search, and of headlines.

use pubmark_record::capacity::Trial;
use pubmark_record::headline::Headline;

use super::loss_share;
use crate::numbers::{MISSING, TimeUnit, percentage, share, significant};

/// The share of the wanted deliveries that arrived in a past run; of the expected ones in headlines of an earlier pubmark, which lack
/// it; `—` for other kinds.
pub fn delivered_share_text(headline: &Headline) -> String {
    match headline.delivered_share {
        None => share(headline.delivered.unwrap_or(0), headline.expected.unwrap_or(0)),
        known => percentage(known),
    }
}

/// Figures of a trial: offered and delivered per second, share not delivered, p50, p99, cores of the system and of pubmark.
pub fn trial_numbers(trial: &Trial, unit: TimeUnit) -> [String; 7] {
    let optional = |value: Option<f64>| value.map_or_else(|| MISSING.to_string(), significant);
    [
        significant(trial.offered_per_s),
        optional(trial.delivered_per_s),
        trial.loss.map_or_else(|| MISSING.to_string(), loss_share),
        unit.interval(trial.latency.bounds(|quantiles| quantiles.p50_us)),
        unit.interval(trial.latency.bounds(|quantiles| quantiles.p99_us)),
        optional(trial.system_cores),
        optional(trial.generator_cores),
    ]
}

/// The arguments of a command, quoted for a shell.
pub fn command_line(words: &[String]) -> String {
    let plain =
        |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c));
    let quoted = |word: &String| if plain(word) { word.clone() } else { format!("'{}'", word.replace('\'', "'\\''")) };
    words.iter().map(quoted).collect::<Vec<String>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_quoted_as_a_shell_needs_it() {
        let words = ["pubmark", "run", "my file.yaml", "--set", "a='b'"].map(String::from);
        assert_eq!(command_line(&words), "pubmark run 'my file.yaml' --set 'a='\\''b'\\'''");
    }
}
