//! Files for orchestrators: their content, and refusals.

use pubmark_conformance::certificates::Certificates;
use serde_json::{Value, json};

use crate::support::place::{Called, PUBMARK, Place};

pub fn deploy(place: &Place, words: &[&str]) -> Called {
    place.call(&[&["deploy"][..], words].concat())
}

pub fn read(place: &Place, name: &str) -> String {
    std::fs::read_to_string(place.path().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The documents of a file, parsed by an independent YAML library.
fn documents(text: &str) -> Vec<Value> {
    text.split("\n---\n").map(|document| serde_saphyr::from_str(document).unwrap()).collect()
}

/// The common name of all objects of a run.
fn instance_of(objects: &[Value]) -> String {
    objects[0]["metadata"]["labels"]["app.kubernetes.io/instance"].as_str().unwrap().to_owned()
}

/// A workload as a file.
const OWN: &str =
    "{name: own, devices: [{name: a, every: 1s, payload: 10B, topic: a}], subscribers: [{name: b, filters: [a]}]}";

#[test]
fn kubernetes_gets_all_that_a_run_needs() {
    let place = Place::new();
    let words =
        ["kubernetes", "smart-home", "--nodes", "5", "--limit", "cpu=0.5,memory=256MB", "--node-limit", "cpu=1"];
    let called = deploy(&place, &[&words[..], &["--", "--qos", "1", "--duration", "10s"]].concat());
    assert!(called.code() == 0 && called.printed.contains("kubectl create -f deploy/pubmark.yaml"), "{called:?}");
    let objects = documents(&read(&place, "deploy/pubmark.yaml"));
    let instance = instance_of(&objects);
    assert!(instance.starts_with("pubmark-") && instance.len() == "pubmark-".len() + 6, "{instance}");
    let of = |kind: &str, part: &str| {
        let name = format!("{instance}-{part}");
        let found = objects.iter().find(|object| object["kind"] == kind && object["metadata"]["name"] == name);
        found.unwrap_or_else(|| panic!("no {kind} {name}"))
    };
    assert!(objects.iter().all(|object| object["metadata"]["name"].as_str().unwrap().starts_with(&instance)));
    for job in ["node", "coordinator"] {
        let spec = &of("Job", job)["spec"];
        assert!(spec["activeDeadlineSeconds"].as_u64().unwrap() > 1_800 && spec["ttlSecondsAfterFinished"] == 3_600);
        let pod = &spec["template"]["spec"];
        assert_eq!((&pod["enableServiceLinks"], &pod["automountServiceAccountToken"]), (&false.into(), &false.into()));
        assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
        assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
        let container = &pod["containers"][0];
        assert_eq!(container["resources"]["limits"], container["resources"]["requests"]);
        assert!(container["resources"]["limits"]["cpu"].is_string(), "{job}: a quota refuses what has no limits");
        assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true);
        assert_eq!(container["securityContext"]["capabilities"]["drop"], json!(["ALL"]));
        assert!(container["env"].as_array().is_none_or(|list| list.iter().all(|one| one["value"].is_null())), "{job}");
    }
    let nodes = &of("Job", "node")["spec"];
    assert_eq!((&nodes["completions"], &nodes["completionMode"]), (&5.into(), &"Indexed".into()));
    let container = &nodes["template"]["spec"]["containers"][0];
    assert_eq!(container["resources"]["limits"], container["resources"]["requests"]);
    assert_eq!(container["resources"]["limits"]["cpu"], "1000m");
    assert!(nodes["template"]["spec"]["affinity"]["podAntiAffinity"].is_object());
    let words = &of("Job", "coordinator")["spec"]["template"]["spec"]["containers"][0]["args"];
    assert_eq!(
        (&words[0], &words[1], &words[2]),
        (&"pod".into(), &"run".into(), &"/pubmark/credentials/run.yaml".into())
    );
    let spec: Value =
        serde_saphyr::from_str(of("Secret", "coordinator")["stringData"]["run.yaml"].as_str().unwrap()).unwrap();
    assert_eq!((&spec["workload"], &spec["nodes"]["nodes"]), (&"smart-home".into(), &5.into()));
    assert_eq!(spec["target"]["endpoint"], format!("mqtt://{instance}-system:1883"));
    assert_eq!((&spec["load"]["qos"], &spec["window"]["duration"]), (&1.into(), &"10s".into()));
    assert_eq!(spec["target"]["placed"]["limits"]["memory_bytes"], 256_000_000);
    assert_eq!(spec["nodes"]["observers"], 1);
    let pod = &of("StatefulSet", "system")["spec"]["template"]["spec"];
    assert_eq!((&pod["shareProcessNamespace"], &pod["containers"][1]["name"]), (&true.into(), &"observer".into()));
    assert_ne!(pod["containers"][1]["securityContext"]["runAsUser"], pod["securityContext"]["runAsUser"]);
    let system = &pod["containers"][0];
    assert!(system["image"].as_str().unwrap().contains("eclipse-mosquitto:2"), "{system}");
    assert_eq!(system["resources"]["limits"]["memory"], "256000000");
    assert_eq!(system["readinessProbe"]["tcpSocket"]["port"], 1_883);
    assert!(of("ConfigMap", "system")["data"]["mosquitto.conf"].as_str().unwrap().contains("listener 1883"));
    for part in ["coordinator", "system"] {
        assert_eq!(of("Service", part)["spec"]["clusterIP"], "None", "no translation of addresses is measured");
    }
    assert_eq!(of("NetworkPolicy", "run")["spec"]["policyTypes"], json!(["Ingress"]));
    for side in ["coordinator", "node"] {
        assert!(of("Secret", side)["stringData"]["key.pem"].as_str().unwrap().contains("PRIVATE KEY"));
    }
    // The specification of a deployment can be deployed again, with a separate system.
    let text = of("Secret", "coordinator")["stringData"]["run.yaml"].as_str().unwrap();
    place.write("again.yaml", text);
    let called = deploy(&place, &["kubernetes", "again.yaml", "--out", "again"]);
    assert_eq!(called.code(), 0, "{called:?}");
    let again = read(&place, "again/pubmark.yaml");
    assert!(!again.contains(&instance), "the endpoint is that of the run before: {again}");
    // No other run has these names.
    assert_eq!(deploy(&place, &["kubernetes", "smart-home", "--out", "other"]).code(), 0);
    let other = documents(&read(&place, "other/pubmark.yaml"));
    assert_ne!(instance_of(&other), instance);
    // A workload may contain log-ins: it is in a Secret, and in nothing that others may read.
    place.write("own.yaml", OWN.replace("topic: a", "topic: hidden").replace("[a]", "[hidden]"));
    assert_eq!(deploy(&place, &["kubernetes", "own.yaml", "--out", "own"]).code(), 0);
    let own = documents(&read(&place, "own/pubmark.yaml"));
    let holders: Vec<&Value> = own.iter().filter(|object| object.to_string().contains("hidden")).collect();
    let [holder] = &holders[..] else { panic!("{holders:?}") };
    assert_eq!(holder["kind"], "Secret");
    assert!(own.iter().any(|object| object["kind"] == "ConfigMap"), "the system's configuration has one");
    // A user without a password has none in the container either.
    let called = deploy(&place, &["compose", "smart-home", "--out", "user", "--", "--user", "ann"]);
    assert_eq!(called.code(), 0, "{called:?}");
    let spec = read(&place, "user/coordinator/run.yaml");
    assert!(spec.contains("user: ann") && !spec.contains("password"), "{spec}");
    // Existing files are not overwritten: nodes may run with their certificates.
    let again = deploy(&place, &["kubernetes", "smart-home"]);
    assert!(again.code() == 2 && again.errors.contains("is there already"), "{again:?}");
}

#[test]
fn what_the_coordinator_would_refuse_is_refused_before_anything_is_written() {
    let place = Place::new();
    for (options, said) in [
        (&["--join-limit", "20s"][..], "`--join-limit` cannot be used for a run in containers"),
        (&["--observers", "1"], "`--observers` cannot be used for a run in containers"),
        (&["--dry-run"], "`--dry-run` cannot be used for a run in containers"),
        (&["--out", "x"], "`--out` cannot be used for a run in containers"),
        (&["--limit", "cpu=1"], "`--limit` cannot be used for a run in containers"),
        (&["--topology", "3:bridge"], "`--topology` cannot be used for a run in containers"),
        (&["--tls"], "`--tls` cannot be used for a run in containers"),
        (&["--pin", "system=0"], "`--pin system=…` is for a system that pubmark starts"),
        (&["--fault", "kill:at=1s"], "kill"),
        (&["--slo", "p77<1ms"], "p77"),
        (&["--placement", "nobody=site=edge"], "nobody"),
    ] {
        for kind in ["kubernetes", "compose"] {
            let called = deploy(&place, &[&[kind, "smart-home", "--"], options].concat());
            assert!(called.code() == 2 && called.errors.contains(said), "{kind} {options:?}: {called:?}");
            assert!(!place.path().join("deploy").exists(), "{kind} {options:?}: {called:?}");
        }
    }
    for (words, said) in [
        (&["compose", "smart-home", "--limit", "mq-bench-1"][..], "`--limit cpu=1,memory=2GiB` limits its CPU time"),
        (&["kubernetes", "smart-home", "--protocol", "mqtt5", "--", "--protocol", "mqtt311"], "is given twice"),
    ] {
        let called = deploy(&place, words);
        assert!(called.code() == 2 && called.errors.contains(said), "{words:?}: {called:?}");
        assert!(!place.path().join("deploy").exists(), "{words:?}: {called:?}");
    }
    let called = deploy(&place, &["compose", "smart-home", "--out", "c", "--", "--protocol", "mqtt311"]);
    assert_eq!(called.code(), 0, "{called:?}");
    assert!(read(&place, "c/coordinator/run.yaml").contains("protocol: mqtt311"), "{called:?}");
    let called = deploy(&place, &["kubernetes", "smart-home", "--no-observer"]);
    assert_eq!(called.code(), 0, "{called:?}");
    assert!(!read(&place, "deploy/pubmark.yaml").contains("observe"));
}

#[test]
fn only_nodes_get_the_capabilities_that_links_need() {
    let place = Place::new();
    let link = ["--", "--link", "lte"];
    assert_eq!(deploy(&place, &[&["kubernetes", "smart-home", "--out", "k"], &link[..]].concat()).code(), 0);
    let objects = documents(&read(&place, "k/pubmark.yaml"));
    let pods = || objects.iter().map(|object| &object["spec"]["template"]["spec"]).filter(|pod| pod.is_object());
    let containers: Vec<&Value> = pods().flat_map(|pod| pod["containers"].as_array().unwrap()).collect();
    assert_eq!(containers.len(), 4, "coordinator, node, system, observer");
    for container in containers {
        let added = &container["securityContext"]["capabilities"]["add"];
        match container["name"] == "node" {
            true => assert_eq!(*added, json!(["NET_ADMIN", "SYS_ADMIN", "SYS_NICE"]), "{container}"),
            false => assert!(added.is_null() && container["securityContext"]["runAsUser"] != 0, "{container}"),
        }
    }
    let devices: Vec<&Value> = pods()
        .flat_map(|pod| pod["volumes"].as_array().unwrap())
        .map(|volume| &volume["hostPath"])
        .filter(|path| path.is_object())
        .collect();
    assert_eq!(devices, [&json!({"path": "/dev/net/tun", "type": "CharDevice"})]);
    for (out, netem, device) in [("c", "user", json!(["/dev/net/tun"])), ("n", "kernel", Value::Null)] {
        let words = [&["compose", "smart-home", "--out", out][..], &link, &["--netem", netem]].concat();
        assert_eq!(deploy(&place, &words).code(), 0);
        let services = &documents(&read(&place, &format!("{out}/compose.yaml")))[0]["services"];
        assert_eq!(services["node"]["cap_add"], json!(["NET_ADMIN", "SYS_ADMIN", "SYS_NICE"]));
        assert_eq!(services["node"]["devices"], device);
        assert!(services["coordinator"]["cap_add"].is_null() && services["system"]["cap_add"].is_null(), "{services}");
    }
}

#[test]
fn clients_that_meet_without_a_broker_need_no_system_beside_them() {
    let place = Place::new();
    let words = ["compose", "hello", "--system", "dds", "--nodes", "2", "--out", "c"];
    let called = deploy(&place, &words);
    assert_eq!(called.code(), 0, "{called:?}");
    let services = &documents(&read(&place, "c/compose.yaml"))[0]["services"];
    assert!(services["system"].is_null() && services["node"]["deploy"]["replicas"] == 2, "{services}");
    assert_eq!(services["node"]["deploy"]["mode"], "replicated", "podman-compose starts one without it");
    let spec: Value = serde_saphyr::from_str(&read(&place, "c/coordinator/run.yaml")).unwrap();
    assert_eq!((&spec["target"]["system"], &spec["protocols"]["protocol"]), (&"dds".into(), &"dds".into()));
    assert!(spec["target"]["endpoint"].is_null(), "{spec}");
    let called = deploy(&place, &["kubernetes", "hello", "--system", "zeromq-peers", "--out", "k", "--", "--qos", "0"]);
    assert_eq!(called.code(), 0, "{called:?}");
    let kinds = documents(&read(&place, "k/pubmark.yaml"));
    assert!(kinds.iter().all(|object| object["kind"] != "StatefulSet"), "{kinds:?}");
    let called = deploy(&place, &["kubernetes", "hello", "--system", "dds", "--limit", "cpu=1", "--out", "l"]);
    assert!(called.code() == 2 && called.errors.contains("`--node-limit` is for the nodes"), "{called:?}");
    // A system without MQTT: its first protocol is used.
    let called = deploy(&place, &["compose", "hello", "--system", "nats", "--out", "n", "--", "--qos", "0"]);
    assert_eq!(called.code(), 0, "{called:?}");
    assert!(read(&place, "n/coordinator/run.yaml").contains("endpoint: nats://system:"), "{called:?}");
}

const PLACED: &str = "name: placed
devices: [{name: cameras, every: 1s, payload: 30B, topic: c}]
subscribers: [{name: screens, filters: [c]}]
placement: {cameras: site=edge, screens: each site}
";

#[test]
fn compose_has_a_service_for_the_nodes_of_each_site() {
    let place = Place::new();
    place.write("placed.yaml", PLACED);
    let call = ["compose", "placed.yaml", "--nodes", "3", "--", "--node-label"];
    let called = deploy(&place, &[&call[..], &["site=edge,cloud"]].concat());
    assert_eq!(called.code(), 0, "{called:?}");
    let compose: Value = serde_saphyr::from_str(&read(&place, "deploy/compose.yaml")).unwrap();
    let service = |name: &str| {
        let service = &compose["services"][name];
        let words: Vec<&str> = service["command"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        (words[words.len() - 2..].join(" "), service["deploy"]["replicas"].as_u64())
    };
    assert_eq!(service("node-1"), ("--label site=edge".to_owned(), Some(2)));
    assert_eq!(service("node-2"), ("--label site=cloud".to_owned(), Some(1)));
    assert!(compose["services"]["node"].is_null(), "{compose}");
    let spec = read(&place, "deploy/coordinator/run.yaml");
    assert!(!spec.contains("node_labels") && spec.contains("each site"), "{spec}");
    for (words, said) in [
        (&["compose", "placed.yaml", "--out", "b"][..], "no node has a label"),
        (
            &["compose", "placed.yaml", "--out", "b", "--", "--node-label", "site=edge,b,c"],
            "has 3 values, and the run has 2 nodes",
        ),
        (&["kubernetes", "placed.yaml", "--out", "b"], "nodes of one Kubernetes Job are alike"),
    ] {
        let called = deploy(&place, words);
        let errors = called.errors.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(called.code() == 2 && errors.contains(said), "{words:?}: {called:?}");
    }
}

/// Parses an object as a type of the Kubernetes API and serialises it again: unknown fields are then missing.
fn known<T: serde::de::DeserializeOwned + serde::Serialize>(object: &Value) {
    let read: T = serde_json::from_value(object.clone()).unwrap_or_else(|error| panic!("{error}: {object}"));
    let again = serde_json::to_value(read).unwrap();
    assert_eq!(again["metadata"], object["metadata"]);
    for part in ["spec", "data", "stringData", "type"] {
        assert_eq!(without_defaults(&again[part]), without_defaults(&object[part]), "{part} of {}", object["kind"]);
    }
}

/// Empty and missing mean the same to Kubernetes.
fn without_defaults(value: &Value) -> Value {
    let is_empty = |value: &Value| {
        value.is_null()
            || value.as_object().is_some_and(|fields| fields.is_empty())
            || value.as_array().is_some_and(Vec::is_empty)
    };
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().map(|(name, value)| (name.clone(), without_defaults(value)));
            Value::Object(kept.filter(|(_, value)| !is_empty(value)).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_defaults).collect()),
        other => other.clone(),
    }
}

