//! A Helm chart: the Kubernetes objects with what people change as values.

use serde_json::{Value, json};

use super::{Deployment, File, kubernetes, yaml};

/// Chart, values, and one template.
pub fn files(deployment: &Deployment) -> Vec<File> {
    let mut values = json!({"image": deployment.image, "nodes": deployment.nodes});
    if let Some(system) = &deployment.system {
        values["systemImage"] = json!(system.image);
    }
    let chart = json!({
        "apiVersion": "v2",
        "name": deployment.name,
        "version": env!("CARGO_PKG_VERSION"),
        "appVersion": env!("CARGO_PKG_VERSION"),
        "description": "A run of pubmark: a coordinator, its nodes, and the system that they measure",
        "type": "application",
    });
    let mut objects = kubernetes::objects(deployment);
    objects.iter_mut().for_each(|object| parametrise(object, deployment));
    vec![
        ("Chart.yaml".to_owned(), yaml::document(&chart)),
        ("values.yaml".to_owned(), yaml::document(&values)),
        ("templates/pubmark.yaml".to_owned(), filled(&escaped(&yaml::documents(&objects)))),
    ]
}

/// What stands for a value until the text is written: a word that YAML leaves as it is, or a number.
const IMAGE: &str = "PUBMARK-VALUE-image";
const SYSTEM_IMAGE: &str = "PUBMARK-VALUE-systemImage";
const NODES: &str = "PUBMARK-VALUE-nodes";

fn parametrise(object: &mut Value, deployment: &Deployment) {
    let system_image = deployment.system.as_ref().map(|system| system.image.as_str());
    match object {
        Value::Object(fields) => {
            for (key, value) in fields {
                let text = value.as_str();
                match key.as_str() {
                    "image" if text == Some(&deployment.image) => *value = json!(IMAGE),
                    "image" if text.is_some() && text == system_image => *value = json!(SYSTEM_IMAGE),
                    "completions" | "parallelism" => *value = json!(NODES),
                    "args" => parametrise_nodes(value),
                    _ => parametrise(value, deployment),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| parametrise(item, deployment)),
        _ => {}
    }
}

/// The number behind `--nodes`.
fn parametrise_nodes(words: &mut Value) {
    let Some(words) = words.as_array_mut() else { return };
    if let Some(place) = words.iter().position(|word| word == "--nodes")
        && let Some(number) = words.get_mut(place + 1)
    {
        *number = json!(format!("{NODES}-quoted"));
    }
}

/// What Helm would take for its own, in files of systems.
fn escaped(text: &str) -> String {
    text.replace("{{", "{{ \"{{\" }}")
}

fn filled(text: &str) -> String {
    text.replace(&format!("{NODES}-quoted"), "{{ .Values.nodes | quote }}")
        .replace(NODES, "{{ .Values.nodes }}")
        .replace(SYSTEM_IMAGE, "{{ .Values.systemImage | quote }}")
        .replace(IMAGE, "{{ .Values.image | quote }}")
}
