//! Deploys a run with `kubectl`; if the caller waits for its end, copies its results to this machine and removes everything from the
//! cluster.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use pubmark_record::record::Record;
use pubmark_record::store;
use pubmark_runner::{ErrorKind, RunError};
use serde_json::json;

use crate::archive::{self, Unpacked};
use crate::kubectl::{Bounds, Cluster};
use crate::pod::UNCOLLECTED;
use crate::pods::{self, Pod};
use crate::{COLLECT_LIMIT, Deployment, RESULTS};

/// Interval at which the state of the pods is read.
const LOOK: Duration = Duration::from_secs(2);
/// Interval at which the stop flag is checked.
const STEP: Duration = Duration::from_millis(100);
/// Consecutive failed requests that are tolerated: an API server that is being replaced is unavailable for seconds.
const FAILURES: u32 = 15;
/// A call that lasted longer than this does not count as a failure when it ends.
const LASTING: Duration = Duration::from_secs(30);
/// Lines of a log that are shown if there are no results.
const TAIL: &str = "--tail=12";
/// Name of the archive file while the results are transferred.
const ARCHIVE: &str = "results.tar";

/// The deployment of a run from a manifest.
pub struct Applied<'a> {
    /// The deployment.
    pub deployment: &'a Deployment,
    /// File of its manifest.
    pub manifest: &'a Path,
    /// The cluster in which the run is deployed.
    pub cluster: &'a Cluster,
    /// Folder for the results.
    pub out: &'a Path,
    /// Longest wait for the end of the run.
    pub limit: Duration,
}

/// Result of a deployed run.
pub struct Collected {
    /// The records, each with its folder.
    pub records: Vec<(Record, PathBuf)>,
    /// Exit code of the run.
    pub exit_code: i32,
    /// Why the deployment could not be removed; `None` if it was removed.
    pub left: Option<RunError>,
}

/// A running call of `kubectl`. Dropping it ends the call.
struct Call(Child);

