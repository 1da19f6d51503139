//! Multiply-add chain of the spin probe.

/// Multiplier of a step: odd, hence invertible.
pub(crate) const MULTIPLIER: u32 = 0x9E37_79B1;
/// Increment of a step.
pub(crate) const INCREMENT: u32 = 0x7F4A_7C15;
/// Shift of the xor before the multiplication. Without it, compilers could merge two steps into one multiply-add.
pub(crate) const SHIFT: u32 = 16;
/// Initial value of the chain.
pub(crate) const SEED: u32 = 0x2545_F491;

/// Returns the value after `steps` steps.
pub(super) fn chain_value(seed: u32, steps: u64) -> u32 {
    (0..steps).fold(seed, |value, _| (value ^ (value >> SHIFT)).wrapping_mul(MULTIPLIER).wrapping_add(INCREMENT))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn one_step_matches_the_documented_formula() {
        assert_eq!(chain_value(SEED, 0), SEED);
        // ((0x2545f491 ^ 0x2545) * 0x9e3779b1 + 0x7f4a7c15) mod 2^32, computed independently.
        assert_eq!(chain_value(SEED, 1), 0x3149_C3A9);
        assert_eq!(chain_value(chain_value(SEED, 300), 700), chain_value(SEED, 1000));
    }

    #[test]
    fn chain_values_are_distinct() {
        let ends: HashSet<u32> = (0..10_000).map(|steps| chain_value(SEED, steps)).collect();
        assert_eq!(ends.len(), 10_000);
    }
}
