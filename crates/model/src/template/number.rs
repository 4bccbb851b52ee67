//! Numbers with a fixed number of decimals.

/// Maximum number of decimals.
pub(super) const MOST_DECIMALS: u8 = 9;
/// Maximum number of steps from 0: doubles are exact up to 2⁵³.
pub(super) const MOST_STEPS: f64 = 1e15;

/// Multiples of 10⁻ᵈ, counted in steps from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grid {
    decimals: u8,
}

impl Grid {
    pub(super) const WHOLE: Grid = Grid { decimals: 0 };

    /// A grid with this number of decimals, at most [`MOST_DECIMALS`].
    pub(super) fn new(decimals: u8) -> Grid {
        Grid { decimals: decimals.min(MOST_DECIMALS) }
    }

    fn scale(self) -> f64 {
        10f64.powi(i32::from(self.decimals))
    }

    /// The step nearest to a number.
    pub(super) fn nearest(self, number: f64) -> i64 {
        (number * self.scale()).round() as i64
    }

    /// Length of a step as text, bytes.
    pub(super) fn bytes(self, step: i64) -> usize {
        let digits = step.unsigned_abs().checked_ilog10().map_or(1, |log| log as usize + 1);
        let decimals = usize::from(self.decimals);
        usize::from(step < 0) + digits.max(decimals + 1) + usize::from(decimals > 0)
    }

    /// Appends a step as text: `-0.5`, `21.30`.
    pub(super) fn append(self, step: i64, out: &mut Vec<u8>) {
        let start = out.len();
        let bytes = self.bytes(step);
        out.resize(start + bytes, b'0');
        let mut rest = step.unsigned_abs();
        let decimals = usize::from(self.decimals);
        for (place, byte) in out[start..].iter_mut().rev().enumerate() {
            if decimals > 0 && place == decimals {
                *byte = b'.';
            } else {
                *byte = b'0' + (rest % 10) as u8;
                rest /= 10;
            }
        }
        if step < 0 {
            out[start] = b'-';
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_its_decimals_and_its_length_is_known() {
        for (decimals, step, text) in [
            (0, 0, "0"),
            (0, -7, "-7"),
            (1, 0, "0.0"),
            (1, -5, "-0.5"),
            (2, 2_130, "21.30"),
            (2, 7, "0.07"),
            (3, -1_000, "-1.000"),
            (0, 4_294_967_296, "4294967296"),
        ] {
            let (grid, mut out) = (Grid::new(decimals), Vec::new());
            grid.append(step, &mut out);
            assert_eq!((String::from_utf8(out).as_deref(), grid.bytes(step)), (Ok(text), text.len()));
        }
    }
}
