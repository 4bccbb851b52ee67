//! A program of the user as the client: `--client 'python3 client.py'`.

use pubmark_protocol::client_program::{ClientProgram, Hello};
use pubmark_protocols::{self as protocols, Protocol, ProtocolPair};

use pubmark_systems::definition::Definition;

use crate::error::RunError;
use crate::spec::RunSpec;
use crate::target;

/// The command line of a client program: the specification has a command, or the name of one in the definition of its system. `None` for
/// the name of a client library, and where the specification has no client.
///
/// # Errors
/// The text looks like a command, but cannot be read as one; or the system does not exist.
pub fn words(spec: &RunSpec) -> Result<Option<Vec<String>>, RunError> {
    let Some(client) = spec.protocols.client.as_deref() else { return Ok(None) };
    if !is_name(client) {
        return command(client, &format!("`--client {client}`")).map(Some);
    }
    let Some(system) = spec.target.system.as_deref() else { return Ok(None) };
    let definition = target::definition(system)?;
    let found = definition.clients.get(client);
    found.map(|words| command(words, &format!("client `{client}` of system `{}`", definition.name))).transpose()
}

fn is_name(client: &str) -> bool {
    !client.is_empty() && client.chars().all(|letter| letter.is_alphanumeric() || "-_.".contains(letter))
}

fn command(words: &str, of: &str) -> Result<Vec<String>, RunError> {
    ClientProgram::words(words).map_err(|error| RunError::input(format!("{of} is no command: {error}")))
}

impl RunSpec {
    /// Does the specification name a program that is started on this machine? A service that accepts specifications from others may refuse
    /// that.
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

/// The client program of a specification that was checked.
pub fn of(spec: &RunSpec, spoken: ProtocolPair) -> Option<ClientProgram> {
    spoken.publish.program?;
    let words = words(spec).ok().flatten()?;
    Some(ClientProgram { words, protocol: spoken.publish.capabilities.name.to_owned() })
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
    let shown = words.join(" ");
    protocols::hello_of(words).map_err(|reason| {
        RunError::input(format!("failed to start the client program `{shown}`: {reason}"))
            .hint("docs/reference/client-protocol.md says what a client program is to do")
    })
}

/// The protocol, with the capabilities that the program reports.
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
        assert_eq!(words(&paho).unwrap().unwrap(), ["python3", "clients/paho/client.py"]);
        assert_eq!(words(&with("other", Some("mosquitto"))).unwrap(), None);
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
        let error = hello(&spec, &["echo".to_owned(), "nonsense".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("its first frame is no hello"), "{error}");
    }
}
