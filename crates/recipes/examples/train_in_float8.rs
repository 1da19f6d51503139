//! Trains a small model with and without float8 and prints the losses in columns.
//!
//! `cargo run --release -p calorimeter-recipes --example train_in_float8 [-- baseline rowwise mxfp8 curves.svg]`

use burn::module::Module;
use burn::nn::{Gelu, LayerNorm, LayerNormConfig, LinearConfig};
use burn::optim::{AdamConfig, GradientsParams, Optimizer};
use burn::tensor::activation::log_softmax;
use burn::tensor::backend::{AutodiffBackend, Backend};
use burn::tensor::{Distribution, Int, Tensor};
use burn_autodiff::Autodiff;
use burn_flex::Flex;
use calorimeter_recipes::{QuantLinear, Recipe, RecipeError, TrainingRecipe, convert_to_float8_training};

type B = Autodiff<Flex>;

const FEATURES: usize = 64;
const CLASSES: usize = 10;
const STEPS: usize = 300;

#[derive(Module, Debug)]
struct Mlp<B: Backend> {
    up: QuantLinear<B>,
    norm: LayerNorm<B>,
    down: QuantLinear<B>,
    head: QuantLinear<B>,
}

impl<B: Backend> Mlp<B> {
    fn new(device: &B::Device) -> Self {
        let linear = |k, n| LinearConfig::new(k, n).init(device).into();
        Self {
            up: linear(FEATURES, 256),
            norm: LayerNormConfig::new(256).init(device),
            down: linear(256, FEATURES),
            head: linear(FEATURES, CLASSES),
        }
    }

    fn forward(&self, input: Tensor<B, 2>) -> Tensor<B, 2> {
        let hidden = self.norm.forward(Gelu::new().forward(self.up.forward(input.clone())));
        self.head.forward(input + self.down.forward(hidden))
    }
}

/// Batch of points from ten overlapping clusters.
fn batch<B: AutodiffBackend>(centers: &Tensor<B, 2>) -> (Tensor<B, 2>, Tensor<B, 2>) {
    let device = centers.device();
    let classes = Tensor::<B, 1>::random([128], Distribution::Uniform(0.0, CLASSES as f64), &device).int();
    let noise = Tensor::random([128, FEATURES], Distribution::Normal(0.0, 2.5), &device);
    let labels: Tensor<B, 2, Int> = classes.clone().one_hot(CLASSES);
    (centers.clone().select(0, classes) + noise, labels.float())
}

/// Trains a model and returns the loss of each step.
fn losses(recipe: Option<TrainingRecipe>) -> Result<Vec<f32>, RecipeError> {
    let device = Default::default();
    // All models start with identical parameters and see identical points.
    B::seed(&device, 1);
    let centers = Tensor::<B, 2>::random([CLASSES, FEATURES], Distribution::Normal(0.0, 1.0), &device);
    let mut model = Mlp::<B>::new(&device);
    // burn initializes weights on first use.
    model.forward(centers.clone());
    if let Some(recipe) = recipe {
        let (converted, report) = convert_to_float8_training(model, recipe, |path, _| path != "head")?;
        println!("{report}\n");
        model = converted;
    }
    let mut optimizer = AdamConfig::new().init();
    let mut losses = Vec::new();
    for _ in 0..STEPS {
        let (points, labels) = batch(&centers);
        let loss = (log_softmax(model.forward(points), 1) * labels).sum_dim(1).mean().neg();
        let grads = GradientsParams::from_grads(loss.backward(), &model);
        model = optimizer.step(1e-3, model, grads);
        losses.push(loss.into_scalar());
    }
    Ok(losses)
}

/// Means over groups of `steps` steps.
fn means(losses: &[f32], steps: usize) -> Vec<f32> {
    losses.chunks(steps).map(|part| part.iter().sum::<f32>() / part.len() as f32).collect()
}

/// SVG plot of the losses, averaged over five steps, on a logarithmic scale from 0.2 to 4. Later curves are thinner, so
/// that none is hidden.
fn curves(columns: &[(String, Vec<f32>)]) -> String {
    let x = |step: usize| 50.0 + 600.0 * step as f32 / STEPS as f32;
    let y = |loss: f32| 310.0 - 290.0 * (loss / 0.2).log2() / 20f32.log2();
    let mut svg = String::from(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 680 350\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"680\" height=\"350\" fill=\"white\"/>\n",
    );
    for loss in [0.25, 0.5, 1.0, 2.0] {
        let (at, text) = (y(loss), y(loss) + 4.0);
        svg += &format!("<path d=\"M50 {at:.1}H650\" stroke=\"#ddd\"/><text x=\"15\" y=\"{text:.1}\">{loss}</text>\n");
    }
    for step in (0..=STEPS).step_by(100) {
        svg += &format!("<text x=\"{:.0}\" y=\"330\" text-anchor=\"middle\">{step}</text>\n", x(step));
    }
    svg += "<text x=\"350\" y=\"346\" text-anchor=\"middle\">step</text><text x=\"15\" y=\"14\">loss</text>\n";
    for (at, (name, losses)) in columns.iter().enumerate() {
        let color = ["#bbbbbb", "#d55e00", "#0072b2", "#009e73", "#cc79a7"][at % 5];
        let points = means(losses, 5).into_iter().enumerate().map(|(part, loss)| (x(5 * part + 3), y(loss)));
        let points: Vec<String> = points.map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let width = 8.0 / (1 << at.min(3)) as f32;
        svg += &format!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"{width}\"/>\n\
             <text x=\"520\" y=\"{}\" fill=\"{color}\">{name}</text>\n",
            points.join(" "),
            40 + 18 * at
        );
    }
    svg + "</svg>\n"
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (files, mut names): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|word| word.ends_with(".svg"));
    if names.is_empty() {
        names = ["baseline", "tensorwise", "rowwise"].map(str::to_owned).into();
    }
    let mut columns = Vec::new();
    for name in names {
        let recipe: Recipe = name.parse()?;
        columns.push((name, losses(recipe.training()?)?));
    }
    for file in files {
        std::fs::write(file, curves(&columns))?;
    }
    let heads: Vec<String> = columns.iter().map(|(name, _)| format!("{name:>18}")).collect();
    println!("  to step{}", heads.concat());
    let columns: Vec<Vec<f32>> = columns.iter().map(|(_, losses)| means(losses, 30)).collect();
    for row in 0..columns[0].len() {
        let cells: Vec<String> = columns.iter().map(|losses| format!("{:18.4}", losses[row])).collect();
        println!("{:9}{}", (row + 1) * 30, cells.concat());
    }
    Ok(())
}
