//! A program of the user as the client: `--client 'python3 client.py'`.

use pubmark_model::workload::Workload;
use pubmark_protocol::client_program::{ClientProgram, Hello};
use pubmark_protocols::{self as protocols, Protocol, ProtocolPair};

use pubmark_systems::definition::Definition;
use pubmark_systems::{client_programs, programs};

use crate::error::{ErrorKind, RunError};
use crate::spec::RunSpec;
use crate::target;

/// The words of a specification's client that is a program: a command, or the name of one in the definition of its system or among those
/// that pubmark brings. `None` for any other name, and where nothing is said.
///
/// # Errors
/// The text looks like a command, but cannot be read as one; or the system does not exist.
pub fn words(spec: &RunSpec) -> Result<Option<Vec<String>>, RunError> {
    let Some(client) = spec.protocols.client.as_deref() else { return Ok(None) };
    if !is_name(client) {
        return command(client, &format!("`--client {client}`")).map(Some);
    }
    let definition = spec.target.system.as_deref().map(target::definition).transpose()?;
    let of_system = definition.as_ref().and_then(|definition| definition.clients.get(client).map(String::as_str));
    let Some(found) = of_system.or_else(|| client_programs::find(client).map(|known| known.command)) else {
        return Ok(None);
    };
    let of = match &definition {
        Some(definition) if of_system.is_some() => format!("client `{client}` of system `{}`", definition.name),
        _ => format!("client `{client}`"),
    };
    let words = command(found, &of)?;
    Ok(Some(words.iter().map(|word| programs::with_folder(word)).collect()))
}

/// Names of client programs that a specification can choose: those of its system, and those that pubmark brings for the protocol.
pub fn names(spec: &RunSpec, protocol: &str) -> Vec<String> {
    let of_system = spec.target.system.as_deref().and_then(|system| target::definition(system).ok());
    let mut names: Vec<String> =
        of_system.map(|definition| definition.clients.into_keys().collect()).unwrap_or_default();
    let bundled = client_programs::CLIENT_PROGRAMS.iter().filter(|program| program.protocols.contains(&protocol));
    names.extend(bundled.map(|program| program.name.to_owned()));
    let mut known = std::collections::BTreeSet::new();
    names.retain(|name| known.insert(name.clone()));
    names
}

fn is_name(client: &str) -> bool {
    !client.is_empty() && client.chars().all(|letter| letter.is_alphanumeric() || "-_.".contains(letter))
}

fn command(words: &str, of: &str) -> Result<Vec<String>, RunError> {
    ClientProgram::words(words).map_err(|error| RunError::input(format!("{of} is no command: {error}")))
}

impl RunSpec {
    /// Whether the specification names a program that is started on this machine. A service that accepts specifications
    /// from others may refuse that.
    pub fn has_client_program(&self) -> bool {
        // The caller's own definition counts without being read, as it may name a program.
        let is_of_caller = |system: &str| !Definition::names().contains(&system);
        match (self.protocols.client.as_deref(), self.target.system.as_deref()) {
            (Some(client), Some(system)) if is_name(client) && is_of_caller(system) => true,
            // A text that is not a command starts nothing; it is refused where the specification is checked.
            (Some(_), _) => matches!(words(self), Ok(Some(_))),
            (None, _) => false,
        }
    }
}

/// The program of a specification that was checked.
pub fn of(spec: &RunSpec, protocol_pair: ProtocolPair, workload: &Workload) -> Option<ClientProgram> {
    protocol_pair.publish.program?;
    let words = words(spec).ok().flatten()?;
    let protocol = protocol_pair.publish.capabilities.name.to_owned();
    Some(ClientProgram { words, protocol, whole_payloads: looks_into_payloads(workload) })
}

/// Whether clients need more of a received message than its header.
fn looks_into_payloads(workload: &Workload) -> bool {
    workload.subscribers.iter().any(|group| group.predicate.is_some())
        || workload.devices.iter().any(|group| !group.transform.is_empty())
}

/// Starts a program once to read its description of itself.
///
/// # Errors
/// It cannot be started, or prints no description that can be parsed.
pub fn hello(spec: &RunSpec, words: &[String]) -> Result<Hello, RunError> {
    if spec.nodes.nodes.is_some() {
        return Err(RunError::input("`--client` names a program, and `--nodes` other machines")
            .hint("programs are started on this machine only: `--local-nodes`, or leave one of the two out"));
    }
    if let Some(path) = client_programs::missing(words) {
        let name = spec.protocols.client.as_deref().unwrap_or_default();
        return Err(RunError::new(
            ErrorKind::NotInstalled,
            format!("the client program `{name}` is not installed: there is no `{}`", path.display()),
        )
        .hint(format!("`pubmark install {name}` installs it; or give the command of a program that you have")));
    }
    let shown = words.join(" ");
    protocols::hello_of(words).map_err(|reason| {
        let hint = match installable(words) {
            Some(name) => {
                format!("`pubmark install {name}` installs the program and its library; then `--client {name}`")
            }
            None => {
                "start it by hand in this folder; docs/reference/client-protocol.md says what a client program is to do"
                    .to_owned()
            }
        };
        RunError::input(format!("failed to start the client program `{shown}`: {reason}")).hint(hint)
    })
}

