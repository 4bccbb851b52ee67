//! What a submission is allowed to do on this machine: by default it may use only built-in definitions.

use std::path::Path;

use pubmark_choose::requirements::{CandidateSettings, CandidateSpec, Requirements};
use pubmark_model::builtin;
use pubmark_model::experiment::{EndpointChoice, Experiment, SystemChoice, client_parts};
use pubmark_model::load::has_keys;
use pubmark_runner::spec::{BackEnd, TargetSpec};
use pubmark_runner::{RunSpec, WorkloadSource};
use pubmark_systems::Definition;

/// The system that is built into pubmark.
const BUILT_IN: &str = "builtin";
/// Keys of a workload that name files and variables of the server.
const OF_SERVER: [&str; 3] = ["file", "password_env", "key_env"];
/// Section of a workload whose entries are programs.
const METRICS: &str = "metrics";

/// Kinds of permissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Right {
    /// Start systems that `pubmark list systems` names: programs and containers of this machine.
    Systems,
    /// Connect to, or listen for, other machines.
    Endpoints,
    /// Use definitions, images, files and variables that a submission names: they contain commands.
    Commands,
}

impl Right {
    /// All permissions, each with its name for `--allow`.
    pub const ALL: [(Right, &'static str); 3] =
        [(Right::Systems, "systems"), (Right::Endpoints, "endpoints"), (Right::Commands, "commands")];

    /// Name of the permission.
    pub fn word(self) -> &'static str {
        Right::ALL.iter().find(|(right, _)| *right == self).map_or("", |(_, word)| word)
    }
}

/// The granted permissions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allow(pub Vec<Right>);

/// What was requested and is not allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} is not allowed here")]
pub struct NotAllowed {
    what: String,
    right: Right,
}

impl NotAllowed {
    /// The permission that is missing.
    pub fn right(&self) -> Right {
        self.right
    }

    /// What the user who started the server can do.
    pub fn hint(&self) -> String {
        format!("to allow it, start the server with `pubmark serve --allow {}`", self.right.word())
    }
}

impl Allow {
    fn need(&self, right: Right, what: impl FnOnce() -> String) -> Result<(), NotAllowed> {
        if self.0.contains(&right) { Ok(()) } else { Err(NotAllowed { what: what(), right }) }
    }

    /// Checks whether this run is allowed.
    ///
    /// # Errors
    /// The first part of it that is not allowed.
    pub fn run(&self, spec: &RunSpec) -> Result<(), NotAllowed> {
        if let WorkloadSource::Named(name) = &spec.workload {
            self.workload(name)?;
        }
        self.target(&spec.target)?;
        let connection = &spec.connection;
        for (field, given) in [
            ("connection.tls_ca", connection.tls_ca.is_some()),
            ("connection.tls_cert", connection.tls_cert.is_some()),
            ("connection.tls_key", connection.tls_key.is_some()),
            ("connection.password_env", connection.password_env.is_some()),
            ("connection.password_file", connection.password_file.is_some()),
            ("nodes.credentials", spec.nodes.credentials.is_some()),
        ] {
            if given {
                self.need(Right::Commands, || format!("`{field}`, a file or variable of the server,"))?;
            }
        }
        self.client(spec)?;
        self.files(spec)?;
        self.metrics(spec)?;
        let nodes = &spec.nodes;
        let others =
            [nodes.nodes.is_some(), nodes.observers.is_some(), nodes.listen.is_some(), spec.target.node.is_some()];
        if others.contains(&true) || nodes.announce {
            self.need(Right::Endpoints, || "a run over other machines".to_owned())?;
        }
        Ok(())
    }

    fn client(&self, spec: &RunSpec) -> Result<(), NotAllowed> {
        match spec.has_client_program() {
            true => self.need(Right::Commands, || "a client program".to_owned()),
            false => Ok(()),
        }
    }

