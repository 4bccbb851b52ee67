//! Candidates: who takes part, and who is excluded before anything is run, with the reason.

use std::time::Duration;

use pubmark_experiment::capacity::trial::WARMUP;
use pubmark_model::fault::choice::FaultChoice;
use pubmark_model::secret::without_password;
use pubmark_protocols::{self as protocols, Protocol};
use pubmark_runner::spec::text::Text as _;
use pubmark_runner::{ErrorKind, Host, PreparedRun, RunError, RunSpec, suggestion, target, unbuilt};
use pubmark_systems::Definition;

use crate::record::State;
use crate::requirements::{CandidateSettings, CandidateSpec, Needs, Requirements};

/// When the system is killed in a run that measures its recovery: the fleet has been up for so long.
const KILLED_AT: Duration = Duration::from_secs(2);
/// Shortest window of the screening.
const SHORTEST_SCREENING: Duration = Duration::from_secs(1);

/// Why a candidate that nobody named is not run.
const NOT_INSTALLED: &str = "not installed here (`pubmark list systems NAME`)";

/// Who takes part.
pub struct Candidate {
    /// What it is called; unique.
    pub label: String,
    /// The same as a part of a file's name; unique.
    pub id: String,
    /// Its runs, or why there are none.
    pub runs: Result<Box<Runs>, State>,
}

/// The runs of a candidate, ready to be made.
pub struct Runs {
    /// Short.
    pub screening: PreparedRun,
    /// Of the whole window.
    pub race: PreparedRun,
    /// With a kill, where recovery is required; or why it cannot be killed.
    pub recovery: Option<Result<PreparedRun, String>>,
}

impl Runs {
    /// The specification of a run of the race.
    pub fn spec(&self) -> &RunSpec {
        &self.race.spec
    }

    /// Warm-up of each trial of its headroom: as long as the system needs, where its runs have as much.
    pub fn warm_up_of_trials(&self) -> Duration {
        let needed = self.race.wanted.warm_up().map(|(_, needed)| needed).unwrap_or_default();
        needed.min(self.race.spec.window.warmup).max(WARMUP)
    }

    /// The note about a warm-up that is shorter than the system's.
    fn too_cold(&self) -> Option<String> {
        self.race.wanted.too_cold(self.race.spec.window.warmup)
    }

    /// Protocol of its clients.
    pub fn protocol(&self) -> &'static str {
        self.race.protocol_pair.publish.capabilities.name
    }
}

/// Refuses a candidate that has to qualify and is none.
///
/// # Errors
/// None has this label.
pub fn check_required(candidates: &[Candidate], label: &str) -> Result<(), RunError> {
    let labels = || candidates.iter().map(|candidate| candidate.label.as_str());
    match labels().any(|one| one == label) {
        true => Ok(()),
        false => Err(RunError::input(format!("`--require {label}` names no candidate"))
            .hint(suggestion::choices(label, labels()))),
    }
}

/// Parameters that the workload makes passwords of; of the first candidate that has runs, as all have the same workload.
pub fn secret_parameters(candidates: &[Candidate]) -> Vec<String> {
    first(candidates).map(|runs| runs.race.workload.secret_parameters.clone()).unwrap_or_default()
}

/// The runs of the first candidate that has some.
pub fn first(candidates: &[Candidate]) -> Option<&Runs> {
    candidates.iter().find_map(|candidate| candidate.runs.as_deref().ok())
}

/// All candidates, in the order written. Nothing is started.
///
/// # Errors
/// A candidate that is named cannot be read, or the requirements fit no run.
pub fn all(requirements: &Requirements, host: &Host) -> Result<Vec<Candidate>, RunError> {
    let is_named = !requirements.candidates.is_empty();
    let listed = if is_named { requirements.candidates.clone() } else { every()? };
    let listed: Vec<CandidateSettings> = listed.iter().map(CandidateSpec::settings).collect();
    let warmup = warm_up(requirements, &listed, host);
    let mut candidates: Vec<Candidate> = vec![];
    for settings in listed {
        let subject =
            settings.endpoint.as_deref().map(without_password).or(settings.system.clone()).unwrap_or_default();
        let label = free_label(&settings, &subject, &candidates);
        let runs = match runs(requirements, &settings, warmup, host) {
            Ok(runs) => Ok(Box::new(runs)),
            Err(error) => Err(refusal(error, is_named).map_err(|error| error.during(format!("candidate `{label}`")))?),
        };
        let id = format!("{}-{}", candidates.len() + 1, file_name_part(&label));
        candidates.push(Candidate { label, id, runs });
    }
    Ok(candidates)
}

