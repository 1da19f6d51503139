//! A shape generator that another crate brings: a file with the generator, and one call that registers it.
//!
//! `cargo run -p calorimeter-shapes --example own_generator`

use calorimeter_shapes::{ShapeError, ShapeSource, register};

// ANCHOR: generator
mod square_weight {
    //! `square_weight`: a weight of 4096 x 4096 under several numbers of rows.

    use calorimeter_shapes::{Generator, Kind, NamedShape, Parameter};

    const ROWS: Parameter =
        Parameter { name: "m", about: "rows of the input", kind: Kind::Sizes { default: &[1, 16, 256, 4096] } };

    pub static GENERATOR: Generator = Generator {
        name: "square_weight",
        about: "a weight of 4096 x 4096 under several numbers of rows",
        parameters: &[ROWS],
        count: |settings| Ok(Some(settings.sizes(&ROWS).len() as u64)),
        shapes: |settings, _| {
            let rows = settings.sizes(&ROWS).iter();
            rows.map(|&m| NamedShape::new(format!("square_weight_m{m}"), [m, 4096, 4096])).collect()
        },
    };
}
// ANCHOR_END: generator

fn main() -> Result<(), ShapeError> {
    // ANCHOR: register
    register(&square_weight::GENERATOR)?;
    // ANCHOR_END: register

    for named in "square_weight".parse::<ShapeSource>()?.shapes()? {
        println!("{} {}", named.name, named.shape);
    }
    Ok(())
}
