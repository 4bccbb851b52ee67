//! On which machines of a cluster the pods of a run are, and how the cluster gets their images.

use std::collections::BTreeMap;

use pubmark_runner::RunError;
use serde_json::{Value, json};

use crate::Deployment;
use crate::kubernetes::labels;

/// Longest name or value of a Kubernetes label, without the prefix of a name.
const LONGEST_WORD: usize = 63;
/// Longest prefix of the name of a label, bytes.
const LONGEST_PREFIX: usize = 253;
/// What a taint does to pods that do not tolerate it.
const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// A label of a machine: its name and value.
pub type MachineLabel = (String, String);

/// Settings of a cluster's scheduler for the pods of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scheduling {
    /// Labels of the machines of the nodes and of the coordinator.
    pub node_selector: Vec<MachineLabel>,
    /// Labels of the system's machine.
    pub system_node_selector: Vec<MachineLabel>,
    /// Taints of machines that all pods tolerate.
    pub tolerations: Vec<Toleration>,
    /// Each node must have a machine on which is neither the system nor another node of this run. Otherwise the cluster
    /// separates them where it can.
    pub is_spread: bool,
    /// Secret of the namespace with the log-in of a registry of images.
    pub pull_secret: Option<String>,
}

impl Scheduling {
    /// Refuses two values of one label: a pod selects one of them.
    ///
    /// # Errors
    /// A label has two values.
    pub fn check(&self) -> Result<(), RunError> {
        let given = [("--node-selector", &self.node_selector), ("--system-node-selector", &self.system_node_selector)];
        for (option, labels) in given {
            let mut selected: BTreeMap<&str, &str> = BTreeMap::new();
            for (key, value) in labels {
                let first = *selected.entry(key).or_insert(value);
                if first != value {
                    return Err(RunError::input(format!(
                        "`{option} {key}={first}` and `{option} {key}={value}` exclude each other: a machine has one value of a label"
                    ))
                    .hint("leave one of them out; `kubectl label nodes NAME KEY=VALUE` gives machines a label in common"));
                }
            }
        }
        Ok(())
    }
}

/// A taint that is tolerated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Toleration {
    key: String,
    /// Any value, if none.
    value: Option<String>,
    /// Any effect, if none.
    effect: Option<String>,
}

/// Parses the label of a machine, such as `pool=load` or `kubernetes.io/arch=amd64`.
///
/// # Errors
/// Kubernetes has no such label.
pub fn machine_label(text: &str) -> Result<MachineLabel, String> {
    match text.split_once('=') {
        Some((key, value)) if is_key(key) && (value.is_empty() || is_word(value)) => {
            Ok((key.to_owned(), value.to_owned()))
        }
        _ => Err("a label of machines is written KEY=VALUE, such as `pool=load`; `kubectl get nodes --show-labels` \
                  lists them"
            .to_owned()),
    }
}

impl Toleration {
    /// Parses `KEY`, `KEY=VALUE`, `KEY:EFFECT` or `KEY=VALUE:EFFECT`, as `kubectl taint` writes taints.
    ///
    /// # Errors
    /// Kubernetes has no such taint.
    pub fn parse(text: &str) -> Result<Toleration, String> {
        let (taint, effect) = text.split_once(':').map_or((text, None), |(taint, effect)| (taint, Some(effect)));
        let (key, value) = taint.split_once('=').map_or((taint, None), |(key, value)| (key, Some(value)));
        let is_known = effect.is_none_or(|effect| EFFECTS.contains(&effect));
        if is_known && is_key(key) && value.is_none_or(|value| value.is_empty() || is_word(value)) {
            let [value, effect] = [value, effect].map(|part| part.map(str::to_owned));
            return Ok(Toleration { key: key.to_owned(), value, effect });
        }
        Err(format!(
            "a taint is written KEY=VALUE:EFFECT, such as `dedicated=load:NoSchedule`; effects are {}",
            EFFECTS.join(", ")
        ))
    }

    fn object(&self) -> Value {
        let mut object = match &self.value {
            Some(value) => json!({"key": self.key, "operator": "Equal", "value": value}),
            None => json!({"key": self.key, "operator": "Exists"}),
        };
        if let Some(effect) = &self.effect {
            object["effect"] = json!(effect);
        }
        object
    }
}