/// Notes for the user about systems that are measured before they are warm, because a shorter warm-up was given.
pub fn too_cold(candidates: &[Candidate]) -> Vec<String> {
    let mut notes: Vec<String> = vec![];
    for note in candidates.iter().filter_map(|candidate| candidate.runs.as_ref().ok()?.too_cold()) {
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    notes
}

/// The warm-up of all runs: the longest that one of the candidates needs that can be run here. All have it, because all have one schedule.
fn warm_up(requirements: &Requirements, listed: &[CandidateSettings], host: &Host) -> Duration {
    let least = requirements.window.warmup;
    if requirements.exact_warmup {
        return least;
    }
    let can_be_run = |spec: &RunSpec| {
        spec.check(host).and_then(|checked| checked.check_installed().and_then(|()| checked.check_limits())).is_ok()
    };
    let needed = |settings: &CandidateSettings| {
        let protocols = protocols_of(requirements, settings).ok()?;
        let over = |protocol: &str| spec(requirements, settings, protocol, least);
        let own = target::warm_up(&over(protocols.first()?), least).ok()?;
        (own > least && protocols.iter().any(|protocol| can_be_run(&over(protocol)))).then_some(own)
    };
    listed.iter().filter_map(needed).max().unwrap_or(least)
}

/// Every built-in definition that may be ranked.
fn every() -> Result<Vec<CandidateSpec>, RunError> {
    let definitions = Definition::embedded().map_err(|error| RunError::from_error(ErrorKind::Internal, &error))?;
    let ranked = definitions.into_iter().filter(|definition| definition.ranked);
    Ok(ranked.map(|definition| CandidateSpec::Name(definition.name)).collect())
}

/// Its label, or what it is; numbered where another is called the same.
fn free_label(settings: &CandidateSettings, subject: &str, others: &[Candidate]) -> String {
    let own = settings.label.clone().unwrap_or_else(|| match &settings.profile {
        Some(profile) => format!("{subject} {profile}"),
        None => subject.to_owned(),
    });
    let is_free = |label: &String| others.iter().all(|other| other.label != *label);
    let mut labels = std::iter::once(own.clone()).chain((2..).map(|number| format!("{own} ({number})")));
    labels.find(is_free).expect("the numbers do not end before the candidates")
}

fn file_name_part(label: &str) -> String {
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-');
    label.chars().map(|letter| if allowed(letter) { letter } else { '-' }).collect()
}

/// What a candidate lacks excludes it; what this machine lacks leaves it undecided. A candidate that nobody named is never in the way of
/// the others.
fn refusal(error: RunError, is_named: bool) -> Result<State, RunError> {
    match error.kind {
        ErrorKind::Unsupported => Ok(State::Excluded { reason: error.to_string() }),
        ErrorKind::NotInstalled if !is_named => Ok(State::Excluded { reason: NOT_INSTALLED.to_owned() }),
        ErrorKind::NotInstalled => Ok(State::Excluded { reason: format!("not installed: {error}") }),
        ErrorKind::TooLarge => Ok(State::Undecided { would_decide: format!("a larger machine: {error}") }),
        ErrorKind::Input if !is_named => Ok(State::Excluded { reason: error.to_string() }),
        _ => Err(error),
    }
}

fn runs(
    requirements: &Requirements,
    settings: &CandidateSettings,
    warmup: Duration,
    host: &Host,
) -> Result<Runs, RunError> {
    let mut refused: Option<RunError> = None;
    for protocol in protocols_of(requirements, settings)? {
        match runs_over(requirements, spec(requirements, settings, protocol, warmup), host) {
            Ok(runs) => return Ok(runs),
            // The first is the usual one: its refusal says most.
            Err(error) if error.kind == ErrorKind::Unsupported => refused = refused.or(Some(error)),
            Err(error) => return Err(error),
        }
    }
    Err(refused.unwrap_or_else(|| RunError::unsupported("it speaks no protocol that pubmark's clients speak")))
}

/// Protocols over which a candidate offers what is needed, in order.
fn protocols_of(requirements: &Requirements, settings: &CandidateSettings) -> Result<Vec<&'static str>, RunError> {
    let needs = &requirements.needs;
    let wanted = settings.protocol.as_deref().or(needs.protocol.as_deref());
    let Some(system) = &settings.system else {
        return Ok(endpoint_protocol(settings, wanted, needs)?.into_iter().collect());
    };
    let definition = target::definition(system)?;
    let speaks = |name: &&str| definition.protocols.contains_key(*name) && wanted.is_none_or(|wanted| wanted == *name);
    let offered: Vec<&'static str> = protocols::names().into_iter().filter(speaks).collect();
    if offered.is_empty() {
        return Err(not_spoken(&definition, wanted));
    }
    let lacks: Vec<Option<String>> = offered.iter().map(|name| lacking_in_system(&definition, name, needs)).collect();
    let fit: Vec<&'static str> =
        offered.iter().zip(&lacks).filter(|(_, lacks)| lacks.is_none()).map(|(name, _)| *name).collect();
    match lacks.into_iter().flatten().next() {
        Some(lacks) if fit.is_empty() => Err(RunError::unsupported(lacks)),
        _ => Ok(fit),
    }
}

