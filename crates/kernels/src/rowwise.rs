//! Row-wise e4m3 quantization of bf16, as a reference implementation: one scale per row and one e4m3 value per element.
//!
//! The scale is amax / 448 rounded to bf16, or 1 below [`MIN_SCALE`]. A value is the e4m3 nearest to x / scale,
//! with the quotient rounded to bf16 first. The code is independent of the recipes' quantizer, so that the kernels are
//! tested against a second implementation.

/// Largest finite e4m3.
pub const MAX_E4M3: f32 = 448.0;

/// Smallest scale; smaller ones are replaced by 1. Square root of the smallest normal bf16: 2⁻⁶³.
pub const MIN_SCALE: f32 = f32::from_bits((127 - 63) << 23);

/// Static scale for tensors whose amax is not measured: magnitudes up to 224 fit.
pub const STATIC_SCALE: f32 = 224.0 / MAX_E4M3;

/// Quantizes a row of bf16 bit patterns; returns the e4m3 values and the scale.
///
/// ```
/// use calorimeter_kernels::rowwise::{e4m3_to_f32, quantize_row, to_bf16};
///
/// let (codes, scale) = quantize_row(&[448.0, -3.0, 0.0].map(to_bf16));
/// assert_eq!((scale, e4m3_to_f32(codes[1])), (1.0, -3.0));
/// ```
pub fn quantize_row(row: &[u16]) -> (Vec<u8>, f32) {
    let scale = row_scale(row);
    (row.iter().map(|&x| quantize_value(x, scale)).collect(), scale)
}

/// Returns the scale of a row of bf16 bit patterns; NaN if any element is NaN.
pub fn row_scale(row: &[u16]) -> f32 {
    // Bit patterns without the sign are ordered like the magnitudes, with NaN above all.
    let largest = row.iter().map(|bits| bits & 0x7fff).max().unwrap_or(0);
    let scale = bf16_to_f32(to_bf16(bf16_to_f32(largest) / MAX_E4M3));
    if scale < MIN_SCALE { 1.0 } else { scale }
}

/// Returns the e4m3 value of a bf16 bit pattern.
pub fn quantize_value(x: u16, scale: f32) -> u8 {
    to_e4m3(bf16_to_f32(to_bf16(bf16_to_f32(x) / scale)))
}

/// Returns the bit pattern of the nearest bf16, ties to even.
#[inline(always)]
pub fn to_bf16(x: f32) -> u16 {
    let bits = x.to_bits();
    let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16;
    if x.is_nan() { 0x7fff } else { rounded as u16 }
}

