//! Error messages of a run name options of the command line. This module translates them into the keys of a submission.

use pubmark_record::headline::Kind;

use crate::problem::Problem;
use crate::store::Failure;

/// Options of a run and their keys in a submission of one.
const OF_RUN: &[(&str, &str)] = &[
    ("awake", "generator.awake"),
    ("back-end", "target.back_end"),
    ("client", "protocols.client"),
    ("congestion-control", "connection.congestion_control"),
    ("devices", "nodes.devices"),
    ("drain", "drain"),
    ("duration", "duration"),
    ("endpoint", "endpoint"),
    ("fault", "load.faults"),
    ("image", "target.image"),
    ("isolate", "generator.isolate"),
    ("limit", "target.limit"),
    ("link", "load.links"),
    ("local-nodes", "nodes.local_nodes"),
    ("message-log", "message_log"),
    ("metric", "metrics"),
    ("netem", "load.netem"),
    ("node-exporter", "target.node_exporter"),
    ("node-label", "nodes.node_labels"),
    ("nodes", "nodes.nodes"),
    ("observers", "nodes.observers"),
    ("pace", "generator.pace"),
    ("password", "connection.password"),
    ("password-env", "connection.password_env"),
    ("password-file", "connection.password_file"),
    ("payload", "load.payload"),
    ("pin", "generator.pin"),
    ("placement", "nodes.placement"),
    ("profile", "target.profile"),
    ("protocol", "protocol"),
    ("publish-protocol", "protocols.publish_protocol"),
    ("qos", "qos"),
    ("rate", "rate"),
    ("realtime", "generator.realtime"),
    ("repeat", "repetitions"),
    ("scale", "scale"),
    ("seed", "seed"),
    ("set", "load.set"),
    ("shards", "generator.shards"),
    ("slo", "slo"),
    ("source-addresses", "connection.source_addresses"),
    ("strict-defaults", "target.strict_defaults"),
    ("subscribe-endpoint", "target.subscribe_endpoint"),
    ("subscribe-protocol", "protocols.subscribe_protocol"),
    ("subscribers", "nodes.subscribers"),
    ("system", "system"),
    ("system-host", "target.system_host"),
    ("system-node", "target.node"),
    ("tls", "tls"),
    ("tls-ca", "connection.tls_ca"),
    ("tls-cert", "connection.tls_cert"),
    ("tls-insecure", "connection.tls_insecure"),
    ("tls-key", "connection.tls_key"),
    ("tls-resumption", "connection.tls_resumption"),
    ("topology", "target.topology"),
    ("transport", "target.transport"),
    ("user", "connection.user"),
    ("variant", "load.variant"),
    ("warmup", "warmup"),
];

/// Options of a search whose keys have different names.
const OF_SEARCH: &[(&str, &str)] = &[("fault", "faults"), ("link", "links")];

/// Options of a choice and their keys in its requirements, where they differ from those of a run.
const OF_CHOICE: &[(&str, &str)] = &[
    ("drain", "window.drain"),
    ("duration", "window.duration"),
    ("growth", "growth"),
    ("limit", "resources"),
    ("local-nodes", "local_nodes"),
    ("no-headroom", "headroom"),
    ("nodes", "nodes"),
    ("observers", "observers"),
    ("protocol", "needs.protocol"),
    ("qos", "needs.qos"),
    ("rate", "load.rate"),
    ("recovery", "recovery"),
    ("scale", "load.scale"),
    ("seed", "load.seed"),
    ("slo", "objectives"),
    ("system-host", "system_host"),
    ("system-node", "system_node"),
    ("tls", "needs.tls"),
    ("warmup", "window.warmup"),
    ("within", "within"),
];

/// Kind of submission that the keys belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    /// A run, whose keys are in groups.
    Run,
    /// A search or an experiment, whose keys are at the top level.
    Flat,
    /// A choice, whose keys are those of its requirements.
    Choice,
}

impl Keys {
    /// Rewrites a problem for the user of a submission.
    pub fn tell(self, mut problem: Problem) -> Problem {
        let body = &mut problem.body;
        body.error = self.text(&body.error);
        body.chain.iter_mut().for_each(|part| *part = self.text(part));
        body.hint = body.hint.as_deref().map(|hint| self.text(hint));
        problem
    }

    /// The keys of a submission of this kind.
    pub fn of(kind: Kind) -> Keys {
        match kind {
            Kind::Run => Keys::Run,
            Kind::Choice => Keys::Choice,
            Kind::Experiment | Kind::Capacity => Keys::Flat,
        }
    }

    /// Rewrites the failure of a run for the user of its submission.
    pub fn tell_failure(self, failure: Failure) -> Failure {
        let chain = failure.chain.iter().map(|part| self.text(part)).collect();
        Failure { chain, hint: failure.hint.as_deref().map(|hint| self.text(hint)) }
    }

