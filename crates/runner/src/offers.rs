//! Checks, before anything is started, whether a system offers what a run requires, and whether it is installed.

use pubmark_model::topology::TopologyMode;
use pubmark_model::workload::Workload;
use pubmark_protocols as protocols;
use pubmark_systems::container::Engine;
use pubmark_systems::{BackEndChoice, Definition, StartOptions, SystemError, launch};

use crate::error::{ErrorKind, RunError};

/// Refuses features that the system does not offer.
///
/// # Errors
/// The first such feature, of kind [`ErrorKind::Unsupported`].
pub fn check(definition: &Definition, options: &StartOptions, workload: &Workload) -> Result<(), RunError> {
    let refused =
        |text: String| RunError::unsupported(text).hint("`pubmark list systems NAME` says what a system offers");
    not_offered(definition, options, workload).map_or(Ok(()), |text| Err(refused(text)))
}

/// Refuses more sessions, of devices and subscribers, than the settings of the system's profile allow.
///
/// # Errors
/// How many are allowed, and which profiles allow more, of kind [`ErrorKind::Unsupported`].
pub fn check_sessions(
    definition: &Definition,
    options: &StartOptions,
    (devices, subscribers): (u64, u64),
) -> Result<(), RunError> {
    let most = |name: &str| definition.profiles.get(name).and_then(|profile| profile.sessions);
    let Some(allowed) = most(&options.profile) else { return Ok(()) };
    let sessions = devices + subscribers;
    if sessions.div_ceil(u64::from(options.topology.brokers.max(1))) <= u64::from(allowed) {
        return Ok(());
    }
    let more = definition.profiles.keys().filter(|name| most(name).is_none_or(|most| most > allowed));
    let instead: String = more.map(|name| format!("`--profile {name}`, ")).collect();
    let (name, profile) = (&definition.name, &options.profile);
    let text =
        format!("{sessions} sessions are more than the {allowed} of a broker of `{name}` with profile `{profile}`");
    Err(RunError::unsupported(text).hint(format!("{instead}a smaller `--scale`, or groups that share a `client`")))
}

/// Why the clients of a protocol cannot have the settings of a profile; `None` if they can.
fn refused_settings(protocol: &str, settings: &str) -> Option<String> {
    match protocols::find(protocol)?.capabilities.features.settings {
        // They follow the port as they are.
        Some(has) if !settings.starts_with(has.begins_with) => {
            Some(format!("its settings for {protocol} do not begin with `{}`", has.begins_with))
        }
        Some(has) => (has.check)(settings).err(),
        None => Some(format!("endpoints over {protocol} have no settings")),
    }
}

/// The first feature that the system does not offer, in a sentence.
fn not_offered(definition: &Definition, options: &StartOptions, workload: &Workload) -> Option<String> {
    let name = &definition.name;
    let devices = workload.devices.iter().map(|group| group.qos.level()).max().unwrap_or(0);
    let subscribers = workload.subscribers.iter().map(|group| group.qos.level()).max().unwrap_or(0);
    let listens_over = options.second_protocol.as_ref().unwrap_or(&options.protocol);
    for (protocol, asked) in [(&options.protocol, devices), (listens_over, subscribers)] {
        match definition.offer(protocol) {
            Err(error) => return Some(error.to_string()),
            Ok(offer) if asked > offer.highest_qos => {
                let granted = offer.highest_qos;
                return Some(format!("`{name}` grants QoS {granted} at most over {protocol}"));
            }
            Ok(_) => {}
        }
    }
    let used = [options.protocol.as_str(), listens_over.as_str()];
    match definition.profile_for(&options.profile, used) {
        Err(error) => return Some(error.to_string()),
        Ok(profile) => {
            let of = |protocol: &str| refused_settings(protocol, profile.settings.get(protocol)?);
            if let Some(why) = used.into_iter().find_map(of) {
                return Some(format!("profile `{}` cannot be had: {why}", options.profile));
            }
        }
    }
    if let Err(error) = launch::raised_packet(definition, options) {
        return Some(error.to_string());
    }
    if let Some(group) = workload.subscribers.iter().find(|group| group.shared.is_some())
        && definition.offer(listens_over).is_ok_and(|offer| !offer.shared_subscriptions)
    {
        return Some(format!(
            "`{name}` has no shared subscriptions over {listens_over}, which subscriber group `{}` asks for",
            group.name
        ));
    }
    let can_ask =
        protocols::find(listens_over).is_some_and(|ours| ours.capabilities.features.content_filters.is_some());
    if let Some(group) = workload.subscribers.iter().find(|group| group.broker_filter().is_some())
        && can_ask
        && definition.offer(listens_over).is_ok_and(|offer| !offer.content_filters)
    {
        return Some(format!(
            "`{name}` has no content filters over {listens_over}, which subscriber group `{}` asks for: \
             `where: {{filter: …, at: client}}`",
            group.name
        ));
    }
    for protocol in [&options.protocol, listens_over] {
        if options.websocket && definition.offer(protocol).is_ok_and(|offer| offer.websocket_listener.is_none()) {
            return Some(format!("`{name}` does not offer {protocol} over WebSocket"));
        }
    }
    if options.credentials.is_some() && !definition.asks_for_login(options.runs_in_container(definition)) {
        return Some(format!("`{name}` does not check user names and passwords: it cannot be started with a log-in"));
    }
    if options.encrypts()
        && let Some(protocol) =
            [&options.protocol, listens_over].into_iter().find(|name| !encrypts(definition, options, name))
    {
        return Some(format!("`{name}` does not offer {protocol} over TLS to pubmark's clients"));
    }
    let topology = options.topology;
    let missing = match topology.mode {
        TopologyMode::Shard => None,
        TopologyMode::Bridge if definition.topology.bridge.is_none() => Some("bridge"),
        TopologyMode::Cluster if definition.topology.cluster.is_none() => Some("cluster"),
        TopologyMode::Bridge | TopologyMode::Cluster => None,
    };
    match missing {
        Some(mode) if topology.brokers > 1 => {
            Some(format!("`{name}` cannot run {} brokers as a {mode}", topology.brokers))
        }
        _ => None,
    }
}

