//! The file that lists the hosts of a run, one a line: `[user@]host[:port] [key=value …]`.

use std::collections::BTreeMap;
use std::fs;
use std::net::Ipv6Addr;
use std::path::Path;

use pubmark_model::placement::{self, Labels};
use pubmark_runner::{ErrorKind, RunError};

/// Highest number of hosts: as many as a run may have nodes.
const MOST_HOSTS: usize = 1_000;
/// Largest file, bytes.
const LARGEST: u64 = 1 << 20;
/// Longest name of a host or a user, characters (RFC 1035 §2.3.4).
const LONGEST_NAME: usize = 253;

/// A host on which a node is to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Name of its node in records: the host, with the port if two lines have the same host.
    pub name: String,
    /// Destination for `ssh`: a name, an address, or an alias of its configuration.
    pub address: String,
    /// User to log in as; the one in the configuration of `ssh`, if none.
    pub user: Option<String>,
    /// Port of its SSH server; the one in the configuration of `ssh`, if none.
    pub port: Option<u16>,
    /// Labels of its node, which the placement of groups uses.
    pub labels: Labels,
}

/// Reads the hosts of a file, in its order.
///
/// # Errors
/// The file cannot be read, has no host, or has an invalid line; the error has the line's number.
pub fn read(path: &Path) -> Result<Vec<Host>, RunError> {
    let during = |error: RunError| {
        error.during(format!("failed to read the hosts in `{}`", path.display())).hint(
            "one host a line: `[user@]host[:port] [key=value …]`, such as `pi@edge-1.example site=edge-1`; `#` begins a comment",
        )
    };
    let unreadable = |error: std::io::Error| during(RunError::from_error(ErrorKind::Input, &error));
    if fs::metadata(path).map_err(unreadable)?.len() > LARGEST {
        return Err(during(RunError::input(format!("it has more than {LARGEST} bytes"))));
    }
    parse(&fs::read_to_string(path).map_err(unreadable)?).map_err(|why| during(RunError::input(why)))
}

fn parse(text: &str) -> Result<Vec<Host>, String> {
    let mut hosts: Vec<(usize, Host)> = vec![];
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let host = host(line).map_err(|why| format!("line {number}: {why}"))?;
        let is_same = |other: &&(usize, Host)| (&other.1.address, other.1.port) == (&host.address, host.port);
        if let Some((before, _)) = hosts.iter().find(is_same) {
            return Err(format!("line {number}: `{}` is on line {before} already: a host has one node", host.address));
        }
        hosts.push((number, host));
    }
    match hosts.len() {
        0 => Err("it has no host".to_owned()),
        count if count > MOST_HOSTS => Err(format!("it has {count} hosts, and a run has at most {MOST_HOSTS} nodes")),
        _ => Ok(named(hosts.into_iter().map(|(_, host)| host).collect())),
    }
}

/// Adds the port to names that would otherwise be equal.
fn named(mut hosts: Vec<Host>) -> Vec<Host> {
    let mut lines: BTreeMap<String, usize> = BTreeMap::new();
    for host in &hosts {
        *lines.entry(host.address.clone()).or_default() += 1;
    }
    for host in &mut hosts {
        if let Some(port) = host.port.filter(|_| lines[&host.address] > 1) {
            host.name = format!("{}:{port}", host.address);
        }
    }
    hosts
}