fn not_spoken(definition: &Definition, wanted: Option<&str>) -> RunError {
    let spoken = definition.protocols.keys().cloned().collect::<Vec<_>>().join(", ");
    match (wanted, unbuilt::of(definition)) {
        (None, Some(known)) => RunError::new(ErrorKind::NotInstalled, unbuilt::words(known)),
        (wanted, _) => RunError::unsupported(format!(
            "`{}` does not speak {}: it speaks {spoken}",
            definition.name,
            wanted.unwrap_or("a protocol of pubmark's clients")
        )),
    }
}

/// The protocol of an endpoint: what it grants is seen when it is run.
fn endpoint_protocol(
    settings: &CandidateSettings,
    wanted: Option<&str>,
    needs: &Needs,
) -> Result<Option<&'static str>, RunError> {
    let url = settings.endpoint.as_deref().unwrap_or_default();
    let scheme = url.split("://").next().unwrap_or_default().to_ascii_lowercase();
    let Some(protocol) = wanted.and_then(protocols::find).or_else(|| protocols::of_scheme(&scheme)) else {
        return Err(RunError::input(format!("`{}` has no scheme of a protocol", without_password(url)))
            .hint("`pubmark list protocols` names the schemes, such as `mqtt://127.0.0.1:1883`"));
    };
    if needs.tls && !protocol.capabilities.tls_schemes.contains(&scheme.as_str()) {
        let schemes = protocol.capabilities.tls_schemes.join(", ");
        return Err(RunError::unsupported(format!(
            "TLS is needed, and `{scheme}://` is not encrypted ({schemes} are)"
        )));
    }
    lacking_in_protocol(protocol, needs)
        .map_or(Ok(Some(protocol.capabilities.name)), |lacks| Err(RunError::unsupported(lacks)))
}

/// The first thing that a system lacks over a protocol of what is needed, in a sentence. TLS is checked with the run.
fn lacking_in_system(definition: &Definition, protocol: &str, needs: &Needs) -> Option<String> {
    let (name, offer) = (&definition.name, definition.protocols.get(protocol)?);
    if let Some(qos) = needs.qos.filter(|qos| *qos > offer.highest_qos) {
        return Some(format!("`{name}` grants QoS {} at most over {protocol}, QoS {qos} is needed", offer.highest_qos));
    }
    let needed = [
        ("retained messages", needs.retained, offer.retain),
        ("shared subscriptions", needs.shared_subscriptions, offer.shared_subscriptions),
        ("persistent sessions", needs.persistent_sessions, offer.persistent_sessions),
    ];
    let lacks = needed.into_iter().find(|(_, is_needed, is_offered)| *is_needed && !is_offered);
    lacks
        .map(|(what, ..)| format!("`{name}` has no {what} over {protocol}"))
        .or_else(|| lacking_in_protocol(protocols::find(protocol)?, needs))
}

fn lacking_in_protocol(protocol: &Protocol, needs: &Needs) -> Option<String> {
    let can = &protocol.capabilities;
    let needed = [
        ("retained messages", needs.retained, can.retain),
        ("shared subscriptions", needs.shared_subscriptions, can.features.shared_subscriptions),
        ("persistent sessions", needs.persistent_sessions, can.persistent_sessions),
    ];
    let lacks = needed.into_iter().find(|(_, is_needed, is_offered)| *is_needed && !is_offered);
    if let Some((what, ..)) = lacks {
        return Some(format!("{} has no {what}", can.name));
    }
    let highest = can.qos().map(|qos| qos.level()).max().unwrap_or(0);
    needs
        .qos
        .filter(|qos| *qos > highest)
        .map(|qos| format!("{} has QoS {highest} at most, QoS {qos} is needed", can.name))
}