    /// Files and variables that the workload names, in its text or in a setting: none is read before the permission is
    /// checked.
    fn files(&self, spec: &RunSpec) -> Result<(), NotAllowed> {
        let text = match &spec.workload {
            WorkloadSource::Inline { text, .. } => text,
            WorkloadSource::Named(_) => "",
        };
        self.files_in(text, spec.load.set.iter().map(|(path, value)| (path.as_str(), value.as_str())))
    }

    fn files_in<'a>(
        &self,
        text: &str,
        settings: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<(), NotAllowed> {
        match has_keys(&OF_SERVER, text, settings) {
            true => self.need(Right::Commands, || "a file or variable that the workload names".to_owned()),
            false => Ok(()),
        }
    }

    /// Programs of metrics, in the specification, in the text of its workload or in a setting. A workload that cannot be loaded
    /// starts no program: the validation of the specification refuses it.
    fn metrics(&self, spec: &RunSpec) -> Result<(), NotAllowed> {
        if self.0.contains(&Right::Commands) {
            return Ok(());
        }
        self.metrics_in(spec.load.set.iter().map(|(path, _)| path.as_str()))?;
        let in_workload = || spec.load().is_ok_and(|workload| !workload.metrics.is_empty());
        self.metric(!spec.metrics.is_empty() || in_workload())
    }

    /// Programs of metrics in settings with these paths. Several settings together add metrics to a workload that has none, so each of
    /// them counts.
    fn metrics_in<'a>(&self, paths: impl IntoIterator<Item = &'a str>) -> Result<(), NotAllowed> {
        self.metric(paths.into_iter().any(|path| path.split('.').next() == Some(METRICS)))
    }

    fn metric(&self, is_there: bool) -> Result<(), NotAllowed> {
        match is_there {
            true => self.need(Right::Commands, || "a metric of your own, which is a program,".to_owned()),
            false => Ok(()),
        }
    }

    fn target(&self, target: &TargetSpec) -> Result<(), NotAllowed> {
        let urls = [&target.endpoint, &target.subscribe_endpoint, &target.node_exporter];
        if urls.iter().any(|url| url.is_some()) {
            self.need(Right::Endpoints, || "an endpoint".to_owned())?;
        }
        if target.system_host.is_some() {
            self.need(Right::Endpoints, || "`target.system_host`".to_owned())?;
        }
        if target.image.is_some() {
            self.need(Right::Commands, || "an image".to_owned())?;
        }
        if target.back_end == Some(BackEnd::Container) {
            self.need(Right::Systems, || "a container".to_owned())?;
        }
        // With an endpoint, the system is only a description, and nothing is started.
        match &target.system {
            Some(system) => self.system(system),
            None => Ok(()),
        }
    }

    /// Checks whether this capacity search is allowed. Only what starts something matters.
    ///
    /// # Errors
    /// The first part of it that is not allowed.
    pub fn names(&self, workload: &str, system: Option<&str>, endpoint: Option<&str>) -> Result<(), NotAllowed> {
        self.workload(workload)?;
        if endpoint.is_some() {
            self.need(Right::Endpoints, || "an endpoint".to_owned())?;
        }
        system.map_or(Ok(()), |system| self.system(system))
    }

    /// Checks whether this experiment is allowed.
    ///
    /// # Errors
    /// The first part of it that is not allowed.
    pub fn experiment(&self, experiment: &Experiment) -> Result<(), NotAllowed> {
        let axes = &experiment.axes;
        for workload in axes.workload.iter().chain([&experiment.workload]).filter(|name| !name.is_empty()) {
            self.workload(workload)?;
        }
        let varied = axes.set.iter().flat_map(|(path, values)| values.iter().map(move |value| (path, value)));
        let set = experiment.set.iter().map(|(path, value)| (path, value)).chain(varied);
        self.files_in("", set.clone().map(|(path, value)| (path.as_str(), value.as_str())))?;
        self.metrics_in(set.map(|(path, _)| path.as_str()))?;
        for SystemChoice { system, endpoint, image, back_end, .. } in &axes.system {
            system.as_deref().map_or(Ok(()), |system| self.system(system))?;
            endpoint.as_ref().map_or(Ok(()), |endpoint| self.endpoint(endpoint))?;
            if image.is_some() {
                self.need(Right::Commands, || "an image".to_owned())?;
            }
            if back_end.as_deref() == Some("container") {
                self.need(Right::Systems, || "a container".to_owned())?;
            }
        }
        for client in axes.client.iter().filter_map(|client| client_parts(client).1) {
            let mut spec = RunSpec::new(BUILT_IN);
            spec.protocols.client = Some(client.to_owned());
            self.client(&spec)?;
        }
        Ok(())
    }