    /// The group of a submission that has a field, if one has.
    pub fn group(self, field: &str) -> Option<&'static str> {
        match self {
            Keys::Run => {
                let mut grouped = OF_RUN.iter().filter_map(|(_, key)| key.split_once('.'));
                grouped.find(|(_, name)| *name == field).map(|(group, _)| group)
            }
            Keys::Choice => pubmark_choose::requirements::group_of(field),
            Keys::Flat => None,
        }
    }

    /// Replaces options between backticks by keys: `--qos 1` becomes `qos: 1`.
    fn text(self, text: &str) -> String {
        let parts = text.split('`').enumerate().map(|(place, part)| {
            let is_code = place % 2 == 1;
            if is_code && part.starts_with("--") {
                self.options(part).unwrap_or_else(|| part.to_owned())
            } else {
                part.to_owned()
            }
        });
        parts.collect::<Vec<_>>().join("`")
    }

    /// Options and their values as keys; `None` if one of them has no key.
    fn options(self, words: &str) -> Option<String> {
        let one = |option: &str| {
            let end = option.find([' ', '=']).unwrap_or(option.len());
            let key = self.key(&option[..end])?;
            let value = option[end..].trim_start_matches([' ', '=']);
            Some(if value.is_empty() { key } else { format!("{key}: {value}") })
        };
        let all = words.strip_prefix("--")?.split(" --").map(one);
        all.collect::<Option<Vec<String>>>().map(|all| all.join(", "))
    }

    fn key(self, option: &str) -> Option<String> {
        let in_table = |table: &[(&str, &'static str)]| {
            table.iter().find(|(name, _)| *name == option).map(|(_, key)| (*key).to_owned())
        };
        match self {
            Keys::Run => in_table(OF_RUN),
            Keys::Choice => {
                let of_run = || in_table(OF_RUN).filter(|key| key.contains('.'));
                in_table(OF_CHOICE).or_else(of_run).map(|key| format!("choose.{key}"))
            }
            Keys::Flat => in_table(OF_SEARCH).or_else(|| {
                let known = in_table(OF_RUN).is_some()
                    || matches!(option, "most" | "within" | "vary" | "only" | "quick" | "wait");
                known.then(|| option.replace('-', "_"))
            }),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use axum::http::StatusCode;
    use serde_json::Value;

    use super::*;
    use crate::submission::RunSubmission;

    #[test]
    fn options_are_keys_with_their_values_and_commands_stay_as_they_are() {
        for (given, run, flat) in [
            ("`--qos` is 7: it takes 0 to 2", "`qos` is 7: it takes 0 to 2", "`qos` is 7: it takes 0 to 2"),
            (
                "`--password-env` needs `--user NAME`",
                "`connection.password_env` needs `connection.user: NAME`",
                "`password_env` needs `user: NAME`",
            ),
            ("`--link lte --tls`", "`load.links: lte, tls`", "`links: lte, tls`"),
            ("`pubmark list systems --json`", "`pubmark list systems --json`", "`pubmark list systems --json`"),
            ("start it with `--allow systems`", "start it with `--allow systems`", "start it with `--allow systems`"),
            ("`--most=3` is below", "`--most=3` is below", "`most: 3` is below"),
        ] {
            assert_eq!((Keys::Run.text(given).as_str(), Keys::Flat.text(given).as_str()), (run, flat));
        }
        assert_eq!(
            (Keys::Run.group("set"), Keys::Run.group("sett"), Keys::Flat.group("set")),
            (Some("load"), None, None)
        );
        assert_eq!(Keys::Choice.group("retained"), Some("needs"));
        let problem = Problem::new(StatusCode::BAD_REQUEST, "`--slo` is wrong").hint("write `--slo p99<1s`");
        let told = Keys::Run.tell(problem).body;
        assert_eq!((told.error.as_str(), told.chain[0].as_str()), ("`slo` is wrong", "`slo` is wrong"));
        assert_eq!(told.hint.as_deref(), Some("write `slo: p99<1s`"));
    }

    #[test]
    fn every_key_of_a_choice_is_one_of_requirements() {
        let schema = serde_json::to_value(schemars::schema_for!(pubmark_choose::Requirements)).unwrap();
        for (option, key) in OF_CHOICE {
            let found = match key.split_once('.') {
                None => &schema["properties"][*key],
                Some((group, field)) => {
                    let definition = format!("{}{}", group[..1].to_uppercase(), &group[1..]);
                    &schema["$defs"][definition.as_str()]["properties"][field]
                }
            };
            assert!(found.is_object(), "{option}: {key}");
        }
        assert_eq!(Keys::Choice.text("`--link lte --qos 1`"), "`choose.load.links: lte, choose.needs.qos: 1`");
    }

    #[test]
    fn every_key_is_one_of_a_submission() {
        let schema = serde_json::to_value(schemars::schema_for!(RunSubmission)).unwrap();
        let group = |field: &Value| -> Value {
            let text = field.to_string();
            let name = text
                .split("#/$defs/")
                .nth(1)
                .and_then(|rest| rest.split('"').next())
                .unwrap_or_else(|| panic!("{text}"));
            schema["$defs"][name]["properties"].clone()
        };
        for (option, key) in OF_RUN {
            let found = match key.split_once('.') {
                None => schema["properties"][*key].clone(),
                Some((name, inner)) => group(&schema["properties"][name])[inner].clone(),
            };
            assert!(!found.is_null(), "`--{option}`: there is no `{key}`");
        }
    }
}
