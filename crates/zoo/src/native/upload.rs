//! Upload of matrices.

use crate::Matrix;
use crate::drawn::Drawn;
use crate::louder::{Louder, POWERS};
use crate::numbers::bytes;
use crate::stream::{Law, QUANTILES};
use calorimeter_kernels::native::{Buffer, Machine, NativeError, Places, Spread, Tables};
use calorimeter_recipes::Element;

/// Uploads a matrix in an element type that represents it exactly. Random float matrices are generated on the device.
pub fn upload(machine: &Machine, matrix: &Matrix, element: Element) -> Result<Buffer, NativeError> {
    match (matrix.as_drawn(), element) {
        (Some(drawn), Element::Float(kind)) if drawn.element == Some(element) => {
            let Drawn { rows, cols, stream, louder, quiet, means, .. } = drawn;
            let (law, key) = stream.parts();
            let spread = match law {
                Law::Normal => Spread::Normal,
                Law::Between(from, to) => Spread::Between(from, to),
                Law::Below(_) => return machine.upload(&bytes(&matrix.values, element)),
            };
            let mut factors = Vec::new();
            if let Some((loud, quiet)) = quiet {
                factors = vec![*quiet; *rows];
                loud.iter().for_each(|&row| factors[row] = 1.0);
            }
            let places = Places {
                rows: *rows,
                cols: *cols,
                key,
                spread,
                gains: louder.as_ref().map(Louder::gains),
                factors: &factors,
                means: *means,
                tables: Tables { quantiles: &QUANTILES, powers: &POWERS },
            };
            machine.places(&places, kind)
        }
        _ => machine.upload(&bytes(&matrix.values, element)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gains::WEIGHT;
    use crate::stream::Stream;
    use crate::{Fill, Operand};
    use calorimeter_recipes::Dtype;

    #[test]
    fn a_gpu_makes_the_numbers_of_the_host() {
        if std::env::var("CALORIMETER_TEST_DEVICE").as_deref() != Ok("cuda") {
            println!("ignored: set CALORIMETER_TEST_DEVICE=cuda to run this test on a GPU");
            return;
        }
        let machine = Machine::open(0).unwrap_or_else(|error| panic!("CALORIMETER_TEST_DEVICE=cuda: {error}"));
        let edge = 0.1;
        let fills = [
            Fill::Normal,
            Fill::Offset,
            Fill::Far,
            Fill::Around(edge),
            Fill::SomeRows { edge, groups: 1 },
            Fill::Uniform(0.5, 2.0),
            Fill::Below(7),
        ];
        for (rows, cols) in [(1, 1), (3, 7), (130, 300), (1, 40_000), (2000, 1000)] {
            for fill in fills {
                for of in Dtype::ALL.map(Element::Float).into_iter().chain([Element::E4m3]) {
                    // Scale factors of every kind.
                    let louder = Some(Louder::new(WEIGHT, 7, cols));
                    let (stream, element, quiet) = (Stream::new(8, Law::Normal), Some(of), None);
                    let as_weight = Drawn { rows, cols, stream, louder, quiet, means: 0.0, element };
                    let [rows, cols] = [rows, cols].map(|size| size as u64);
                    let operand = Operand::normal(rows, cols, of).filled(fill);
                    for matrix in [operand.matrix(5), operand.gate_matrix(6), Matrix::drawn(as_weight)] {
                        let made = upload(&machine, &matrix, of).unwrap().download().unwrap();
                        assert!(made == bytes(&matrix.values, of), "{operand:?}");
                    }
                }
            }
        }
    }
}
