//! Kubernetes: a Job that leads, an indexed Job of nodes that keep away from each other, and the system as a Deployment behind a Service.

use pubmark_cluster::credentials::Files;
use pubmark_systems::launch::Rendered;
use pubmark_systems::limits::ResourceLimits;
use serde_json::{Map, Value, json};

use crate::{COORDINATOR_PORT, CREDENTIALS, Deployment, File, USER, yaml};

/// The one file, whose objects are applied together.
pub fn files(deployment: &Deployment) -> Vec<File> {
    vec![("pubmark.yaml".to_owned(), yaml::documents(&objects(deployment)))]
}

/// All objects.
fn objects(deployment: &Deployment) -> Vec<Value> {
    let name = &deployment.name;
    let [coordinator, node] = &deployment.secrets;
    let mut objects = vec![secret(deployment, "coordinator", coordinator), secret(deployment, "node", node)];
    if let Some(system) = &deployment.system {
        objects.push(config_map(deployment, "system", &system.files));
        objects.push(system_deployment(deployment, system));
        let protocol = if system.datagrams { "UDP" } else { "TCP" };
        let ports: Vec<Value> = (system.ports.iter())
            .map(|port| json!({"name": format!("p{port}"), "port": port, "protocol": protocol}))
            .collect();
        objects.push(object(
            deployment,
            "v1",
            "Service",
            "system",
            json!({
                "spec": {"selector": labels(name, "system"), "ports": ports},
            }),
        ));
    }
    objects.push(object(
        deployment,
        "v1",
        "Service",
        "coordinator",
        json!({
            // Without an address of its own: nodes reach the pod.
            "spec": {"clusterIP": "None", "selector": labels(name, "coordinator"),
                     "ports": [{"name": "nodes", "port": COORDINATOR_PORT}]},
        }),
    ));
    objects.push(coordinator_job(deployment));
    objects.push(node_job(deployment));
    objects
}

fn labels(name: &str, part: &str) -> Value {
    json!({"app.kubernetes.io/name": "pubmark", "app.kubernetes.io/instance": name, "app.kubernetes.io/component": part})
}

/// An object of the run: `NAME-PART`, but for services, whose names are addresses.
fn object(deployment: &Deployment, version: &str, kind: &str, part: &str, rest: Value) -> Value {
    let name = if kind == "Service" { part.to_owned() } else { format!("{}-{part}", deployment.name) };
    let mut object = json!({
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": name, "labels": labels(&deployment.name, part)},
    });
    if let (Some(object), Value::Object(rest)) = (object.as_object_mut(), rest) {
        object.extend(rest);
    }
    object
}

fn by_name<N: ToString>(files: &[(N, String)]) -> Map<String, Value> {
    files.iter().map(|(name, text)| (name.to_string(), json!(text))).collect()
}

fn config_map(deployment: &Deployment, part: &str, files: &[(String, String)]) -> Value {
    object(deployment, "v1", "ConfigMap", part, json!({"data": by_name(files)}))
}

fn secret(deployment: &Deployment, part: &str, files: &Files) -> Value {
    object(deployment, "v1", "Secret", part, json!({"type": "Opaque", "stringData": by_name(files)}))
}

/// What our own containers may: nothing that a generator of load does not need.
fn confined() -> Value {
    json!({"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "runAsNonRoot": true, "runAsUser": USER,
           "capabilities": {"drop": ["ALL"]}})
}

/// Requests are the limits, so that nobody else is promised what a node needs.
fn resources(limits: Option<&ResourceLimits>) -> Value {
    let Some(limits) = limits else { return json!({}) };
    let mut at_most = Map::new();
    if let Some(cpu) = limits.cpu {
        at_most.insert("cpu".to_owned(), json!(format!("{}m", (cpu * 1e3).round())));
    }
    if let Some(bytes) = limits.memory_bytes {
        at_most.insert("memory".to_owned(), json!(bytes.to_string()));
    }
    json!({"limits": at_most, "requests": at_most})
}

fn volume_of_secret(name: &str, part: &str) -> Value {
    // Said outright: podman 4.3 reads an `optional` that is not there, and ends.
    json!({"name": "credentials", "secret": {"secretName": format!("{name}-{part}"), "optional": false}})
}

