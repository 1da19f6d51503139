//! Static dispatch from a tensor format to the type of its quantization rule.

/// Evaluates an expression with the quantization rule of a format as a type.
macro_rules! with_rule {
    ($format:expr, $rule:ident => $body:expr) => {{
        use $crate::dispatch::with_steps;
        use $crate::format::{Method, MxScaling};
        use $crate::scalar::minifloat::{E2m1, E3m2, E4m3, E5m2};
        use $crate::scalar::{rounding::InF32, rules};
        use $crate::{Dtype, Element};
        let format: $crate::format::Format = $format;
        match format.method {
            Method::Symmetric { .. } if format.scale == Element::Float(Dtype::F32) => {
                with_steps!(format.steps, S => { type $rule = rules::Symmetric<S, InF32>; $body })
            }
            Method::Symmetric { .. } => with_steps!(format.steps, S => { type $rule = rules::Symmetric<S, S>; $body }),
            Method::Asymmetric { .. } => with_steps!(format.steps, S => { type $rule = rules::Asymmetric<S>; $body }),
            Method::Tinygemm { .. } => with_steps!(format.steps, S => { type $rule = rules::Tinygemm<S>; $body }),
            Method::Floats { .. } => match format.element {
                Element::E5m2 => with_steps!(format.steps, S => { type $rule = rules::Floats<S, E5m2>; $body }),
                Element::E3m2 => with_steps!(format.steps, S => { type $rule = rules::Floats<S, E3m2>; $body }),
                _ => with_steps!(format.steps, S => { type $rule = rules::Floats<S, E4m3>; $body }),
            },
            Method::Mx(scaling) => match (format.element, scaling) {
                (Element::E2m1, MxScaling::Floor) => { type $rule = rules::MxFloor<E2m1>; $body }
                (Element::E2m1, MxScaling::Ceil) => { type $rule = rules::MxCeil<E2m1>; $body }
                (_, MxScaling::Floor) => { type $rule = rules::MxFloor<E4m3>; $body }
                (_, MxScaling::Ceil) => { type $rule = rules::MxCeil<E4m3>; $body }
            },
            Method::Nvfp4 => { type $rule = rules::Nvfp4; $body }
            Method::Plain | Method::Hqq(_) | Method::Qqq => unreachable!("this method has no per-group rule"),
        }
    }};
}

/// Evaluates an expression with the rounding of a dtype as a type.
macro_rules! with_steps {
    ($dtype:expr, $steps:ident => $body:block) => {
        match $dtype {
            $crate::Dtype::F32 => {
                type $steps = $crate::scalar::rounding::InF32;
                $body
            }
            $crate::Dtype::F16 => {
                type $steps = $crate::scalar::rounding::InF16;
                $body
            }
            $crate::Dtype::Bf16 => {
                type $steps = $crate::scalar::rounding::InBf16;
                $body
            }
        }
    };
}

pub(crate) use {with_rule, with_steps};
