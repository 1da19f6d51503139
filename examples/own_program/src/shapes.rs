//! `tall`: many rows with a small weight.

use calorimeter_shapes::{Generator, NamedShape, Parameter, ParameterKind};

/// `m` rows with a weight of 64 x 64.
pub static TALL: Generator = Generator {
    name: "tall",
    about: "many rows against a weight of 64 x 64",
    parameters: &[ROWS],
    count: |settings| Ok(Some(settings.sizes(&ROWS).len() as u64)),
    shapes: |settings, _| {
        settings.sizes(&ROWS).iter().map(|&m| NamedShape::new(format!("tall_m{m}"), [m, 64, 64])).collect()
    },
};

const ROWS: Parameter =
    Parameter { name: "m", about: "rows of the input", kind: ParameterKind::Sizes { default: &[1024] } };
