//! A program of the user's as the client: `--client 'python3 client.py'`.

use pubmark_protocol::client_program::{ClientProgram, Hello};
use pubmark_protocols::{self as protocols, Protocol, Spoken};

use crate::error::RunError;
use crate::spec::RunSpec;

/// The words of a client that is a program; `None` for the name of a client library.
///
/// # Errors
/// It looks like a command, and is none.
pub fn words(client: &str) -> Result<Option<Vec<String>>, RunError> {
    let is_name = !client.is_empty() && client.chars().all(|letter| letter.is_alphanumeric() || "-_.".contains(letter));
    if is_name {
        return Ok(None);
    }
    ClientProgram::words(client)
        .map(Some)
        .map_err(|error| RunError::input(format!("`--client {client}` is no command: {error}")))
}

impl RunSpec {
    /// Does it name a program that is started on this machine? Who takes specifications from others may not want that.
    pub fn has_client_program(&self) -> bool {
        // What is no command is none that is started, and is refused where the specification is checked.
        self.protocols.client.as_deref().is_some_and(|client| matches!(words(client), Ok(Some(_))))
    }
}

/// The program of a specification that was checked.
pub fn of(spec: &RunSpec, spoken: Spoken) -> Option<ClientProgram> {
    spoken.publish.program?;
    let words = words(spec.protocols.client.as_deref()?).ok().flatten()?;
    Some(ClientProgram { words, protocol: spoken.publish.capabilities.name.to_owned() })
}

/// Starts a program once, to learn what it is.
///
/// # Errors
/// It cannot be started, or says nothing that is understood.
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

/// The protocol as the program speaks it.
///
/// # Errors
/// It does not.
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
        assert_eq!(words("rustdds").unwrap(), None);
        assert_eq!(words("python3 client.py").unwrap().unwrap(), ["python3", "client.py"]);
        assert_eq!(words("./client").unwrap().unwrap(), ["./client"]);
        for none in ["", " ", "a 'b"] {
            assert!(words(none).unwrap_err().to_string().contains("is no command"), "{none}");
        }
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