    /// Checks whether this choice is allowed.
    ///
    /// # Errors
    /// The first part of it that is not allowed.
    pub fn choice(&self, requirements: &Requirements) -> Result<(), NotAllowed> {
        self.run(&requirements.spec())?;
        if requirements.candidates.is_empty() {
            self.need(Right::Systems, || "a choice among all systems".to_owned())?;
        }
        for CandidateSettings { system, endpoint, .. } in requirements.candidates.iter().map(CandidateSpec::settings) {
            if endpoint.is_some() {
                self.need(Right::Endpoints, || "an endpoint".to_owned())?;
            }
            system.map_or(Ok(()), |system| self.system(&system))?;
        }
        Ok(())
    }

    /// An endpoint of an experiment, and the server's files and variables that it names.
    fn endpoint(&self, endpoint: &EndpointChoice) -> Result<(), NotAllowed> {
        self.need(Right::Endpoints, || format!("the endpoint `{}`", endpoint.url))?;
        for (field, given) in [
            ("password_env", &endpoint.password_env),
            ("password_file", &endpoint.password_file),
            ("tls_ca", &endpoint.tls_ca),
            ("tls_cert", &endpoint.tls_cert),
            ("tls_key", &endpoint.tls_key),
        ] {
            if given.is_some() {
                self.need(Right::Commands, || format!("`{field}`, a file or variable of the server,"))?;
            }
        }
        Ok(())
    }

    /// A name that is neither built in nor a file reads nothing: the validation of the specification refuses it, because it
    /// can suggest similar names.
    fn workload(&self, name: &str) -> Result<(), NotAllowed> {
        let path = Path::new(name);
        let is_file = name.contains(['/', '\\']) || path.extension().is_some() || path.is_file();
        if builtin::find(name).is_some() || !is_file {
            return Ok(());
        }
        self.need(Right::Commands, || format!("`{name}`, a file of the server,"))
    }

