//! What a run is made against: a system that runs already, or one that is started for it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pubmark_model::workload::Credentials;
use pubmark_protocol::endpoint::{Endpoint, Tls};
use pubmark_record::record::{Deviation, SystemInfo};
use pubmark_systems::{Definition, RunningSystem, StartOptions, SystemError};

use crate::commands::run_arguments::Run;
use crate::endpoint::Written;
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::protocols::Protocol;
use crate::suggestion;

/// System of a run that names none.
const DEFAULT_SYSTEM: &str = "builtin";

/// Where distributions keep the certificates that a machine trusts: Debian, Fedora, Alpine.
const MACHINE_AUTHORITIES: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];

/// What was asked for, checked, nothing started.
pub enum Wanted {
    /// An endpoint, its name looked up.
    External {
        /// Where it is.
        endpoint: Endpoint,
        /// TLS without a check.
        unchecked: bool,
    },
    /// A system to start.
    Started {
        /// What it is.
        definition: Box<Definition>,
        /// How it is started.
        options: StartOptions,
    },
}

/// A system that can be reached.
pub struct Target {
    /// Where clients connect.
    pub endpoint: Endpoint,
    /// What the record says of it.
    pub info: SystemInfo,
    /// What differs from its defaults.
    pub deviations: Vec<Deviation>,
    /// The one that was started; stopped when this is dropped.
    pub running: Option<RunningSystem>,
}

impl Wanted {
    /// Checks the arguments that say what is measured.
    pub fn of(run: &Run, protocol: &Protocol, stop: &Arc<AtomicBool>) -> Result<Wanted, Failure> {
        let login = login(run)?;
        match &run.endpoint {
            Some(url) => external(url, run, protocol, login),
            None => started(run, protocol, login, stop),
        }
    }

    /// Starts what is to be started.
    pub fn reach(&self, protocol: &Protocol) -> Result<Target, Failure> {
        match self {
            Wanted::External { endpoint, unchecked } => Ok(external_target(endpoint, *unchecked)),
            Wanted::Started { definition, options } => {
                let mut ready = |found: &pubmark_systems::Endpoint| (protocol.round_trip)(&connectable(found));
                let running = pubmark_systems::start(definition, options, &mut ready).map_err(not_started)?;
                Ok(Target {
                    endpoint: connectable(running.endpoint()),
                    info: running.info(),
                    deviations: running.deviations().to_vec(),
                    running: Some(running),
                })
            }
        }
    }
}

fn login(run: &Run) -> Result<Option<Credentials>, Failure> {
    let Some(user) = run.user.clone() else { return Ok(None) };
    let password = match (&run.password, &run.password_env) {
        (Some(password), _) => password.clone(),
        (None, Some(variable)) => std::env::var(variable).map_err(|error| {
            Failure::from_error(ExitCode::Usage, &error)
                .during(format!("failed to read the password from the environment variable `{variable}`"))
                .hint(format!("`export {variable}=…` first"))
        })?,
        (None, None) => String::new(),
    };
    Ok(Some(Credentials { user, password }))
}

fn external(url: &str, run: &Run, protocol: &Protocol, login: Option<Credentials>) -> Result<Wanted, Failure> {
    let mut written = Written::parse(url, &protocol.capabilities)?;
    if written.credentials.is_some() && login.is_some() {
        return Err(Failure::usage("the log-in is given twice: in `--endpoint` and with `--user`"));
    }
    written.credentials = written.credentials.or(login);
    if !written.encrypted && (run.tls_ca.is_some() || run.tls_insecure) {
        let encrypted = protocol.capabilities.tls_schemes.first().copied().unwrap_or("");
        return Err(Failure::usage(format!("`{}` is not encrypted, so no certificate is checked", written.shown()))
            .hint(format!("`--endpoint {encrypted}://{}`", written.host)));
    }
    let authorities = match &run.tls_ca {
        Some(file) => Some(file.clone()),
        None if written.encrypted && !run.tls_insecure => Some(machine_authorities(&written)?),
        None => None,
    };
    let endpoint = written.resolve(authorities)?;
    Ok(Wanted::External { endpoint, unchecked: run.tls_insecure })
}

