//! Upload of inputs, and comparison of outputs.

use calorimeter_kernels::Dtype;
use cubecl::Runtime;
use cubecl::client::ComputeClient;
use cubecl::server::Handle;
use half::{bf16, f16};

/// Guard elements behind an output, which must stay unchanged.
const GUARD: usize = 64;

/// Half the distance from 1 to the next representable value.
pub(crate) fn half_epsilon(kind: Dtype) -> f64 {
    match kind {
        Dtype::F32 => f64::from(f32::EPSILON) / 2.0,
        Dtype::F16 => f64::from(f16::EPSILON) / 2.0,
        Dtype::Bf16 => f64::from(bf16::EPSILON) / 2.0,
    }
}

fn encode(kind: Dtype, value: f64) -> Vec<u8> {
    match kind {
        Dtype::F32 => (value as f32).to_le_bytes().to_vec(),
        Dtype::F16 => f16::from_f64(value).to_le_bytes().to_vec(),
        Dtype::Bf16 => bf16::from_f64(value).to_le_bytes().to_vec(),
    }
}

fn decode(kind: Dtype, bytes: &[u8]) -> Vec<f64> {
    let word = |at: usize| [bytes[at], bytes[at + 1]];
    let number = |at: usize| match kind {
        Dtype::F32 => f64::from(f32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])),
        Dtype::F16 => f16::from_le_bytes(word(at)).to_f64(),
        Dtype::Bf16 => bf16::from_le_bytes(word(at)).to_f64(),
    };
    (0..bytes.len()).step_by(kind.width()).map(number).collect()
}

/// Input buffer, and its values after rounding to the dtype.
pub(crate) struct Input {
    pub handle: Handle,
    pub values: Vec<f64>,
}

impl Input {
    pub(crate) fn new<R: Runtime>(client: &ComputeClient<R>, kind: Dtype, values: impl Iterator<Item = f64>) -> Self {
        let bytes: Vec<u8> = values.flat_map(|value| encode(kind, value)).collect();
        Self { handle: client.create_from_slice(&bytes), values: decode(kind, &bytes) }
    }
}

/// Output buffer, filled with NaN.
pub(crate) struct Output {
    pub handle: Handle,
    kind: Dtype,
    len: usize,
}

impl Output {
    pub(crate) fn new<R: Runtime>(client: &ComputeClient<R>, kind: Dtype, len: usize) -> Self {
        let handle = client.create_from_slice(&vec![0xff; (len + GUARD) * kind.width()]);
        Self { handle, kind, len }
    }

    /// Asserts that every element is within `allowed` of the expected value.
    pub(crate) fn assert_close<R: Runtime>(
        self,
        client: &ComputeClient<R>,
        what: &str,
        expected: &[f64],
        allowed: impl Fn(f64) -> f64,
    ) {
        let bytes = client.read_one(self.handle).unwrap();
        let (found, guard) = bytes.split_at(self.len * self.kind.width());
        assert!(guard.iter().all(|&byte| byte == 0xff), "{what} wrote behind its output");
        let found = decode(self.kind, found);
        assert_eq!(found.len(), expected.len());
        for (at, (&found, &expected)) in found.iter().zip(expected).enumerate() {
            let right = (found - expected).abs() <= allowed(expected) || (found.is_nan() && expected.is_nan());
            assert!(right, "{what}: element {at} is {found}, expected {expected} ± {}", allowed(expected));
        }
    }
}

/// Deterministic uniform values between -1 and 1.
pub(crate) fn noise(seed: u64) -> impl Iterator<Item = f64> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    std::iter::repeat_with(move || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) as f64 / u64::MAX as f64 * 2.0 - 1.0
    })
}
