//! Which algorithm of cuBLASLt is the fastest for a product, under the load that the product itself is.

use cudarc::driver::sys::CUevent_flags;

use super::{
    Buffer, DeviceMatrix, LinearShape, Machine, NativeError,
    driver::{Memory, failed},
    form::{Factors, Form, Scales, Written},
    look::SignedSum,
};
use crate::Dtype;

/// What another algorithm than the first has to take of the first's time.
pub(super) const WORTH: f64 = 0.99;

/// Memory on which algorithms of a product are tried.
pub(super) struct Trial {
    form: Form,
    shape: LinearShape,
    pub(super) x: Memory,
    pub(super) w: Memory,
    pub(super) y: Buffer,
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

    /// Products that take so long soon take all the power that a device has, and then those that need less of it are faster. So
    /// algorithms that are near the fastest in short turns, but not more of them, have longer ones: in the first part the clock comes
    /// down, and the second counts.
    const LARGE: f64 = 2e5;
    const NEAR: f64 = 1.08;
    const MOST_NEAR: usize = 4;
    const LONG_ROUNDS: usize = 3;
    const LONG_NANOS: [f64; 2] = [8e7, 4e7];

    /// `None` where there is not enough memory.
    pub(super) fn new(machine: &Machine, form: Form, shape: LinearShape) -> Result<Option<Self>, NativeError> {
        match Self::allocate(machine, form, shape) {
            Ok(trial) => Ok(Some(trial)),
            Err(NativeError::OutOfMemory { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn allocate(machine: &Machine, form: Form, shape: LinearShape) -> Result<Self, NativeError> {
        let LinearShape { m, k, n } = shape;
        let allocated = |bytes: usize| Memory::allocate(machine.stream(), bytes);
        // Equal numbers would take less power than others do.
        let filled = |bytes: usize, with: &[u8]| -> Result<Memory, NativeError> {
            let mut memory = allocated(bytes)?;
            memory.repeat(with).map(|()| memory)
        };
        let factors = drawn(form.factors);
        let scales = || -> Result<[Memory; 2], NativeError> {
            let scales = drawn(Factors::Whole(Dtype::F32));
            let [of_x, of_w] = form.scales.counts(shape).map(|count| filled(4 * count, &scales));
            Ok([of_x?, of_w?])
        };
        let bias = || -> Result<Memory, NativeError> {
            let mut bias = allocated(n * form.output.bytes())?;
            bias.fill(0x38).map(|()| bias)
        };
        Ok(Self {
            form,
            shape,
            x: filled(m * k * form.factors.bytes(), &factors)?,
            w: filled(n * k * form.factors.bytes(), &factors)?,
            y: machine.allocate(m * n * form.output.bytes())?,
            scales: if form.scales == Scales::Nothing { None } else { Some(scales()?) },
            bias: form.epilogue.has_bias().then(bias).transpose()?,
        })
    }

    /// Whether two algorithms come to the same: in each row and each column the numbers and their squares add up alike, but for what
    /// rounding makes of them.
    pub(super) fn agree(
        &self,
        machine: &Machine,
        algorithms: [usize; 2],
        launch: &mut impl FnMut(usize) -> Result<(), NativeError>,
    ) -> Result<bool, NativeError> {
        let Written::Float(kind) = self.form.output else { return Ok(false) };
        let matrix = DeviceMatrix { buffer: &self.y, kind, size: [self.shape.m, self.shape.n] };
        let [expected, found] = algorithms.map(|algorithm| {
            launch(algorithm)?;
            matrix.sums(machine)
        });
        let [expected, found] = [expected?, found?];
        Ok(expected.iter().flatten().zip(found.iter().flatten()).all(|(expected, found)| are_alike(expected, found)))
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
        let mut nanos: Vec<f64> = sums.iter().map(|sum| sum / (Self::ROUNDS - 1) as f64).collect();
        let mut order = near_the_fastest(&nanos);
        if order.len() < 2 {
            return nanos;
        }
        let short = std::mem::replace(&mut nanos, vec![f64::INFINITY; count]);
        order.iter().for_each(|&algorithm| nanos[algorithm] = 0.0);
        for _ in 0..Self::LONG_ROUNDS {
            for &algorithm in &order {
                let [before, counted] = Self::LONG_NANOS.map(|nanos| (nanos / short[algorithm]).max(2.0) as usize);
                let found = timed(algorithm, before).and_then(|_| timed(algorithm, counted));
                nanos[algorithm] += found.unwrap_or(f64::INFINITY) / Self::LONG_ROUNDS as f64;
            }
            // Who was the last begins next, since a device is the hotter the longer it works.
            order.reverse();
        }
        nanos
    }
}

/// Those of a large product that have longer turns, the fastest first.
fn near_the_fastest(nanos: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..nanos.len()).collect();
    order.sort_by(|a, b| nanos[*a].total_cmp(&nanos[*b]));
    let least = order.first().map_or(0.0, |&fastest| nanos[fastest]);
    let large = least >= Trial::LARGE && least.is_finite();
    order.retain(|&algorithm| large && nanos[algorithm] <= Trial::NEAR * least);
    order.truncate(Trial::MOST_NEAR);
    order
}

/// But for what rounding makes of a row or column of numbers.
fn are_alike([sum, squares]: &SignedSum, [other_sum, other_squares]: &SignedSum) -> bool {
    (sum - other_sum).abs() <= 0.05 * squares.sqrt() && (squares - other_squares).abs() <= 0.05 * squares
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
    fn those_near_the_fastest_of_a_large_product_have_long_turns() {
        let times = [3.0e5, 2.9e5, f64::INFINITY, 3.1e5, 3.2e5, 2.95e5, 2.91e5];
        assert_eq!(near_the_fastest(&times), [1, 6, 5, 0]);
        assert!(near_the_fastest(&times.map(|nanos| nanos / 2.0)).is_empty());
        // None that runs, and none at all.
        assert!(near_the_fastest(&[f64::INFINITY; 3]).is_empty());
        assert!(near_the_fastest(&[]).is_empty());
    }

    #[test]
    fn other_rounding_is_alike_and_another_scale_is_not() {
        let sums = |scale: f64| [scale * 3.0, scale * scale * 100.0];
        assert!(are_alike(&sums(1.0), &sums(1.01)) && are_alike(&[0.0; 2], &[0.0; 2]));
        for scale in [0.5, 0.9, 1.1, -1.0, 0.0, f64::NAN] {
            assert!(!are_alike(&sums(1.0), &sums(scale)), "{scale}");
        }
    }

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