/// The authorities that this machine trusts.
fn machine_authorities(written: &Written) -> Result<PathBuf, Failure> {
    MACHINE_AUTHORITIES.iter().map(PathBuf::from).find(|path| path.is_file()).ok_or_else(|| {
        Failure::usage(format!("found no authorities on this machine to check `{}` with", written.shown()))
            .hint("`--tls-ca FILE` with the authority's certificate, or `--tls-insecure` to accept any")
    })
}

fn external_target(endpoint: &Endpoint, unchecked: bool) -> Target {
    let deviation = Deviation {
        name: "tls-unchecked".to_owned(),
        detail: "the server's certificate was not checked (--tls-insecure): anybody could have answered".to_owned(),
    };
    Target {
        endpoint: endpoint.clone(),
        info: SystemInfo {
            name: "external".to_owned(),
            version: None,
            back_end: "external".to_owned(),
            profile: None,
            endpoint: endpoint.shown.clone(),
            ranked: true,
            ..SystemInfo::default()
        },
        deviations: if unchecked { vec![deviation] } else { vec![] },
        running: None,
    }
}

fn started(
    run: &Run,
    protocol: &Protocol,
    login: Option<Credentials>,
    stop: &Arc<AtomicBool>,
) -> Result<Wanted, Failure> {
    let name = run.system.as_deref().unwrap_or(DEFAULT_SYSTEM);
    let is_path = name.contains('/') || name.ends_with(".yaml");
    if !is_path && !Definition::names().contains(&name) {
        return Err(Failure::usage(format!("there is no system `{name}`"))
            .hint(format!("{}; or the path of a definition", suggestion::choices(name, Definition::names()))));
    }
    let usage = |error: SystemError| {
        Failure::from_error(ExitCode::Usage, &error)
            .hint("`pubmark list systems` shows what is built in; a definition of your own is given by its path")
    };
    let definition = Definition::load(name).map_err(usage)?;
    definition.offer(protocol.capabilities.name).map_err(usage)?;
    definition.profile(run.profile.as_str()).map_err(usage)?;
    let options = StartOptions {
        profile: run.profile.as_str().to_owned(),
        credentials: login,
        stop: Some(Arc::clone(stop)),
        ..StartOptions::new(protocol.capabilities.name)
    };
    Ok(Wanted::Started { definition: Box::new(definition), options })
}

/// An endpoint as adapters take it.
fn connectable(found: &pubmark_systems::Endpoint) -> Endpoint {
    let server_name = found.address.ip().to_string();
    Endpoint {
        shown: found.to_string(),
        address: found.address,
        tls: found.authority.clone().map(|authority| Tls { server_name, authorities: Some(authority) }),
        credentials: found.credentials.clone(),
    }
}

fn not_started(error: SystemError) -> Failure {
    let exit = match error {
        SystemError::Interrupted { .. } => ExitCode::Interrupted,
        _ => ExitCode::SystemFailed,
    };
    let failure = Failure::from_error(exit, &error);
    match error {
        SystemError::Missing { .. } => failure.hint("`--system builtin` needs no installation"),
        _ => failure,
    }
}

impl Wanted {
    /// For people: the endpoint, or the system and its profile.
    pub fn shown(&self) -> String {
        match self {
            Wanted::External { endpoint, .. } => endpoint.shown.clone(),
            Wanted::Started { definition, options } => format!("{}, profile {}", definition.title, options.profile),
        }
    }

    /// Are connections encrypted?
    pub fn is_encrypted(&self) -> bool {
        match self {
            Wanted::External { endpoint, .. } => endpoint.tls.is_some(),
            Wanted::Started { options, .. } => options.tls.is_some(),
        }
    }

    /// Largest packet that the system takes, where it is known before anything starts.
    pub fn packet_limit_bytes(&self) -> Option<u32> {
        match self {
            Wanted::External { .. } => None,
            Wanted::Started { definition, .. } => definition.limits.maximum_packet_bytes,
        }
    }
}
