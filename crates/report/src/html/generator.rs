//! Quality of the load generator: all checks, and the delays that pubmark caused.

use maud::{Markup, html};
use pubmark_record::record::{Record, VerdictStatus};

use super::verdict::sign;
use super::{tables, with_code};
use crate::numbers::{MISSING, count, short};
use crate::words::{sentence, verdict_word};

pub(super) fn section(record: &Record) -> Markup {
    let checks = &record.verdict.checks;
    let passed = checks.iter().filter(|check| check.status == VerdictStatus::Valid).count();
    html! {
        p { "What pubmark itself adds to a latency is left out of its lower bound: the delays below are what the intervals are wide by." }
        @for check in checks.iter().filter(|check| check.status != VerdictStatus::Valid) {
            details.check.(verdict_word(check.status)) open {
                summary { (sign(check.status)) " " strong { (check.code) } " " (check.name) ": " (verdict_word(check.status)) }
                p { (with_code(&sentence(&check.text))) }
            }
        }
        details {
            summary { "Every check: " (passed) " of " (checks.len()) " passed" }
            div.scroll { table.checks {
                thead { tr { th { "code" } th { "check" } th { "result" } th { "finding" } } }
                tbody {
                    @for check in checks {
                        tr.(verdict_word(check.status)) {
                            th scope="row" { (check.code) }
                            td { (check.name) }
                            td.result { (sign(check.status)) " " (verdict_word(check.status)) }
                            td { (with_code(&check.text)) }
                        }
                    }
                }
            } }
            p.aside { code { "pubmark explain CODE" } " says what a check is about." }
        }
        (tables::delays(record))
    }
}

/// Threads of pubmark, folded.
pub(super) fn threads(record: &Record) -> Markup {
    html! {
        @if !record.cost.threads.is_empty() {
            details { summary { "Threads of pubmark" }
                div.scroll { table {
                    thead { tr { th { "thread" } th.number { "of a core" } th.number { "sessions" } th.number { "wake-ups" } } }
                    tbody {
                        @for shard in &record.cost.threads {
                            tr {
                                th scope="row" { (shard.name) }
                                td.number { (shard.cores.map_or(MISSING.to_string(), |cores| format!("{} %", short(cores * 100.0)))) }
                                td.number { (count(shard.sessions)) }
                                td.number { (shard.wakeups.map_or(MISSING.to_string(), count)) }
                            }
                        }
                    }
                } }
            }
        }
    }
}
