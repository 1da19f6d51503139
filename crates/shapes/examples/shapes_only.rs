//! Standalone use of `calorimeter-shapes`: shapes of two named generators, and a grid.
//!
//! `cargo run -p calorimeter-shapes --example shapes_only`

use calorimeter_shapes::{Axis, Grid, RangeStep, SettingValue, ShapeError, ShapeSource, ValueRange};

fn main() -> Result<(), ShapeError> {
    let training: ShapeSource = "llama".parse()?;
    let models = SettingValue::Names(vec!["llama3_8b".to_owned(), "qwen3_32b".to_owned()]);
    let decoding = ShapeSource::new("decode", [("models", models), ("m", SettingValue::Sizes(vec![1, 16]))])?;

    for source in [training, decoding] {
        for named in source.shapes()? {
            println!("{:32} {:24} {:10.3} GFLOP", named.name, named.shape, named.shape.flops() as f64 / 1e9);
        }
    }

    let sequences = ValueRange::new(512, 4096, RangeStep::Multiply(2))?;
    let grid = Grid::product([Axis::new("batch", [1, 8]), Axis::new("sequence", sequences)])?;
    println!("\n{} points", grid.count());
    for point in grid.iter() {
        println!("{point}");
    }
    Ok(())
}
