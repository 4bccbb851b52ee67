//! Truth tests: a broker that lies on purpose and keeps a journal of what it did, against what pubmark says of it. The journal
//! is compared by a script that shares no line of code with pubmark (`tests/truth/compare.py`).

#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod chains;
mod content;
mod fields;
mod granted;
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
