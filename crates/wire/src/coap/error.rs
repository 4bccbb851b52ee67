//! What is wrong with bytes that are no CoAP message.

/// Why a datagram is no CoAP message (RFC 7252 §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Shorter than the header of four bytes, or than the token that it announces.
    #[error("a datagram of {0} B, too short for its header and token")]
    Short(usize),
    /// Not version 1.
    #[error("version {0} in place of 1")]
    Version(u8),
    /// A token of more than eight bytes.
    #[error("a token of {0} B, more than 8")]
    Token(u8),
    /// A message without a code that carries something.
    #[error("an empty message that carries something")]
    EmptyCarries,
    /// An option's number or length that runs beyond the datagram, or is a reserved one.
    #[error("an option that runs beyond the message or has a reserved length")]
    Option,
    /// An option number above 65,535.
    #[error("an option number above 65535")]
    OptionNumber,
    /// The marker of a payload with nothing behind it.
    #[error("a payload marker without a payload")]
    PayloadMarker,
}
