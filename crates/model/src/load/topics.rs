//! Validates topics and filters by the rules of MQTT.

use super::diagnostic::{Problem, ProblemKind};
use super::shape::Spanned;
use super::value;
use crate::topic::{TopicFilter, TopicTemplate};

/// Placeholders of a topic, for each device.
pub(crate) const TOPIC_WORDS: [&str; 9] =
    ["workload", "group", "domain", "type", "qos", "device", "index", "copy", "trigger"];
/// Placeholders of a filter, for each subscriber.
pub(crate) const FILTER_WORDS: [&str; 3] = ["index", "copy", "workload"];
/// Maximum length of a topic or filter, in bytes: a quarter of MQTT's limit, so that the values of placeholders fit.
const LONGEST: usize = 16_000;

/// Validates a topic template.
pub(crate) fn template(topic: &Spanned<String>) -> Result<TopicTemplate, Problem> {
    let bad = |why: &str, help: &str| {
        Err(Problem::new(ProblemKind::BadTopic, format!("`{}` is not a topic: {why}", shown(&topic.value)))
            .at(topic.span, why)
            .help(help))
    };
    if let Some((why, help)) = bad_text(&topic.value) {
        return bad(why, help);
    }
    if topic.value.contains(['+', '#']) {
        return bad(
            "wildcards are for filters",
            "write the topic without `+` and `#`; placeholders make it differ per device",
        );
    }
    if topic.value.starts_with('$') {
        return bad("topics that start with `$` belong to the server (MQTT 5.0 §4.7.2)", "start it with another level");
    }
    value::placeholders(&topic.value, &TOPIC_WORDS, topic.span)?;
    Ok(TopicTemplate(topic.value.clone()))
}

/// Validates a topic filter (MQTT 5.0 §4.7).
pub(crate) fn filter(text: &Spanned<String>) -> Result<TopicFilter, Problem> {
    filter_with(text, &FILTER_WORDS)
}

/// Validates the filter of a reaction.
pub(crate) fn reaction(text: &Spanned<String>) -> Result<TopicFilter, Problem> {
    filter_with(text, &TOPIC_WORDS[..8])
}

fn filter_with(filter: &Spanned<String>, words: &[&str]) -> Result<TopicFilter, Problem> {
    let text = &filter.value;
    let bad = |why: &str, help: String| {
        Err(Problem::new(ProblemKind::BadFilter, format!("`{}` is not a topic filter: {why}", shown(text)))
            .at(filter.span, why)
            .help(help))
    };
    if let Some((why, help)) = bad_text(text) {
        return bad(why, help.to_owned());
    }
    if text.starts_with("$share/") {
        return bad(
            "shared subscriptions have a key of their own",
            "write `shared: NAME` beside `filters`, and the filter without `$share/NAME/`".to_owned(),
        );
    }
    let mut before = Vec::new();
    let mut levels = text.split('/').peekable();
    while let Some(level) = levels.next() {
        if level == "#" && levels.peek().is_some() {
            let front = before.iter().map(|level| format!("{level}/")).collect::<String>();
            let plus = text.split('/').map(|level| if level == "#" { "+" } else { level }).collect::<Vec<_>>();
            return bad(
                "`#` stands only at the end",
                format!("write `{front}#` for everything below, or `{}` for one level", plus.join("/")),
            );
        }
        if level.len() > 1 && level.contains(['#', '+']) {
            return bad("a wildcard is a level of its own", "put it between slashes: `a/+/b`, `a/#`".to_owned());
        }
        before.push(level);
    }
    value::placeholders(text, words, filter.span)?;
    Ok(TopicFilter(text.clone()))
}

fn bad_text(text: &str) -> Option<(&'static str, &'static str)> {
    if text.is_empty() {
        Some(("it is empty", "give at least one level"))
    } else if text.contains('\0') {
        Some(("it contains a NUL", "leave the NUL out"))
    } else if text.len() > LONGEST {
        Some(("it is longer than 16,000 bytes", "shorten it"))
    } else {
        None
    }
}

fn shown(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
