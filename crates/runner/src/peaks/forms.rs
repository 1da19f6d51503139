//! The sizes of a case's product.

use calorimeter_case::Case;
use calorimeter_shapes::Shape;

/// The sizes of the one product that a case is: they account for its operations, but for a little that is done to each
/// output.
pub fn own(case: &Case) -> Option<Shape> {
    const LITTLE: u64 = 50;
    let [m, k, n] = ["m", "k", "n"].map(|axis| case.shape.get(axis));
    let shape = Shape::new(m?, k?, n?).ok()?;
    let more = case.flops?.checked_sub(shape.flops())?;
    (more <= shape.flops() / LITTLE).then_some(shape)
}

#[cfg(test)]
mod tests {
    use super::*;
    use calorimeter_case::Axes;

    fn shape(m: u64, k: u64, n: u64) -> Shape {
        Shape::new(m, k, n).unwrap()
    }

    #[test]
    fn a_case_has_a_form_of_its_own_if_that_is_all_it_computes() {
        let case =
            |flops| Case { shape: Axes::from([("m", 8), ("k", 64), ("n", 32)]), flops: Some(flops), ..Case::default() };
        let product = 2 * 8 * 64 * 32;
        assert_eq!(own(&case(product)), Some(shape(8, 64, 32)));
        // A bias.
        assert_eq!(own(&case(product + 8 * 32)), Some(shape(8, 64, 32)));
        assert_eq!((own(&case(12 * product)), own(&case(product / 2)), own(&Case::default())), (None, None, None));
    }
}
