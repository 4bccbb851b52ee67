//! A Compose file (compose-spec.io) and the files that it mounts: all containers on one machine, in a separate network.

use pubmark_cluster::credentials::Files;
use pubmark_model::placement::Labels;
use pubmark_runner::spec::Netem;
use pubmark_systems::limits::ResourceLimits;
use serde_json::{Value, json};

use crate::yaml;
use crate::{CREDENTIALS, Deployment, File, LINK_CAPABILITIES, OBSERVER, SystemContainer, TUNNELS, USER};

/// Keys of a service whose texts come from a definition or a run. They mean what they say: none refers to a variable.
const LITERAL: [&str; 4] = ["command", "entrypoint", "environment", "volumes"];

/// The Compose file, and folders beside it.
pub fn files(deployment: &Deployment) -> Vec<File> {
    let [coordinator, node] = &deployment.secrets;
    let mut files = vec![("compose.yaml".to_owned(), yaml::document(&compose(deployment)))];
    let mut folder = |name: &str, of: &Files| {
        files.extend(of.iter().map(|(file, text)| (format!("{name}/{file}"), text.clone())));
    };
    folder("coordinator", coordinator);
    folder("node", node);
    if let Some(SystemContainer { rendered: system, .. }) = &deployment.system {
        files.extend(system.files.iter().map(|(name, text)| (format!("system/{name}"), text.clone())));
    }
    files
}

fn compose(deployment: &Deployment) -> Value {
    let mut services = serde_json::Map::new();
    let after_system = deployment.system.as_ref().map_or(vec![], |_| vec!["system"]);
    services.insert(
        "coordinator".to_owned(),
        json!({
            "image": deployment.image,
            "command": deployment.coordinator_words(),
            "user": USER.to_string(),
            "read_only": true,
            "cap_drop": ["ALL"],
            "tmpfs": ["/tmp"],
            "volumes": [format!("./coordinator:{CREDENTIALS}:ro")],
            "depends_on": after_system,
        }),
    );
    services.extend(nodes(deployment));
    if let Some(SystemContainer { rendered: system, limits, observed, .. }) = &deployment.system {
        let mut service = json!({
            "image": system.image,
            "command": system.arguments,
            "environment": system.environment.iter().cloned().collect::<std::collections::BTreeMap<_, _>>(),
            "volumes": [format!("./system:{}:ro", system.directory)],
        });
        if let Some(entrypoint) = &system.entrypoint {
            service["entrypoint"] = json!([entrypoint]);
        }
        if let Some(user) = &system.user {
            service["user"] = json!(user);
        }
        if *observed {
            service["container_name"] = json!(deployment.part("system"));
            services.insert("observer".to_owned(), observer(deployment));
        }
        services.insert("system".to_owned(), with_limits(service, limits.as_ref()));
    }
    services.values_mut().for_each(make_literal);
    json!({"name": deployment.name, "services": services})
}

/// Writes each `$` of a service's literal texts as `$$`: Compose replaces `$NAME` in every scalar by a variable of the caller's
/// environment, and reads `$$` as `$` (compose-spec.io, "Interpolation").
fn make_literal(service: &mut Value) {
    for key in LITERAL {
        if let Some(value) = service.get_mut(key) {
            double_dollars(value);
        }
    }
}