#[test]
fn every_object_is_one_that_kubernetes_knows() {
    use k8s_openapi::api::{
        apps::v1::StatefulSet, batch::v1::Job, core::v1::ConfigMap, core::v1::Secret, core::v1::Service,
        networking::v1::NetworkPolicy,
    };
    let place = Place::new();
    place.write("own.yaml", OWN);
    for (system, protocol) in [
        ("mosquitto", "mqtt5"),
        ("nats", "nats"),
        ("rabbitmq", "amqp091"),
        ("emqx", "mqtt311"),
        ("redis", "redis"),
        ("hivemq", "mqtt5"),
    ] {
        let words =
            ["kubernetes", "own.yaml", "--system", system, "--protocol", protocol, "--out", system, "--limit", "cpu=1"];
        let called = deploy(&place, &words);
        assert_eq!(called.code(), 0, "{called:?}");
        let objects = documents(&read(&place, &format!("{system}/pubmark.yaml")));
        for object in &objects {
            let data = object["data"].as_object().into_iter().chain(object["stringData"].as_object()).flatten();
            assert!(data.into_iter().all(|(key, _)| !key.contains('/')), "{system}: a key with `/` is refused");
            match object["kind"].as_str().unwrap() {
                "ConfigMap" => known::<ConfigMap>(object),
                "Secret" => known::<Secret>(object),
                "Service" => known::<Service>(object),
                "StatefulSet" => known::<StatefulSet>(object),
                "NetworkPolicy" => known::<NetworkPolicy>(object),
                "Job" => known::<Job>(object),
                other => panic!("a {other} was not expected"),
            }
        }
        assert_eq!(objects.len(), 9, "{system}");
    }
}

