//! Before a run: whether this machine is fit to measure ([`doctor`]), and what a run would need of it ([`dry_run`]), in
//! words for people. Nothing is started but self-tests of a second or two.

pub mod doctor;
pub mod dry_run;