fn double_dollars(value: &mut Value) {
    match value {
        Value::String(text) => *text = text.replace('$', "$$"),
        Value::Array(items) => items.iter_mut().for_each(double_dollars),
        Value::Object(fields) => fields.values_mut().for_each(double_dollars),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// A service that measures CPU and memory of the system. It shares the process namespace of the system's container, which has a
/// fixed name because podman-compose cannot refer to the namespace of a service.
fn observer(deployment: &Deployment) -> Value {
    json!({
        "image": deployment.image,
        "command": deployment.observer_words("coordinator"),
        "user": OBSERVER.to_string(),
        "read_only": true,
        "cap_drop": ["ALL"],
        "tmpfs": ["/tmp"],
        "volumes": [format!("./node:{CREDENTIALS}:ro")],
        "depends_on": ["system", "coordinator"],
        "pid": format!("container:{}", deployment.part("system")),
    })
}

/// One service for each set of nodes with equal labels; a single service if no node has labels.
fn nodes(deployment: &Deployment) -> Vec<(String, Value)> {
    let mut alike: Vec<(&Labels, u16)> = vec![];
    for labels in &deployment.labels {
        match alike.iter_mut().find(|(known, _)| *known == labels) {
            Some((_, count)) => *count += 1,
            None => alike.push((labels, 1)),
        }
    }
    let is_one = alike.len() == 1;
    let service = |(number, (labels, count)): (usize, (&Labels, u16))| {
        let mut words = deployment.node_words("coordinator", None);
        words.extend(labels.iter().flat_map(|(key, value)| ["--label".to_owned(), format!("{key}={value}")]));
        let mut service = json!({
            "image": deployment.image,
            "command": words,
            "user": USER.to_string(),
            "read_only": true,
            "cap_drop": ["ALL"],
            "tmpfs": ["/tmp"],
            "volumes": [format!("./node:{CREDENTIALS}:ro")],
            "depends_on": ["coordinator"],
            // The default of the specification; podman-compose starts one container without it.
            "deploy": {"mode": "replicated", "replicas": count},
        });
        if let Some(netem) = deployment.links {
            service["user"] = json!(format!("0:{USER}"));
            service["cap_add"] = json!(LINK_CAPABILITIES);
            if netem == Netem::User {
                service["devices"] = json!([TUNNELS]);
            }
        }
        let name = if is_one { "node".to_owned() } else { format!("node-{}", number + 1) };
        (name, with_limits(service, deployment.node_limits.as_ref()))
    };
    alike.into_iter().enumerate().map(service).collect()
}

fn with_limits(mut service: Value, limits: Option<&ResourceLimits>) -> Value {
    let Some(limits) = limits else { return service };
    let mut at_most = serde_json::Map::new();
    if let Some(cpu) = limits.cpu {
        at_most.insert("cpus".to_owned(), json!(cpu.to_string()));
    }
    if let Some(bytes) = limits.memory_bytes {
        at_most.insert("memory".to_owned(), json!(bytes.to_string()));
    }
    if !service["deploy"].is_object() {
        service["deploy"] = json!({});
    }
    service["deploy"]["resources"] = json!({"limits": at_most});
    service
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::BTreeMap;

    use pubmark_runner::RunSpec;
    use pubmark_systems::launch::{Rendered, rendered};
    use pubmark_systems::{Definition, StartOptions};

    use super::*;
    use crate::order::tests::order;
    use crate::{Kind, Order};

    fn deployment() -> Deployment {
        Order { kind: Kind::Compose, ..order() }.deployment(RunSpec::new("hello")).unwrap()
    }

    /// The text that a container gets; fails if Compose would replace a part of it.
    fn read(written: &Value) -> String {
        let written = written.as_str().unwrap();
        assert!(!written.replace("$$", "").contains('$'), "Compose replaces a variable in {written}");
        written.replace("$$", "$")
    }

    fn read_all(written: &Value) -> Vec<String> {
        written.as_array().unwrap().iter().map(read).collect()
    }

    /// Every system that can be rendered as a container, with each of its profiles.
    fn containers() -> Vec<Rendered> {
        let mut found = vec![];
        for definition in Definition::embedded().unwrap() {
            if definition.back_ends.container.is_none() {
                continue;
            }
            let protocol = definition.protocols.keys().next().unwrap();
            for profile in definition.profiles.keys() {
                let start = StartOptions { profile: profile.clone(), ..StartOptions::new(protocol) };
                found.push(rendered(&definition, &start).unwrap());
            }
        }
        found
    }

    #[test]
    fn compose_replaces_nothing_in_what_a_container_gets() {
        let deployment = deployment();
        let containers = containers();
        assert!(containers.iter().any(|system| system.arguments.iter().any(|argument| argument.contains('$'))));
        for system in containers {
            let container = SystemContainer { rendered: system.clone(), ..deployment.system.clone().unwrap() };
            let compose = compose(&Deployment { system: Some(container), ..deployment.clone() });
            let service = &compose["services"]["system"];
            assert_eq!(read_all(&service["command"]), system.arguments, "{}", system.image);
            if let Some(entrypoint) = &system.entrypoint {
                assert_eq!(read_all(&service["entrypoint"]), std::slice::from_ref(entrypoint));
            }
            for (name, value) in system.environment.iter().cloned().collect::<BTreeMap<_, _>>() {
                assert_eq!(read(&service["environment"][&name]), value, "{}", system.image);
            }
            assert_eq!(read_all(&service["volumes"]), [format!("./system:{}:ro", system.directory)]);
        }
        let services = &compose(&deployment)["services"];
        assert_eq!(read_all(&services["node"]["command"]), deployment.node_words("coordinator", None));
    }
}
