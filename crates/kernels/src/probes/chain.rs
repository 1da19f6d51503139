//! The chain of multiply-adds that a spin goes through.

/// What each step multiplies by: odd, so that nothing is lost.
pub(crate) const MULTIPLIER: u32 = 0x9E37_79B1;
/// What each step adds.
pub(crate) const INCREMENT: u32 = 0x7F4A_7C15;
/// How far a value is folded onto itself before it is multiplied. Without it two steps would be one multiply-add with
/// other numbers, and compilers know that.
pub(crate) const SHIFT: u32 = 16;
/// Where every chain starts.
pub(crate) const SEED: u32 = 0x2545_F491;

/// The value after so many steps.
pub(super) fn after(seed: u32, steps: u64) -> u32 {
    (0..steps).fold(seed, |value, _| (value ^ (value >> SHIFT)).wrapping_mul(MULTIPLIER).wrapping_add(INCREMENT))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn one_step_is_the_multiply_add_that_is_documented() {
        assert_eq!(after(SEED, 0), SEED);
        // ((0x2545f491 ^ 0x2545) * 0x9e3779b1 + 0x7f4a7c15) mod 2^32, by a calculator.
        assert_eq!(after(SEED, 1), 0x3149_C3A9);
        assert_eq!(after(after(SEED, 300), 700), after(SEED, 1000));
    }

    #[test]
    fn a_chain_that_is_a_few_steps_off_ends_elsewhere() {
        let ends: HashSet<u32> = (0..10_000).map(|steps| after(SEED, steps)).collect();
        assert_eq!(ends.len(), 10_000);
    }
}