impl Call {
    fn ended(&mut self) -> Result<Option<ExitStatus>, RunError> {
        let failed = |error| RunError::from_error(ErrorKind::Internal, &error).during("failed to wait for `kubectl`");
        self.0.try_wait().map_err(failed)
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        // An error means that the process has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The calls that are active while a coordinator runs.
struct Fetching {
    sending: Call,
    _log: Call,
    began: Instant,
}

impl Applied<'_> {
    /// Deploys the run and leaves it in the cluster. After a failure, what was created is removed.
    ///
    /// # Errors
    /// The cluster refuses a request.
    pub fn create(&self, stop: &AtomicBool) -> Result<(), RunError> {
        self.place(stop).map_err(|error| self.removed_after(error))
    }

    /// Deploys the run and collects its results. All objects are removed at the end, also after a failure. `note` receives
    /// progress messages.
    ///
    /// # Errors
    /// The cluster refuses a request, the run does not end in time, or its coordinator has no results.
    pub fn perform(&self, note: &mut dyn FnMut(&str), stop: &AtomicBool) -> Result<Collected, RunError> {
        match self.place(stop).and_then(|()| self.follow(note, stop)) {
            Ok(collected) => Ok(Collected { left: self.remove().err(), ..collected }),
            Err(error) => Err(self.removed_after(error)),
        }
    }

    /// Creates all objects.
    fn place(&self, stop: &AtomicBool) -> Result<(), RunError> {
        let bounds = Bounds { stop: Some(stop), deadline: None };
        self.cluster.call(&["create", "-f", &self.manifest.display().to_string()], bounds)?;
        self.own(bounds)
    }

    /// Removes all objects. Their names contain the instance of this run, so that another run is not affected, even if the
    /// cluster refused some of them.
    fn remove(&self) -> Result<(), RunError> {
        let manifest = self.manifest.display().to_string();
        let delete = ["delete", "--ignore-not-found", "--wait=false", "-f", &manifest];
        self.cluster.call(&delete, Bounds::default()).map(drop)
    }

    fn removed_after(&self, mut error: RunError) -> RunError {
        if let Err(left) = self.remove() {
            error.chain.push(format!("and what was placed may still be there: {left}"));
        }
        error
    }

    fn follow(&self, note: &mut dyn FnMut(&str), stop: &AtomicBool) -> Result<Collected, RunError> {
        let deadline = Instant::now() + self.limit;
        let bounds = Bounds { stop: Some(stop), deadline: Some(deadline) };
        let job = format!("job/{}", self.deployment.part("coordinator"));
        note(&format!("placed; waiting for {job}"));
        let mut troubles = Troubles::default();
        // Consecutive failures: requests for failed pods, and calls that fetch the results.
        let (mut looks, mut fetches) = (0, 0);
        // Transfers of the results that were cut off.
        let mut parts: u32 = 0;
        let mut calls: Option<Fetching> = None;
        loop {
            if let Some(fetching) = &mut calls
                && let Some(status) = fetching.sending.ended()?
            {
                if status.success()
                    && let Some(unpacked) = self.unpack()?
                {
                    return self.collect(unpacked, &job, stop);
                }
                parts += u32::from(self.has_part());
                // The pod has its results until it is released, and can send them again. A long call that is cut off is no
                // failure: a proxy limits how long a connection may be idle.
                fetches = if fetching.began.elapsed() > LASTING { 0 } else { fetches + 1 };
                calls = None;
            }
            match self.pods(bounds) {
                Ok(found) => {
                    looks = 0;
                    troubles.report(&found, note);
                    let coordinator = found.iter().find(|pod| pod.part == "coordinator");
                    if let Some(pod) = coordinator.filter(|pod| pod.exit_code.is_some()) {
                        parts += u32::from(calls.is_some() && self.has_part());
                        return Err(self.without_results(&job, pod, parts, stop));
                    }
                    if let Some(pod) = coordinator.filter(|pod| pod.runs && calls.is_none()) {
                        calls = Some(self.fetch(pod)?);
                    }
                    if calls.is_none() && coordinator.is_none_or(|pod| !pod.runs) {
                        self.check_job(bounds)?;
                    }
                    let is_there = |part: &str| found.iter().any(|pod| pod.part == part);
                    if !(is_there("coordinator") && is_there("node")) {
                        troubles.report_refusal(self, bounds, note);
                    }
                }
                Err(failure) if looks >= FAILURES => return Err(failure),
                Err(_) => looks += 1,
            }
            if fetches >= FAILURES {
                let message = format!(
                    "the results of {job} could not be fetched: `kubectl exec` failed, or brought a part of them, {FAILURES} times \
                     in a row"
                );
                return Err(RunError::new(ErrorKind::System, message)
                    .hint("your role needs `create` on `pods/exec` in this namespace"));
            }
            self.rest(deadline, &job, calls.as_mut().map(|fetching| &mut fetching.sending), stop)?;
        }
    }

    /// Makes the coordinator's Job the owner of all other objects. The cluster removes the Job some time after its end, so
    /// that nothing remains if the caller has ended before.
    fn own(&self, bounds: Bounds<'_>) -> Result<(), RunError> {
        let name = self.deployment.part("coordinator");
        let job = self.cluster.json(&["get", "job", &name], bounds)?;
        let owner = json!({"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": job["metadata"]["uid"]});
        let patch = json!({"metadata": {"ownerReferences": [owner]}}).to_string();
        for object in self.deployment.owned() {
            self.cluster.call(&["patch", &object, "--type=merge", "-p", &patch], bounds)?;
        }
        Ok(())
    }

    /// An error if the coordinator's Job has failed: its pod was evicted before it ran, or deleted.
    fn check_job(&self, bounds: Bounds<'_>) -> Result<(), RunError> {
        let name = self.deployment.part("coordinator");
        // A request that fails here fails for the pods as well, where failures are counted.
        let Ok(job) = self.cluster.json(&["get", "job", &name], bounds) else { return Ok(()) };
        match pods::failed(&job) {
            Some(reason) => {
                Err(RunError::new(ErrorKind::System, format!("job/{name} failed and has no results: {reason}"))
                    .hint(format!("`{} get events` shows what happened to its pod", self.cluster.kubectl())))
            }
            None => Ok(()),
        }
    }

    fn pods(&self, bounds: Bounds<'_>) -> Result<Vec<Pod>, RunError> {
        let of_run = format!("app.kubernetes.io/instance={}", self.deployment.instance);
        self.cluster.json(&["get", "pods", "-l", &of_run], bounds).map(|list| pods::of(&list))
    }

    /// Waits in the pod for the end of the run, fetches the results, and shows the pod's log meanwhile.
    fn fetch(&self, pod: &Pod) -> Result<Fetching, RunError> {
        let log = Call(self.cluster.follow(&format!("pod/{}", pod.name))?);
        Ok(Fetching { sending: self.send(pod)?, _log: log, began: Instant::now() })
    }

    fn send(&self, pod: &Pod) -> Result<Call, RunError> {
        let path = self.out.join(ARCHIVE);
        let failed = |error: &io::Error| {
            RunError::from_error(ErrorKind::NotWritten, error).during(format!("failed to write `{}`", path.display()))
        };
        let file =
            OpenOptions::new().write(true).create(true).truncate(true).open(&path).map_err(|error| failed(&error))?;
        let limit = format!("{}s", self.limit.as_secs());
        let words = ["exec", &pod.name, "--", "/bin/pubmark", "pod", "send", "--results", RESULTS, "--limit", &limit];
        self.cluster.start(&words, file, Stdio::null()).map(Call)
    }

    /// Whether a call that has ended, or is under way, brought some of the results.
    fn has_part(&self) -> bool {
        fs::metadata(self.out.join(ARCHIVE)).is_ok_and(|file| file.len() > 0)
    }

    /// Unpacks the results; `None` if they have not arrived whole. `kubectl exec` also succeeds when its stream was cut off.
    fn unpack(&self) -> Result<Option<Unpacked>, RunError> {
        let path = self.out.join(ARCHIVE);
        let unusable = |error: io::Error| {
            RunError::from_error(ErrorKind::NotWritten, &error)
                .during(format!("failed to unpack `{}`, which has the results of the run", path.display()))
                .hint(format!("`tar -xf {}` unpacks it into another folder", path.display()))
        };
        let unpacked = match archive::unpack(&path, self.out) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            unpacked => unpacked.map_err(unusable)?,
        };
        fs::remove_file(&path).map_err(unusable)?;
        Ok(Some(unpacked))
    }

