//! The form for a new run, experiment, capacity search or choice.

use maud::{Markup, html};
use pubmark_model::link::presets;
use pubmark_model::{experiment, listing};
use pubmark_protocols::PROTOCOLS;
use pubmark_report::numbers::counted;
use pubmark_systems::Definition;

use crate::allow::NotAllowed;
use crate::problem::Problem;
use crate::shared::Shared;

/// Example workload, experiment and requirements for users who write one.
const WORKLOAD: &str = include_str!("workload.yaml");
const EXPERIMENT: &str = include_str!("experiment.yaml");
const REQUIREMENTS: &str = include_str!("requirements.yaml");

/// Kinds of submissions: name in the form, and label.
const KINDS: [(&str, &str); 4] = [
    ("run", "One run"),
    ("experiment", "An experiment: combinations of settings, repeated, compared"),
    ("capacity", "A search for the highest load that a system carries"),
    ("choose", "A choice: which systems meet your requirements, and at what cost"),
];

/// The form with the choices of this server. A fieldset with `data-for` is shown only for these kinds.
///
/// # Errors
/// Built-in definitions cannot be read.
pub fn form(shared: &Shared) -> Result<String, Problem> {
    let internal = |error: &(dyn std::error::Error + 'static)| Problem::internal(error);
    let workloads = listing::list().map_err(|error| internal(&error))?;
    let systems = Definition::embedded().map_err(|error| internal(&error))?;
    let links = presets::all().map_err(|error| internal(&error))?;
    let experiments = experiment::all().map_err(|error| internal(&error))?;
    let is_allowed = |name: &str| shared.allow.names("hello", Some(name), None).is_ok();
    let workload_list = html! {
        @for one in &workloads {
            option value=(one.name) selected[one.name == "smart-home"] { (one.name) ": " (one.devices) " devices" }
        }
    };
    let experiment_list = html! {
        @for one in &experiments {
            option value=(one.name) disabled[shared.allow.experiment(&one.experiment).is_err()] {
                (one.name) ": " (counted(one.cells as u64, "combination", "combinations"))
                @if let Err(refused) = shared.allow.experiment(&one.experiment) { " (" (refused.to_string()) ")" }
            }
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
        option value="" { "the system's default" }
        @for protocol in PROTOCOLS.iter() { option value=(protocol.capabilities.name) { (protocol.capabilities.title) } }
    };
    let link_list = html! {
        option value="" { "as in the workload" }
        option value="none" { "none" }
        @for link in &links { option value=(link.name) { (link.name) } }
    };
    Ok(html! {
        form #new novalidate {
            (kinds())
            fieldset.wide data-for="run capacity" {
                legend { "Workload" }
                (choice("workload", "Devices and subscribers", &html! { (workload_list) option value="" { "custom: the text below" } }))
                div.own hidden { (editor("text", WORKLOAD)) }
            }
            fieldset data-for="run capacity" {
                legend { "System" }
                (choice("system", "System to start", &system_list))
                (endpoint(shared.allow.names("hello", None, Some("mqtt://host")).err().as_ref()))
                (choice("protocol", "Protocol", &protocol_list))
                (choice("qos", "QoS", &html! { option value="" { "as in the workload" } option { "0" } option { "1" } option { "2" } }))
                (text("profile", "Configuration profile", "", "default or tuned"))
                (text("limit", "Resource limits of each broker", "", "cpu=0.5,memory=256MB"))
                label.check { input type="checkbox" name="tls"; span { "Encrypt connections (TLS)" } }
            }
            (load())
            fieldset data-for="run capacity" {
                legend { "Conditions" }
                (choice("link", "Network link of all clients", &link_list))
                (text("fault", "Fault", "", "kill:at=10s,for=2s"))
                (text("seed", "Seed of the schedule", "", "1"))
                div data-for="run" { (text("slo", "Objectives", "", "p99<50ms,loss=0")) }
            }
            (search())
            (of_experiment(&experiment_list))
            (of_choice())
            (outcome())
        }
    }
    .into_string())
}

fn kinds() -> Markup {
    html! {
        fieldset.wide {
            legend { "Type" }
            @for (kind, words) in KINDS {
                label.check { input type="radio" name="kind" value=(kind) checked[kind == "run"]; span { (words) } }
            }
        }
    }
}

fn load() -> Markup {
    html! {
        fieldset data-for="run" {
            legend { "Load" }
            (number("scale", "Scale (multiplies devices)", "1", "1"))
            (number("rate", "Rate (multiplies messages per second)", "1", "any"))
            (text("warmup", "Warm-up", "5s", ""))
            (text("duration", "Measured window", "30s", ""))
            (number("repetitions", "Repetitions", "1", "1"))
        }
    }
}

fn search() -> Markup {
    html! {
        fieldset data-for="capacity" {
            legend { "Search" }
            (text("objectives", "Objectives", "p99<50ms,loss=0", ""))
            (choice("vary", "Quantity to vary", &html! {
                option value="rate" { "messages per second" }
                option value="scale" { "number of devices" }
            }))
        }
        fieldset data-for="capacity" {
            legend { "Time" }
            (text("within", "Start no further trial after", "10m", ""))
            (text("trial", "Window of each trial", "", "3s or longer"))
            (text("trial-warmup", "Warm-up of each trial", "", "1s, or what the system needs"))
        }
    }
}

fn of_experiment(list: &Markup) -> Markup {
    html! {
        fieldset.wide data-for="experiment" {
            legend { "Experiment" }
            (choice("experiment", "Definition", &html! { option value="" selected { "custom: the text below" } (list) }))
            div.own { (editor("definition", EXPERIMENT)) }
        }
        fieldset data-for="experiment" {
            legend { "Selection" }
            label.check { input type="checkbox" name="quick"; span { "Short runs and few repetitions" } }
            (text("only", "Only these values of axes", "", "system=builtin qos=0,1"))
            (text("repeat", "Repetitions", "", "as in the experiment"))
        }
        fieldset data-for="experiment" {
            legend { "Lengths" }
            (text("each-duration", "Measured window of each run", "", "as in the experiment"))
            (text("each-warmup", "Warm-up of each run", "", "as in the experiment, or what the systems need"))
            (text("wait", "Longest wait for a quiet machine", "", "as in the experiment"))
        }
    }
}

fn of_choice() -> Markup {
    html! {
        fieldset.wide data-for="choose" {
            legend { "Requirements" }
            p.hint { "Without " code { "candidates" } ", pubmark chooses among all systems that are installed on the server." }
            div.own { (editor("requirements", REQUIREMENTS)) }
        }
    }
}

/// A text field with line numbers, and an element that shows an error.
fn editor(name: &str, example: &str) -> Markup {
    html! {
        label for=(name) { "Text (YAML)" }
        div.editor {
            pre.lines id={ (name) "-lines" } aria-hidden="true" { "1" }
            textarea id=(name) rows="12" spellcheck="false" autocapitalize="off" wrap="off"
                aria-describedby={ (name) "-problem" } data-example=(example) {}
        }
        p.text-problem id={ (name) "-problem" } role="status" {}
    }
}

/// The field for the endpoint of a system that already runs; if it is not allowed, the reason.
fn endpoint(refused: Option<&NotAllowed>) -> Markup {
    html! {
        div.field {
            label for="endpoint" { "Or the endpoint of a running system" }
            input id="endpoint" name="endpoint" placeholder="mqtt://broker.example:1883" autocomplete="off" spellcheck="false"
                inputmode="url" disabled[refused.is_some()] aria-describedby="endpoint-hint";
            p.hint id="endpoint-hint" {
                @match refused {
                    Some(refused) => { "Needs " code { "--allow " (refused.right().word()) } " at the start of the server." }
                    None => { "No system is started then. Test only systems that you are allowed to load." }
                }
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

/// Results of the form: whether it is valid, what it needs, and the equivalent command.
fn outcome() -> Markup {
    html! {
        section #outcome aria-label="Result of the check" {
            p #judgement role="status" {}
            ul #notes {}
            div.buttons {
                button #run .primary type="submit" disabled { "Start" }
                button #measure type="button" disabled { "Compare with this machine" }
            }
            h2 { "What it needs" }
            pre #plan tabindex="0" aria-label="What it needs" {}
            div.again {
                h2 { "Equivalent command line" }
                pre #command tabindex="0" aria-label="Command line" {}
                button type="button" data-copy="command" { "Copy" }
                p.hint #text-file hidden { "The text is the file " code #text-name { "experiment.yaml" } " there." }
                details data-for="run" {
                    summary { "As a file " code { "run.yaml" } }
                    pre #run-yaml tabindex="0" aria-label="run.yaml" {}
                    button type="button" data-copy="run-yaml" { "Copy" }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warm_up_is_submitted_only_if_somebody_writes_one() {
        let form = [search(), of_experiment(&html! {})].map(Markup::into_string).concat();
        for (name, example) in [
            ("trial-warmup", "1s, or what the system needs"),
            ("each-warmup", "as in the experiment, or what the systems need"),
        ] {
            let field = format!("name=\"{name}\" value=\"\" placeholder=\"{example}\"");
            assert!(form.contains(&field), "{form}");
        }
    }
}
