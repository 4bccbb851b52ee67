//! Arguments of methods (§4.2.5).

/// Bytes that are still to be read; `None` where they end too soon or a text is no UTF-8.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes }
    }

    /// Bytes that were not read.
    pub(super) fn left(&self) -> usize {
        self.rest.len()
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(*bytes)
    }

    pub(super) fn octet(&mut self) -> Option<u8> {
        self.array::<1>().map(|[octet]| octet)
    }

    pub(super) fn short(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub(super) fn long(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub(super) fn long_long(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(bytes)
    }

    /// A text of up to 255 bytes.
    pub(super) fn short_text(&mut self) -> Option<&'a str> {
        let length = self.octet()?;
        std::str::from_utf8(self.bytes(usize::from(length))?).ok()
    }

    /// A text of up to 255 bytes that is skipped.
    pub(super) fn skip_short_text(&mut self) -> Option<()> {
        let length = self.octet()?;
        self.bytes(usize::from(length)).map(|_| ())
    }

    /// A long string, or a table, which has the same length ahead.
    pub(super) fn long_bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.long()?;
        self.bytes(usize::try_from(length).ok()?)
    }
}