    /// Releases the pod, whose results are here now, and reads their records.
    fn collect(&self, unpacked: Unpacked, job: &str, stop: &AtomicBool) -> Result<Collected, RunError> {
        // Best effort: a pod that this call does not reach would wait some minutes longer, but it is deleted now.
        let release = ["exec", job, "--", "/bin/pubmark", "pod", "release", "--results", RESULTS];
        let _ = self.cluster.call(&release, Bounds { stop: Some(stop), deadline: None });
        let read = |folder: PathBuf| {
            let record = store::load(&folder).map_err(|error| {
                RunError::from_error(ErrorKind::NotWritten, &error)
                    .during("failed to read a record that the run brought")
            })?;
            Ok((record, folder))
        };
        let records = unpacked.runs.into_iter().map(read).collect::<Result<Vec<_>, RunError>>()?;
        Ok(Collected { records, exit_code: unpacked.exit_code, left: None })
    }

    /// Why the results are not here although the coordinator's pod has ended. `parts` is the number of transfers that were cut
    /// off.
    fn without_results(&self, job: &str, pod: &Pod, parts: u32, stop: &AtomicBool) -> RunError {
        let code = pod.exit_code.unwrap_or_default();
        let tail = self.cluster.call(&["logs", TAIL, job], Bounds { stop: Some(stop), deadline: None });
        let tail = tail.unwrap_or_else(|error| error.to_string());
        let (minutes, kubectl) = (COLLECT_LIMIT.as_secs() / 60, self.cluster.kubectl());
        let (what, hint) = match parts {
            0 if tail.contains(UNCOLLECTED) => (
                format!("{job} ended with {code} before its results were fetched"),
                format!(
                    "the pod waits {minutes} minutes for `kubectl exec`: `{kubectl} get events` shows what happened to it"
                ),
            ),
            0 => (
                format!("{job} ended with {code} and has no results"),
                format!(
                    "a workload or an option may be wrong, or the system did not start: `{kubectl} get events` shows what happened \
                     to its pods"
                ),
            ),
            _ => (
                format!("the results of {job} arrived in part only, {parts} times, until its pod ended with {code}"),
                format!(
                    "the pod waits {minutes} minutes for a transfer that stands still, and ends at the deadline of its Job: without \
                     `--message-log` there is less to transfer"
                ),
            ),
        };
        RunError::new(ErrorKind::System, format!("{what}; its last words:\n{tail}")).hint(hint)
    }

