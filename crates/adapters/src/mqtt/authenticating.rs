//! Enhanced authentication (MQTT 5.0 §4.12): a token as the data of a method, and a new one on the open connection.

use std::time::Duration;

use pubmark_model::token::Reauthentication;
use pubmark_protocol::clients::SessionConfig;
use pubmark_protocol::events::{Cause, Event, Sink};
use pubmark_wire::mqtt::{Auth, Properties, Property, encode_auth, reason, reason_name};

use super::session::Mqtt;
use super::version::ProtocolVersion;
use crate::connection::{Link, Shared};

/// How a session's tokens are renewed, if they are.
pub(super) fn of(config: &SessionConfig) -> Option<&Reauthentication> {
    config.token.as_ref()?.client.reauthentication.as_ref()
}

impl<V: ProtocolVersion> Mqtt<V> {
    /// Plans the next AUTH of an open session whose token was signed just now.
    pub(super) fn plan_renewal(&mut self, link: &mut Link, shared: &mut Shared) {
        self.renewing = false;
        if let Some(after_s) = of(&link.config).map(|how| how.after_s) {
            link.renew_after(shared, Duration::from_secs(after_s.into()));
        }
    }

    /// Appends AUTH with a new token.
    pub(super) fn send_auth(&mut self, link: &mut Link, shared: &mut Shared) -> Result<(), Cause> {
        let config = &link.config;
        let (Some(token), Some(how)) = (&config.token, of(config)) else { return Ok(()) };
        let signed = token.sign();
        let properties = [Property::AuthenticationMethod(&how.method), Property::AuthenticationData(signed.as_bytes())];
        let auth = Auth { reason: reason::RE_AUTHENTICATE, properties: Properties::new(&properties) };
        self.renewing = true;
        let mut encoded = Ok(());
        link.outbox.append(&mut shared.pool, |out| encoded = encode_auth(V::VERSION, &auth, out));
        encoded.map_err(|error| Cause::Dropped(format!("ended by us: AUTH cannot be sent: {error}")))
    }

    /// The server's response to AUTH.
    pub(super) fn on_auth(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        auth: &Auth<'_>,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        match auth.reason {
            reason::SUCCESS if self.renewing => {
                self.plan_renewal(link, shared);
                sink.event(link.id, Event::Reauthenticated);
                Ok(())
            }
            code if self.renewing => {
                let name = reason_name(code);
                Err(Cause::Protocol(format!(
                    "the server's AUTH asks for more than a token ({name}), and pubmark has nothing else"
                )))
            }
            _ => Err(Cause::Protocol("unexpected AUTH".to_owned())),
        }
    }
}
