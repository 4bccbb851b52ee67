//! Warnings about connections and subscriptions.

use super::TextAndHint;
use crate::quantity::{count, counted};
use crate::record::Record;

pub(super) fn granted_lower(record: &Record) -> Option<TextAndHint> {
    (record.connections.granted_qos_lower > 0).then(|| {
        let number = counted(record.connections.granted_qos_lower, "subscription", "subscriptions");
        let text = format!("{number} granted a lower level than requested");
        (text, "check the system's configuration, or request that level with `--qos`".to_string())
    })
}

pub(super) fn failed(record: &Record) -> Option<TextAndHint> {
    let connections = &record.connections;
    let parts = [
        ("refused", connections.refused),
        ("not logged in", connections.auth_failed),
        ("failed in TLS", connections.tls_failed),
        ("dropped", connections.dropped),
    ];
    let named: Vec<String> = parts
        .iter()
        .filter(|(_, number)| *number > 0)
        .map(|(name, number)| format!("{} {name}", count(*number)))
        .collect();
    if named.is_empty() {
        return None;
    }
    let mut text = format!("connections: {}", named.join(", "));
    if let Some(cause) = connections.main_cause() {
        text.push_str(&format!(" (mostly: {cause})"));
    }
    let hint = if connections.log_in_ended > 0 {
        "the system closed connections whose credentials had expired: give tokens a longer lifetime, or let clients sign new ones"
    } else if connections.auth_failed > 0 {
        "check `--user` and `--password-env` or `--password-file`"
    } else {
        "see the causes in the report; `pubmark doctor` shows the limits"
    };
    Some((text, hint.to_string()))
}

pub(super) fn subscriptions_refused(record: &Record) -> Option<TextAndHint> {
    let connections = &record.connections;
    (connections.subscriptions_not_held() > 0).then(|| {
        let kinds = [(connections.subscriptions_refused, "refused"), (connections.subscriptions_revoked, "revoked")];
        let kinds = kinds.iter().filter(|(number, _)| *number > 0);
        let kinds: Vec<String> = kinds
            .map(|(number, what)| format!("{} {what}", counted(*number, "subscription", "subscriptions")))
            .collect();
        let text = format!("{} by the system", kinds.join(", "));
        (text, "check the system's access rules, and who deletes its queues, streams or consumers".to_string())
    })
}
