//! Faults as Markdown.

use pubmark_record::record::Record;

use super::{escaped, table_of_words};
use crate::words;

/// Section of a record with faults; empty without faults.
pub(super) fn section(text: &mut String, record: &Record) {
    let Some(figures) = &record.conditions.faults else { return };
    text.push_str("\n## Faults\n\n");
    let header = ["QoS", "promise", "observed", "verdict"].map(String::from);
    let promises = figures.promises.iter().map(|promise| {
        let verdict = words::promise_word(promise.verdict).to_string();
        vec![promise.qos.to_string(), escaped(&promise.promise), escaped(&promise.observed), verdict]
    });
    table_of_words(text, &header, &promises.collect::<Vec<_>>());
    text.push('\n');
    let header = ["fault", "clients", "latency", "messages"].map(String::from);
    let rows = figures.faults.iter().map(|fault| {
        let messages: Vec<String> = fault.levels.iter().map(words::fault_messages).collect();
        vec![
            escaped(&words::fault(fault)),
            escaped(&words::fault_connections(fault)),
            escaped(&words::fault_latency(fault.latency.as_ref())),
            messages.join("; "),
        ]
    });
    table_of_words(text, &header, &rows.collect::<Vec<_>>());
    text.push_str(&format!("\n{}\n", words::sentence(&words::reconnect(&figures.reconnect))));
}
