//! Reports of a client program that cannot be true.

use serde::{Deserialize, Serialize};

/// A report of a program that contradicts what pubmark knows. It is counted by its name and has no other effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Misreport {
    /// About a client that does not exist.
    UnknownClient,
    /// About a connection that was never requested.
    UnknownConnection,
    /// About a message that was never handed over.
    UnknownMessage,
    /// About a subscription that was never requested.
    UnknownSubscription,
    /// A message was written a second time.
    WrittenTwice,
    /// A message was acknowledged a second time, or one whose level has no acknowledgements.
    AcknowledgedTwice,
    /// A connection was reported that had been made or had ended, or messages arrived over one that had not been made, or a
    /// subscription was answered twice, or revoked that was not granted.
    OutOfTurn,
    /// A stamp later than the moment at which pubmark read it.
    StampInFuture,
    /// A stamp before the message was handed over.
    StampBeforeDue,
    /// A pong without a ping, or a second pong for one ping.
    UnknownPing,
    /// The program acknowledged a message and did not report it as written before it acknowledged a thousand others in this way.
    NeverWritten,
    /// A delivery without all of its payload, in a run that looks into payloads.
    BodyIncomplete,
}

impl Misreport {
    /// All of them.
    pub const ALL: [Misreport; 12] = [
        Misreport::UnknownClient,
        Misreport::UnknownConnection,
        Misreport::UnknownMessage,
        Misreport::UnknownSubscription,
        Misreport::WrittenTwice,
        Misreport::AcknowledgedTwice,
        Misreport::OutOfTurn,
        Misreport::StampInFuture,
        Misreport::StampBeforeDue,
        Misreport::UnknownPing,
        Misreport::NeverWritten,
        Misreport::BodyIncomplete,
    ];

    /// Its name in records.
    pub const fn name(self) -> &'static str {
        match self {
            Misreport::UnknownClient => "unknown-client",
            Misreport::UnknownConnection => "unknown-connection",
            Misreport::UnknownMessage => "unknown-message",
            Misreport::UnknownSubscription => "unknown-subscription",
            Misreport::WrittenTwice => "written-twice",
            Misreport::AcknowledgedTwice => "acknowledged-twice",
            Misreport::OutOfTurn => "out-of-turn",
            Misreport::StampInFuture => "stamp-in-future",
            Misreport::StampBeforeDue => "stamp-before-due",
            Misreport::UnknownPing => "unknown-ping",
            Misreport::NeverWritten => "never-written",
            Misreport::BodyIncomplete => "body-incomplete",
        }
    }
}
