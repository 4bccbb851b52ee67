//! Store of a device's own TLS session ticket.

use std::fmt::{self, Debug, Formatter};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::pki_types::ServerName;

/// The newest session of one device with one server. A server may send several tickets at once; a device that has flash memory
/// for one ticket stores the last, and so does this.
#[derive(Default)]
pub struct Tickets(Mutex<StoredTickets>);

#[derive(Default)]
struct StoredTickets {
    group: Option<NamedGroup>,
    tls12: Option<Tls12ClientSessionValue>,
    tls13: Option<Tls13ClientSessionValue>,
}

impl Tickets {
    fn stored(&self) -> MutexGuard<'_, StoredTickets> {
        // No code that holds the lock can panic between two changes.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Debug for Tickets {
    /// Without the secrets.
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let stored = self.stored();
        let is_there = stored.tls12.is_some() || stored.tls13.is_some();
        formatter.debug_struct("Tickets").field("is_there", &is_there).finish()
    }
}

/// A device has one server, so the names are ignored.
impl ClientSessionStore for Tickets {
    fn set_kx_hint(&self, _server_name: ServerName<'static>, group: NamedGroup) {
        self.stored().group = Some(group);
    }

    fn kx_hint(&self, _server_name: &ServerName<'_>) -> Option<NamedGroup> {
        self.stored().group
    }

    fn set_tls12_session(&self, _server_name: ServerName<'static>, value: Tls12ClientSessionValue) {
        self.stored().tls12 = Some(value);
    }

    fn tls12_session(&self, _server_name: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.stored().tls12.clone()
    }

    fn remove_tls12_session(&self, _server_name: &ServerName<'static>) {
        self.stored().tls12 = None;
    }

    fn insert_tls13_ticket(&self, _server_name: ServerName<'static>, value: Tls13ClientSessionValue) {
        self.stored().tls13 = Some(value);
    }

    /// A ticket is used once (RFC 8446 §C.4).
    fn take_tls13_ticket(&self, _server_name: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.stored().tls13.take()
    }
}
