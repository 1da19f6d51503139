//! Digests of outputs on the device.

use crate::{NonFinite, OutputDigest, OutputQuery, SignedSums, ZooError};
use calorimeter_kernels::native::{CudaDevice, DeviceBuffer, DeviceMatrix, NativeError};
use calorimeter_recipes::{Dtype, Element};

/// Dtype in which the device computes digests; `None` for quantized outputs, which the host reads.
pub(super) fn digest_dtype(element: Element) -> Option<Dtype> {
    match element {
        Element::Float(kind) => Some(kind),
        _ => None,
    }
}

/// True if the device has memory for a copy of each output. Outputs that are not downloaded must stay on the device for
/// comparisons with other sets.
pub(super) fn can_copy(machine: &CudaDevice, outputs: &[DeviceBuffer]) -> Result<bool, NativeError> {
    let copies: Result<Vec<DeviceBuffer>, _> = outputs.iter().map(|output| machine.allocate(output.len())).collect();
    match copies {
        Err(NativeError::OutOfMemory { .. }) => Ok(false),
        copies => copies.map(|_| true),
    }
}

/// Computes the digest for a query.
pub(super) fn compute_digest(
    machine: &CudaDevice,
    matrix: DeviceMatrix<'_>,
    look: &OutputQuery<'_>,
) -> Result<OutputDigest, ZooError> {
    let DeviceMatrix { size, .. } = matrix;
    let spoilt = match matrix.find_non_finite(machine)? {
        Some((first, count)) => {
            let there = matrix.sample(machine, &[first / size[1]], &[first % size[1]])?;
            let value = there.first().map_or(f32::NAN, |&value| value as f32);
            Some(NonFinite { index: first, value, count })
        }
        None => None,
    };
    let (mut sampled, mut sums) = (Vec::new(), None);
    if spoilt.is_none() && look.sample.is_within(size) {
        sampled = matrix.sample(machine, &look.sample.rows, &look.sample.cols)?;
        if look.sums {
            sums = Some(SignedSums::from_device(matrix.row_col_digests(machine)?));
        }
    }
    Ok(OutputDigest { size, count: size[0] * size[1], non_finite: spoilt, sampled, sums })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element_bytes::encode;
    use crate::gate::{Projection, ToDigest};
    use crate::{Output, OutputSample, Reference};
    use calorimeter_recipes::FloatType;

    fn reference(rows: &[usize], cols: &[usize], sums: bool) -> Reference {
        let sample = OutputSample { rows: rows.to_vec(), cols: cols.to_vec() };
        let values = vec![0.0; sample.len()];
        let projection = sums.then(|| Projection { rows: Vec::new(), cols: Vec::new() });
        Reference { sample, values, projection }
    }

    #[test]
    #[ignore = "needs CUDA"]
    fn device_digest_equals_host_digest() {
        let machine = CudaDevice::open(0).unwrap_or_else(|error| panic!("this test needs an NVIDIA GPU: {error}"));
        // The last one is downloaded in several pieces.
        for (rows, cols) in [(1, 1), (3, 7), (1, 70_001), (257, 300), (600, 1000), (5000, 1), (3001, 999)] {
            for kind in Dtype::ALL {
                let number = |at: usize| kind.round(((at * 7919) % 2003) as f32 / 100.0 - 10.0);
                let right: Vec<f32> = (0..rows * cols).map(number).collect();
                let last = rows * cols - 1;
                for spoilt in [&[][..], &[(last, f32::INFINITY)], &[(last / 2, f32::NAN), (last, f32::NEG_INFINITY)]] {
                    let mut values = right.clone();
                    spoilt.iter().for_each(|&(at, value)| values[at] = value);
                    let buffer = machine.upload(&encode(&values, Element::Float(kind))).unwrap();
                    let output = Output { rows, cols, values };
                    let (some_rows, some_cols) = ([0, rows / 2, rows - 1], [0, cols / 3, cols - 1]);
                    let all = |count: usize| (0..count).collect::<Vec<_>>();
                    let whole = reference(&all(rows), &all(cols), false);
                    for of in [reference(&some_rows, &some_cols, true), reference(&[0, rows], &[0], false), whole] {
                        let matrix = DeviceMatrix { buffer: &buffer, kind, size: [rows, cols] };
                        let (found, expected) =
                            (compute_digest(&machine, matrix, &of.query()).unwrap(), output.to_digest(&of));
                        // Compared as text because NaN is not equal to itself.
                        let text = |seen: &OutputDigest| {
                            format!("{:?} {:?}", (seen.size, seen.count), (&seen.non_finite, &seen.sampled))
                        };
                        assert_eq!(text(&found), text(&expected), "{rows} {cols} {kind}");
                        assert_eq!(found.sums.is_some(), expected.sums.is_some());
                        if let (Some(found), Some(expected)) = (&found.sums, &expected.sums) {
                            assert!(found.is_near(expected), "{rows} {cols} {kind}: {found:?} {expected:?}");
                        }
                    }
                }
            }
        }
    }
}