fn coordinator_job(deployment: &Deployment) -> Value {
    let name = &deployment.name;
    let pod = json!({
        "restartPolicy": "Never",
        "automountServiceAccountToken": false,
        "containers": [{
            "name": "coordinator",
            "image": deployment.image,
            "args": deployment.coordinator_words(),
            "ports": [{"containerPort": COORDINATOR_PORT}],
            "securityContext": confined(),
            "volumeMounts": [
                {"name": "credentials", "mountPath": CREDENTIALS, "readOnly": true},
                {"name": "tmp", "mountPath": "/tmp"},
            ],
        }],
        "volumes": [volume_of_secret(name, "coordinator"), {"name": "tmp", "emptyDir": {}}],
    });
    let template = json!({"metadata": {"labels": labels(name, "coordinator")}, "spec": pod});
    // A run is not tried again behind one's back: an invalid one ends with a code above zero.
    object(deployment, "batch/v1", "Job", "coordinator", json!({"spec": {"backoffLimit": 0, "template": template}}))
}

fn node_job(deployment: &Deployment) -> Value {
    let name = &deployment.name;
    let apart = json!([{"weight": 100, "podAffinityTerm": {
        "topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": labels(name, "node")}}}]);
    let away_from_system = json!([{"weight": 100, "podAffinityTerm": {
        "topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": labels(name, "system")}}}]);
    let away: Vec<Value> =
        [apart, away_from_system].into_iter().flat_map(|terms| terms.as_array().cloned().unwrap_or_default()).collect();
    let pod = json!({
        "restartPolicy": "OnFailure",
        "automountServiceAccountToken": false,
        "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": away}},
        "containers": [{
            "name": "node",
            "image": deployment.image,
            "args": deployment.node_words("coordinator", Some("node-$(JOB_COMPLETION_INDEX)")),
            "env": [{"name": "JOB_COMPLETION_INDEX", "valueFrom": {"fieldRef": {
                "fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']"}}}],
            "resources": resources(deployment.node_limits.as_ref()),
            "securityContext": confined(),
            "volumeMounts": [
                {"name": "credentials", "mountPath": CREDENTIALS, "readOnly": true},
                {"name": "tmp", "mountPath": "/tmp"},
            ],
        }],
        "volumes": [volume_of_secret(name, "node"), {"name": "tmp", "emptyDir": {}}],
    });
    let template = json!({"metadata": {"labels": labels(name, "node")}, "spec": pod});
    object(
        deployment,
        "batch/v1",
        "Job",
        "node",
        json!({"spec": {
            "completionMode": "Indexed",
            "completions": deployment.nodes,
            "parallelism": deployment.nodes,
            "template": template,
        }}),
    )
}

fn system_deployment(deployment: &Deployment, system: &Rendered) -> Value {
    let name = &deployment.name;
    let mut container = json!({
        "name": "system",
        "image": system.image,
        "args": system.arguments,
        "env": system.environment.iter().map(|(name, value)| json!({"name": name, "value": value})).collect::<Vec<_>>(),
        "ports": system.ports.iter().map(|port| json!({"containerPort": port})).collect::<Vec<_>>(),
        "resources": resources(deployment.system_limits.as_ref()),
        "volumeMounts": [{"name": "files", "mountPath": system.directory, "readOnly": true}],
    });
    if let Some(entrypoint) = &system.entrypoint {
        container["command"] = json!([entrypoint]);
    }
    if let Some(user) = system.user.as_ref().and_then(|user| user.parse::<u32>().ok()) {
        container["securityContext"] = json!({"runAsUser": user});
    }
    let pod = json!({
        "automountServiceAccountToken": false,
        "containers": [container],
        "volumes": [{"name": "files", "configMap": {"name": format!("{name}-system"), "optional": false}}],
    });
    object(
        deployment,
        "apps/v1",
        "Deployment",
        "system",
        json!({"spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels(name, "system")},
            "template": {"metadata": {"labels": labels(name, "system")}, "spec": pod},
        }}),
    )
}
