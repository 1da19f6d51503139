//! Static dispatch from a tensor format to the type of its quantization rule.

/// Evaluates an expression with the quantization rule of a format as a type.
macro_rules! with_rule {
    ($format:expr, $rule:ident => $body:expr) => {{
        use $crate::dispatch::with_steps;
        use $crate::format::{QuantMethod, MxScaling};
        use $crate::scalar::minifloat::{E2m1, E3m2, E4m3, E5m2};
        use $crate::scalar::{rounding::RoundF32, rules};
        use $crate::{Dtype, Element};
        let format: $crate::format::Format = $format;
        match format.method {
            QuantMethod::Symmetric { .. } if format.scale == Element::Float(Dtype::F32) => {
                with_steps!(format.compute_dtype, S => { type $rule = rules::SymmetricRule<S, RoundF32>; $body })
            }
            QuantMethod::Symmetric { .. } => with_steps!(format.compute_dtype, S => { type $rule = rules::SymmetricRule<S, S>; $body }),
            QuantMethod::Asymmetric { .. } => with_steps!(format.compute_dtype, S => { type $rule = rules::AsymmetricRule<S>; $body }),
            QuantMethod::Tinygemm { .. } => with_steps!(format.compute_dtype, S => { type $rule = rules::TinygemmRule<S>; $body }),
            QuantMethod::Floats { .. } => match format.element {
                Element::E5m2 => with_steps!(format.compute_dtype, S => { type $rule = rules::FloatRule<S, E5m2>; $body }),
                Element::E3m2 => with_steps!(format.compute_dtype, S => { type $rule = rules::FloatRule<S, E3m2>; $body }),
                _ => with_steps!(format.compute_dtype, S => { type $rule = rules::FloatRule<S, E4m3>; $body }),
            },
            QuantMethod::Mx(scaling) => match (format.element, scaling) {
                (Element::E2m1, MxScaling::Floor) => { type $rule = rules::MxFloorRule<E2m1>; $body }
                (Element::E2m1, MxScaling::Ceil) => { type $rule = rules::MxCeilRule<E2m1>; $body }
                (_, MxScaling::Floor) => { type $rule = rules::MxFloorRule<E4m3>; $body }
                (_, MxScaling::Ceil) => { type $rule = rules::MxCeilRule<E4m3>; $body }
            },
            QuantMethod::Nvfp4 => { type $rule = rules::Nvfp4Rule; $body }
            QuantMethod::Unquantized | QuantMethod::Hqq(_) | QuantMethod::Qqq | QuantMethod::Ggml => unreachable!("this method has no per-group rule"),
        }
    }};
}

/// Evaluates an expression with the rounding of a dtype as a type.
macro_rules! with_steps {
    ($dtype:expr, $steps:ident => $body:block) => {
        match $dtype {
            $crate::Dtype::F32 => {
                type $steps = $crate::scalar::rounding::RoundF32;
                $body
            }
            $crate::Dtype::F16 => {
                type $steps = $crate::scalar::rounding::RoundF16;
                $body
            }
            $crate::Dtype::Bf16 => {
                type $steps = $crate::scalar::rounding::RoundBf16;
                $body
            }
        }
    };
}

pub(crate) use {with_rule, with_steps};
