//! From requirements to a choice: which systems meet them, which do not and why, with how much headroom, at what cost.
//!
//! Start with [`Requirements`]. [`candidate`] excludes what cannot meet them by its capabilities; [`race`] makes runs until [`standing`]
//! says of each objective that it holds or is missed, by the [`rule`]; [`headroom`] searches what is left above; [`ranking`] compares
//! the cost of those that qualify; [`record`] holds all of it. [`folder`] has what is on the disk, from which an interrupted choice goes
//! on. Nothing here prints.

pub mod candidate;
mod cleared;
pub mod cost;
mod entry;
mod evidence;
pub mod folder;
pub mod headroom;
mod html;
pub mod links;
pub mod machines;
mod markdown;
pub mod race;
pub mod ranking;
pub mod record;
pub mod requirements;
mod result;
pub mod rule;
#[cfg(any(test, feature = "sample"))]
pub mod sample;
#[cfg(test)]
mod simulation;
pub mod standing;
pub mod table;
mod terminal;
mod words;

pub use html::html;
pub use race::Race;
pub use record::Choice;
pub use requirements::Requirements;
pub use terminal::summary;
pub use words::load_of;

/// The files that are made from a record: name relative to its folder, text.
pub fn files(choice: &Choice) -> Vec<(String, String)> {
    vec![
        ("choice.html".to_owned(), html(choice)),
        ("choice.md".to_owned(), markdown::markdown(choice)),
        (table::FILE.to_owned(), table::table(choice)),
    ]
}