fn host(line: &str) -> Result<Host, String> {
    let mut words = line.split_whitespace();
    let place = words.next().unwrap_or_default();
    let (user, place) = match place.rsplit_once('@') {
        Some((user, place)) => (Some(user.to_owned()), place),
        None => (None, place),
    };
    let (address, port) = split(place)?;
    // `ssh` would read a name that begins with `-` as an option.
    let is_name = |text: &str, beside: &str| {
        let fits = |letter: char| letter.is_ascii_alphanumeric() || beside.contains(letter);
        (1..=LONGEST_NAME).contains(&text.len()) && !text.starts_with('-') && text.chars().all(fits)
    };
    if let Some(user) = user.as_deref().filter(|user| !is_name(user, "-_.+@\\$")) {
        return Err(format!("`{}` is no user", user.escape_debug()));
    }
    if !is_name(address, "-_.:%") {
        return Err(format!("`{}` is no host", address.escape_debug()));
    }
    let labels = placement::labels(&words.collect::<Vec<_>>())?;
    Ok(Host { name: address.to_owned(), address: address.to_owned(), user, port, labels })
}

/// Splits host and port. An IPv6 address with a port has brackets (RFC 3986 §3.2.2).
fn split(place: &str) -> Result<(&str, Option<u16>), String> {
    let port_of = |text: &str| {
        let port = text.parse().ok().filter(|port| *port != 0);
        port.ok_or_else(|| format!("`{}` is no port: 1 to 65535", text.escape_debug()))
    };
    if let Some(rest) = place.strip_prefix('[') {
        return match rest.split_once(']') {
            Some((address, "")) => Ok((address, None)),
            Some((address, port)) if port.starts_with(':') => Ok((address, Some(port_of(&port[1..])?))),
            _ => Err(format!("`{}` is no address: `[2001:db8::1]:22`", place.escape_debug())),
        };
    }
    if place.split('%').next().is_some_and(|address| address.parse::<Ipv6Addr>().is_ok()) {
        return Ok((place, None));
    }
    match place.split_once(':') {
        Some((address, port)) => Ok((address, Some(port_of(port)?))),
        None => Ok((place, None)),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_host_with_what_ssh_needs_and_labels() {
        let text = "# the edge\n\npi@edge-1.example:2222  site=edge-1 kind=pi  # behind the door\nedge-2\n[2001:db8::1]:22\n::1\n";
        let hosts = parse(text).unwrap();
        let seen: Vec<_> = hosts.iter().map(|host| (host.address.as_str(), host.user.as_deref(), host.port)).collect();
        assert_eq!(
            seen,
            [
                ("edge-1.example", Some("pi"), Some(2222)),
                ("edge-2", None, None),
                ("2001:db8::1", None, Some(22)),
                ("::1", None, None)
            ]
        );
        assert_eq!(placement::written(&hosts[0].labels), "kind=pi site=edge-1");
        assert_eq!(hosts[0].name, "edge-1.example");
    }

    #[test]
    fn two_nodes_behind_one_address_have_names_with_the_port() {
        let names: Vec<String> = parse("a:1\na:2\nb:1").unwrap().into_iter().map(|host| host.name).collect();
        assert_eq!(names, ["a:1", "a:2", "b"]);
    }

    #[test]
    fn a_bad_line_is_named_by_its_number() {
        for (text, words) in [
            ("", "it has no host"),
            ("# none\n", "it has no host"),
            ("a\n\na\n", "line 3: `a` is on line 1 already"),
            ("a\n-oProxyCommand=x\n", "line 2: `-oProxyCommand=x` is no host"),
            ("a;b", "line 1: `a;b` is no host"),
            ("-l@a", "line 1: `-l` is no user"),
            ("@a", "line 1: `` is no user"),
            ("a:0", "line 1: `0` is no port"),
            ("a:70000", "line 1: `70000` is no port"),
            ("a:b:c", "line 1: `b:c` is no port"),
            ("[::1", "line 1: `[::1` is no address"),
            ("[::1]x", "line 1: `[::1]x` is no address"),
            ("a site", "line 1: `site` is no label"),
            ("a site=x site=y", "line 1: the label `site` is given twice"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.starts_with(words), "{text:?}: {error}");
        }
        let many: String = (0..=MOST_HOSTS).map(|number| format!("h{number}\n")).collect();
        assert!(parse(&many).unwrap_err().contains("1001 hosts"));
    }
}
