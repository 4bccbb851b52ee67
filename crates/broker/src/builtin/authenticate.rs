//! Tokens: with CONNECT, in AUTH after it, and new ones on an open connection (MQTT 5.0 §4.12).

use pubmark_protocol::clock::realtime_ns;
use pubmark_wire::mqtt::{Auth, Connect, Frame, Packet, PacketType, Properties, Property, Version};
use pubmark_wire::mqtt::{decode, decode_connect, encode_auth, reason};

use super::broker::Broker;
use super::connect::{Refusal, return_code};
use super::peer::{Authentication, Farewell};
use crate::net::Key;
use crate::settings::Login;
use crate::tokens::TOKEN_METHOD;

/// Largest CONNECT that is stored while its client is asked for a token, bytes.
const LARGEST_STORED_BYTES: usize = 64 * 1024;

impl Broker {
    /// Checks the log-in of a CONNECT. `false` if it waits until the client has sent a token.
    pub(super) fn log_in(&mut self, key: Key, packet: &Frame<'_>, connect: &Connect<'_>) -> Result<bool, Refusal> {
        let method = connect.properties.authentication_method();
        let password_refused = Refusal(reason::BAD_USER_NAME_OR_PASSWORD, return_code::BAD_USER_NAME_OR_PASSWORD);
        let method_refused = Refusal(reason::BAD_AUTHENTICATION_METHOD, return_code::SERVER_UNAVAILABLE);
        if method.is_some_and(|method| method != TOKEN_METHOD || self.settings.tokens.is_none()) {
            return Err(method_refused);
        }
        let login = self.settings.login.as_ref();
        let is_login = login.is_some_and(|login| is_right(login, connect));
        if method.is_none() && (is_login || (login.is_none() && self.settings.tokens.is_none())) {
            return Ok(true);
        }
        let token = match method {
            Some(_) => connect.properties.authentication_data(),
            None => connect.password,
        };
        let until_ns = token.and_then(|token| self.until_ns(token));
        let is_asked = method.is_some() && token.is_none();
        if is_asked && packet.body.len() > LARGEST_STORED_BYTES {
            return Err(Refusal(reason::PACKET_TOO_LARGE, return_code::SERVER_UNAVAILABLE));
        }
        if !is_asked && until_ns.is_none() {
            return Err(if method.is_some() {
                Refusal(reason::NOT_AUTHORIZED, return_code::SERVER_UNAVAILABLE)
            } else {
                password_refused
            });
        }
        if let Some(peer) = self.peers.get_mut(key) {
            peer.authentication = Some(Box::new(Authentication {
                by_method: method.is_some(),
                is_asked,
                until_ns: until_ns.unwrap_or(0),
                connect: is_asked.then(|| packet.body.into()),
            }));
        }
        if is_asked {
            self.send_auth(key, reason::CONTINUE_AUTHENTICATION);
        }
        Ok(!is_asked)
    }

    /// A packet of a client that was asked for a token after its CONNECT: the token, or nothing else is accepted.
    pub(super) fn continue_connect(&mut self, key: Key, packet: &Frame<'_>) -> Result<(), Farewell> {
        let refused = |code| Refusal(code, return_code::SERVER_UNAVAILABLE);
        let auth = match decode(Version::V5, packet) {
            Ok(Packet::Auth(auth)) => auth,
            Ok(Packet::Disconnect(_)) => return Err(Farewell::Lost),
            Ok(_) => return Err(self.refuse(key, Version::V5, &refused(reason::PROTOCOL_ERROR))),
            Err(error) => return Err(self.refuse(key, Version::V5, &refused(error.reason_code()))),
        };
        let until_ns = match self.check_step(key, &auth) {
            Ok(Some(token)) => self.until_ns(token).ok_or(reason::NOT_AUTHORIZED),
            Ok(None) => Err(reason::NOT_AUTHORIZED),
            Err(code) => Err(code),
        };
        let until_ns = until_ns.map_err(|code| self.refuse(key, Version::V5, &refused(code)))?;
        let authentication = self.peers.get_mut(key).and_then(|peer| peer.authentication.as_mut());
        let Some(authentication) = authentication else { return Err(Farewell::Lost) };
        (authentication.until_ns, authentication.is_asked) = (until_ns, false);
        let Some(body) = authentication.connect.take() else { return Err(Farewell::Lost) };
        let frame = Frame { first_byte: (PacketType::Connect as u8) << 4, body: &body, total_bytes: body.len() };
        let connect = decode_connect(&frame).expect("it was read before it was stored");
        self.open_session(key, &connect)
    }

