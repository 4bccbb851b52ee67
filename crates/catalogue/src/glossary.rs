//! Terms that pubmark prints and that are not codes, with their meanings, for `pubmark explain`.

use pubmark_record::delivery::Delivery;
use pubmark_report::words;

use pubmark_report::wrapping::wrap;

/// A term as it is printed, further spellings of it, and its meaning.
type Entry = (&'static str, &'static [&'static str], &'static str);

/// The terms, except those of the message accounting: the report defines these.
const WORDS: &[Entry] = &[
    (
        "valid",
        &[],
        "Verdict: every check passed, so the figures describe the system. `pubmark explain` lists the checks.",
    ),
    (
        "suspect",
        &[],
        "Verdict: a check is near its limit. Read the reasons before you quote a figure; each has a code.",
    ),
    (
        "invalid",
        &[],
        "Verdict: the figures do not describe the system, or its times alone do not where a reason says so. Each reason has a code.",
    ),
    (
        "generator-limited",
        &["generator limited"],
        "pubmark itself could not keep up, so times or rates are its own and not the system's. Free cores, `--shards`, `--realtime` help.",
    ),
    (
        "machine-limited",
        &["machine limited"],
        "The machine had no CPU time for the system, so the trial shows nothing of the system.",
    ),
    (
        "delivery",
        &["message accounting"],
        "The outcome of each message. Every message is in one category, and the categories add up: offered = sent + skipped + refused + unsent, expected = delivered + lost + unknown.",
    ),
    ("offered", &[], "Messages that were due by the schedule in the measured window, sent or not."),
    (
        "expected",
        &[],
        "Deliveries that the sent messages should cause: a message counts once for each subscription that had a session.",
    ),
    (
        "due",
        &[],
        "The time that the schedule gives a message. Latency counts from it, so waiting for a slow system is not hidden.",
    ),
    (
        "latency",
        &["due → delivery"],
        "From the time when a message was due until pubmark read it: what a user of the system would see.",
    ),
    (
        "service latency",
        &["write → delivery", "write start → delivery"],
        "From the start of the write until the read. Where it is much smaller than latency, messages waited before they could be written.",
    ),
    ("scheduler lag", &[], "From due until pubmark was ready to write: the generator's own delay."),
    (
        "receive lateness",
        &[],
        "Upper bound of the time that a delivery waited in the socket of pubmark until it was read: the generator's own delay.",
    ),
    (
        "back-pressure",
        &["backpressure"],
        "The system accepted no message for a while; the wait is the system's and part of latency.",
    ),
    ("p50", &["median"], "Half of the messages took no longer."),
    (
        "p99",
        &["p95", "p99.9", "percentile"],
        "Of a hundred messages 99 took no longer (95 for p95, 999 of a thousand for p99.9). Printed only where at least 10 samples lie beyond it, otherwise —.",
    ),
    ("—", &["-", "dash"], "Not measured, or too few samples for this figure. It is never 0."),
    ("warm-up", &["warmup"], "Load before the measured window; it is not counted."),
    ("window", &["measured"], "The time in which messages are counted, after the warm-up."),
    ("drain", &["stragglers"], "The wait for late messages after the window."),
    (
        "schedule",
        &["schedule hash"],
        "A hash over all messages of a run: client, time, topic, size. Runs with the same hash have the same load and can be compared.",
    ),
    (
        "corrected",
        &["published", "reading", "variant"],
        "A published workload has two readings: published, as the paper's figures were made, and corrected, as the text of the paper describes it. `--variant` chooses.",
    ),
    (
        "best-effort",
        &["qos 0", "at-least-once", "qos 1", "exactly-once", "qos 2", "qos", "delivery level"],
        "Delivery levels: 0 best-effort (may be lost), 1 at-least-once (may come twice), 2 exactly-once. `pubmark list protocols NAME` says how a protocol implements each.",
    ),
    (
        "profile",
        &["default profile", "tuned", "default"],
        "Configuration of a system that pubmark starts: default is what its package ships, tuned is set for load. `pubmark list systems NAME` shows them.",
    ),
    (
        "deviation",
        &["deviations"],
        "A setting that differs from the default of the system or from the workload; the report names each with its reason.",
    ),
    (
        "ranked",
        &["never ranked", "not ranked"],
        "Takes part in the comparison of systems. The built-in broker never does: it is a demonstration.",
    ),
    (
        "external",
        &[],
        "A system that ran before the run (`--endpoint`): pubmark did not start it and cannot measure its CPU time and memory.",
    ),
    (
        "cost",
        &["cpu/m", "generator", "system"],
        "CPU time and memory of the system and of pubmark (the generator). CPU/M is CPU seconds per million deliveries.",
    ),
    (
        "run-queue wait",
        &["starved"],
        "Time in which a thread was ready to run and did not run, because other threads used the CPU.",
    ),
    (
        "payload over bytes",
        &["efficiency", "protocol efficiency", "payload over bytes sent"],
        "Share of payload in the bytes that crossed the network, counted with Ethernet or IP headers. 1 means that only payload was sent.",
    ),
    (
        "steady",
        &["not steady"],
        "Latency stays the same during the window. If it does not, percentiles depend on the window.",
    ),
    ("cell", &["cells"], "One combination of the values that an experiment varies; each is repeated."),
    (
        "repetition",
        &["repetitions", "counted", "runs count"],
        "One of several equal runs. It counts unless it is invalid; one that is invalid only in its times counts for the other figures.",
    ),
    (
        "interval",
        &["latency interval", "bounds", "lower", "upper", "95 %"],
        "Of a latency (0.25–0.31): upper is what was measured, lower the same without pubmark's own delays; the system's latency lies \
         between them, at each percentile. Of repetitions (95 %): the range that holds the true mean with a probability of 95 %.",
    ),
    (
        "root → delivery",
        &["chain latency", "chain"],
        "From the due time of the message that began a chain of reactions until pubmark read the reaction.",
    ),
    (
        "round trip",
        &["its travel", "travel"],
        "From the due time of a request until pubmark read its reply; its travel is the round trip without the responder's part.",
    ),
    (
        "contest",
        &["winner"],
        "Systems that differ in one setting, compared by one figure. A winner is better beyond the noise of the repetitions.",
    ),
    (
        "grade",
        &["proven", "likely", "not shown"],
        "How sure a difference between systems is. Proven: beyond the noise and the bounds of the measurement, corrected for everything \
         that is compared. Likely: the 95 % interval lies on one side of no difference, which one figure in twenty does by chance. Not \
         shown: it does not, or repetitions are too few.",
    ),
    (
        "site",
        &["sites", "label", "labels", "placement"],
        "The nodes with one value of a label, such as `site=edge-1` (`pubmark node --label`). A placement says at which sites the groups of a workload run.",
    ),
    ("interrupted", &[], "The run was stopped before its end; the record contains what was measured until then."),
];

/// The meaning of a term that pubmark prints; `None` for any other word.
pub fn explain(word: &str) -> Option<String> {
    let wanted = word.trim().to_lowercase();
    let entry = WORDS.iter().find(|(name, others, _)| *name == wanted || others.contains(&wanted.as_str()));
    let of_ours = entry.map(|(name, _, meaning)| page(name, meaning));
    of_ours.or_else(|| {
        let outcome = outcomes().into_iter().find(|outcome| outcome.name == wanted)?;
        Some(page(outcome.name, &format!("Messages: {}.", outcome.meaning)))
    })
}

/// All terms, in the order of a summary.
pub fn names() -> Vec<&'static str> {
    let outcomes = outcomes();
    WORDS.iter().map(|(name, ..)| *name).chain(outcomes.iter().map(|outcome| outcome.name)).collect()
}

