//! Why bytes are no AMQP 1.0.

/// What is wrong with bytes of a server's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// A frame smaller than its own header (part 2, §2.3.1).
    #[error("a frame of {bytes} B, which is less than the 8 B of its header")]
    FrameTooSmall {
        /// Its size field.
        bytes: usize,
    },
    /// A frame larger than the limit that we announced.
    #[error("a frame of {bytes} B, more than the {limit} B allowed")]
    FrameTooLarge {
        /// Its size field.
        bytes: usize,
        /// What is allowed.
        limit: usize,
    },
    /// The data offset points before the end of the header or behind the frame.
    #[error("a frame of {bytes} B with a data offset of {offset} words of 4 B")]
    DataOffset {
        /// Its size field.
        bytes: usize,
        /// Its data offset.
        offset: u8,
    },
    /// A frame that is neither AMQP nor SASL.
    #[error("a frame of type {0:#04x}")]
    FrameType(u8),
    /// A value ends before its time.
    #[error("a value that is cut short")]
    Truncated,
    /// A constructor that the type system does not have (part 1, §1.6).
    #[error("a value with the unknown constructor {0:#04x}")]
    Constructor(u8),
    /// Descriptors of descriptors of descriptors.
    #[error("described values nested deeper than {0}")]
    TooDeep(usize),
    /// A list, map or array that has more elements than bytes, or a map with a key without value.
    #[error("{elements} elements in {bytes} B")]
    Elements {
        /// Elements announced.
        elements: u32,
        /// Bytes they would be in.
        bytes: usize,
    },
    /// Text that is no text.
    #[error("text that is not UTF-8")]
    Text,
    /// A field of a performative has another type than the standard gives it, or is missing.
    #[error("{performative} with a `{field}` that cannot be read")]
    Field {
        /// The performative.
        performative: &'static str,
        /// The field.
        field: &'static str,
    },
    /// A frame's body is none of the standard's.
    #[error("a frame with the unknown performative {0:#x}")]
    Performative(u64),
    /// A frame's body is no described list at all.
    #[error("a frame without a performative")]
    NoPerformative,
    /// Bytes that are no section of a message (part 3, §3.2).
    #[error("a message with something in it that is no section")]
    Section,
}