/// The program that pubmark brings which a command seems to mean: one of its words is a path with the folder of that name.
fn installable(words: &[String]) -> Option<&'static str> {
    let has_folder = |name: &str| words.iter().any(|word| word.split('/').rev().skip(1).any(|part| part == name));
    client_programs::names().find(|name| has_folder(name))
}

/// The protocol with the capabilities that the program supports.
///
/// # Errors
/// The program does not support the protocol.
pub fn spoken_by(hello: &Hello, own: &'static Protocol) -> Result<&'static Protocol, RunError> {
    protocols::of_program(own, hello).map_err(|spoken| {
        RunError::unsupported(format!("{} does not speak {}", hello.title(), own.capabilities.name))
            .hint(format!("`--protocol` with one of those that it speaks: {}", spoken.join(", ")))
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_library_and_anything_else_a_command() {
        let of = |client: &str| words(&with(client, None));
        assert_eq!(of("rustdds").unwrap(), None);
        assert_eq!(of("python3 client.py").unwrap().unwrap(), ["python3", "client.py"]);
        assert_eq!(of("./client").unwrap().unwrap(), ["./client"]);
        for none in ["", " ", "a 'b"] {
            assert!(of(none).unwrap_err().to_string().contains("is no command"), "{none}");
        }
    }

    fn with(client: &str, system: Option<&str>) -> RunSpec {
        let mut spec = RunSpec::new("hello");
        spec.protocols.client = Some(client.to_owned());
        spec.target.system = system.map(str::to_owned);
        spec
    }

    #[test]
    fn a_system_names_programs_and_each_is_a_command() {
        let paho = with("paho", Some("mosquitto"));
        let commands = words(&paho).unwrap().unwrap();
        let folder = programs::folder().map(|folder| folder.join("clients/paho/client.py").display().to_string());
        assert_eq!(commands.last().cloned(), folder.or(Some("/nonexistent/clients/paho/client.py".to_owned())));
        assert_eq!(words(&with("other", Some("mosquitto"))).unwrap(), None);
        // What pubmark brings is known with any system, and its definition says the same.
        for program in &client_programs::CLIENT_PROGRAMS {
            let commands: Vec<_> = [Some("mosquitto"), Some("emqx"), None]
                .map(|system| words(&with(program.name, system)).unwrap().unwrap())
                .into();
            assert!(commands.iter().all(|own| *own == commands[0]), "{commands:?}");
        }
        assert_eq!(names(&with("pahoo", Some("mosquitto")), "mqtt5"), ["mqttjs", "paho"]);
        assert_eq!(names(&with("pahoo", None), "nats"), [""; 0], "none of them speaks it");
        for name in Definition::names() {
            for client in Definition::load(name).unwrap().clients.keys() {
                assert!(is_name(client) && words(&with(client, Some(name))).unwrap().is_some(), "{client} of {name}");
            }
        }
        // A service that accepts specifications from others calls this before anything is started or read.
        assert!(paho.has_client_program() && with("./client", None).has_client_program());
        assert!(with("any", Some("/nonexistent/system.yaml")).has_client_program());
        assert!(!with("rustdds", None).has_client_program() && !with("other", Some("mosquitto")).has_client_program());
        assert!(!RunSpec::new("hello").has_client_program());
    }

    #[test]
    fn a_program_that_is_not_there_is_named_before_the_run() {
        let spec = RunSpec::new("hello");
        let error = hello(&spec, &["/nonexistent/client".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("failed to start the client program `/nonexistent/client`: No such file"), "{error}");
        let error = hello(&spec, &["true".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("before its hello it ended with exit status: 0"), "{error}");
        let words = ClientProgram::words("sh -c 'echo \"no module\" >&2; exit 3'").unwrap();
        let error = hello(&spec, &words).unwrap_err().to_string();
        assert!(error.contains("before its hello it ended with exit status: 3; it printed: no module"), "{error}");
        let traceback = "sh -c 'echo Traceback >&2; echo in\\ main >&2; echo ModuleNotFoundError: No module >&2; exit 1' clients/paho/client.py";
        let error = hello(&spec, &ClientProgram::words(traceback).unwrap()).unwrap_err();
        assert!(error.to_string().ends_with("exit status: 1; it printed: ModuleNotFoundError: No module"), "{error}");
        assert!(
            format!("{error:?}").contains("`pubmark install paho` installs the program and its library"),
            "{error:?}"
        );
        let absent = programs::folder().unwrap_or_else(|| "/nonexistent".into()).join("clients/absent/client");
        if programs::folder().is_some() {
            let error = hello(&with("absent", None), &[absent.display().to_string()]).unwrap_err();
            assert!(
                error.to_string().contains("the client program `absent` is not installed: there is no `"),
                "{error}"
            );
        }
        let error = hello(&spec, &["echo".to_owned(), "nonsense".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("its first frame is no hello"), "{error}");
        assert!(error.contains("it begins with the text `nons`, and standard output is for frames"), "{error}");
    }
}
