//! Machines that join a run, an experiment or a search, and systems at endpoints, as they are written on the command line.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use pubmark_experiment::Machines;
use pubmark_experiment::experiment::definition;
use pubmark_model::experiment::Word;
use pubmark_model::secret::without_password;
use pubmark_runner::spec::Nodes;

use crate::commands::setup::{replace, replace_some};
use crate::failure::Failure;
use crate::values::duration;

/// Machines that join, and where.
#[derive(Clone, Debug, Default, Args)]
pub struct JoinOptions {
    /// Spread the clients over N machines, which join with `pubmark node`; begin when all have joined. With --dry-run, plan for N machines
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000),
          help_heading = "Nodes", hide_short_help = true)]
    pub nodes: Option<u16>,

    /// Look at what a system at an endpoint takes on its own machines, once N nodes have joined with `pubmark node --observe`
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=100),
          help_heading = "Nodes", hide_short_help = true)]
    pub observers: Option<u16>,

    /// Where nodes join [default: 0.0.0.0:7700]
    #[arg(long, value_name = "ADDRESS", help_heading = "Nodes", hide_short_help = true)]
    pub listen: Option<SocketAddr>,

    /// Say on local networks where nodes join, while they are waited for: `pubmark node --join mdns` finds it
    #[arg(long, help_heading = "Nodes", hide_short_help = true)]
    pub announce: bool,

    /// The coordinator's folder that `pubmark cluster init` made [default: cluster/coordinator]
    #[arg(long, value_name = "DIR", help_heading = "Nodes", hide_short_help = true)]
    pub credentials: Option<PathBuf>,

    /// Longest wait for nodes to join [default: 1m]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = duration,
          help_heading = "Nodes", hide_short_help = true)]
    pub join_limit: Option<Duration>,
}

impl JoinOptions {
    /// Puts the options that were given into a specification.
    pub fn apply(&self, nodes: &mut Nodes) {
        replace_some(&mut nodes.nodes, self.nodes);
        replace_some(&mut nodes.observers, self.observers);
        replace_some(&mut nodes.listen, self.listen);
        replace(&mut nodes.announce, self.announce.then_some(true));
        replace_some(&mut nodes.credentials, self.credentials.clone());
        replace_some(&mut nodes.join_limit, self.join_limit);
    }
}

/// Machines that all runs of an experiment share.
#[derive(Clone, Debug, Default, Args)]
pub struct MachineOptions {
    #[command(flatten)]
    pub join: JoinOptions,

    /// Address of this machine at which systems that pubmark starts listen, for nodes on others [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESS", help_heading = "Nodes", hide_short_help = true)]
    pub system_host: Option<Ipv4Addr>,

    /// Node that starts the systems, by its name: it joined with `pubmark node --start-systems`
    #[arg(long, value_name = "NAME", help_heading = "Nodes", hide_short_help = true)]
    pub system_node: Option<String>,
}

impl From<&MachineOptions> for Machines {
    fn from(options: &MachineOptions) -> Machines {
        let mut nodes = Nodes::default();
        options.join.apply(&mut nodes);
        Machines { nodes, system_host: options.system_host, system_node: options.system_node.clone() }
    }
}

/// Reads `LABEL=URL` of `--endpoint`. clap would print a value that it refuses, with the password that may be in it.
///
/// # Errors
/// It has no label, a password, or a scheme that nobody speaks.
pub fn labelled_endpoint(text: &str) -> Result<(&str, &str), Failure> {
    let shown = without_password(text);
    let (label, url) = match text.split_once('=') {
        Some((label, url)) if !label.contains("://") => (label.trim(), url.trim()),
        _ => {
            return Err(Failure::usage(format!("`--endpoint {shown}` has no label, by which the report names it"))
                .hint(format!("`--endpoint 'ours={shown}'`")));
        }
    };
    if label.is_empty() || url.is_empty() {
        return Err(Failure::usage(format!("`--endpoint {shown}` has an empty part"))
            .hint("`--endpoint 'ours=mqtt://broker.example:1883'`"));
    }
    if without_password(url) != url {
        return Err(Failure::usage(format!(
            "`--endpoint {shown}` has a password, and an experiment's folder keeps it for everybody to read"
        ))
        .hint(format!(
            "in an experiment's file: `{{label: {label}, endpoint: 'mqtt://…', user: NAME, password_env: VARIABLE}}`"
        )));
    }
    definition::judge(Path::new(""), Word::Endpoint, url).map_err(|objection| {
        let failure = Failure::usage(objection.message).during(format!("failed to read `--endpoint {shown}`"));
        match objection.hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    })?;
    Ok((label, url))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_has_a_label_and_no_password() {
        let read = |text| labelled_endpoint(text).map_err(|failure| failure.chain.join(": "));
        assert_eq!(read("ours = mqtt://host:1883"), Ok(("ours", "mqtt://host:1883")));
        assert_eq!(read("ours=mqtt://ann@host"), Ok(("ours", "mqtt://ann@host")));
        for (wrong, said) in [
            ("mqtt://host", "has no label"),
            ("mqtt://host?a=b", "has no label"),
            ("=mqtt://host", "has an empty part"),
            ("ours=", "has an empty part"),
            ("ours=mqtt://ann:word@host", "has a password"),
            ("mqtt://ann:word@host", "has no label"),
            ("ours=host:1883", "has no scheme"),
            ("ours=gopher://host", "none that pubmark speaks"),
        ] {
            let error = read(wrong).expect_err(wrong);
            assert!(error.contains(said) && !error.contains("word@"), "{wrong}: {error}");
        }
    }
}
