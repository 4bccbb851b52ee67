//! Check of the systems that pubmark can start as programs.

use pubmark_systems::{Definition, SystemError, install};

use super::Finding;

/// Which systems are installed as programs here, and how can the others be installed?
pub fn systems() -> Finding {
    match Definition::embedded() {
        Ok(definitions) => of(&definitions),
        Err(error) => unreadable(&error),
    }
}

fn unreadable(error: &SystemError) -> Finding {
    Finding::bad(format!("definitions cannot be read: {error}"), "this is an error in pubmark: please report it")
}

fn of(definitions: &[Definition]) -> Finding {
    let (mut here, mut missing) = (Vec::new(), Vec::new());
    for definition in definitions.iter().filter(|definition| definition.back_ends.process.is_some()) {
        match install::found(definition) {
            Some(found) => here.push(match found.version {
                Some(version) => format!("{} {version}", definition.name),
                None => definition.name.clone(),
            }),
            None => missing.push(definition.name.as_str()),
        }
    }
    let can = format!("{} can be started", here.join(", "));
    match missing.as_slice() {
        [] => Finding::good(can),
        missing => Finding::limited(
            format!("{can}; not installed: {}", missing.join(", ")),
            format!("`pubmark install {}`", missing.join(" ")),
        ),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::doctor::Fitness;

    #[test]
    fn a_missing_program_comes_with_its_install_command() {
        let builtin = Definition::load("builtin").unwrap();
        assert_eq!(of(std::slice::from_ref(&builtin)).fitness, Fitness::Good);
        let mut absent = builtin.clone();
        absent.name = "absent".to_owned();
        absent.back_ends.process.as_mut().unwrap().program = "no-such-program".to_owned();
        let finding = of(&[builtin, absent]);
        assert_eq!(finding.fitness, Fitness::Limited);
        assert!(finding.text.ends_with("not installed: absent"), "{}", finding.text);
        assert_eq!(finding.fix.as_deref(), Some("`pubmark install absent`"));
    }
}