    fn system(&self, name: &str) -> Result<(), NotAllowed> {
        if name == BUILT_IN {
            return Ok(());
        }
        let is_shipped = Definition::embedded().is_ok_and(|all| all.iter().any(|system| system.name == name));
        if is_shipped {
            return self.need(Right::Systems, || format!("the system `{name}`"));
        }
        // As for workloads.
        let is_file = name.contains('/') || name.ends_with(".yaml");
        if !is_file {
            return Ok(());
        }
        self.need(Right::Commands, || format!("`{name}`, a definition of the server,"))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn spec(change: impl FnOnce(&mut RunSpec)) -> RunSpec {
        let mut spec = RunSpec::new("smart-home");
        change(&mut spec);
        spec
    }

    fn set(path: &str, value: &str) -> Vec<(String, String)> {
        vec![(path.to_owned(), value.to_owned())]
    }

    #[test]
    fn by_default_only_built_in_programs_run() {
        let nothing = Allow::default();
        assert_eq!(nothing.run(&spec(|_| ())), Ok(()));
        assert_eq!(nothing.run(&spec(|spec| spec.target.system = Some("builtin".to_owned()))), Ok(()));
        type Change = fn(&mut RunSpec);
        let wrong: [(Right, Change); 19] = [
            (Right::Systems, |spec| spec.target.system = Some("mosquitto".to_owned())),
            (Right::Systems, |spec| spec.target.back_end = Some(BackEnd::Container)),
            (Right::Endpoints, |spec| spec.target.endpoint = Some("mqtt://example.org".to_owned())),
            (Right::Endpoints, |spec| spec.nodes.nodes = Some(2)),
            (Right::Commands, |spec| spec.target.system = Some("/tmp/evil.yaml".to_owned())),
            (Right::Commands, |spec| spec.target.image = Some("evil".to_owned())),
            (Right::Commands, |spec| spec.workload = WorkloadSource::Named("/etc/passwd".to_owned())),
            (Right::Commands, |spec| spec.protocols.client = Some("touch /tmp/evil".to_owned())),
            (Right::Commands, |spec| {
                let metric = pubmark_runner::custom_metrics::read("evil=touch /tmp/evil");
                spec.metrics = vec![metric.unwrap()];
            }),
            (Right::Commands, |spec| {
                let text = "name: w\ndevices: [{name: a, count: 1, every: 1s, payload: 50B, topic: t}]\n\
                            subscribers: [{name: s, filters: [t]}]\nmetrics: [{name: evil, command: [touch, /tmp/evil]}]\n";
                spec.workload = WorkloadSource::Inline {
                    file_name: "w.yaml".to_owned(),
                    text: text.to_owned(),
                    passwords_left_out: false,
                };
            }),
            (Right::Commands, |spec| {
                let text = "name: w\ndevices: [{name: a, every: 1s, payload: {sizes: {file: /etc/passwd}}, topic: t}]\n\
                            subscribers: [{name: s, filters: [t]}]\n";
                spec.workload = WorkloadSource::Inline {
                    file_name: "w.yaml".to_owned(),
                    text: text.to_owned(),
                    passwords_left_out: false,
                };
            }),
            (Right::Commands, |spec| spec.connection.password_env = Some("HOME".to_owned())),
            (Right::Commands, |spec| spec.load.set = set("devices.0.credentials.file", "/etc/passwd")),
            (Right::Commands, |spec| spec.load.set = set("devices.0.payload", "sizes:\n  file: /etc/passwd")),
            (Right::Commands, |spec| spec.load.set = set("devices.0.payload", "{sizes: {\"fi\\x6ce\": /etc/passwd}}")),
            (Right::Commands, |spec| spec.load.set = set("devices.0.credentials", "{user: a, password_env: HOME}")),
            (Right::Commands, |spec| spec.load.set = set("devices.0.credentials.token.key_env", "HOME")),
            (Right::Commands, |spec| spec.load.set = set("devices.0.credentials.token.file", "/etc/shadow")),
            // The first adds the section, the second its program: to a built-in workload, too.
            (Right::Commands, |spec| {
                spec.load.set =
                    [set("metrics.x", "1"), set("metrics", "[{name: a, command: [touch, /tmp/evil]}]")].concat();
            }),
        ];
        for (right, change) in wrong {
            let refused = nothing.run(&spec(change)).unwrap_err();
            assert_eq!(refused.right, right, "{refused}");
            assert!(refused.hint().contains(right.word()));
            assert_eq!(Allow(vec![right]).run(&spec(change)), Ok(()), "{refused}");
        }
    }

    #[test]
    fn a_choice_needs_the_rights_of_its_runs_and_of_its_candidates() {
        let refused = |text: &str| {
            let requirements = Requirements::parse(&format!("workload: hello\nobjectives: loss=0\n{text}")).unwrap();
            let refused = Allow::default().choice(&requirements).err();
            if let Some(refused) = &refused {
                assert_eq!(Allow(vec![refused.right]).choice(&requirements), Ok(()), "{text}");
            }
            refused.map(|refused| refused.right)
        };
        assert_eq!(refused("candidates: [builtin]"), None);
        for (text, right) in [
            ("", Right::Systems),
            ("candidates: [builtin, mosquitto]", Right::Systems),
            ("candidates: ['mqtt://127.0.0.1']", Right::Endpoints),
            ("candidates: [{endpoint: 'mqtt://127.0.0.1', label: a}]", Right::Endpoints),
            ("candidates: [builtin]\nnodes: 2", Right::Endpoints),
            ("candidates: ['mqtt://127.0.0.1']\nobservers: 1", Right::Endpoints),
            ("candidates: [builtin]\nsystem_host: 192.0.2.1", Right::Endpoints),
            ("candidates: [builtin]\nsystem_node: far", Right::Endpoints),
            ("candidates: [/tmp/mine.yaml]", Right::Commands),
            ("candidates: [builtin]\nconnection: {user: u, password_file: /etc/shadow}", Right::Commands),
            ("candidates: [builtin]\nload: {set: ['devices.0.credentials.file=/etc/shadow']}", Right::Commands),
            (
                "candidates: [builtin]\nload: {set: [metrics.x=1, 'metrics=[{name: a, command: [touch, /tmp/evil]}]']}",
                Right::Commands,
            ),
        ] {
            assert_eq!(refused(text), Some(right), "{text}");
        }
    }

    #[test]
    fn an_unknown_name_needs_no_permission() {
        let nothing = Allow::default();
        assert_eq!(nothing.run(&spec(|spec| spec.workload = WorkloadSource::Named("smart-hom".to_owned()))), Ok(()));
        assert_eq!(nothing.run(&spec(|spec| spec.target.system = Some("mosquito".to_owned()))), Ok(()));
    }

    #[test]
    fn an_experiment_with_an_endpoint_needs_the_right_of_a_run_with_one() {
        let experiment = |entry: &str| {
            let text = format!("{{name: t, workload: hello, axes: {{system: [builtin, {entry}]}}}}");
            pubmark_model::experiment::parse("t.yaml", &text, &|_, _| Ok(())).unwrap()
        };
        let plain = experiment("{endpoint: 'mqtt://host', label: ours}");
        let refused = Allow::default().experiment(&plain).unwrap_err();
        assert_eq!(
            (refused.right, refused.to_string().as_str()),
            (Right::Endpoints, "the endpoint `mqtt://host` is not allowed here")
        );
        let endpoints = Allow(vec![Right::Endpoints]);
        assert_eq!(endpoints.experiment(&plain), Ok(()));
        let reads = experiment("{endpoint: 'mqtt://host', label: ours, user: ann, password_env: HOME}");
        assert_eq!(endpoints.experiment(&reads).unwrap_err().right, Right::Commands);
    }

    #[test]
    fn an_experiment_reads_no_file_and_starts_no_program_by_a_setting() {
        for settings in [
            "set: {devices.0.payload.sizes.file: /etc/passwd}, axes: {system: builtin}",
            "axes: {system: builtin, set: {devices.0.payload.sizes.file: [/etc/passwd, /etc/group]}}",
            "axes: {system: builtin, set: {devices.0.payload: [100B, '{sizes: {file: /etc/group}}']}}",
            "set: {metrics.x: 1, metrics: '[{name: a, command: [touch, /tmp/evil]}]'}, axes: {system: builtin}",
            "set: {metrics.x: 1}, axes: {system: builtin, set: {metrics: ['[{name: a, command: [touch, /tmp/evil]}]']}}",
        ] {
            let text = format!("{{name: t, workload: hello, {settings}}}");
            let experiment = pubmark_model::experiment::parse("t.yaml", &text, &|_, _| Ok(())).unwrap();
            let refused = Allow::default().experiment(&experiment).unwrap_err();
            assert_eq!(refused.right, Right::Commands, "{settings}");
            assert_eq!(Allow(vec![Right::Commands]).experiment(&experiment), Ok(()), "{settings}");
        }
    }

    #[test]
    fn a_definition_is_more_than_a_system() {
        let systems = Allow(vec![Right::Systems]);
        assert!(systems.run(&spec(|spec| spec.target.system = Some("./mine.yaml".to_owned()))).is_err());
    }
}
