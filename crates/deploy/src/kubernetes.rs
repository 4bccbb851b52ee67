//! Kubernetes objects: a Job for the coordinator, an indexed Job whose nodes run on different machines where possible, and
//! the system as a StatefulSet behind a Service.
//!
//! Every name begins with the instance, which is unique to the run, so that two runs share no objects and results of an
//! earlier run cannot be confused with those of this one. All pods comply with Pod Security `restricted`, except nodes that
//! emulate links. All but the system's pod have a read-only root file system as well.

use pubmark_cluster::credentials::Files;
use pubmark_runner::spec::Netem;
use pubmark_systems::launch::Rendered;
use pubmark_systems::limits::ResourceLimits;
use serde_json::{Map, Value, json};

use crate::{
    COORDINATOR_PORT, CREDENTIALS, Deployment, File, LINK_CAPABILITIES, OBSERVER, RESULTS, SystemContainer, TUNNELS,
    USER, scheduling, yaml,
};

/// The cluster removes ended Jobs after this time, with their pods and logs.
const REMOVED_AFTER_S: u64 = 3600;
/// Time from a termination signal to the coordinator's end: it ends its run, writes the record and waits for a collector.
const GRACE_S: u64 = 60;
/// CPU limit of the observer, which takes four samples a second.
const OBSERVER_CPU: f64 = 0.1;
const OBSERVER_BYTES: u64 = 128_000_000;
/// File mode of secrets: only their owner and the group of the pod can read them.
const SECRET_MODE: u32 = 0o440;

/// The manifest: one file with all objects, which are created together.
pub fn files(deployment: &Deployment) -> Vec<File> {
    vec![("pubmark.yaml".to_owned(), yaml::documents(&objects(deployment)))]
}

/// All objects of the deployment.
fn objects(deployment: &Deployment) -> Vec<Value> {
    let [coordinator, node] = &deployment.secrets;
    let mut objects = vec![
        secret(deployment, "coordinator", coordinator),
        secret(deployment, "node", node),
        network_policy(deployment),
        headless(deployment, "coordinator", &[COORDINATOR_PORT], "TCP"),
    ];
    if let Some(system) = &deployment.system {
        let rendered = &system.rendered;
        let protocol = if rendered.datagrams { "UDP" } else { "TCP" };
        objects.push(config_map(deployment, "system", &rendered.files));
        objects.push(headless(deployment, "system", &rendered.ports, protocol));
        objects.push(system_set(deployment, system));
    }
    objects.push(coordinator_job(deployment));
    objects.push(node_job(deployment));
    objects
}

/// Kind and name of all objects except the coordinator's Job; they are removed together with the Job.
pub fn owned(deployment: &Deployment) -> Vec<String> {
    let named = |object: &Value| {
        let part = |value: &Value| value.as_str().unwrap_or_default().to_ascii_lowercase();
        format!("{}/{}", part(&object["kind"]), part(&object["metadata"]["name"]))
    };
    let coordinator = format!("job/{}", deployment.part("coordinator"));
    objects(deployment).iter().map(named).filter(|name| *name != coordinator).collect()
}

/// Labels of an object and its pods, by which Services and anti-affinities find them.
pub(crate) fn labels(instance: &str, part: &str) -> Value {
    json!({"app.kubernetes.io/name": "pubmark", "app.kubernetes.io/instance": instance, "app.kubernetes.io/component": part})
}

/// Builds an object of the run.
fn object(deployment: &Deployment, version: &str, kind: &str, part: &str, rest: Value) -> Value {
    let mut object = json!({
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": deployment.part(part), "labels": labels(&deployment.instance, part)},
    });
    if let Some(namespace) = &deployment.namespace {
        object["metadata"]["namespace"] = json!(namespace);
    }
    if let (Some(object), Value::Object(rest)) = (object.as_object_mut(), rest) {
        object.extend(rest);
    }
    object
}

/// Replaces `/` in a file name: keys of a ConfigMap or Secret must not contain it.
fn key(name: &str) -> String {
    name.replace('/', "_")
}