#[test]
fn compose_mounts_what_lies_beside_it() {
    let place = Place::new();
    place.write("own.yaml", OWN);
    let called = deploy(
        &place,
        &["compose", "own.yaml", "--system", "nats", "--protocol", "nats", "--nodes", "3", "--out", "c"],
    );
    assert_eq!(called.code(), 0, "{called:?}");
    let file = &documents(&read(&place, "c/compose.yaml"))[0];
    assert_eq!(file["services"]["node"]["deploy"]["replicas"], 3);
    let command = file["services"]["coordinator"]["command"].to_string();
    assert!(command.contains("/pubmark/credentials/run.yaml"), "{command}");
    let system = &file["services"]["system"]["container_name"];
    assert_eq!(file["services"]["observer"]["pid"], format!("container:{}", system.as_str().unwrap()));
    for service in ["coordinator", "node", "observer", "system"] {
        for volume in file["services"][service]["volumes"].as_array().unwrap() {
            let here = volume.as_str().unwrap().split(':').next().unwrap();
            assert!(here == "./system" || place.path().join("c").join(here).is_dir(), "{volume}");
        }
    }
    let spec = read(&place, "c/coordinator/run.yaml");
    for wanted in ["name: own", "endpoint: nats://system:4222", "nodes: 3", "listen: 0.0.0.0:7700"] {
        assert!(spec.contains(wanted), "`{wanted}` is not in {spec}");
    }
}

