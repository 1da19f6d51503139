//! Row-wise e4m3 as its definition, on numbers: one scale per row of bf16, and a code for each element.
//!
//! The scale is the row's largest magnitude / 448 rounded to bf16, and 1 where that would be next to nothing. The code is
//! the e4m3 nearest to x / scale, which is rounded to bf16 first. A code times its scale is near x. It is written from the definition
//! and not with what recipes quantize by, so that the kernels here are held against another source.

/// The largest e4m3.
pub const LARGEST: f32 = 448.0;

/// Scales below are replaced by 1: the root of the smallest normal bf16, 2⁻⁶³.
pub const SMALLEST_SCALE: f32 = f32::from_bits((127 - 63) << 23);

/// The scale of everything where none is taken from the numbers: magnitudes up to 224 fit.
pub const STATIC_SCALE: f32 = 224.0 / LARGEST;

/// The codes and the scale of one row of bf16 bit patterns.
///
/// ```
/// use calorimeter_kernels::rowwise::{bf16, quantize_row, value};
///
/// let (codes, scale) = quantize_row(&[448.0, -3.0, 0.0].map(bf16));
/// assert_eq!((scale, value(codes[1])), (1.0, -3.0));
/// ```
pub fn quantize_row(row: &[u16]) -> (Vec<u8>, f32) {
    let scale = scale(row);
    (row.iter().map(|&x| code(x, scale)).collect(), scale)
}

/// The scale of a row of bf16 bit patterns. NaN if any of them is.
pub fn scale(row: &[u16]) -> f32 {
    // Without their signs, bit patterns are ordered like their numbers, NaN above all.
    let largest = row.iter().map(|bits| bits & 0x7fff).max().unwrap_or(0);
    let scale = widen(bf16(widen(largest) / LARGEST));
    if scale < SMALLEST_SCALE { 1.0 } else { scale }
}

/// The code of one bf16 bit pattern.
pub fn code(x: u16, scale: f32) -> u8 {
    e4m3(widen(bf16(widen(x) / scale)))
}

/// The nearest bf16, ties to even, as its bit pattern.
#[inline(always)]
pub fn bf16(x: f32) -> u16 {
    let bits = x.to_bits();
    let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16;
    if x.is_nan() { 0x7fff } else { rounded as u16 }
}

/// The number of a bf16 bit pattern.
#[inline(always)]
pub fn widen(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// The nearest e4m3, ties to even; what is larger than 448 becomes 448.
pub fn e4m3(x: f32) -> u8 {
    if x.is_nan() {
        return 0x7f;
    }
    let sign = ((x.to_bits() >> 24) & 0x80) as u8;
    let magnitude = x.abs().min(LARGEST);
    // Codes of one power of two are equally far apart, and below the normal numbers as far as just above.
    let exponent = ((magnitude.to_bits() >> 23) as i32 - 127).max(-6);
    let steps = (magnitude * 2f32.powi(3 - exponent)).round_ties_even() as i32;
    // Eight steps are the next power of two, and the code counts on through it.
    sign | (steps + (exponent + 6) * 8) as u8
}

/// The number of an e4m3 code.
pub fn value(code: u8) -> f32 {
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
    fn every_code_is_the_nearest_to_its_number_and_ties_go_to_even_codes() {
        for code in (0..=255).filter(|code| code & 0x7f != 0x7f) {
            assert_eq!(e4m3(value(code)), code, "{code:#x}");
        }
        for code in 0..0x7e {
            let middle = (value(code) + value(code + 1)) / 2.0;
            assert_eq!(e4m3(middle), (code + 1) & !1, "between {code:#x} and the next");
            assert_eq!((e4m3(middle.next_down()), e4m3(middle.next_up())), (code, code + 1));
            assert_eq!(e4m3(-middle), 0x80 | (code + 1) & !1);
        }
        assert_eq!([448.0, 464.0, 1e30, f32::INFINITY].map(e4m3), [0x7e; 4]);
        assert_eq!([f32::NEG_INFINITY, -1e-30, f32::NAN].map(e4m3), [0xfe, 0x80, 0x7f]);
    }

    #[test]
    fn scales_and_codes_are_those_worked_out_by_hand() {
        let cases: [(&[f32], f32, &[u8]); 7] = [
            (&[448.0, 224.0, -1.0, 0.0], 1.0, &[0x7e, 0x76, 0xb8, 0x00]),
            // 1/448 is 1.142857 · 2⁻⁹ and its bf16 1.140625 · 2⁻⁹; 1 over that is 448.9, in bf16 448.
            (&[1.0, -0.5], 1.140625 / 512.0, &[0x7e, 0xf6]),
            // 3/448 in bf16 is 1.7109375 · 2⁻⁸. 1.046875 over that is 156.64, in bf16 157, and the codes are 16 apart.
            (&[3.0, 1.046875], 1.7109375 / 256.0, &[0x7e, 0x72]),
            (&[0.0, -0.0], 1.0, &[0x00, 0x80]),
            // A largest magnitude of 2⁻⁵⁵ gives 1.14 · 2⁻⁶⁴, below the smallest scale; twice that does not.
            (&[2.7755576e-17, -2.7755576e-17], 1.0, &[0x00, 0x80]),
            (&[5.551115e-17], 1.140625 * SMALLEST_SCALE, &[0x7e]),
            // The largest bf16, nearly 2¹²⁸.
            (&[3.3895314e38, 1e30], 1.140625 * 2f32.powi(119), &[0x7e, 0x00]),
        ];
        for (row, exact, codes) in cases {
            let bits: Vec<u16> = row.iter().map(|&x| bf16(x)).collect();
            let (found, scale) = quantize_row(&bits);
            assert!((scale - exact).abs() <= exact * 1e-5, "{row:?}: scale {scale:e}");
            assert_eq!(found, codes, "{row:?}");
        }
        assert!(scale(&[0x3f80, 0xffff]).is_nan());
        assert_eq!([1.0, -224.0, 300.0].map(|x| code(bf16(x), STATIC_SCALE)), [0x40, 0xfe, 0x7e]);
    }

    #[test]
    fn rounding_the_quotient_to_bf16_first_changes_codes() {
        // The quotient is 152/143 = 1.06294, above the middle of two codes, 1.0625, which is its bf16.
        let (x, scale) = (bf16(152.0), 143.0);
        assert_eq!((e4m3(widen(x) / scale), code(x, scale)), (0x39, 0x38));
    }

    /// What the GPU does instead of dividing. It is exact because no quotient of two bf16 is nearer than 2⁻¹⁷ of itself to
    /// the middle between two bf16, and the product with an inverse is off by 2⁻²² at most, even if that is not the nearest.
    #[test]
    fn multiplying_by_the_inverse_gives_the_codes_of_dividing() {
        for exponent in [127 - 63, 127, 128, 127 + 118] {
            for significand in 0..128u32 {
                let scale = f32::from_bits(exponent << 23 | significand << 16);
                let nearest = 1.0 / scale;
                for inverse in [nearest.next_down(), nearest, nearest.next_up()] {
                    for x in 0..0x8000 {
                        let (product, quotient) = (bf16(widen(x) * inverse), bf16(widen(x) / scale));
                        // What is not normal has the code 0 in any case.
                        let tiny = product.max(quotient) <= 0x80;
                        assert!(product == quotient || tiny, "{x:#x} over {scale:e}");
                    }
                }
            }
        }
    }
}
