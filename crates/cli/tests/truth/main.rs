//! Truth tests: a broker that lies on purpose and writes a journal of its actions, compared with pubmark's record. The
//! comparison is a script that shares no code with pubmark (`tests/truth/compare.py`).

#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod chains;
mod content;
mod fields;
mod granted;
mod held_back;
mod intervals;
mod known_losses;
mod liar;
mod machine;
mod million;
mod stall;
mod standing;
mod starved;
mod tampering;
mod tokens;
