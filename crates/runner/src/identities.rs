//! Identities of clients, checked before a run: a row for each client, distinct identifiers, usable certificates.

use pubmark_model::fleet::Fleet;
use pubmark_model::identity::GroupIdentity;
use pubmark_model::workload::Workload;
use pubmark_protocol::client_certificate;
use pubmark_protocol::nkey::NKey;
use pubmark_protocol::token::TokenSigner;

use crate::error::RunError;
use crate::target::CheckedTarget;

/// Checks the identities that a workload assigns to its clients.
///
/// # Errors
/// The first identity that cannot be used, with file and line; the message contains no key and no password.
pub fn check(workload: &Workload, fleet: &Fleet, wanted: &CheckedTarget) -> Result<(), RunError> {
    fleet.check_identities(workload).map_err(RunError::input)?;
    check_groups(workload, wanted)
}

/// Whether any clients of the workload have a certificate.
pub fn show_certificates(workload: &Workload) -> bool {
    let devices = workload.devices.iter().map(|group| &group.identity);
    devices.chain(workload.subscribers.iter().map(|group| &group.identity)).any(GroupIdentity::has_certificates)
}

fn check_groups(workload: &Workload, wanted: &CheckedTarget) -> Result<(), RunError> {
    let devices = workload.devices.iter().map(|group| (&group.name, &group.identity));
    let subscribers = workload.subscribers.iter().map(|group| (&group.name, &group.identity));
    for (name, identity) in devices.chain(subscribers) {
        check_keys(identity)?;
        if let Some(token) = &identity.token {
            TokenSigner::new(&token.rules)
                .map_err(|reason| RunError::input(format!("group `{name}` cannot sign tokens: {reason}")))?;
        }
        if identity.has_certificates() && !wanted.is_encrypted() {
            return Err(RunError::input(format!(
                "group `{name}` shows certificates, and its connections are not encrypted"
            ))
            .hint("an encrypted endpoint, such as `mqtts://HOST:8883`; or `--tls` for a system that pubmark starts"));
        }
    }
    Ok(())
}

/// Most clients of a fleet that is expanded before it is known that this machine can hold it.
const FEW_CLIENTS: u64 = 10_000;

/// The same before the fleet is expanded: for one copy of the workload, if it assigns identities at all. For many clients this checks only
/// the certificates; identifiers are compared after the check that this machine can hold the fleet.
///
/// # Errors
/// As [`check`].
pub fn check_one_copy(workload: &Workload, wanted: &CheckedTarget) -> Result<(), RunError> {
    let devices = workload.devices.iter().map(|group| &group.identity);
    let mut all = devices.chain(workload.subscribers.iter().map(|group| &group.identity));
    let counts = workload.devices.iter().map(|group| group.count);
    let clients: u64 = counts.chain(workload.subscribers.iter().map(|group| group.count)).map(u64::from).sum();
    match all.any(GroupIdentity::is_of_each) {
        true if clients <= FEW_CLIENTS => check(workload, &Fleet::new(workload, 1), wanted),
        true => check_groups(workload, wanted),
        false => Ok(()),
    }
}

/// The certificates and NKeys of a file.
fn check_keys(identity: &GroupIdentity) -> Result<(), RunError> {
    let Some(file) = &identity.rows else { return Ok(()) };
    for row in file.rows.iter() {
        if let Some(seed) = &row.nkey {
            NKey::of_seed(seed.expose()).map_err(|reason| {
                RunError::input(format!(
                    "{}:{}: what stands under `nkey` cannot be used: {reason}",
                    file.name, row.line
                ))
                .hint("the seed of a user, as `nk -gen user` prints it")
            })?;
        }
        if let Some(pem) = &row.certificate {
            client_certificate::check(pem).map_err(|reason| {
                RunError::input(format!("{}:{}: {reason}", file.name, row.line))
                    .hint("`certificate` and `key` name PEM files that were made together, the key not encrypted")
            })?;
        }
    }
    Ok(())
}
