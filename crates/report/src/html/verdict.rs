//! The banner that states how well the figures are known, with the reasons; warnings and deviations.

use maud::{Markup, html};
use pubmark_record::record::{Record, Status, VerdictStatus};
use pubmark_record::verdict::usable::{Usable, usable};
use pubmark_record::warnings::warnings;

use super::with_code;
use crate::numbers::counted;
use crate::words::{sentence, trust, verdict_word};

pub(super) fn section(record: &Record) -> Markup {
    let verdict = &record.verdict;
    let status = verdict_word(verdict.status);
    html! {
        section #verdict.(status) {
            h2 { (sign(verdict.status)) " " (headline(record)) }
            @if record.run.status == Status::Interrupted { p { "The run was interrupted." } }
            @if !record.system.ranked { p { "The built-in broker is a demonstration: its figures are not a result to quote." } }
            @if verdict.reasons.is_empty() {
                p.trust { (sentence(&trust(record))) }
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
            p.further { a href="#generator" { (checks(record)) } (unusual(record)) }
        }
    }
}

/// Number of checks that passed.
fn checks(record: &Record) -> String {
    let checks = &record.verdict.checks;
    let passed = checks.iter().filter(|check| check.status == VerdictStatus::Valid).count();
    format!("{passed} of {} checks passed", checks.len())
}

/// Links to other unusual facts.
fn unusual(record: &Record) -> Markup {
    let numbers = [
        (warnings(record).len(), "warning", "warnings"),
        (record.settings.deviations.len(), "deviation", "deviations"),
    ];
    let parts: Vec<String> = numbers
        .iter()
        .filter(|(number, ..)| *number > 0)
        .map(|(number, one, many)| counted(*number as u64, one, many))
        .collect();
    html! { @if !parts.is_empty() { " · " a href="#notes" { (parts.join(", ")) } } }
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
            h3 { "Deviations from the request or from a default" }
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

/// Symbol beside a verdict.
pub(super) fn sign(status: VerdictStatus) -> &'static str {
    match status {
        VerdictStatus::Valid => "✓",
        VerdictStatus::Suspect => "!",
        VerdictStatus::Invalid => "✗",
    }
}
