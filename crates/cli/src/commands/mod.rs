//! One file a verb: what it takes from the command line, and what it does.

pub mod doctor;
pub mod schema;

use crate::arguments::Verb;
use crate::failure::Outcome;
use crate::printer::Printer;

/// Does the verb's work.
pub fn perform(verb: Verb, printer: &Printer) -> Outcome {
    match verb {
        Verb::Doctor(doctor) => doctor.perform(printer),
        Verb::Schema(schema) => schema.perform(printer),
    }
}

/// Was it asked to say nothing but the result?
pub fn is_quiet(_verb: &Verb) -> bool {
    false
}