fn runs_over(requirements: &Requirements, spec: RunSpec, host: &Host) -> Result<Runs, RunError> {
    let prepared = |spec: &RunSpec| -> Result<PreparedRun, RunError> {
        let checked = spec.check(host)?;
        checked.check_installed()?;
        checked.prepare()
    };
    let mut short = spec.clone();
    short.window.duration = (spec.window.duration / 4).max(SHORTEST_SCREENING.min(spec.window.duration));
    let (screening, race) = (prepared(&short)?, prepared(&spec)?);
    let recovery = match requirements.recovery {
        None => None,
        Some(limit) => match prepared(&with_kill(&spec, limit)?) {
            Ok(run) => Some(Ok(run)),
            Err(error) if error.kind == ErrorKind::Interrupted => return Err(error),
            Err(error) => Some(Err(error.to_string())),
        },
    };
    Ok(Runs { screening, race, recovery })
}

/// A run of the race.
fn spec(requirements: &Requirements, settings: &CandidateSettings, protocol: &str, warmup: Duration) -> RunSpec {
    let mut spec = requirements.spec();
    spec.protocols.protocol = Some(protocol.to_owned());
    let target = &mut spec.target;
    target.system.clone_from(&settings.system);
    target.endpoint.clone_from(&settings.endpoint);
    if let Some(profile) = &settings.profile {
        target.profile.clone_from(profile);
    }
    if settings.endpoint.is_some() {
        // Nothing is started for it.
        (target.system_host, target.node) = (None, None);
    } else {
        // What is started is measured where it runs.
        spec.nodes.observers = None;
    }
    if settings.system.is_some() {
        target.limit = settings.limit.clone().or_else(|| requirements.resources.clone());
        spec.connection = Default::default();
        spec.connection.tls = requirements.needs.tls;
    }
    spec.window.warmup = warmup;
    spec
}