/// Whether the system and our clients can both encrypt connections over a protocol.
fn encrypts(definition: &Definition, options: &StartOptions, protocol: &str) -> bool {
    let container = options.runs_in_container(definition);
    let offered =
        definition.offer(protocol).is_ok_and(|offer| definition.encrypts_protocol(offer, options.websocket, container));
    offered && protocols::find(protocol).is_some_and(|ours| !ours.capabilities.tls_schemes.is_empty())
}

/// Checks whether the back end that starts the system is on this machine. An image that is missing may still be pulled,
/// so only the container engine is checked.
///
/// # Errors
/// What is missing, of kind [`ErrorKind::NotInstalled`]; or that no back end can be started here.
pub fn check_installed(definition: &Definition, options: &StartOptions) -> Result<(), RunError> {
    let (name, ends) = (&definition.name, &definition.back_ends);
    // An image can only be used with a container.
    let asked = options.back_end.or(options.image.as_ref().map(|_| BackEndChoice::Container));
    let wants = |choice| asked.is_none_or(|asked| asked == choice);
    let refused = |text: String| Err(RunError::new(ErrorKind::NotInstalled, text));
    match (&ends.process, &ends.container) {
        (Some(process), _) if wants(BackEndChoice::Process) => {
            match launch::find_program(&process.program, process) {
                Err(error @ (SystemError::Missing { .. } | SystemError::NotAProgram { .. })) => {
                    // The hint names `pubmark install`, which prints the whole script.
                    let said = error.to_string();
                    let said = said.split(": ").next().unwrap_or(&said);
                    refused(format!("{said} (`pubmark install {name}`)"))
                }
                Err(error @ SystemError::Untrusted { .. }) => refused(error.to_string()),
                _ => Ok(()),
            }
        }
        (_, Some(_)) if wants(BackEndChoice::Container) => match Engine::find() {
            Ok(_) => Ok(()),
            Err(error) => refused(format!("`{name}` runs in a container only: {error}")),
        },
        _ => Err(RunError::unsupported(format!("`{name}` has no back end that can be started here"))),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::RunSpec;

    /// Why clients over a protocol cannot have these settings of a profile.
    fn refused(protocol: &str, settings: &str) -> Option<String> {
        let text = format!(
            "name: mine\ntitle: mine\ndescription: mine\nranked: false\nlisteners: {{door: {{scheme: nats}}}}\n\
             protocols: {{{protocol}: {{listener: door, highest_qos: 2}}}}\n\
             profiles: {{default: {{description: as it is}}, own: {{description: own, settings: {{{protocol}: '{settings}'}}}}}}\n"
        );
        let definition = Definition::parse(&text, "mine.yaml").unwrap();
        let options = StartOptions { profile: "own".to_owned(), ..StartOptions::new(protocol) };
        not_offered(&definition, &options, &RunSpec::new("hello").load().unwrap())
    }

    #[test]
    fn settings_of_a_profile_that_no_endpoint_could_have_are_refused_before_the_start() {
        assert_eq!(refused("jetstream", "?storage=memory"), None);
        for (protocol, settings, why) in [
            ("jetstream", "?storage=disk", "`storage=disk` is none of its settings"),
            ("jetstream", "storage=memory", "its settings for jetstream do not begin with `?`"),
            ("jetstream", "", "do not begin with `?`"),
            ("mqtt5", "?storage=memory", "endpoints over mqtt5 have no settings"),
        ] {
            let found = refused(protocol, settings).unwrap();
            assert!(found.starts_with("profile `own` cannot be had: ") && found.contains(why), "{settings}: {found}");
        }
    }

    #[test]
    fn more_sessions_than_a_profile_allows_are_refused_with_the_profiles_that_allow_more() {
        let definition = Definition::load("zenoh").unwrap();
        let check = |profile: &str, brokers, sessions| {
            let mut options = StartOptions { profile: profile.to_owned(), ..StartOptions::new("zenoh") };
            options.topology.brokers = brokers;
            check_sessions(&definition, &options, sessions)
        };
        assert_eq!(check("default", 1, (100, 800)).err().map(|error| error.to_string()), None);
        let error = check("default", 1, (101, 800)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "901 sessions are more than the 900 of a broker of `zenoh` with profile `default`"
        );
        assert_eq!(
            error.hint.as_deref(),
            Some("`--profile tuned`, a smaller `--scale`, or groups that share a `client`")
        );
        assert!(check("tuned", 1, (101, 800)).is_ok() && check("default", 2, (901, 899)).is_ok());
        assert!(check("default", 2, (901, 900)).is_err());
    }

    #[test]
    fn the_settings_of_every_built_in_profile_are_some_that_endpoints_have() {
        let mut count = 0;
        for definition in Definition::embedded().unwrap() {
            for (protocol, settings) in definition.profiles.values().flat_map(|profile| &profile.settings) {
                assert_eq!(refused_settings(protocol, settings), None, "{}: {protocol}{settings}", definition.name);
                count += 1;
            }
        }
        assert!(count > 0, "the profile `memory` of NATS");
    }
}
