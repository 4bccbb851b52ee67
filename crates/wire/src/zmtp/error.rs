//! Errors in bytes that are not ZMTP.

/// Why bytes of a peer are not ZMTP of a supported version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Begins with 0xFF as a greeting does, and is none.
    #[error("a greeting without the signature of ZMTP")]
    Signature,
    /// A version of the protocol that we cannot fall back to.
    #[error("version {major} of ZMTP, 3 is needed")]
    Version {
        /// Its major version; 0 is ZMTP 1.0, 1 is ZMTP 2.0.
        major: u8,
    },
    /// A mechanism of other letters than a name has.
    #[error("a mechanism whose name is none")]
    Mechanism,
    /// Flags that no frame has.
    #[error("a frame with the flags 0x{0:02x}")]
    Flags(u8),
    /// A frame larger than we take.
    #[error("frame of {bytes} B exceeds the limit of {limit} B")]
    TooLarge {
        /// What it announces, bytes.
        bytes: u64,
        /// Largest accepted, bytes.
        limit: usize,
    },
    /// A command whose name is not all there, or none.
    #[error("a command without a name")]
    CommandName,
    /// A command whose data are cut short or go on too long.
    #[error("a command {0} with data that are none")]
    CommandData(&'static str),
}
