//! A recipe that another crate brings: a file with the recipe, and one call that registers it.
//!
//! `cargo run -p calorimeter-recipes --example own_recipe`

use calorimeter_recipes::{Dtype, Recipe, RecipeError, Weight, sqnr};

// ANCHOR: recipe
mod int8wo_tensor {
    //! `int8wo-tensor`: 8-bit weights with one scale for the whole weight.

    use calorimeter_recipes::format::{EPSILON, Format, Grouping, Method};
    use calorimeter_recipes::{Dtype, Family, Products, RecipeError, Scheme, Sparsity, Treatment};
    use std::fmt;

    /// Its names.
    pub static FAMILY: Family = Family {
        spellings: &["int8wo-tensor"],
        about: "8-bit weights, one scale for the whole weight",
        typical: &["int8wo-tensor"],
        parse: |name| Some(Box::new(Int8Tensor::parse(name)?)),
    };

    /// Int8 weight-only quantisation with one scale.
    #[derive(Debug)]
    pub struct Int8Tensor;

    impl Int8Tensor {
        fn parse(name: &str) -> Option<Self> {
            (name == "int8wo-tensor").then_some(Self)
        }
    }

    impl fmt::Display for Int8Tensor {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.pad("int8wo-tensor")
        }
    }

    impl Scheme for Int8Tensor {
        fn treatment(&self, dtype: Dtype, _: Option<Sparsity>) -> Result<Treatment, RecipeError> {
            let method = Method::Symmetric { least: -127, most: 127, epsilon: EPSILON };
            let weight = Format::symmetric(8, Grouping::Tensor, dtype, dtype).with_method(method);
            let products = Products::Codes(dtype);
            Ok(Treatment { products, ..Treatment::weight_only(dtype, weight) })
        }
    }
}
// ANCHOR_END: recipe

fn main() -> Result<(), RecipeError> {
    // ANCHOR: register
    Recipe::register(&int8wo_tensor::FAMILY)?;
    // ANCHOR_END: register

    let numbers = (0..64 * 256).map(|i| (i as f32 * 0.37).sin() * (1 + i / 256) as f32).collect();
    let weight = Weight::new(64, 256, numbers, Dtype::F32);
    for name in ["int8wo", "int8wo-tensor"] {
        let quantised = name.parse::<Recipe>()?.treatment(weight.dtype(), None)?.effective_weight(&weight)?;
        println!("{name:14} {:.1} dB", sqnr(weight.values(), quantised.values()));
    }
    Ok(())
}
