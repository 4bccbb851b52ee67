//! The form of a new run.

use maud::{Markup, html};
use pubmark_model::link::presets;
use pubmark_model::listing;
use pubmark_protocols::PROTOCOLS;
use pubmark_systems::Definition;

use crate::problem::Problem;
use crate::shared::Shared;

/// A workload to begin with, for whoever writes one.
const EXAMPLE: &str = include_str!("workload.yaml");

/// The form with what can be chosen here.
///
/// # Errors
/// What is built in cannot be read.
pub fn form(shared: &Shared) -> Result<String, Problem> {
    let internal = |error: &(dyn std::error::Error + 'static)| Problem::internal(error);
    let workloads = listing::list().map_err(|error| internal(&error))?;
    let systems = Definition::embedded().map_err(|error| internal(&error))?;
    let links = presets::all().map_err(|error| internal(&error))?;
    let is_allowed = |name: &str| shared.allow.names("hello", Some(name), None).is_ok();
    let workload_list = html! {
        @for one in &workloads {
            option value=(one.name) selected[one.name == "smart-home"] { (one.name) ": " (one.devices) " devices" }
        }
    };
    let system_list = html! {
        @for one in &systems {
            option value=(one.name) disabled[!is_allowed(&one.name)] selected[one.name == "builtin"] {
                (one.title) @if !is_allowed(&one.name) { " (needs --allow systems)" }
            }
        }
    };
    let protocol_list = html! {
        option value="" { "the system's first" }
        @for protocol in PROTOCOLS.iter() { option value=(protocol.capabilities.name) { (protocol.capabilities.title) } }
    };
    let link_list = html! {
        option value="" { "the workload's" }
        option value="none" { "none" }
        @for link in &links { option value=(link.name) { (link.name) } }
    };
    Ok(html! {
        form #new novalidate {
            (workload(&workload_list))
            fieldset {
                legend { "System" }
                (choice("system", "System", &system_list))
                (choice("protocol", "Protocol", &protocol_list))
                (choice("qos", "QoS", &html! { option value="" { "the workload's" } option { "0" } option { "1" } option { "2" } }))
                label.check { input type="checkbox" name="tls"; " Encrypt connections (TLS)" }
            }
            fieldset {
                legend { "Load" }
                (number("scale", "Scale (multiplies devices)", "1", "1"))
                (number("rate", "Rate (multiplies messages per second)", "1", "any"))
                (text("warmup", "Warm-up", "5s", ""))
                (text("duration", "Measured window", "30s", ""))
                (number("repetitions", "Repetitions", "1", "1"))
            }
            fieldset {
                legend { "Conditions and limits" }
                (choice("link", "Link of all clients", &link_list))
                (text("fault", "Fault", "", "kill:at=10s,for=2s"))
                (text("slo", "Limits to keep", "", "p99<50ms,loss=0"))
            }
            (outcome())
        }
    }
    .into_string())
}

fn workload(list: &Markup) -> Markup {
    html! {
        fieldset.wide {
            legend { "Workload" }
            div.field {
                label for="workload" { "Which" }
                select #workload name="workload" { (list) option value="" { "the text below" } }
            }
            div.own hidden {
                label for="text" { "Text (YAML)" }
                div.editor {
                    pre #lines aria-hidden="true" { "1" }
                    textarea #text rows="12" spellcheck="false" autocapitalize="off" wrap="off" aria-describedby="text-problem"
                        data-example=(EXAMPLE) {}
                }
                p #text-problem .caution role="status" {}
            }
        }
    }
}

fn choice(name: &str, words: &str, options: &Markup) -> Markup {
    html! { div.field { label for=(name) { (words) } select id=(name) name=(name) { (options) } } }
}

fn number(name: &str, words: &str, value: &str, step: &str) -> Markup {
    html! {
        div.field {
            label for=(name) { (words) }
            input id=(name) name=(name) type="number" min="0" step=(step) value=(value) data-usual=(value);
        }
    }
}

fn text(name: &str, words: &str, value: &str, example: &str) -> Markup {
    html! {
        div.field {
            label for=(name) { (words) }
            input id=(name) name=(name) value=(value) placeholder=(example) autocomplete="off" spellcheck="false";
        }
    }
}

/// What comes of the form: whether it can be run, what it needs, the same elsewhere.
fn outcome() -> Markup {
    html! {
        section #outcome aria-label="What comes of it" {
            p #judgement role="status" {}
            ul #notes {}
            div.buttons {
                button #run .primary type="submit" disabled { "Start" }
                button #measure type="button" disabled { "Compare with this machine" }
            }
            h2 { "What it needs" }
            pre #plan tabindex="0" aria-label="What it needs" {}
            div.again {
                h2 { "The same on the command line" }
                pre #command tabindex="0" aria-label="Command line" {}
                button type="button" data-copy="command" { "Copy" }
                details {
                    summary { "As a file " code { "run.yaml" } }
                    pre #run-yaml tabindex="0" aria-label="run.yaml" {}
                    button type="button" data-copy="run-yaml" { "Copy" }
                }
            }
        }
    }
}