    /// Waits until the next request is scheduled, or until a call ends.
    fn rest(
        &self,
        deadline: Instant,
        job: &str,
        mut call: Option<&mut Call>,
        stop: &AtomicBool,
    ) -> Result<(), RunError> {
        let looked = Instant::now();
        while looked.elapsed() < LOOK {
            if stop.load(Relaxed) {
                return Err(RunError::new(ErrorKind::Interrupted, "interrupted while the run went on"));
            }
            if Instant::now() >= deadline {
                let limit = self.limit.as_secs();
                return Err(RunError::new(ErrorKind::System, format!("{job} has not ended within {limit} s; it was removed"))
                    .hint(format!(
                        "`--apply-limit` waits longer; without `--wait` the objects stay, and `{} describe pods` shows what each \
                         one waits for",
                        self.cluster.kubectl()
                    )));
            }
            if let Some(call) = &mut call
                && call.ended()?.is_some()
            {
                return Ok(());
            }
            std::thread::sleep(STEP);
        }
        Ok(())
    }
}

/// Problems that were reported; each is reported once.
#[derive(Default)]
struct Troubles {
    reported: Vec<String>,
}

impl Troubles {
    fn report(&mut self, found: &[Pod], note: &mut dyn FnMut(&str)) {
        for pod in found {
            if let Some(trouble) = &pod.trouble {
                self.once(format!("pod {}: {trouble}", pod.name), note);
            }
        }
    }

    /// Reports why the cluster creates no pods for a part of the deployment.
    fn report_refusal(&mut self, applied: &Applied<'_>, bounds: Bounds<'_>, note: &mut dyn FnMut(&str)) {
        // Without permission to read events, the reason stays unknown.
        let Ok(events) = applied.cluster.json(&["get", "events"], bounds) else { return };
        if let Some(reason) = pods::not_created(&events, &applied.deployment.instance) {
            self.once(format!("the cluster makes no pods: {reason}"), note);
        }
    }

    fn once(&mut self, text: String, note: &mut dyn FnMut(&str)) {
        if !self.reported.contains(&text) {
            note(&text);
            self.reported.push(text);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use pubmark_runner::RunSpec;

    use super::*;
    use crate::order::tests::order;

    #[test]
    fn a_hint_is_for_the_cluster_of_the_run() {
        let deployment = order().deployment(RunSpec::new("hello")).unwrap();
        let cluster = Cluster { context: Some("lab".to_owned()), namespace: Some("bench".to_owned()) };
        let [manifest, out] = [Path::new("pubmark.yaml"), Path::new("out")];
        let applied = Applied { deployment: &deployment, manifest, cluster: &cluster, out, limit: Duration::ZERO };
        let late = applied.rest(Instant::now(), "job/a", None, &AtomicBool::new(false)).unwrap_err();
        let pod = Pod {
            name: "a-1".to_owned(),
            part: "coordinator".to_owned(),
            trouble: None,
            runs: false,
            exit_code: Some(2),
        };
        let failed = applied.without_results("job/a", &pod, 0, &AtomicBool::new(true));
        for (error, command) in [(late, "describe pods"), (failed, "get events")] {
            let command = format!("`kubectl --context lab --namespace bench {command}`");
            let hint = error.hint.unwrap();
            assert!(hint.contains(&command), "{hint}");
        }
    }
}
