//! What the tests of every crate share. It has no dependencies, and only tests use it.
//!
//! - [`skip()`]: for a test, or a part of one, that cannot run here. `make test` prints all skips at its end, and
//!   continuous integration fails for one that `.ci/skips-allowed` does not list.
//! - [`assert_count!`] and [`assert_count_eq!`]: for every assertion about how many messages, packets or connections
//!   there were. A test that fails by one of them is never run a second time (`docs/explanation/testing.md`).

mod count;
mod skip;

pub use skip::{SKIPS, skip};
