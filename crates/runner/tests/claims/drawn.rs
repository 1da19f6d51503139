//! What tests draw from a seed, and how often they try: `CALORIMETER_TORTURE` is `long` or a number of tries, and
//! `CALORIMETER_TORTURE_SEED` begins elsewhere.

/// So many tries in the short form, or so many in the long one.
pub fn tries(short: usize, long: usize) -> usize {
    match std::env::var("CALORIMETER_TORTURE").as_deref() {
        Ok("long") => long,
        Ok(other) => other.parse().expect("CALORIMETER_TORTURE is `long` or a number of tries"),
        Err(_) => short,
    }
}

/// Whether the short form was asked for.
pub fn is_short() -> bool {
    std::env::var_os("CALORIMETER_TORTURE").is_none()
}

/// The seed that the environment wants, or this one.
pub fn first_seed(otherwise: u64) -> u64 {
    std::env::var("CALORIMETER_TORTURE_SEED").map_or(otherwise, |seed| seed.parse().expect("a seed is a number"))
}

/// SplitMix64: the same seed gives the same numbers everywhere.
pub struct Drawn(pub u64);

impl Drawn {
    /// As the environment wants it.
    pub fn seeded() -> Self {
        Self(first_seed(1))
    }

    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.draw() % bound.max(1) as u64) as usize
    }

    pub fn one<'a, T: ?Sized>(&mut self, of: &'a [&'a T]) -> &'a T {
        of[self.below(of.len())]
    }
}
