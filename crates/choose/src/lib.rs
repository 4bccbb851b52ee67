//! From requirements to a choice: which systems meet them, which do not and why, with how much headroom, at what cost.
//!
//! Start with [`Requirements`]. [`candidate`] excludes what cannot meet them by its capabilities; [`race`] makes runs until [`standing`]
//! says of each objective that it holds or is missed, by the [`rule`]; [`headroom`] searches what is left above; [`ranking`] compares
//! the cost of those that qualify; [`record`] holds all of it. Nothing here prints.

pub mod candidate;
pub mod cost;
mod entry;
mod evidence;
pub mod headroom;
mod html;
mod markdown;
pub mod race;
pub mod ranking;
pub mod record;
pub mod requirements;
mod result;
pub mod rule;
#[cfg(test)]
mod sample;
#[cfg(test)]
mod simulation;
pub mod standing;
mod terminal;
mod words;

pub use html::html;
pub use markdown::markdown;
pub use race::Race;
pub use record::Choice;
pub use requirements::Requirements;
pub use terminal::summary;
