//! Seeded random numbers and repetition counts of stress tests. `CALORIMETER_TORTURE` is `long` or a number of tries;
//! `CALORIMETER_TORTURE_SEED` sets the seed.

/// Number of tries in the short or long form.
pub(crate) fn tries(short: usize, long: usize) -> usize {
    match std::env::var("CALORIMETER_TORTURE").as_deref() {
        Ok("long") => long,
        Ok(other) => other.parse().expect("CALORIMETER_TORTURE is `long` or a number of tries"),
        Err(_) => short,
    }
}

/// True in the short form.
pub(crate) fn is_short() -> bool {
    std::env::var_os("CALORIMETER_TORTURE").is_none()
}

/// Seed of the environment, or the default.
pub(crate) fn first_seed(otherwise: u64) -> u64 {
    std::env::var("CALORIMETER_TORTURE_SEED").map_or(otherwise, |seed| seed.parse().expect("a seed is a number"))
}

/// SplitMix64 generator; reproducible on all platforms.
pub(crate) struct SeededRandom(pub u64);

impl SeededRandom {
    /// Creates a generator with the seed of the environment.
    pub(crate) fn from_environment() -> Self {
        Self(first_seed(1))
    }

    pub(crate) fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn next_below(&mut self, bound: usize) -> usize {
        (self.next_u64() % bound.max(1) as u64) as usize
    }

    pub(crate) fn choose<'a, T: ?Sized>(&mut self, of: &'a [&'a T]) -> &'a T {
        of[self.next_below(of.len())]
    }
}