#[test]
fn containers_can_read_what_compose_mounts_whatever_the_umask_is() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new();
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", "umask 077 && exec \"$0\" \"$@\"", PUBMARK]);
    let called = place.start_by(shell, &["deploy", "compose", "smart-home", "--out", "c"]).wait();
    assert_eq!(called.code(), 0, "{called:?}");
    let mode = |name: &str| std::fs::metadata(place.path().join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("c"), 0o700, "keys are in it");
    for folder in ["coordinator", "node", "system"] {
        assert_eq!(mode(&format!("c/{folder}")), 0o755, "{folder}");
    }
    for file in ["coordinator/run.yaml", "node/key.pem", "system/mosquitto.conf"] {
        assert_eq!(mode(&format!("c/{file}")), 0o644, "{file}");
    }
}

#[test]
fn files_of_certificates_and_keys_are_secrets_of_the_coordinator() {
    let place = Place::new();
    let files = Certificates::make(place.path(), "own");
    let options = ["--endpoint", "mqtts://broker.example", "--tls-ca", "own-authority.pem"];
    let options = [&options[..], &["--tls-cert", "own-client.pem", "--tls-key", "own-client-key.pem"]].concat();
    let called = deploy(&place, &[&["compose", "smart-home", "--out", "c", "--"], &options[..]].concat());
    assert_eq!(called.code(), 0, "{called:?}");
    let spec = read(&place, "c/coordinator/run.yaml");
    for (name, file) in [("ca", &files.authority), ("cert", &files.client), ("key", &files.client_key)] {
        let written = format!("c/coordinator/tls-{name}.pem");
        assert_eq!(read(&place, &written), std::fs::read_to_string(file).unwrap());
        assert!(spec.contains(&format!("tls_{name}: /pubmark/credentials/tls-{name}.pem")), "{spec}");
        assert!(!place.path().join(format!("c/node/tls-{name}.pem")).exists(), "nodes get it from the coordinator");
    }
    let called = deploy(&place, &[&["kubernetes", "smart-home", "--out", "k", "--"], &options[..]].concat());
    assert_eq!(called.code(), 0, "{called:?}");
    let objects = documents(&read(&place, "k/pubmark.yaml"));
    let key = std::fs::read_to_string(&files.client_key).unwrap();
    let holders: Vec<&Value> = objects.iter().filter(|object| object["stringData"]["tls-key.pem"] == key).collect();
    assert_eq!(holders.len(), 1);
    assert_eq!(holders[0]["kind"], "Secret");
}