fn by_key<N: ToString>(files: &[(N, String)]) -> Map<String, Value> {
    files.iter().map(|(name, text)| (key(&name.to_string()), json!(text))).collect()
}

fn config_map(deployment: &Deployment, part: &str, files: &[(String, String)]) -> Value {
    object(deployment, "v1", "ConfigMap", part, json!({"data": by_key(files)}))
}

fn secret(deployment: &Deployment, part: &str, files: &Files) -> Value {
    object(deployment, "v1", "Secret", part, json!({"type": "Opaque", "stringData": by_key(files)}))
}

/// A headless Service: clients connect to the pod's address, so that no address translation is part of the measurement.
fn headless(deployment: &Deployment, part: &str, ports: &[u16], protocol: &str) -> Value {
    let ports: Vec<Value> =
        ports.iter().map(|port| json!({"name": format!("p{port}"), "port": port, "protocol": protocol})).collect();
    let selector = labels(&deployment.instance, part);
    // Readiness is checked by connecting: an observer that fails beside the system must not remove the system's DNS name.
    let spec = json!({"clusterIP": "None", "publishNotReadyAddresses": true, "selector": selector, "ports": ports});
    object(deployment, "v1", "Service", part, json!({"spec": spec}))
}

/// Allows traffic to the pods of this run only from each other. Outgoing traffic is not limited: a system may be outside the
/// cluster.
fn network_policy(deployment: &Deployment) -> Value {
    let run = json!({"matchLabels": {"app.kubernetes.io/instance": deployment.instance}});
    let spec = json!({"podSelector": run, "policyTypes": ["Ingress"], "ingress": [{"from": [{"podSelector": run}]}]});
    object(deployment, "networking.k8s.io/v1", "NetworkPolicy", "run", json!({"spec": spec}))
}

/// Security settings of a pod.
fn pod_security(user: u32) -> Value {
    json!({"runAsNonRoot": true, "runAsUser": user, "runAsGroup": user, "fsGroup": user,
           "seccompProfile": {"type": "RuntimeDefault"}})
}

/// Security settings of a container: no capabilities and no privilege escalation, as neither a load generator nor a system
/// needs root.
fn confined(read_only: bool) -> Value {
    json!({"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": read_only, "capabilities": {"drop": ["ALL"]}})
}

/// Security settings of a node that emulates links, which only Pod Security `privileged` allows. Its group can read the
/// credentials.
fn link_security() -> Value {
    json!({"runAsNonRoot": false, "runAsUser": 0, "runAsGroup": USER, "readOnlyRootFilesystem": true,
           "capabilities": {"drop": ["ALL"], "add": LINK_CAPABILITIES}})
}

/// Requests equal limits, so that the scheduler does not promise these resources to other pods.
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

fn volume_of_secret(deployment: &Deployment, part: &str) -> Value {
    // `optional` is written although it is the default: podman 4.3 requires the field and ends without it.
    let secret = json!({"secretName": deployment.part(part), "optional": false, "defaultMode": SECRET_MODE});
    json!({"name": "credentials", "secret": secret})
}

/// A container that runs pubmark.
fn own_container(deployment: &Deployment, name: &str, words: &[String], limits: Option<&ResourceLimits>) -> Value {
    json!({
        "name": name,
        "image": deployment.image,
        "args": words,
        "resources": resources(limits),
        "securityContext": confined(true),
        "volumeMounts": [
            {"name": "credentials", "mountPath": CREDENTIALS, "readOnly": true},
            {"name": "tmp", "mountPath": "/tmp"},
        ],
    })
}

/// A pod that runs pubmark; it needs neither the API of the cluster nor the addresses of other services.
fn own_pod(deployment: &Deployment, part: &str, restart: &str, container: Value) -> Value {
    let mut pod = json!({
        "restartPolicy": restart,
        "automountServiceAccountToken": false,
        "enableServiceLinks": false,
        "securityContext": pod_security(USER),
        "containers": [container],
        "volumes": [volume_of_secret(deployment, part), {"name": "tmp", "emptyDir": {}}],
    });
    scheduling::place(deployment, part, &mut pod);
    pod
}

