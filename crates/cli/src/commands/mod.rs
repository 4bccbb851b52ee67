//! One file a verb: what it takes from the command line, and what it does.

pub mod broker;
pub mod capacity;
pub mod check;
#[cfg(feature = "cluster")]
pub mod cluster;
pub mod compare;
pub mod demo;
#[cfg(feature = "cluster")]
pub mod deploy;
pub mod doctor;
pub mod experiment;
pub mod explain;
pub mod grid;
pub mod install;
pub mod keeper;
pub mod list;
#[cfg(feature = "cluster")]
pub mod node;
pub mod reference;
pub mod report;
pub mod run;
pub mod run_arguments;
pub mod schema;
pub mod setup;
pub mod worker;

use crate::arguments::Verb;
use crate::failure::Outcome;
use crate::printer::Printer;

/// Does the verb's work.
pub fn perform(verb: Verb, printer: &Printer) -> Outcome {
    match verb {
        Verb::Demo(demo) => demo.perform(printer),
        Verb::Run(run) => run.perform(printer),
        Verb::Compare(compare) => compare.perform(printer),
        Verb::Experiment(experiment) => experiment.perform(printer),
        Verb::Check(check) => check.perform(printer),
        Verb::Capacity(capacity) => capacity.perform(printer),
        #[cfg(feature = "cluster")]
        Verb::Node(node) => node.perform(printer),
        #[cfg(feature = "cluster")]
        Verb::Cluster(cluster) => cluster.perform(printer),
        #[cfg(feature = "cluster")]
        Verb::Deploy(deploy) => deploy.perform(printer),
        Verb::Report(report) => report.perform(printer),
        Verb::List(list) => list.perform(printer),
        Verb::Install(install) => install.perform(printer),
        Verb::Explain(explain) => explain.perform(printer),
        Verb::Doctor(doctor) => doctor.perform(printer),
        Verb::Schema(schema) => schema.perform(printer),
        Verb::Broker(broker) => broker.perform(),
        Verb::Keeper(keeper) => keeper.perform(),
        Verb::Worker(worker) => worker.perform(),
        Verb::Reference(reference) => reference.perform(printer),
    }
}

/// Was it asked to say nothing but the result?
pub fn is_quiet(verb: &Verb) -> bool {
    match verb {
        Verb::Demo(demo) => demo.quiet,
        Verb::Run(run) => run.quiet,
        Verb::Compare(compare) => compare.quiet,
        Verb::Experiment(experiment) => experiment.quiet,
        Verb::Capacity(capacity) => capacity.quiet,
        #[cfg(feature = "cluster")]
        Verb::Node(node) => node.quiet,
        _ => false,
    }
}
