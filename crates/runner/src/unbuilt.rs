//! Protocols that pubmark has and this build leaves out: the error, and the features to build.

use pubmark_systems::Definition;

use crate::error::RunError;
use crate::suggestion;
use pubmark_protocols as protocols;
use pubmark_protocols::known::{self, Known};

/// The first protocol of a system that this build leaves out, if the build has no other protocol of the system.
pub fn of(definition: &Definition) -> Option<&'static Known> {
    let speaks = |name: &str| definition.protocols.contains_key(name);
    match protocols::names().into_iter().any(speaks) {
        true => None,
        false => known::KNOWN.iter().find(|known| speaks(known.name)),
    }
}

/// The error for a name that is not a protocol of this build.
pub fn no_protocol(name: &str) -> RunError {
    match known::left_out(name) {
        Some(known) => failure(known),
        None => RunError::input(format!("there is no protocol `{name}`"))
            .hint(suggestion::choices(name, protocols::names())),
    }
}

/// The error that names the missing protocol, and the build that has it.
pub fn failure(known: &Known) -> RunError {
    RunError::input(lacking(known)).hint(remedy(known))
}

/// As [`failure`], in one sentence, for texts without a hint.
pub fn words(known: &Known) -> String {
    format!("{} ({})", lacking(known), remedy(known))
}

fn lacking(known: &Known) -> String {
    format!("this build of pubmark lacks the protocol `{}` (cargo feature `{}`)", known.name, known.feature)
}

fn remedy(known: &Known) -> String {
    format!("`cargo build --release -p pubmark-cli --features {}` builds one with it", known.feature)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// The features of a build.
    const MANIFEST: &str = include_str!("../Cargo.toml");

    #[test]
    fn every_protocol_of_this_build_is_known_with_its_schemes_and_feature() {
        for protocol in protocols::PROTOCOLS {
            let can = &protocol.capabilities;
            let known = known::KNOWN.iter().find(|known| known.name == can.name);
            assert_eq!(known.map(|known| known.schemes), Some(can.schemes), "{}", can.name);
        }
        for known in known::KNOWN {
            let line = format!("\n{0} = [\"pubmark-protocols/{0}\"]", known.feature);
            assert!(MANIFEST.contains(&line), "{}: no feature `{}`", known.name, known.feature);
        }
        let all_are_in = known::KNOWN.iter().all(|known| known::left_out(known.name).is_none());
        assert!(!all_are_in || known::KNOWN.iter().map(|known| known.name).eq(protocols::names()));
    }

    #[test]
    fn a_protocol_left_out_is_named_with_the_build_that_has_it() {
        let dds = known::KNOWN.iter().find(|known| known.name == "dds").unwrap();
        let found = failure(dds);
        assert_eq!(found.chain, ["this build of pubmark lacks the protocol `dds` (cargo feature `dds`)"]);
        let hint = found.hint.unwrap();
        assert_eq!(hint, "`cargo build --release -p pubmark-cli --features dds` builds one with it");
        assert!(words(dds).contains(&hint));
    }

    #[test]
    fn a_name_that_no_build_knows_is_answered_with_those_there_are() {
        let found = no_protocol("stomp");
        assert_eq!(found.chain, ["there is no protocol `stomp`"]);
        assert!(found.hint.unwrap().contains(protocols::names()[0]));
    }
}