#[test]
fn groups_without_a_node_are_named() {
    let place = Place::new();
    for (words, said) in [
        (&["kubernetes", "smart-home", "--system", "builtin"][..], "no container"),
        (&["kubernetes", "smart-hom"], "there is no workload `smart-hom`"),
        (&["kubernetes", "psmark-low"], "`psmark-low` is an experiment"),
        (&["ssh", "no-hosts.txt", "psmark-low"], "`psmark-low` is an experiment"),
        (&["kubernetes", "smart-home", "--name", "Mein Lauf"], "cannot be the name"),
        (&["kubernetes", "smart-home", "--", "--nodes", "3"], "before `--`"),
        (&["kubernetes", "smart-home", "--", "--qos", "7"], "--qos"),
        (&["kubernetes", "smart-home", "--limit", "cpu=lots"], "lots"),
        (
            &["kubernetes", "smart-home", "--", "--endpoint", "mqtts://broker", "--tls-ca", "ca.pem"],
            "ca.pem` (--tls-ca)",
        ),
        (&["compose", "smart-home", "--", "--endpoint", "mqtt://localhost:1883"], "leads each container to itself"),
        (&["compose", "smart-home", "--", "--message-log"], "would stay in the coordinator's container"),
        (&["kubernetes", "smart-home", "--", "--metric", "a=true"], "start programs, which no container has"),
        (&["kubernetes", "smart-home", "--", "--tls"], "`--tls` cannot be used for a run in containers"),
    ] {
        let called = deploy(&place, words);
        assert!(called.code() == 2 && called.errors.contains(said), "{words:?}: {called:?}");
        assert!(!place.path().join("deploy").exists(), "{words:?}");
    }
}