    /// AUTH on an open connection: a new token, or the announcement of one.
    pub(super) fn reauthenticate(&mut self, key: Key, auth: &Auth<'_>) -> Result<(), Farewell> {
        let token = self.check_step(key, auth).map_err(|code| self.violation(code))?;
        let until_ns = token.and_then(|token| self.until_ns(token));
        // A client that is asked a second time has no token.
        let is_asked = token.is_none() && auth.reason == reason::RE_AUTHENTICATE;
        let Some(until_ns) = until_ns.or(is_asked.then_some(0)) else {
            self.statistics.refused += 1;
            return Err(Farewell::Ours(reason::NOT_AUTHORIZED));
        };
        let authentication = self.peers.get_mut(key).and_then(|peer| peer.authentication.as_mut());
        let Some(authentication) = authentication else { return Err(Farewell::Lost) };
        authentication.is_asked = is_asked;
        if !is_asked {
            authentication.until_ns = until_ns;
            self.statistics.tokens_renewed += 1;
        }
        self.send_auth(key, if is_asked { reason::CONTINUE_AUTHENTICATION } else { reason::SUCCESS });
        Ok(())
    }

    /// The token in a step of an authentication, if the step has one; the reason code of a step that is not allowed now.
    fn check_step<'a>(&self, key: Key, auth: &Auth<'a>) -> Result<Option<&'a [u8]>, u8> {
        let authentication = self.peers.get(key).and_then(|peer| peer.authentication.as_ref());
        let authentication = authentication.filter(|found| found.by_method).ok_or(reason::PROTOCOL_ERROR)?;
        let is_expected = match auth.reason {
            reason::CONTINUE_AUTHENTICATION => authentication.is_asked,
            reason::RE_AUTHENTICATE => !authentication.is_open(),
            _ => false,
        };
        match auth.properties.authentication_method() {
            Some(TOKEN_METHOD) if is_expected => Ok(auth.properties.authentication_data()),
            Some(other) if other != TOKEN_METHOD => Err(reason::BAD_AUTHENTICATION_METHOD),
            _ => Err(reason::PROTOCOL_ERROR),
        }
    }

    /// When a token expires, ns of `CLOCK_MONOTONIC`; `None` if it is not valid.
    fn until_ns(&self, token: &[u8]) -> Option<u64> {
        let left_ns = self.settings.tokens.as_ref()?.valid_for_ns(token, realtime_ns())?;
        Some(self.now_ns.saturating_add(left_ns))
    }

    /// The authentication method that a client's CONNACK repeats (MQTT 5.0 §4.12).
    pub(super) fn agreed_method(&self, key: Key) -> Option<Property<'static>> {
        let authentication = self.peers.get(key)?.authentication.as_ref()?;
        authentication.by_method.then_some(Property::AuthenticationMethod(TOKEN_METHOD))
    }

    fn send_auth(&mut self, key: Key, code: u8) {
        let Some(peer) = self.peers.get_mut(key) else { return };
        let properties = [Property::AuthenticationMethod(TOKEN_METHOD)];
        let auth = Auth { reason: code, properties: Properties::new(&properties) };
        encode_auth(Version::V5, &auth, peer.connection.outgoing()).expect("an AUTH without data can be sent");
        self.mark_dirty(key);
    }
}

fn is_right(login: &Login, connect: &Connect<'_>) -> bool {
    connect.user == Some(login.user.as_str()) && connect.password == Some(login.password.as_slice())
}
