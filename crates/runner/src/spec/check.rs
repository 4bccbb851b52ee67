//! Which fields of a specification can be combined, and their ranges.

use std::time::Duration;

use pubmark_model::secret::MASK;
use pubmark_systems::definition::DEFAULT_PROFILE;

use super::{RunSpec, SPEC_VERSION, Transport, WorkloadSource};
use crate::error::RunError;

/// An option by its command-line name, and whether it is given.
type Given = (&'static str, bool);

impl RunSpec {
    /// Refuses fields that contradict each other, and numbers out of range.
    ///
    /// # Errors
    /// The first such field, by the name of its option.
    pub(crate) fn check_fields(&self) -> Result<(), RunError> {
        if self.spec_version != SPEC_VERSION {
            return Err(RunError::input(format!(
                "the specification has version {}, this pubmark reads version {SPEC_VERSION}",
                self.spec_version
            ))
            .hint("use the pubmark that wrote it"));
        }
        self.check_ranges()?;
        let has_endpoint = self.target.endpoint.is_some();
        if let Some((option, _)) = self.of_started_systems().into_iter().find(|(_, given)| has_endpoint && *given) {
            return Err(RunError::input(format!(
                "`{option}` is for a system that pubmark starts, and `--endpoint` names one that runs already"
            ))
            .hint(match option {
                "--tls" => "an endpoint says it with its scheme, such as `mqtts://`",
                "--transport" => "an endpoint says it with its scheme, such as `ws://`",
                _ => "leave one of the two out",
            }));
        }
        if let Some((option, _)) = self.of_running_systems().into_iter().find(|(_, given)| !has_endpoint && *given) {
            return Err(RunError::input(format!("`{option}` is for a system that runs already, and none is named"))
                .hint("`--endpoint URL` names one; or leave the option out"));
        }
        self.check_pairs()
    }

    fn of_started_systems(&self) -> [Given; 11] {
        let target = &self.target;
        [
            ("--profile", target.profile != DEFAULT_PROFILE),
            ("--transport", target.transport != Transport::default()),
            ("--back-end", target.back_end.is_some()),
            ("--system-host", target.system_host.is_some()),
            ("--system-node", target.node.is_some()),
            ("--image", target.image.is_some()),
            ("--topology", target.topology.is_some()),
            ("--limit", target.limit.is_some()),
            ("--strict-defaults", target.strict_defaults),
            ("--tls", self.connection.tls),
            ("--pin system=…", self.generator.pins_system()),
        ]
    }

    fn of_running_systems(&self) -> [Given; 8] {
        let connection = &self.connection;
        [
            ("--node-exporter", self.target.node_exporter.is_some()),
            ("target.placed", self.target.placed.is_some()),
            ("--subscribe-endpoint", self.target.subscribe_endpoint.is_some()),
            ("--observers", self.nodes.observers.is_some()),
            ("--tls-ca", connection.tls_ca.is_some()),
            ("--tls-insecure", connection.tls_insecure),
            ("--tls-cert", connection.tls_cert.is_some()),
            ("--tls-key", connection.tls_key.is_some()),
        ]
    }

    fn check_pairs(&self) -> Result<(), RunError> {
        let connection = &self.connection;
        let [password, env, file] = [
            ("--password", connection.password.is_some()),
            ("--password-env", connection.password_env.is_some()),
            ("--password-file", connection.password_file.is_some()),
        ];
        let [ca, insecure] = [("--tls-ca", connection.tls_ca.is_some()), ("--tls-insecure", connection.tls_insecure)];
        let [nodes, local_nodes] =
            [("--nodes", self.nodes.nodes.is_some()), ("--local-nodes", self.nodes.local_nodes.is_some())];
        let [observers, node_exporter] =
            [("--observers", self.nodes.observers.is_some()), ("--node-exporter", self.target.node_exporter.is_some())];
        let [host, node] =
            [("--system-host", self.target.system_host.is_some()), ("--system-node", self.target.node.is_some())];
        let exclude = [
            (host, node),
            (password, env),
            (password, file),
            (env, file),
            (ca, insecure),
            (nodes, local_nodes),
            (observers, node_exporter),
        ];
        if let Some(((one, _), (other, _))) = exclude.into_iter().find(|((_, one), (_, other))| *one && *other) {
            return Err(
                RunError::input(format!("`{one}` and `{other}` exclude each other")).hint("leave one of them out")
            );
        }
        let (user, cert, key) = (
            ("--user NAME", connection.user.is_some()),
            ("--tls-cert FILE", connection.tls_cert.is_some()),
            ("--tls-key FILE", connection.tls_key.is_some()),
        );
        let [cert_given, key_given] = [("--tls-cert", cert.1), ("--tls-key", key.1)];
        let require = [(password, user), (env, user), (file, user), (cert_given, key), (key_given, cert)];
        if let Some(((option, _), (needed, _))) = require.into_iter().find(|((_, one), (_, other))| *one && !*other) {
            return Err(RunError::input(format!("`{option}` needs `{needed}`")).hint(format!("add `{needed}`")));
        }
        self.check_passwords()
    }

    /// The last value that is set for a key.
    fn setting(&self, key: &str) -> Option<&str> {
        self.load.set.iter().rev().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }

    /// Refuses the placeholder that a saved specification has in place of a password.
    fn check_passwords(&self) -> Result<(), RunError> {
        let target = &self.target;
        let mut urls = [&target.endpoint, &target.subscribe_endpoint, &target.node_exporter].into_iter().flatten();
        let (place, hint) = if self.connection.password.as_ref().is_some_and(|password| password.expose() == MASK) {
            ("the password", "`--password-env VARIABLE` or `--password-file FILE` in its place")
        } else if urls.any(|url| url.contains(&format!(":{MASK}@"))) {
            ("the password of a URL", "`--endpoint URL` with it, or `--user` with `--password-env`")
        } else if self.load.set.iter().any(|(key, _)| self.setting(key) == Some(MASK)) {
            ("the password of a setting", "the value of `set` in the file")
        } else if matches!(self.workload, WorkloadSource::Inline { passwords_left_out: true, .. }) {
            ("a password of the workload", "`credentials: {user: …, password_env: NAME}` takes it from the environment")
        } else {
            return Ok(());
        };
        Err(RunError::input(format!("{place} was left out when the specification was written")).hint(hint))
    }

    fn check_ranges(&self) -> Result<(), RunError> {
        let load = &self.load;
        let ranges: [(&str, Option<u64>, u64, u64); 7] = [
            ("--scale", Some(load.scale.into()), 1, u32::MAX.into()),
            ("--qos", load.qos.map(Into::into), 0, 2),
            ("--shards", Some(self.generator.shards.into()), 1, 256),
            ("--nodes", self.nodes.nodes.map(Into::into), 1, 1_000),
            ("--local-nodes", self.nodes.local_nodes.map(Into::into), 1, 200),
            ("--observers", self.nodes.observers.map(Into::into), 1, 100),
            ("--repeat", Some(self.repetitions.into()), 1, 1_000),
        ];
        for (option, value, least, most) in ranges {
            if let Some(value) = value.filter(|value| !(least..=most).contains(value)) {
                return Err(RunError::input(format!("`{option}` is {value}: it takes {least} to {most}")));
            }
        }
        if self.window.duration == Duration::ZERO {
            return Err(RunError::input("`--duration` is zero: the measured window must be longer"));
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use pubmark_model::secret::Secret;

    use super::*;

    fn refused(change: impl FnOnce(&mut RunSpec)) -> String {
        let mut spec = RunSpec::new("hello");
        change(&mut spec);
        spec.check_fields().map_err(|error| error.to_string()).unwrap_err()
    }

    #[test]
    fn fields_that_contradict_each_other_are_named() {
        RunSpec::new("hello").check_fields().unwrap();
        let endpoint = |spec: &mut RunSpec| spec.target.endpoint = Some("mqtt://host".to_owned());
        let text = refused(|spec| {
            endpoint(spec);
            spec.connection.tls = true;
        });
        assert_eq!(text, "`--tls` is for a system that pubmark starts, and `--endpoint` names one that runs already");
        let text = refused(|spec| {
            endpoint(spec);
            spec.generator.pin = vec!["generator=1".to_owned(), "system=0".to_owned()];
        });
        assert!(text.starts_with("`--pin system=…` is for a system that pubmark starts"), "{text}");
        let text = refused(|spec| spec.connection.tls_insecure = true);
        assert_eq!(text, "`--tls-insecure` is for a system that runs already, and none is named");
        let text = refused(|spec| (spec.nodes.nodes, spec.nodes.local_nodes) = (Some(2), Some(2)));
        assert_eq!(text, "`--nodes` and `--local-nodes` exclude each other");
        let text = refused(|spec| spec.connection.password_env = Some("WORD".to_owned()));
        assert_eq!(text, "`--password-env` needs `--user NAME`");
        let text = refused(|spec| {
            endpoint(spec);
            spec.connection.tls_key = Some("key.pem".into());
        });
        assert_eq!(text, "`--tls-key` needs `--tls-cert FILE`");
        let text = refused(|spec| {
            spec.connection.user = Some("ann".to_owned());
            spec.connection.password = Some(Secret::from(MASK));
        });
        assert!(text.contains("left out when the specification was written"), "{text}");
    }

    #[test]
    fn numbers_out_of_range_are_named() {
        assert_eq!(refused(|spec| spec.load.qos = Some(3)), "`--qos` is 3: it takes 0 to 2");
        assert_eq!(refused(|spec| spec.load.scale = 0), "`--scale` is 0: it takes 1 to 4294967295");
        assert_eq!(refused(|spec| spec.repetitions = 1_001), "`--repeat` is 1001: it takes 1 to 1000");
        assert!(refused(|spec| spec.window.duration = Duration::ZERO).contains("must be longer"));
        assert!(refused(|spec| spec.spec_version = 9).contains("version 9"));
    }
}
