//! Whose session the server may have under the client identifier.
//!
//! A client must not continue a session whose state it does not have (MQTT 5.0 §3.2.2.1.1). The server may have received messages
//! of it at QoS 2 that were not released: it acknowledges a new message with one of their packet identifiers, and does not
//! publish it. An earlier run leaves such a session under an identifier of the workload's own (`credentials`). So a session that is
//! found before this one was open is not used, and the next connection discards it.
//!
//! In MQTT 5.0 that connection begins the new session. In 3.1.1 its session ends with it (§3.1.2.4), and another one is needed. The
//! engine counts the connections before as failed, with their causes.
//!
//! To start clean at once would spare the first of them. But NanoMQ and rumqttd store no session, also in 5.0, for a connection that
//! starts clean.

use pubmark_protocol::clients::Goodbye;
use pubmark_protocol::events::Cause;
use pubmark_wire::mqtt::Version;

use super::session::Mqtt;
use super::version::ProtocolVersion;
use crate::connection::{Dialect as _, Link, Shared};

const FOUND: &str = "ended by us: the server has a session with this client identifier, of an earlier run or attempt";
const DISCARDED: &str =
    "ended by us: the server has discarded a session of an earlier run or attempt, and the next connection begins one";

/// The session that the server may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stored {
    /// This client was never open: none, or one of an earlier run.
    Unknown,
    /// One of an earlier run, or of an attempt whose CONNACK did not arrive. The next connection discards it.
    Earlier,
    /// None, or that of this client.
    Own,
}

impl<V: ProtocolVersion> Mqtt<V> {
    /// Does the next connection, or the one that is being opened, discard what the server has?
    pub(super) fn starts_clean(&self, link: &Link) -> bool {
        !link.config.persistent || self.stored == Stored::Earlier
    }

    /// Does it do nothing else?
    pub(super) fn only_discards(&self) -> bool {
        self.stored == Stored::Earlier && V::VERSION == Version::V311
    }

    /// The server accepted the connection: may the session use it? If not, it has said goodbye, and the server ends the connection.
    ///
    /// # Errors
    /// Why the connection ends at once.
    pub(super) fn may_use(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        session_present: bool,
    ) -> Result<bool, Cause> {
        if session_present && self.starts_clean(link) {
            return Err(Cause::Protocol("CONNACK has a session after a clean start".to_owned()));
        }
        if self.only_discards() {
            self.stored = Stored::Unknown;
            return Err(Cause::Dropped(DISCARDED.to_owned()));
        }
        if session_present && self.stored == Stored::Unknown {
            self.stored = Stored::Earlier;
            if link.config.options.will.is_none() {
                return Err(Cause::Dropped(FOUND.to_owned()));
            }
            // Without it, the server would publish the will.
            self.send_goodbye(link, shared, Goodbye::Graceful);
            self.leaving = true;
            return Ok(false);
        }
        self.stored = Stored::Own;
        Ok(true)
    }
}
