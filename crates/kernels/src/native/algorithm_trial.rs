//! Timing of candidate algorithms under sustained load.

use cudarc::driver::sys::CUevent_flags;

use super::{
    CudaDevice, DeviceBuffer, DeviceMatrix, LinearShape, NativeError,
    driver::{DeviceMemory, driver_error},
    gemm_spec::{GemmOutput, GemmScales, GemmSpec, OperandTypes},
    output_digest::SignedDigest,
};
use crate::Dtype;

/// Maximum time relative to the first candidate for another candidate to be chosen.
pub(super) const MAX_RELATIVE_TIME: f64 = 0.99;

/// Scratch buffers for timing the algorithms of a matmul.
pub(super) struct AlgorithmTrial {
    spec: GemmSpec,
    shape: LinearShape,
    pub(super) x: DeviceMemory,
    pub(super) w: DeviceMemory,
    pub(super) y: DeviceBuffer,
    pub(super) scales: Option<[DeviceMemory; 2]>,
    pub(super) bias: Option<DeviceMemory>,
}

impl AlgorithmTrial {
    /// Interleaved rounds over all candidates. The first is discarded: long matmuls lower the clock, which changes the
    /// ranking.
    const ROUNDS: usize = 4;
    /// Minimum duration of a candidate's launches per round, and limits on their number.
    const MIN_ROUND_NANOS: f64 = 5e6;
    const LAUNCH_LIMITS: (f64, f64) = (2.0, 200.0);

    /// Minimum launch time of a power-limited matmul. Such launches soon reach the power limit, where candidates that
    /// draw less power win. Candidates within `CONTENDER_RATIO` of the fastest, at most `MAX_CONTENDERS`, are therefore timed in longer
    /// rounds: the first part lowers the clock, the second part is timed.
    const LONG_LAUNCH_NANOS: f64 = 2e5;
    const CONTENDER_RATIO: f64 = 1.08;
    const MAX_CONTENDERS: usize = 4;
    const LONG_ROUNDS: usize = 3;
    const LONG_NANOS: [f64; 2] = [8e7, 4e7];