/// The name of a label, with or without a prefix: `pool`, `node.kubernetes.io/instance-type`.
fn is_key(text: &str) -> bool {
    let (prefix, name) = text.split_once('/').map_or((None, text), |(prefix, name)| (Some(prefix), name));
    is_word(name) && prefix.is_none_or(is_domain)
}

/// A name of DNS in small letters (RFC 1123).
fn is_domain(text: &str) -> bool {
    let edge = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    let is_part = |part: &str| {
        part.starts_with(edge) && part.ends_with(edge) && part.chars().all(|letter| edge(letter) || letter == '-')
    };
    text.len() <= LONGEST_PREFIX && text.split('.').all(is_part)
}

fn is_word(text: &str) -> bool {
    let edge = |letter: char| letter.is_ascii_alphanumeric();
    text.len() <= LONGEST_WORD
        && text.starts_with(edge)
        && text.ends_with(edge)
        && text.chars().all(|letter| edge(letter) || matches!(letter, '-' | '_' | '.'))
}

/// Sets where a pod of this part of the run is, and how the cluster gets its images. Load and system on one machine would
/// share its processors, so that nodes and coordinator avoid the system's machine, and nodes each other's.
pub(crate) fn place(deployment: &Deployment, part: &str, pod: &mut Value) {
    let scheduling = &deployment.scheduling;
    let selector = if part == "system" { &scheduling.system_node_selector } else { &scheduling.node_selector };
    if !selector.is_empty() {
        pod["nodeSelector"] = selector.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
    }
    if !scheduling.tolerations.is_empty() {
        pod["tolerations"] = scheduling.tolerations.iter().map(Toleration::object).collect();
    }
    if let Some(name) = &scheduling.pull_secret {
        pod["imagePullSecrets"] = json!([{"name": name}]);
    }
    let avoided: &[&str] = match part {
        "node" => &["node", "system"],
        "coordinator" => &["system"],
        _ => &[],
    };
    if avoided.is_empty() {
        return;
    }
    let away_from = |part: &&str| {
        let selector = json!({"matchLabels": labels(&deployment.instance, part)});
        json!({"topologyKey": "kubernetes.io/hostname", "labelSelector": selector})
    };
    // The coordinator is idle during the measured window, and need not have a machine of its own.
    pod["affinity"] = match scheduling.is_spread && part == "node" {
        true => {
            let terms: Vec<Value> = avoided.iter().map(away_from).collect();
            json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}})
        }
        false => {
            let preferred = |part| json!({"weight": 100, "podAffinityTerm": away_from(part)});
            let terms: Vec<Value> = avoided.iter().map(preferred).collect();
            json!({"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}})
        }
    };
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use pubmark_runner::RunSpec;

    use super::*;
    use crate::Order;
    use crate::order::tests::order;

    fn placed(scheduling: Scheduling, part: &str) -> Value {
        let mut deployment = order().deployment(RunSpec::new("hello")).unwrap();
        deployment.scheduling = scheduling;
        let mut pod = json!({});
        place(&deployment, part, &mut pod);
        pod
    }

    /// Parts of the run that the terms of an anti-affinity name.
    fn parts<'a>(terms: &'a Value, term: &str) -> Vec<&'a str> {
        let selector = |one: &'a Value| &one.pointer(term).unwrap()["labelSelector"]["matchLabels"];
        let terms = terms.as_array().unwrap().iter();
        terms.map(|one| selector(one)["app.kubernetes.io/component"].as_str().unwrap()).collect()
    }

    #[test]
    fn load_and_system_are_on_different_machines_where_possible_or_always() {
        for (part, avoided) in [("node", &["node", "system"][..]), ("coordinator", &["system"])] {
            let affinity = placed(Scheduling::default(), part)["affinity"]["podAntiAffinity"].take();
            let preferred = &affinity["preferredDuringSchedulingIgnoredDuringExecution"];
            assert_eq!(parts(preferred, "/podAffinityTerm"), avoided, "{affinity}");
            assert!(affinity["requiredDuringSchedulingIgnoredDuringExecution"].is_null(), "{affinity}");
        }
        let spread = Scheduling { is_spread: true, ..Scheduling::default() };
        let affinity = placed(spread.clone(), "node")["affinity"]["podAntiAffinity"].take();
        assert_eq!(parts(&affinity["requiredDuringSchedulingIgnoredDuringExecution"], ""), ["node", "system"]);
        assert!(affinity["preferredDuringSchedulingIgnoredDuringExecution"].is_null(), "{affinity}");
        let affinity = placed(spread.clone(), "coordinator")["affinity"]["podAntiAffinity"].take();
        assert!(affinity["preferredDuringSchedulingIgnoredDuringExecution"].is_array(), "{affinity}");
        assert_eq!(placed(spread, "system"), json!({}), "the nodes avoid it");
    }

    #[test]
    fn pods_are_on_the_machines_that_are_selected() {
        let scheduling = Scheduling {
            node_selector: vec![machine_label("pool=load").unwrap()],
            system_node_selector: vec![machine_label("example.com/pool=broker").unwrap()],
            tolerations: vec![Toleration::parse("dedicated=bench:NoSchedule").unwrap()],
            is_spread: false,
            pull_secret: Some("registry".to_owned()),
        };
        for (part, selected) in [
            ("node", json!({"pool": "load"})),
            ("coordinator", json!({"pool": "load"})),
            ("system", json!({"example.com/pool": "broker"})),
        ] {
            let pod = placed(scheduling.clone(), part);
            assert_eq!(pod["nodeSelector"], selected, "{part}");
            let taint = json!({"key": "dedicated", "operator": "Equal", "value": "bench", "effect": "NoSchedule"});
            assert_eq!(
                (&pod["tolerations"], &pod["imagePullSecrets"]),
                (&json!([taint]), &json!([{"name": "registry"}]))
            );
        }
    }

    #[test]
    fn a_second_value_of_a_label_is_refused() {
        let labels = |texts: &[&str]| texts.iter().map(|text| machine_label(text).unwrap()).collect::<Vec<_>>();
        let refused = |scheduling: Scheduling| {
            let order = Order { scheduling, ..order() };
            order.deployment(RunSpec::new("hello")).err().map(|error| error.to_string())
        };
        let node_selector = labels(&["pool=a", "zone=1", "pool=a"]);
        assert_eq!(refused(Scheduling { node_selector, ..Scheduling::default() }), None);
        let words = |option: &str| {
            Some(format!(
                "`{option} pool=a` and `{option} pool=b` exclude each other: a machine has one value of a label"
            ))
        };
        let node_selector = labels(&["pool=a", "pool=b"]);
        assert_eq!(refused(Scheduling { node_selector, ..Scheduling::default() }), words("--node-selector"));
        let system_node_selector = labels(&["pool=a", "pool=b"]);
        let scheduling = Scheduling { system_node_selector, ..Scheduling::default() };
        assert_eq!(refused(scheduling), words("--system-node-selector"));
    }

    #[test]
    fn a_label_or_a_taint_that_kubernetes_does_not_know_is_refused() {
        for wrong in [
            "pool",
            "=load",
            "pool=a b",
            "a/b/c=d",
            "pool=-",
            "/pool=a",
            "example..com/pool=a",
            "Example.com/pool=a",
            "my_domain.com/pool=a",
            "-a.com/pool=a",
        ] {
            assert!(machine_label(wrong).is_err(), "{wrong}");
        }
        let of_length = |bytes: usize| machine_label(&format!("{}/Pool_1=a", "a.".repeat(bytes / 2) + "a"));
        assert!(of_length(253).is_ok() && of_length(255).is_err(), "a prefix has at most 253 bytes");
        assert_eq!(machine_label("role=").unwrap(), ("role".to_owned(), String::new()));
        for wrong in ["", ":NoSchedule", "a:Never", "a=b c", "a=b:NoSchedule:x"] {
            assert!(Toleration::parse(wrong).is_err(), "{wrong}");
        }
        let any = Toleration::parse("example.com/bench").unwrap();
        assert_eq!(any.object(), json!({"key": "example.com/bench", "operator": "Exists"}));
    }
}
