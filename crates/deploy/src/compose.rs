//! A Compose file (compose-spec.io) and the files that it mounts: all containers on one machine, in a separate network.

use pubmark_cluster::credentials::Files;
use pubmark_model::placement::Labels;
use pubmark_runner::spec::Netem;
use pubmark_systems::limits::ResourceLimits;
use serde_json::{Value, json};

use crate::yaml;
use crate::{CREDENTIALS, Deployment, File, LINK_CAPABILITIES, OBSERVER, SystemContainer, TUNNELS, USER};

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
    json!({"name": deployment.name, "services": services})
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
            "deploy": {"replicas": count},
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