    /// Allocates the buffers; `None` if memory does not suffice.
    pub(super) fn new(device: &CudaDevice, spec: GemmSpec, shape: LinearShape) -> Result<Option<Self>, NativeError> {
        match Self::allocate(device, spec, shape) {
            Ok(trial) => Ok(Some(trial)),
            Err(NativeError::OutOfMemory { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn allocate(device: &CudaDevice, spec: GemmSpec, shape: LinearShape) -> Result<Self, NativeError> {
        let LinearShape { m, k, n } = shape;
        let allocated = |bytes: usize| DeviceMemory::allocate(device.stream(), bytes);
        // Constant data would draw less power than real data.
        let filled = |bytes: usize, with: &[u8]| -> Result<DeviceMemory, NativeError> {
            let mut memory = allocated(bytes)?;
            memory.fill_repeating(with).map(|()| memory)
        };
        let factors = random_values(spec.operands);
        let scales = || -> Result<[DeviceMemory; 2], NativeError> {
            let scales = random_values(OperandTypes::Float(Dtype::F32));
            let [of_x, of_w] = spec.scales.counts(shape).map(|count| filled(4 * count, &scales));
            Ok([of_x?, of_w?])
        };
        let bias = || -> Result<DeviceMemory, NativeError> {
            let mut bias = allocated(n * spec.output.bytes())?;
            bias.fill(0x38).map(|()| bias)
        };
        Ok(Self {
            spec,
            shape,
            x: filled(m * k * spec.operands.bytes(), &factors)?,
            w: filled(n * k * spec.operands.bytes(), &factors)?,
            y: device.allocate(m * n * spec.output.bytes())?,
            scales: if spec.scales == GemmScales::None { None } else { Some(scales()?) },
            bias: spec.epilogue.has_bias().then(bias).transpose()?,
        })
    }

    /// True if two algorithms have equal results: the digests of all rows and columns agree within rounding.
    pub(super) fn outputs_agree(
        &self,
        device: &CudaDevice,
        algorithms: [usize; 2],
        launch: &mut impl FnMut(usize) -> Result<(), NativeError>,
    ) -> Result<bool, NativeError> {
        let GemmOutput::Float(kind) = self.spec.output else { return Ok(false) };
        let matrix = DeviceMatrix { buffer: &self.y, kind, size: [self.shape.m, self.shape.n] };
        let [expected, found] = algorithms.map(|algorithm| {
            launch(algorithm)?;
            matrix.row_col_digests(device)
        });
        let [expected, found] = [expected?, found?];
        Ok(expected
            .iter()
            .flatten()
            .zip(found.iter().flatten())
            .all(|(expected, found)| digests_agree(expected, found)))
    }

    /// Returns the time per launch of each of `count` candidates; infinity for a candidate that fails.
    pub(super) fn time_candidates(
        device: &CudaDevice,
        count: usize,
        mut launch: impl FnMut(usize) -> Result<(), NativeError>,
    ) -> Vec<f64> {
        let mut timed = |algorithm: usize, launches: usize| -> Result<f64, NativeError> {
            let failed = driver_error("timing an algorithm");
            let event = || device.stream().record_event(Some(CUevent_flags::CU_EVENT_DEFAULT)).map_err(&failed);
            let start = event()?;
            (0..launches).try_for_each(|_| launch(algorithm))?;
            let end = event()?;
            end.synchronize().map_err(&failed)?;
            Ok(f64::from(start.elapsed_ms(&end).map_err(&failed)?) * 1e6 / launches as f64)
        };
        let (least, most) = Self::LAUNCH_LIMITS;
        let mut launches = Vec::new();
        for algorithm in 0..count {
            // The first launch loads the algorithm.
            let rough = timed(algorithm, 1).and_then(|_| timed(algorithm, 2));
            launches.push(rough.map(|nanos| (Self::MIN_ROUND_NANOS / nanos.max(1.0)).clamp(least, most) as usize));
        }
        let mut sums = vec![0.0; count];
        for round in 0..Self::ROUNDS {
            for (algorithm, (sum, launches)) in sums.iter_mut().zip(&launches).enumerate() {
                let nanos = launches.as_ref().ok().and_then(|&launches| timed(algorithm, launches).ok());
                *sum += nanos.map_or(f64::INFINITY, |nanos| if round == 0 { 0.0 } else { nanos });
            }
        }
        let mut nanos: Vec<f64> = sums.iter().map(|sum| sum / (Self::ROUNDS - 1) as f64).collect();
        let mut order = contenders(&nanos);
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
            // Reverse the order for the next round, because the device heats up during a round.
            order.reverse();
        }
        nanos
    }
}

/// Candidates of a long-running matmul that are timed in longer rounds, fastest first.
fn contenders(nanos: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..nanos.len()).collect();
    order.sort_by(|a, b| nanos[*a].total_cmp(&nanos[*b]));
    let least = order.first().map_or(0.0, |&fastest| nanos[fastest]);
    let large = least >= AlgorithmTrial::LONG_LAUNCH_NANOS && least.is_finite();
    order.retain(|&algorithm| large && nanos[algorithm] <= AlgorithmTrial::CONTENDER_RATIO * least);
    order.truncate(AlgorithmTrial::MAX_CONTENDERS);
    order
}

/// True if two digests agree within rounding.
fn digests_agree([sum, squares]: &SignedDigest, [other_sum, other_squares]: &SignedDigest) -> bool {
    (sum - other_sum).abs() <= 0.05 * squares.sqrt() && (squares - other_squares).abs() <= 0.05 * squares
}

/// Period of the test data: not a power of two, so that rows differ.
const RANDOM_VALUES: usize = 1_000_003;

/// Encoded random values between 1/8 and 2 of either sign; for int8, all 256 values.
pub(super) fn random_values(factors: OperandTypes) -> Vec<u8> {
    // Fixed bits of the highest byte (exponent), and mask of its random bits.
    let (exponent, free) = match factors {
        OperandTypes::Float(Dtype::F32 | Dtype::Bf16) | OperandTypes::Tf32 => (0x3e, 0x81),
        OperandTypes::Float(Dtype::F16) => (0x30, 0x8f),
        OperandTypes::E4m3(_) | OperandTypes::E5m2ByE4m3(_) => (0x20, 0x9f),
        OperandTypes::Int8 => (0, 0xff),
    };
    let (mut state, bytes) = (1_u64, factors.bytes());
    let byte = |at: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let drawn = (state >> 56) as u8;
        if at % bytes == bytes - 1 { exponent | drawn & free } else { drawn }
    };
    (0..RANDOM_VALUES * bytes).map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contenders_of_long_launches_get_long_rounds() {
        let times = [3.0e5, 2.9e5, f64::INFINITY, 3.1e5, 3.2e5, 2.95e5, 2.91e5];
        assert_eq!(contenders(&times), [1, 6, 5, 0]);
        assert!(contenders(&times.map(|nanos| nanos / 2.0)).is_empty());
        // No candidate that runs, and no candidate at all.
        assert!(contenders(&[f64::INFINITY; 3]).is_empty());
        assert!(contenders(&[]).is_empty());
    }

    #[test]
    fn digests_tolerate_rounding_but_not_scaling() {
        let sums = |scale: f64| [scale * 3.0, scale * scale * 100.0];
        assert!(digests_agree(&sums(1.0), &sums(1.01)) && digests_agree(&[0.0; 2], &[0.0; 2]));
        for scale in [0.5, 0.9, 1.1, -1.0, 0.0, f64::NAN] {
            assert!(!digests_agree(&sums(1.0), &sums(scale)), "{scale}");
        }
    }

    #[test]
    fn trial_values_are_bounded_and_balanced() {
        let numbers: Vec<f32> = random_values(OperandTypes::Float(Dtype::F32))
            .chunks_exact(4)
            .map(|bytes| f32::from_le_bytes(bytes.try_into().expect("four bytes")))
            .collect();
        assert_eq!(numbers.len(), RANDOM_VALUES);
        assert!(numbers.iter().all(|number| (0.125..2.0).contains(&number.abs())));
        let (below, mean) = (
            numbers.iter().filter(|number| **number < 0.0).count(),
            numbers.iter().sum::<f32>() / RANDOM_VALUES as f32,
        );
        assert!(below.abs_diff(RANDOM_VALUES / 2) < RANDOM_VALUES / 100 && mean.abs() < 0.01, "{below} {mean}");
        let bytes = random_values(OperandTypes::Int8);
        assert!((0..=u8::MAX).all(|code| bytes.contains(&code)));
    }
}
