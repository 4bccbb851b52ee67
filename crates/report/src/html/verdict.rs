//! The banner that says how far the run may be believed, with every check; warnings and deviations.

use maud::{Markup, html};
use pubmark_record::record::{Record, Status, VerdictStatus};
use pubmark_record::verdict::usable::{Usable, usable};
use pubmark_record::warnings::warnings;

use super::with_code;
use crate::words::{sentence, valid_because, verdict_word};

pub(super) fn section(record: &Record) -> Markup {
    let verdict = &record.verdict;
    let status = verdict_word(verdict.status);
    let passed = verdict.checks.iter().filter(|check| check.status == VerdictStatus::Valid).count();
    html! {
        section #verdict.(status) {
            h2 { (sign(verdict.status)) " " (headline(record)) }
            @if record.run.status == Status::Interrupted { p { "The run was interrupted." } }
            @if !record.system.ranked { p { "The built-in broker is a demonstration: its figures are not a result to quote." } }
            @if verdict.reasons.is_empty() {
                p { (sentence(&valid_because(record))) }
            } @else {
                ul.reasons {
                    @for reason in &verdict.reasons {
                        li.(verdict_word(reason.status)) {
                            strong { (reason.code) " " (verdict_word(reason.status)) ": " } (with_code(&sentence(&reason.text)))
                            @if !reason.hint.is_empty() { div.hint { "What to do: " (with_code(&reason.hint)) } }
                        }
                    }
                }
            }
            details open[!verdict.reasons.is_empty()] {
                summary { "Every check: " (passed) " of " (verdict.checks.len()) " passed" }
                div.scroll { table.checks {
                    thead { tr { th { "code" } th { "check" } th { "result" } th { "finding" } } }
                    tbody {
                        @for check in &verdict.checks {
                            tr.(verdict_word(check.status)) {
                                td { (check.code) }
                                td { (check.name) }
                                td.result { (sign(check.status)) " " (verdict_word(check.status)) }
                                td { (with_code(&check.text)) }
                            }
                        }
                    }
                } }
                p.aside { code { "pubmark explain CODE" } " says what a check is about." }
            }
        }
    }
}

/// Warnings, then deviations.
pub(super) fn notes(record: &Record) -> Markup {
    let warnings = warnings(record);
    html! {
        @if warnings.is_empty() && record.settings.deviations.is_empty() { p { "None." } }
        @if !warnings.is_empty() {
            ul.warnings {
                @for warning in &warnings {
                    li { strong { (warning.code) } " " (with_code(&sentence(&warning.text))) div.hint { "What to do: " (with_code(&warning.hint)) } }
                }
            }
        }
        @if !record.settings.deviations.is_empty() {
            h3 { "Deviations from what was asked or from a default" }
            dl {
                @for deviation in &record.settings.deviations { dt { (deviation.name) } dd { (deviation.detail) } }
            }
        }
    }
}

fn headline(record: &Record) -> &'static str {
    match (record.verdict.status, usable(record)) {
        (VerdictStatus::Valid, _) => "Valid: the figures describe the system",
        (VerdictStatus::Suspect, _) => "Suspect: read the reasons before quoting a figure",
        (VerdictStatus::Invalid, Usable::AllButTimes) => {
            "Invalid: the times do not describe the system; counts, bytes, CPU and memory do"
        }
        (VerdictStatus::Invalid, _) => "Invalid: the figures do not describe the system",
    }
}

fn sign(status: VerdictStatus) -> &'static str {
    match status {
        VerdictStatus::Valid => "✓",
        VerdictStatus::Suspect => "!",
        VerdictStatus::Invalid => "✗",
    }
}