/// Categories of the message accounting, whether a run counted messages in them or not.
fn outcomes() -> Vec<words::Outcome> {
    // Few runs have slowed messages, so the category is left out where there are none.
    let none = Delivery { skipped_planned: 1, slowed: 1, ..Delivery::default() };
    [words::sending_outcomes(&none), words::delivery_outcomes(&none), words::further_counts(&none)]
        .into_iter()
        .flatten()
        .collect()
}

fn page(name: &str, meaning: &str) -> String {
    format!("{name}\n{}", wrap("  ", 2, meaning))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_explained_whatever_its_case_and_there_once() {
        for name in names() {
            let page = explain(&name.to_uppercase()).unwrap_or_else(|| panic!("{name} is not explained"));
            assert!(page.starts_with(&format!("{name}\n")), "{name}: {page}");
        }
        assert_eq!(explain("xyzzy"), None);
    }

    /// The headings of lines and columns of a summary.
    #[test]
    fn the_words_of_a_summary_are_known() {
        let record = pubmark_record::sample::record();
        let options = pubmark_report::terminal::TerminalOptions { verbose: true, ..Default::default() };
        let summary = pubmark_report::terminal::summary(&record, &options);
        for word in ["latency", "cost", "offered", "sent", "delivered", "lost", "duplicated", "out of order"] {
            assert!(summary.contains(word), "{word} is no longer printed");
            assert!(explain(word).is_some(), "{word} is printed and not explained");
        }
    }
}