#[test]
fn pods_are_on_the_machines_that_the_options_select() {
    let place = Place::new();
    let options = ["--node-selector", "pool=load", "--system-node-selector", "pool=broker", "--spread"];
    let options = [&options[..], &["--toleration", "dedicated=load:NoSchedule", "--pull-secret", "registry"]].concat();
    let called = deploy(&place, &[&["kubernetes", "smart-home"], &options[..]].concat());
    assert_eq!(called.code(), 0, "{called:?}");
    let objects = documents(&read(&place, "deploy/pubmark.yaml"));
    for (kind, part, pool) in
        [("Job", "node", "load"), ("Job", "coordinator", "load"), ("StatefulSet", "system", "broker")]
    {
        let is_it =
            |one: &&Value| one["kind"] == kind && one["metadata"]["labels"]["app.kubernetes.io/component"] == part;
        let object = objects.iter().find(is_it).unwrap_or_else(|| panic!("no {kind} of {part}"));
        match kind {
            "Job" => known::<k8s_openapi::api::batch::v1::Job>(object),
            _ => known::<k8s_openapi::api::apps::v1::StatefulSet>(object),
        }
        let pod = &object["spec"]["template"]["spec"];
        assert_eq!(pod["nodeSelector"], json!({"pool": pool}), "{part}");
        assert_eq!(pod["tolerations"][0]["key"], "dedicated", "{part}");
        assert_eq!(pod["imagePullSecrets"], json!([{"name": "registry"}]), "{part}");
    }
    for (words, said) in [
        (&["compose", "smart-home", "--out", "c", "--spread"][..], "`--spread` is for a cluster, and Compose has none"),
        (
            &["compose", "smart-home", "--out", "c", "--node-selector", "pool=load"],
            "`--node-selector` is for a cluster",
        ),
        (&["kubernetes", "smart-home", "--out", "c", "--node-selector", "pool"], "is written KEY=VALUE"),
        (
            &["kubernetes", "smart-home", "--out", "c", "--toleration", "a=b:Never"],
            "such as `dedicated=load:NoSchedule`",
        ),
    ] {
        let called = deploy(&place, words);
        let errors = called.errors.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(called.code() == 2 && errors.contains(said), "{words:?}: {called:?}");
    }
}
