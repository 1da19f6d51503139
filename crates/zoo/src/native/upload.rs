//! Upload of matrices.

use crate::Matrix;
use crate::element_bytes::encode;
use crate::random_matrix::RandomMatrix;
use crate::scale_factors::{STEP_POWERS, ScaleFactors};
use crate::stream::{Distribution, QUANTILES};
use calorimeter_kernels::native::{
    CudaDevice, DeviceBuffer, DeviceRandomMatrix, NativeError, RandomTables, ValueDistribution,
};
use calorimeter_recipes::Element;

/// Uploads a matrix in an element type that represents it exactly. Random matrices are generated on the device, if it
/// can generate the element type.
pub(super) fn upload(machine: &CudaDevice, matrix: &Matrix, element: Element) -> Result<DeviceBuffer, NativeError> {
    match matrix.as_random() {
        Some(drawn) if drawn.element == Some(element) && machine.can_generate(element) => {
            let RandomMatrix {
                rows, cols, stream, scale_factors: louder, outlier_rows: quiet, mean_step: means, ..
            } = drawn;
            let (law, key) = stream.distribution_and_key();
            let spread = match law {
                Distribution::Normal => ValueDistribution::Normal,
                Distribution::Uniform(from, to) => ValueDistribution::Uniform(from, to),
                Distribution::IntegersBelow(_) => return machine.upload(&encode(&matrix.values, element)),
            };
            let mut factors = Vec::new();
            if let Some((loud, quiet)) = quiet {
                factors = vec![*quiet; *rows];
                loud.iter().for_each(|&row| factors[row] = 1.0);
            }
            let places = DeviceRandomMatrix {
                rows: *rows,
                cols: *cols,
                key,
                spread,
                gains: louder.as_ref().map(ScaleFactors::device_parameters),
                factors: &factors,
                row_offset: *means,
                tables: RandomTables { quantiles: &QUANTILES, powers: &STEP_POWERS },
            };
            machine.random_matrix(&places, element)
        }
        _ => machine.upload(&encode(&matrix.values, element)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate_data::WEIGHT_PATTERN;
    use crate::stream::RandomStream;
    use crate::{Fill, Operand};
    use calorimeter_recipes::Dtype;

    #[test]
    #[ignore = "needs CUDA"]
    fn device_random_matrices_equal_host_ones() {
        let machine = CudaDevice::open(0).unwrap_or_else(|error| panic!("this test needs an NVIDIA GPU: {error}"));
        let edge = 0.1;
        let fills = [
            Fill::Normal,
            Fill::NormalWithMeans,
            Fill::NormalWithLargeMeans,
            Fill::Symmetric(edge),
            Fill::OutlierRows { bound: edge, groups: 1 },
            Fill::Uniform(0.5, 2.0),
            Fill::IntegersBelow(7),
        ];
        for (rows, cols) in [(1, 1), (3, 7), (130, 300), (1, 40_000), (2000, 1000)] {
            for fill in fills {
                for of in Dtype::ALL.map(Element::Float).into_iter().chain([Element::E4m3, Element::E5m2]) {
                    // Scale factors of every kind.
                    let louder = Some(ScaleFactors::new(WEIGHT_PATTERN, 7, cols));
                    let (stream, element, quiet) = (RandomStream::new(8, Distribution::Normal), Some(of), None);
                    let as_weight = RandomMatrix {
                        rows,
                        cols,
                        stream,
                        scale_factors: louder,
                        outlier_rows: quiet,
                        mean_step: 0.0,
                        element,
                    };
                    let [rows, cols] = [rows, cols].map(|size| size as u64);
                    let operand = Operand::normal(rows, cols, of).with_fill(fill);
                    for matrix in [operand.matrix(5), operand.gate_matrix(6), Matrix::from_random(as_weight)] {
                        let made = upload(&machine, &matrix, of).unwrap().download().unwrap();
                        assert!(made == encode(&matrix.values, of), "{operand:?}");
                    }
                }
            }
        }
    }
}
