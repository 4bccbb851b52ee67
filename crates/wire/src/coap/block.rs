//! Blocks of a body that does not fit a datagram (RFC 7959 §2.2).

use super::option::uint;

/// Bytes of our blocks, and of the largest payload that goes in one datagram: the largest size that there is.
pub const BLOCK_BYTES: usize = 1_024;
/// Numbers of blocks have 20 bits.
const NUMBERS: u32 = 1 << 20;
/// Bytes of the largest body.
pub const LARGEST_BODY_BYTES: u32 = NUMBERS * BLOCK_BYTES as u32;
/// The exponent of the largest size; 7 is reserved.
const LARGEST_EXPONENT: u8 = 6;

/// The value of a Block1 or Block2 option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Number of the block.
    pub number: u32,
    /// More follow.
    pub more: bool,
    /// Blocks have 2^(4 + this) bytes; 0 to 6.
    pub exponent: u8,
}

impl Block {
    /// The block of the largest size that begins at `offset`, a multiple of it.
    pub fn largest(offset: usize, more: bool) -> Block {
        Block::at(offset, more, LARGEST_EXPONENT)
    }

    /// The block of this size that begins at `offset`, a multiple of it.
    pub fn at(offset: usize, more: bool, exponent: u8) -> Block {
        Block { number: (offset >> (4 + exponent)) as u32, more, exponent }
    }

    /// Reads an option's value; `None` if it is longer than three bytes or has the reserved size.
    pub fn read(value: &[u8]) -> Option<Block> {
        let bits = uint(value).filter(|_| value.len() <= 3)?;
        let exponent = (bits & 7) as u8;
        (exponent <= LARGEST_EXPONENT).then_some(Block { number: bits >> 4, more: bits & 8 != 0, exponent })
    }

    /// The option's value as a number.
    pub fn value(self) -> u32 {
        self.number << 4 | u32::from(self.more) << 3 | u32::from(self.exponent)
    }

    /// Bytes of a block that is not the last.
    pub fn bytes(self) -> usize {
        16 << self.exponent
    }

    /// Where it begins in the body.
    pub fn offset(self) -> usize {
        (self.number as usize) << (4 + self.exponent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_its_number_a_bit_and_a_size() {
        let block = Block::largest(3 * BLOCK_BYTES, true);
        assert_eq!((block.value(), block.bytes(), block.offset()), (0x3e, 1_024, 3_072));
        assert_eq!(Block::read(&[0x3e]), Some(block));
        assert_eq!(Block::read(&[]), Some(Block { number: 0, more: false, exponent: 0 }));
        assert_eq!(Block::read(&[0x07]), None, "the reserved size");
        assert_eq!(Block::read(&[0, 0, 0, 0]), None, "four bytes");
        assert_eq!(Block::read(&[0xff, 0xff, 0xf6]).map(Block::offset), Some((NUMBERS as usize - 1) * BLOCK_BYTES));
        assert_eq!(Block::at(2_048, false, 4).number, 8);
    }
}