/// Returns the value of a bf16 bit pattern.
#[inline(always)]
pub fn bf16_to_f32(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// Returns the nearest e4m3, ties to even; magnitudes above 448 saturate.
pub fn to_e4m3(x: f32) -> u8 {
    if x.is_nan() {
        return 0x7f;
    }
    let sign = ((x.to_bits() >> 24) & 0x80) as u8;
    let magnitude = x.abs().min(MAX_E4M3);
    // Values of one exponent are equally spaced; subnormals have the spacing of the smallest normal exponent.
    let exponent = ((magnitude.to_bits() >> 23) as i32 - 127).max(-6);
    let steps = (magnitude * 2f32.powi(3 - exponent)).round_ties_even() as i32;
    // Eight steps reach the next power of two, where the encoding continues without a gap.
    sign | (steps + (exponent + 6) * 8) as u8
}

/// Returns the value of an e4m3 bit pattern.
pub fn e4m3_to_f32(code: u8) -> f32 {
    let (exponent, mantissa) = (i32::from(code >> 3) & 0xf, f32::from(code & 7));
    let magnitude = match (exponent, code & 7) {
        (15, 7) => f32::NAN,
        (0, _) => mantissa * 2f32.powi(-9),
        _ => (8.0 + mantissa) * 2f32.powi(exponent - 10),
    };
    if code & 0x80 == 0 { magnitude } else { -magnitude }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_is_to_nearest_with_ties_to_even() {
        for code in (0..=255).filter(|code| code & 0x7f != 0x7f) {
            assert_eq!(to_e4m3(e4m3_to_f32(code)), code, "{code:#x}");
        }
        for code in 0..0x7e {
            let middle = (e4m3_to_f32(code) + e4m3_to_f32(code + 1)) / 2.0;
            assert_eq!(to_e4m3(middle), (code + 1) & !1, "between {code:#x} and the next");
            assert_eq!((to_e4m3(middle.next_down()), to_e4m3(middle.next_up())), (code, code + 1));
            assert_eq!(to_e4m3(-middle), 0x80 | (code + 1) & !1);
        }
        assert_eq!([448.0, 464.0, 1e30, f32::INFINITY].map(to_e4m3), [0x7e; 4]);
        assert_eq!([f32::NEG_INFINITY, -1e-30, f32::NAN].map(to_e4m3), [0xfe, 0x80, 0x7f]);
    }

    #[test]
    fn known_rows_have_known_scales_and_values() {
        let cases: [(&[f32], f32, &[u8]); 7] = [
            (&[448.0, 224.0, -1.0, 0.0], 1.0, &[0x7e, 0x76, 0xb8, 0x00]),
            // 1/448 is 1.142857 · 2⁻⁹, rounded to bf16 1.140625 · 2⁻⁹; its inverse is 448.9, rounded to bf16 448.
            (&[1.0, -0.5], 1.140625 / 512.0, &[0x7e, 0xf6]),
            // 3/448 rounded to bf16 is 1.7109375 · 2⁻⁸. 1.046875 over that is 156.64, rounded to bf16 157; e4m3 values
            // are 16 apart.
            (&[3.0, 1.046875], 1.7109375 / 256.0, &[0x7e, 0x72]),
            (&[0.0, -0.0], 1.0, &[0x00, 0x80]),
            // An amax of 2⁻⁵⁵ gives 1.14 · 2⁻⁶⁴, below the smallest scale; twice that amax does not.
            (&[2.7755576e-17, -2.7755576e-17], 1.0, &[0x00, 0x80]),
            (&[5.551115e-17], 1.140625 * MIN_SCALE, &[0x7e]),
            // The largest bf16, nearly 2¹²⁸.
            (&[3.3895314e38, 1e30], 1.140625 * 2f32.powi(119), &[0x7e, 0x00]),
        ];
        for (row, exact, codes) in cases {
            let bits: Vec<u16> = row.iter().map(|&x| to_bf16(x)).collect();
            let (found, scale) = quantize_row(&bits);
            assert!((scale - exact).abs() <= exact * 1e-5, "{row:?}: scale {scale:e}");
            assert_eq!(found, codes, "{row:?}");
        }
        assert!(row_scale(&[0x3f80, 0xffff]).is_nan());
        assert_eq!([1.0, -224.0, 300.0].map(|x| quantize_value(to_bf16(x), STATIC_SCALE)), [0x40, 0xfe, 0x7e]);
    }

    #[test]
    fn rounding_the_quotient_to_bf16_matters() {
        // The quotient is 152/143 = 1.06294. It is above the midpoint of two e4m3 values, 1.0625, to which bf16 rounds
        // it.
        let (x, scale) = (to_bf16(152.0), 143.0);
        assert_eq!((to_e4m3(bf16_to_f32(x) / scale), quantize_value(x, scale)), (0x39, 0x38));
    }

    /// The GPU multiplies by the inverse instead of dividing. The result is exact: no quotient of two bf16 is within a
    /// relative distance of 2⁻¹⁷ of the midpoint between two bf16, and the product with the inverse has a relative
    /// error of at most 2⁻²², even if the inverse is not the nearest float.
    #[test]
    fn inverse_multiplication_equals_division() {
        for exponent in [127 - 63, 127, 128, 127 + 118] {
            for significand in 0..128u32 {
                let scale = f32::from_bits(exponent << 23 | significand << 16);
                let nearest = 1.0 / scale;
                for inverse in [nearest.next_down(), nearest, nearest.next_up()] {
                    for x in 0..0x8000 {
                        let (product, quotient) = (to_bf16(bf16_to_f32(x) * inverse), to_bf16(bf16_to_f32(x) / scale));
                        // Subnormal results quantize to 0 in any case.
                        let tiny = product.max(quotient) <= 0x80;
                        assert!(product == quotient || tiny, "{x:#x} over {scale:e}");
                    }
                }
            }
        }
    }
}