/// The same with a kill, as long as it takes to see whether all clients are back in time, and half as long again.
fn with_kill(spec: &RunSpec, limit: Duration) -> Result<RunSpec, RunError> {
    let mut spec = spec.clone();
    let fault = FaultChoice::parse(&format!("kill:at={}", KILLED_AT.write())).map_err(RunError::input)?;
    spec.load.faults = vec![fault];
    spec.window.duration = KILLED_AT + limit + limit / 2 + Duration::from_secs(1);
    // Judged by its recovery alone.
    spec.objectives = None;
    Ok(spec)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn excluded(needs: Needs, candidate: &str) -> String {
        let mut requirements = Requirements::new("hello");
        requirements.needs = needs;
        requirements.candidates = vec![CandidateSpec::Name(candidate.to_owned())];
        let candidates = all(&requirements, &Host::with_program("pubmark")).unwrap();
        match &candidates[0].runs {
            Err(State::Excluded { reason }) => reason.clone(),
            Err(other) => panic!("{other:?}"),
            Ok(_) => String::new(),
        }
    }

    #[test]
    fn what_is_needed_and_not_offered_excludes() {
        let needs = Needs::default();
        assert_eq!(excluded(needs.clone(), "builtin"), "");
        let shared = Needs { shared_subscriptions: true, ..needs.clone() };
        assert_eq!(excluded(shared, "builtin"), "`builtin` has no shared subscriptions over mqtt5");
        let protocol = Needs { protocol: Some("nats".to_owned()), ..needs.clone() };
        assert_eq!(excluded(protocol, "builtin"), "`builtin` does not speak nats: it speaks mqtt311, mqtt5");
        let tls = Needs { tls: true, ..needs.clone() };
        assert!(excluded(tls, "mqtt://127.0.0.1:1").contains("TLS is needed"));
        let level = Needs { qos: Some(2), ..needs };
        assert_eq!(excluded(level, "nats://127.0.0.1:1"), "nats has QoS 0 at most, QoS 2 is needed");
    }

    #[test]
    fn equal_candidates_have_labels_and_ids_of_their_own() {
        let mut requirements = Requirements::new("hello");
        requirements.candidates = ["builtin", "builtin", "mqtt://ann:word@127.0.0.1:1"]
            .map(|name| CandidateSpec::Name(name.to_owned()))
            .to_vec();
        let candidates = all(&requirements, &Host::with_program("pubmark")).unwrap();
        let labels: Vec<&str> = candidates.iter().map(|candidate| candidate.label.as_str()).collect();
        assert_eq!(labels, ["builtin", "builtin (2)", "mqtt://ann:…@127.0.0.1:1"]);
        assert_eq!(candidates[1].id, "2-builtin--2-");
    }

    /// A definition that needs 20 s of warm-up, with this program.
    fn slow(place: &std::path::Path, program: &str) -> String {
        let text = include_str!("../../../systems/builtin.yaml");
        let text = text.replacen("back_ends:\n", "warm_up_s: 20\nback_ends:\n", 1).replacen("{self}", program, 1);
        let file = place.join("slow.yaml");
        std::fs::write(&file, text).unwrap();
        file.to_str().unwrap().to_owned()
    }

    /// Warm-up of the runs, and of the trials of the headroom, of `builtin` and of a slower system, which may not be installed.
    fn warm_ups_s(requirements: &mut Requirements, program: &str) -> Vec<(u64, u64)> {
        let place = tempfile::tempdir().unwrap();
        requirements.candidates =
            ["builtin", &slow(place.path(), program)].map(|name| CandidateSpec::Name(name.to_owned())).to_vec();
        let candidates = all(requirements, &Host::with_program("pubmark")).unwrap();
        let runs = candidates.iter().filter_map(|candidate| candidate.runs.as_ref().ok());
        runs.map(|runs| (runs.spec().window.warmup.as_secs(), runs.warm_up_of_trials().as_secs())).collect()
    }

    #[test]
    fn a_warm_up_that_is_shorter_than_a_candidates_is_noted_once() {
        let place = tempfile::tempdir().unwrap();
        let slow = CandidateSpec::Name(slow(place.path(), "{self}"));
        let notes = |exact_warmup: bool| {
            let mut requirements = Requirements::new("hello");
            requirements.exact_warmup = exact_warmup;
            requirements.candidates = vec![CandidateSpec::Name("builtin".to_owned()), slow.clone(), slow.clone()];
            too_cold(&all(&requirements, &Host::with_program("pubmark")).unwrap())
        };
        assert!(notes(false).is_empty(), "the warm-up is raised");
        let cold = notes(true);
        assert!(cold.len() == 1 && cold[0].contains("needs 20 s of load until it is warm"), "{cold:?}");
    }

    #[test]
    fn all_candidates_have_the_warm_up_and_the_schedule_of_the_slowest_that_can_be_run_unless_the_user_says_how_long() {
        let mut requirements = Requirements::new("hello");
        assert_eq!(warm_ups_s(&mut requirements, "{self}"), [(20, 1), (20, 20)], "trials are not compared");
        assert_eq!(warm_ups_s(&mut requirements, "no-such-program"), [(5, 1)]);
        (requirements.window.warmup, requirements.exact_warmup) = (Duration::from_secs(3), true);
        assert_eq!(warm_ups_s(&mut requirements, "{self}"), [(3, 1), (3, 3)]);
        let read = Requirements::parse(&requirements.to_yaml(&[]).unwrap()).unwrap();
        assert!(read.exact_warmup, "a repetition does the same");
    }

    #[test]
    fn what_is_started_has_no_observers_and_an_endpoint_no_machine_that_starts_it() {
        let mut requirements = Requirements::new("hello");
        (requirements.nodes, requirements.observers) = (Some(2), Some(1));
        requirements.system_host = Some([10, 0, 0, 1].into());
        let of = |name: &str| {
            let settings = CandidateSpec::Name(name.to_owned()).settings();
            spec(&requirements, &settings, "mqtt5", Duration::ZERO)
        };
        let (started, at_endpoint) = (of("builtin"), of("mqtt://10.0.0.2"));
        assert_eq!((started.nodes.nodes, started.nodes.observers), (Some(2), None));
        assert_eq!(started.target.system_host, requirements.system_host);
        assert_eq!((at_endpoint.nodes.nodes, at_endpoint.nodes.observers), (Some(2), Some(1)));
        assert_eq!((at_endpoint.target.system_host, at_endpoint.target.node), (None, None));
    }

    #[test]
    fn an_endpoint_cannot_be_killed_and_says_so() {
        let mut requirements = Requirements::new("hello");
        requirements.recovery = Some(Duration::from_secs(10));
        requirements.candidates =
            ["builtin", "mqtt://127.0.0.1:1"].map(|name| CandidateSpec::Name(name.to_owned())).to_vec();
        let candidates = all(&requirements, &Host::with_program("pubmark")).unwrap();
        let recovery = |index: usize| candidates[index].runs.as_ref().unwrap().recovery.as_ref().unwrap();
        assert_eq!(recovery(0).as_ref().map(|run| run.spec.window.duration), Ok(Duration::from_secs(18)));
        assert!(recovery(1).is_err());
    }
}