fn coordinator_job(deployment: &Deployment) -> Value {
    let words = deployment.pod_words();
    let mut container = own_container(deployment, "coordinator", &words, deployment.coordinator_limits.as_ref());
    container["ports"] = json!([{"containerPort": COORDINATOR_PORT}]);
    let mut pod = own_pod(deployment, "coordinator", "Never", container);
    pod["terminationGracePeriodSeconds"] = json!(GRACE_S);
    push(&mut pod["containers"][0]["volumeMounts"], json!({"name": "results", "mountPath": RESULTS}));
    push(&mut pod["volumes"], json!({"name": "results", "emptyDir": {}}));
    // A failed run is not repeated automatically: an invalid run ends with a code above zero, too.
    job(deployment, "coordinator", &pod, json!({"backoffLimit": 0}))
}

fn push(list: &mut Value, item: Value) {
    if let Some(list) = list.as_array_mut() {
        list.push(item);
    }
}

/// A Job that ends at its deadline at the latest, and is removed some time after its end.
fn job(deployment: &Deployment, part: &str, pod: &Value, rest: Value) -> Value {
    let mut spec = json!({
        "activeDeadlineSeconds": deployment.deadline().as_secs(),
        "ttlSecondsAfterFinished": REMOVED_AFTER_S,
        "template": {"metadata": {"labels": labels(&deployment.instance, part)}, "spec": pod},
    });
    if let (Some(spec), Value::Object(rest)) = (spec.as_object_mut(), rest) {
        spec.extend(rest);
    }
    object(deployment, "batch/v1", "Job", part, json!({"spec": spec}))
}

