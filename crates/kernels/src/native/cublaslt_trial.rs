//! Which algorithm of cuBLASLt is the fastest for a product, under the load that the product itself is.

use cudarc::driver::sys::CUevent_flags;

use super::{
    LinearShape, Machine, NativeError,
    driver::{Memory, failed},
    form::{Factors, Form, Scales},
};
use crate::Dtype;

/// What another algorithm than the first has to take of the first's time.
pub(super) const WORTH: f64 = 0.99;

/// Memory on which algorithms of a product are tried.
pub(super) struct Trial {
    pub(super) x: Memory,
    pub(super) w: Memory,
    pub(super) y: Memory,
    pub(super) scales: Option<[Memory; 2]>,
    pub(super) bias: Option<Memory>,
}

impl Trial {
    /// Turns that all take one after the other. The first does not count: a large product slows the device's clock down, and
    /// others may be the fastest then than at rest.
    const ROUNDS: usize = 4;
    /// An algorithm's turn takes so long at least, and this many launches.
    const NANOS: f64 = 5e6;
    const LAUNCHES: (f64, f64) = (2.0, 200.0);

    pub(super) fn new(machine: &Machine, form: Form, shape: LinearShape) -> Result<Self, NativeError> {
        let LinearShape { m, k, n } = shape;
        let allocated = |bytes: usize| Memory::allocate(machine.stream(), bytes);
        let small = |bytes: usize| -> Result<Memory, NativeError> {
            let mut memory = allocated(bytes)?;
            memory.fill(0x38).map(|()| memory)
        };
        // Equal numbers would take less power than others do.
        let drawn = drawn(form.factors);
        let factors = |count: usize| -> Result<Memory, NativeError> {
            let mut memory = allocated(count * form.factors.bytes())?;
            memory.repeat(&drawn).map(|()| memory)
        };
        let [of_x, of_w] = form.scales.counts(shape).map(|count| 4 * count);
        Ok(Self {
            x: factors(m * k)?,
            w: factors(n * k)?,
            y: allocated(m * n * form.output.bytes())?,
            scales: if form.scales == Scales::Nothing { None } else { Some([small(of_x)?, small(of_w)?]) },
            bias: form.epilogue.has_bias().then(|| small(n * form.output.bytes())).transpose()?,
        })
    }

    /// How long a launch takes by each of so many algorithms, of which `launch` enqueues one; for ever, if it does not run.
    pub(super) fn nanos(
        machine: &Machine,
        count: usize,
        mut launch: impl FnMut(usize) -> Result<(), NativeError>,
    ) -> Vec<f64> {
        let mut timed = |algorithm: usize, launches: usize| -> Result<f64, NativeError> {
            let failed = failed("timing an algorithm");
            let event = || machine.stream().record_event(Some(CUevent_flags::CU_EVENT_DEFAULT)).map_err(&failed);
            let start = event()?;
            (0..launches).try_for_each(|_| launch(algorithm))?;
            let end = event()?;
            end.synchronize().map_err(&failed)?;
            Ok(f64::from(start.elapsed_ms(&end).map_err(&failed)?) * 1e6 / launches as f64)
        };
        let (least, most) = Self::LAUNCHES;
        let mut launches = Vec::new();
        for algorithm in 0..count {
            // The first launch loads the algorithm.
            let rough = timed(algorithm, 1).and_then(|_| timed(algorithm, 2));
            launches.push(rough.map(|nanos| (Self::NANOS / nanos.max(1.0)).clamp(least, most) as usize));
        }
        let mut sums = vec![0.0; count];
        for round in 0..Self::ROUNDS {
            for (algorithm, (sum, launches)) in sums.iter_mut().zip(&launches).enumerate() {
                let nanos = launches.as_ref().ok().and_then(|&launches| timed(algorithm, launches).ok());
                *sum += nanos.map_or(f64::INFINITY, |nanos| if round == 0 { 0.0 } else { nanos });
            }
        }
        sums.iter().map(|sum| sum / (Self::ROUNDS - 1) as f64).collect()
    }
}

/// Numbers that are repeated: no power of two, so that rows differ.
const DRAWN: usize = 1_000_003;

/// Random numbers from an eighth to 2 of either sign, as they are stored; of int8 all codes.
pub(super) fn drawn(factors: Factors) -> Vec<u8> {
    // What the exponent has in the highest byte, and which bits of that are free.
    let (exponent, free) = match factors {
        Factors::Whole(Dtype::F32 | Dtype::Bf16) | Factors::Tf32 => (0x3e, 0x81),
        Factors::Whole(Dtype::F16) => (0x30, 0x8f),
        Factors::E4m3(_) | Factors::E5m2ByE4m3(_) => (0x20, 0x9f),
        Factors::Int8 => (0, 0xff),
    };
    let (mut state, bytes) = (1_u64, factors.bytes());
    let byte = |at: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let drawn = (state >> 56) as u8;
        if at % bytes == bytes - 1 { exponent | drawn & free } else { drawn }
    };
    (0..DRAWN * bytes).map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_are_multiplied_in_trials_are_neither_large_nor_all_alike() {
        let numbers: Vec<f32> = drawn(Factors::Whole(Dtype::F32))
            .chunks_exact(4)
            .map(|bytes| f32::from_le_bytes(bytes.try_into().expect("four bytes")))
            .collect();
        assert_eq!(numbers.len(), DRAWN);
        assert!(numbers.iter().all(|number| (0.125..2.0).contains(&number.abs())));
        let (below, mean) =
            (numbers.iter().filter(|number| **number < 0.0).count(), numbers.iter().sum::<f32>() / DRAWN as f32);
        assert!(below.abs_diff(DRAWN / 2) < DRAWN / 100 && mean.abs() < 0.01, "{below} {mean}");
        let bytes = drawn(Factors::Int8);
        assert!((0..=u8::MAX).all(|code| bytes.contains(&code)));
    }
}
