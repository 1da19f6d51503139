//! Matmul shapes with about the FLOPs of a case. Several are tried, since the fastest shape depends on the device.

use calorimeter_case::Case;
use calorimeter_shapes::Shape;

/// Returns the shape of a case that is a single matmul, apart from an epilogue of at most 2 % of its FLOPs.
pub fn case_shape(case: &Case) -> Option<Shape> {
    const LITTLE: u64 = 50;
    let [m, k, n] = ["m", "k", "n"].map(|axis| case.shape.get(axis));
    let shape = Shape::new(m?, k?, n?).ok()?;
    let more = case.flops?.checked_sub(shape.flops())?;
    (more <= shape.flops() / LITTLE).then_some(shape)
}

/// Returns the shape of the case, if it has one, and a square, a wide and a tall one, each no larger than a square of
/// side `largest`.
pub(super) fn probe_shapes(own: Option<Shape>, operations: f64, largest: u64) -> Vec<Shape> {
    const SQUARE: [u64; 3] = [1, 1, 1];
    const WIDE: [u64; 3] = [1, 4, 4];
    const TALL: [u64; 3] = [4, 4, 1];
    let mut forms = Vec::from_iter(own);
    for form in [SQUARE, WIDE, TALL].into_iter().filter_map(|sides| scaled_shape(sides, operations, largest)) {
        if !forms.contains(&form) {
            forms.push(form);
        }
    }
    forms
}

/// Matmul with the given side ratios and number of operations.
fn scaled_shape(sides: [u64; 3], operations: f64, largest: u64) -> Option<Shape> {
    const STEP: u64 = 64;
    let most = 2.0 * (largest as f64).powi(3);
    let unit = (operations.min(most) / 2.0 / sides.iter().product::<u64>() as f64).cbrt();
    let [m, k, n] = sides.map(|side| ((unit * side as f64).round() as u64).next_multiple_of(STEP).max(STEP));
    Shape::new(m, k, n).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use calorimeter_case::Axes;

    fn shape(m: u64, k: u64, n: u64) -> Shape {
        Shape::new(m, k, n).unwrap()
    }

    #[test]
    fn probe_shapes_match_the_flops_of_the_case() {
        let case = shape(1024, 4096, 4096);
        let forms = probe_shapes(Some(case), case.flops() as f64, 8192);
        assert_eq!(forms, [case, shape(2624, 2624, 2624), shape(4096, 4096, 1024)]);
        let small = shape(1, 64, 64);
        assert_eq!(probe_shapes(Some(small), small.flops() as f64, 8192), [small, shape(64, 64, 64)]);
        // Limited by the largest size that is tried on the device.
        let huge = super::probe_shapes(None, 1e18, 2048);
        assert_eq!(huge[0], shape(2048, 2048, 2048));
        assert!(huge.iter().all(|form| form.flops() < 9 * huge[0].flops() / 8), "{huge:?}");
    }

    #[test]
    fn pure_matmul_cases_have_their_own_shape() {
        let case =
            |flops| Case { shape: Axes::from([("m", 8), ("k", 64), ("n", 32)]), flops: Some(flops), ..Case::default() };
        let product = 2 * 8 * 64 * 32;
        assert_eq!(case_shape(&case(product)), Some(shape(8, 64, 32)));
        // With a bias.
        assert_eq!(case_shape(&case(product + 8 * 32)), Some(shape(8, 64, 32)));
        assert_eq!(
            (case_shape(&case(12 * product)), case_shape(&case(product / 2)), case_shape(&Case::default())),
            (None, None, None)
        );
    }
}
