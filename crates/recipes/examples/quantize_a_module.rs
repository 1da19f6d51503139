//! Quantizes the linear layers of a burn module in place and compares the outputs before and after.
//!
//! `cargo run -p calorimeter-recipes --example quantize_a_module [-- int8wo float8dq]`

use burn::module::Module;
use burn::nn::{Gelu, LayerNorm, LayerNormConfig, Linear, LinearConfig};
use burn::tensor::{Distribution, Tensor, backend::Backend};
use burn_flex::Flex;
use calorimeter_recipes::{QuantLinear, Recipe, RecipeError, quantize, sqnr};

#[derive(Module, Debug)]
struct Block<B: Backend> {
    norm: LayerNorm<B>,
    up: QuantLinear<B>,
    down: QuantLinear<B>,
}

#[derive(Module, Debug)]
struct Mlp<B: Backend> {
    blocks: Vec<Block<B>>,
    // A layer of burn's own type cannot be replaced; the report lists it.
    head: Linear<B>,
}

impl<B: Backend> Mlp<B> {
    fn new(device: &B::Device) -> Self {
        let block = |_| Block {
            norm: LayerNormConfig::new(256).init(device),
            up: LinearConfig::new(256, 1024).init(device).into(),
            down: LinearConfig::new(1024, 256).init(device).into(),
        };
        Self { blocks: (0..2).map(block).collect(), head: LinearConfig::new(256, 10).init(device) }
    }

    fn forward(&self, input: Tensor<B, 3>) -> Tensor<B, 3> {
        let residual = self.blocks.iter().fold(input, |input, block| {
            let hidden = Gelu::new().forward(block.up.forward(block.norm.forward(input.clone())));
            input + block.down.forward(hidden)
        });
        self.head.forward(residual)
    }
}

fn main() -> Result<(), RecipeError> {
    let device = Default::default();
    Flex::seed(&device, 1);
    let mlp = Mlp::<Flex>::new(&device);
    let input = Tensor::random([4, 16, 256], Distribution::Normal(0.0, 1.0), &device);
    // Also initializes the weights: burn does so on first use, separately in every clone.
    let exact = mlp.forward(input.clone());

    let mut names: Vec<String> = std::env::args().skip(1).collect();
    if names.is_empty() {
        names = ["int8wo", "int8dq", "int4wo-128-hqq"].map(str::to_owned).into();
    }
    for name in names {
        let recipe: Recipe = name.parse()?;
        let (quantized, report) = quantize(mlp.clone(), &recipe, |path, [n, _]| n > 16 && path != "blocks.1.down")?;
        println!("{report}\n{:.1} dB\n", sqnr(&values(exact.clone()), &values(quantized.forward(input.clone()))));
    }
    Ok(())
}

fn values(tensor: Tensor<Flex, 3>) -> Vec<f32> {
    tensor.into_data().iter().collect()
}
