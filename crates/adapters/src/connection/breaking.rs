//! Connections broken by faults of a run.

use pubmark_protocol::clients::Break;
use pubmark_protocol::events::{Cause, Sink};

use super::dialect::Dialect;
use super::link::{Phase, Shared};
use super::session::Session;

impl<D: Dialect> Session<D> {
    /// Breaks the connection, if there is one.
    pub(super) fn break_connection(&mut self, shared: &mut Shared, how: Break, sink: &mut impl Sink) {
        let Some(stream) = self.link.stream.as_ref().filter(|_| self.link.phase != Phase::Closed) else { return };
        let socket = stream.socket();
        match how {
            Break::Reset => {
                // If a reset is not possible the connection is closed normally: it is broken anyway, and the cause states it.
                let words = match socket.close_by_reset() {
                    Ok(()) => "reset by a fault of the run".to_owned(),
                    Err(error) => format!("closed by a fault of the run, not reset: {error}"),
                };
                self.end(shared, Cause::Dropped(words), sink);
            }
            Break::Silence => match socket.silence() {
                // Without its address, what is on the way to it counts as late at the end of the run.
                Ok(()) => shared.silenced.extend(socket.local_address().ok()),
                Err(error) => {
                    self.end(shared, Cause::Dropped(format!("closed by a fault of the run, not cut: {error}")), sink);
                }
            },
            Break::GiveUp if socket.is_silent() => {
                self.end(shared, Cause::Dropped("given up after a fault of the run".to_owned()), sink);
            }
            Break::GiveUp => {}
        }
    }
}
