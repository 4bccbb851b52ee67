//! The command line: one variant for each verb. The arguments of a verb are in the file that executes it.

use clap::{CommandFactory as _, Parser, Subcommand};

use crate::commands;
use crate::exit_code;
use crate::failure::Outcome;
use crate::printer::Printer;

/// Which publish/subscribe system to deploy for your IoT devices, and how far to
/// believe the answer
#[derive(Debug, Parser)]
#[command(name = "pubmark", version, max_term_width = 80, after_help = exit_code::help(), disable_help_subcommand = true)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// The verbs, in the order of the help.
#[derive(Debug, Subcommand)]
pub enum Verb {
    Demo(commands::demo::Demo),
    Run(Box<commands::run_arguments::Run>),
    Compare(Box<commands::compare::Compare>),
    Experiment(Box<commands::experiment::Experiment>),
    Paper(Box<commands::paper::Paper>),
    Check(commands::check::Check),
    Capacity(Box<commands::capacity::Capacity>),
    Choose(Box<commands::choose::Choose>),
    #[cfg(feature = "cluster")]
    Node(commands::node::Node),
    #[cfg(feature = "cluster")]
    Cluster(commands::cluster::Cluster),
    Devices(commands::devices::Devices),
    #[cfg(feature = "cluster")]
    Deploy(Box<commands::deploy_ssh::Deployments>),
    #[cfg(feature = "serve")]
    Serve(commands::serve::Serve),
    Runs(commands::runs::Runs),
    Report(commands::report::Report),
    Table(commands::table::Table),
    List(commands::list::List),
    Install(commands::install::Install),
    Explain(commands::explain::Explain),
    Doctor(commands::doctor::Doctor),
    Schema(commands::schema::Schema),
    Completions(commands::completions::Completions),
    Manual(commands::manual::Manual),
    #[command(hide = true)]
    Broker(commands::broker::Broker),
    #[command(hide = true)]
    Supervisor(commands::supervisor::Supervisor),
    #[command(hide = true)]
    IdleLoops(commands::idle_loops::IdleLoops),
    #[command(hide = true)]
    Worker(commands::worker::Worker),
    #[command(hide = true)]
    Relay(commands::relay::Relay),
    #[cfg(feature = "cluster")]
    #[command(hide = true)]
    Pod(commands::pod::Pod),
    #[cfg(feature = "cluster")]
    #[command(hide = true)]
    HostedNode(commands::hosted_node::HostedNode),
    #[command(hide = true)]
    Reference(commands::reference::Reference),
}

impl Verb {
    /// Executes the verb.
    pub fn perform(self, printer: &Printer) -> Outcome {
        match self {
            Verb::Demo(demo) => demo.perform(printer),
            Verb::Run(run) => run.perform(printer),
            Verb::Compare(compare) => compare.perform(printer),
            Verb::Experiment(experiment) => experiment.perform(printer),
            Verb::Paper(paper) => paper.perform(printer),
            Verb::Check(check) => check.perform(printer),
            Verb::Capacity(capacity) => capacity.perform(printer),
            Verb::Choose(choose) => choose.perform(printer),
            #[cfg(feature = "cluster")]
            Verb::Node(node) => node.perform(printer),
            #[cfg(feature = "cluster")]
            Verb::Cluster(cluster) => cluster.perform(printer),
            Verb::Devices(devices) => devices.perform(printer),
            #[cfg(feature = "cluster")]
            Verb::Deploy(deploy) => deploy.perform(printer),
            #[cfg(feature = "serve")]
            Verb::Serve(serve) => serve.perform(printer),
            Verb::Runs(runs) => runs.perform(printer),
            Verb::Report(report) => report.perform(printer),
            Verb::Table(table) => table.perform(printer),
            Verb::List(list) => list.perform(printer),
            Verb::Install(install) => install.perform(printer),
            Verb::Explain(explain) => explain.perform(printer),
            Verb::Doctor(doctor) => doctor.perform(printer),
            Verb::Schema(schema) => schema.perform(printer),
            Verb::Completions(completions) => completions.perform(&Arguments::command(), printer),
            Verb::Manual(manual) => manual.perform(&Arguments::command(), printer),
            Verb::Broker(broker) => broker.perform(),
            Verb::Supervisor(supervisor) => supervisor.perform(),
            Verb::IdleLoops(loops) => loops.perform(),
            Verb::Worker(worker) => worker.perform(),
            Verb::Relay(relay) => relay.perform(),
            #[cfg(feature = "cluster")]
            Verb::Pod(pod) => pod.perform(printer),
            #[cfg(feature = "cluster")]
            Verb::HostedNode(node) => node.perform(),
            Verb::Reference(reference) => reference.perform(&mut Arguments::command(), printer),
        }
    }

    /// Whether only the result is to be printed.
    pub fn is_quiet(&self) -> bool {
        match self {
            Verb::Demo(demo) => demo.quiet,
            Verb::Run(run) => run.quiet,
            Verb::Compare(compare) => compare.quiet,
            Verb::Experiment(experiment) => experiment.quiet,
            Verb::Paper(paper) => paper.quiet,
            Verb::Capacity(capacity) => capacity.quiet,
            Verb::Choose(choose) => choose.quiet,
            #[cfg(feature = "cluster")]
            Verb::Node(node) => node.quiet,
            #[cfg(feature = "cluster")]
            Verb::Deploy(deployments) => deployments.is_quiet(),
            _ => false,
        }
    }
}
