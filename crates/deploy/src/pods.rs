//! The state of the pods of a run, from the cluster's API.

use serde_json::Value;

/// Reasons of a waiting container that are no problem.
const STARTING: [&str; 2] = ["ContainerCreating", "PodInitializing"];

/// A pod of a run.
#[derive(Debug, PartialEq, Eq)]
pub struct Pod {
    /// Its name.
    pub name: String,
    /// Part of the run, such as `coordinator` or `node`.
    pub part: String,
    /// Problem that prevents the pod from running, or that restarted it.
    pub trouble: Option<String>,
    /// The first container runs.
    pub runs: bool,
    /// Exit code of the first container.
    pub exit_code: Option<i64>,
}

/// The pods in a response of the cluster.
pub fn of(list: &Value) -> Vec<Pod> {
    list["items"].as_array().into_iter().flatten().map(pod).collect()
}

fn pod(pod: &Value) -> Pod {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let status = &pod["status"];
    let containers = || status["containerStatuses"].as_array().into_iter().flatten();
    let first = containers().next().unwrap_or(&Value::Null);
    Pod {
        name: text(&pod["metadata"]["name"]),
        part: text(&pod["metadata"]["labels"]["app.kubernetes.io/component"]),
        trouble: not_scheduled(status).or_else(|| containers().find_map(in_trouble)).or_else(|| evicted(status)),
        runs: first["state"]["running"].is_object(),
        exit_code: first["state"]["terminated"]["exitCode"].as_i64(),
    }
}

fn not_scheduled(status: &Value) -> Option<String> {
    let conditions = status["conditions"].as_array()?;
    let found = conditions.iter().find(|one| one["type"] == "PodScheduled" && one["status"] == "False")?;
    Some(reason_of(found))
}

/// The reason of an eviction, for instance by a kubelet that lacks memory.
fn evicted(status: &Value) -> Option<String> {
    (status["phase"] == "Failed" && status["reason"].is_string()).then(|| reason_of(status))
}

fn in_trouble(container: &Value) -> Option<String> {
    let name = container["name"].as_str().unwrap_or_default();
    let waiting = &container["state"]["waiting"];
    let last = &container["lastState"]["terminated"];
    if waiting["reason"].as_str().is_some_and(|reason| !STARTING.contains(&reason)) {
        return Some(format!("{name}: {}", reason_of(waiting)));
    }
    // A restarted system has lost the sessions of its clients.
    let restarts = container["restartCount"].as_u64().filter(|count| *count > 0)?;
    let (code, reason) = (&last["exitCode"], last["reason"].as_str().unwrap_or("ended"));
    Some(format!("{name}: started again {restarts} times ({reason}, exit code {code})"))
}

fn reason_of(value: &Value) -> String {
    let text = |key: &str| value[key].as_str().filter(|text| !text.is_empty());
    let parts = [text("reason"), text("message")];
    parts.into_iter().flatten().collect::<Vec<_>>().join(": ")
}

/// The reason why the cluster created no pods for an object of the instance: a quota, or an admission rule.
pub fn not_created(events: &Value, instance: &str) -> Option<String> {
    let events = events["items"].as_array()?;
    let is_of_run = |event: &&Value| {
        let object = event["involvedObject"]["name"].as_str().unwrap_or_default();
        event["reason"] == "FailedCreate" && object.starts_with(&format!("{instance}-"))
    };
    events.iter().find(is_of_run).map(reason_of)
}

/// The reason why a Job has failed; `None` if it has not.
pub fn failed(job: &Value) -> Option<String> {
    let conditions = job["status"]["conditions"].as_array()?;
    conditions.iter().find(|one| one["type"] == "Failed" && one["status"] == "True").map(reason_of)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn one(status: &Value) -> Pod {
        let labels = json!({"app.kubernetes.io/component": "node"});
        of(&json!({"items": [{"metadata": {"name": "a", "labels": labels}, "status": status}]})).remove(0)
    }

    #[test]
    fn a_pod_that_starts_or_runs_is_in_no_trouble() {
        for (state, runs) in
            [(json!({"waiting": {"reason": "ContainerCreating"}}), false), (json!({"running": {}}), true)]
        {
            let pod = one(&json!({"containerStatuses": [{"name": "node", "restartCount": 0, "state": state}]}));
            assert_eq!((pod.trouble, pod.runs, pod.exit_code), (None, runs, None));
            assert_eq!(pod.part, "node");
        }
        assert_eq!(one(&json!({})).trouble, None);
    }

    #[test]
    fn a_pod_that_cannot_start_says_why() {
        let full = json!({"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                                          "message": "0/1 nodes are available: 1 Insufficient cpu."}]});
        assert_eq!(one(&full).trouble.as_deref(), Some("Unschedulable: 0/1 nodes are available: 1 Insufficient cpu."));
        let pull = json!({"containerStatuses": [{"name": "node", "restartCount": 0,
                          "state": {"waiting": {"reason": "ErrImagePull", "message": "not found"}}}]});
        assert_eq!(one(&pull).trouble.as_deref(), Some("node: ErrImagePull: not found"));
        let again = json!({"containerStatuses": [{"name": "system", "restartCount": 1, "state": {"running": {}},
                           "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}]});
        assert_eq!(one(&again).trouble.as_deref(), Some("system: started again 1 times (OOMKilled, exit code 137)"));
    }

    #[test]
    fn pods_that_were_refused_are_found_by_the_run_they_are_of() {
        let events = json!({"items": [
            {"reason": "FailedCreate", "message": "another's", "involvedObject": {"name": "b-2-node"}},
            {"reason": "FailedCreate", "message": "exceeded quota", "involvedObject": {"name": "a-1-node"}}]});
        assert_eq!(not_created(&events, "a-1").as_deref(), Some("FailedCreate: exceeded quota"));
        assert_eq!(not_created(&events, "c-3"), None);
    }

    #[test]
    fn a_job_that_failed_has_a_reason() {
        let of = |status: &str| {
            let condition = json!({"type": "Failed", "status": status, "reason": "DeadlineExceeded",
                                   "message": "Job was active longer than specified deadline"});
            failed(&json!({"status": {"conditions": [{"type": "FailureTarget", "status": "True"}, condition]}}))
        };
        assert_eq!(of("True").as_deref(), Some("DeadlineExceeded: Job was active longer than specified deadline"));
        assert_eq!((of("False"), failed(&json!({"metadata": {}}))), (None, None));
    }
}
