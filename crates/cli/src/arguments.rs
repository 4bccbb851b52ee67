//! The command line: one variant a verb; what a verb takes stands beside what it does.

use clap::{Parser, Subcommand};

use crate::commands;
use crate::exit_code;

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
    Experiment(commands::experiment::Experiment),
    Check(commands::check::Check),
    Capacity(Box<commands::capacity::Capacity>),
    #[cfg(feature = "cluster")]
    Node(commands::node::Node),
    #[cfg(feature = "cluster")]
    Cluster(commands::cluster::Cluster),
    #[cfg(feature = "cluster")]
    Deploy(Box<commands::deploy::Deploy>),
    Report(commands::report::Report),
    List(commands::list::List),
    Install(commands::install::Install),
    Explain(commands::explain::Explain),
    Doctor(commands::doctor::Doctor),
    Schema(commands::schema::Schema),
    #[command(hide = true)]
    Broker(commands::broker::Broker),
    #[command(hide = true)]
    Keeper(commands::keeper::Keeper),
    #[command(hide = true)]
    Worker(commands::worker::Worker),
    #[command(hide = true)]
    Reference(commands::reference::Reference),
}