fn node_job(deployment: &Deployment) -> Value {
    let mut words = deployment.node_words(&deployment.part("coordinator"), Some("node-$(JOB_COMPLETION_INDEX)"));
    words.extend(["--label", "machine=$(MACHINE)"].map(str::to_owned));
    let mut container = own_container(deployment, "node", &words, deployment.node_limits.as_ref());
    container["env"] = json!([
        {"name": "JOB_COMPLETION_INDEX", "valueFrom": {"fieldRef": {
            "fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']"}}},
        {"name": "MACHINE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
    ]);
    if deployment.links.is_some() {
        container["securityContext"] = link_security();
    }
    let mut pod = own_pod(deployment, "node", "OnFailure", container);
    if deployment.links == Some(Netem::User) {
        let tunnels = json!({"name": "tunnels", "hostPath": {"path": TUNNELS, "type": "CharDevice"}});
        push(&mut pod["containers"][0]["volumeMounts"], json!({"name": "tunnels", "mountPath": TUNNELS}));
        push(&mut pod["volumes"], tunnels);
    }
    let count = deployment.nodes;
    job(deployment, "node", &pod, json!({"completionMode": "Indexed", "completions": count, "parallelism": count}))
}

/// Mounts the system's files into a folder that the system can write to, as on a machine.
fn system_files(system: &Rendered) -> Value {
    let file = |(name, _): &(String, String)| json!({"name": "files", "mountPath": format!("{}/{name}", system.directory), "subPath": key(name), "readOnly": true});
    let folder = json!({"name": "work", "mountPath": system.directory, "subPath": "own"});
    // Some systems also have a second folder for files that several brokers share.
    let shared = json!({"name": "work", "mountPath": format!("{}-shared", system.directory), "subPath": "shared"});
    let temporary = json!({"name": "work", "mountPath": "/tmp", "subPath": "tmp"});
    [folder, shared, temporary].into_iter().chain(system.files.iter().map(file)).collect()
}

/// Writes each `$` of a command, argument or variable as `$$`: Kubernetes replaces `$(NAME)` by a variable of the container,
/// and reads `$$` as `$`.
fn literal(text: &str) -> String {
    text.replace('$', "$$")
}

fn system_container(container: &SystemContainer) -> Value {
    let system = &container.rendered;
    let variable = |(name, value): &(String, String)| json!({"name": name, "value": literal(value)});
    let mut container = json!({
        "name": "system",
        "image": system.image,
        "args": system.arguments.iter().map(|argument| literal(argument)).collect::<Vec<_>>(),
        "env": system.environment.iter().map(variable).collect::<Vec<_>>(),
        "ports": system.ports.iter().map(|port| json!({"containerPort": port})).collect::<Vec<_>>(),
        "resources": resources(container.limits.as_ref()),
        "securityContext": confined(false),
        "volumeMounts": system_files(system),
    });
    if let Some(entrypoint) = &system.entrypoint {
        container["command"] = json!([literal(entrypoint)]);
    }
    if !system.datagrams {
        container["readinessProbe"] =
            json!({"tcpSocket": {"port": system.endpoint.port}, "periodSeconds": 1, "failureThreshold": 1});
    }
    container
}

/// A container that measures CPU and memory of the system beside it. It shares the process namespace of the system. Its user
/// ID differs from the system's, so that neither container can signal the other.
fn observer_container(deployment: &Deployment) -> Value {
    let words = deployment.observer_words(&deployment.part("coordinator"));
    let limits = deployment.coordinator_limits.as_ref().map(|_| ResourceLimits {
        requested: String::new(),
        cpu: Some(OBSERVER_CPU),
        memory_bytes: Some(OBSERVER_BYTES),
        cores: None,
    });
    let mut container = own_container(deployment, "observer", &words, limits.as_ref());
    container["securityContext"]["runAsUser"] = json!(OBSERVER);
    container
}

fn system_set(deployment: &Deployment, system: &SystemContainer) -> Value {
    let user = system.rendered.user.as_ref().and_then(|user| user.parse::<u32>().ok()).unwrap_or(USER);
    let mut pod = json!({
        "automountServiceAccountToken": false,
        "enableServiceLinks": false,
        "securityContext": pod_security(user),
        "containers": [system_container(system)],
        "volumes": [
            {"name": "files", "configMap": {"name": deployment.part("system"), "optional": false}},
            {"name": "work", "emptyDir": {}},
        ],
    });
    scheduling::place(deployment, "system", &mut pod);
    if system.observed {
        pod["shareProcessNamespace"] = json!(true);
        push(&mut pod["containers"], observer_container(deployment));
        push(&mut pod["volumes"], volume_of_secret(deployment, "node"));
        push(&mut pod["volumes"], json!({"name": "tmp", "emptyDir": {}}));
    }
    object(
        deployment,
        "apps/v1",
        "StatefulSet",
        "system",
        json!({"spec": {
            "replicas": 1,
            "serviceName": deployment.part("system"),
            // A change of the object must not replace the system during a measurement.
            "updateStrategy": {"type": "OnDelete"},
            "selector": {"matchLabels": labels(&deployment.instance, "system")},
            "template": {"metadata": {"labels": labels(&deployment.instance, "system")}, "spec": pod},
        }}),
    )
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use pubmark_runner::RunSpec;

    use super::*;
    use crate::order::tests::order;

    #[test]
    fn kubernetes_replaces_nothing_in_what_the_system_gets_and_the_number_in_a_node_s_name() {
        let mut deployment = order().deployment(RunSpec::new("hello")).unwrap();
        let mut system = deployment.system.clone().unwrap();
        system.rendered.arguments = vec!["echo $$ $(HOME) $x".to_owned()];
        system.rendered.environment = vec![("MASK".to_owned(), "$(HOME)$".to_owned())];
        system.rendered.entrypoint = Some("$sh".to_owned());
        let container = system_container(&system);
        assert_eq!(container["args"], json!(["echo $$$$ $$(HOME) $$x"]));
        assert_eq!(container["env"], json!([{"name": "MASK", "value": "$$(HOME)$$"}]));
        assert_eq!(container["command"], json!(["$$sh"]));
        deployment.system = Some(system);
        let node = node_job(&deployment)["spec"]["template"]["spec"]["containers"][0]["args"].to_string();
        assert!(node.contains("\"node-$(JOB_COMPLETION_INDEX)\""), "{node}");
    }
}
