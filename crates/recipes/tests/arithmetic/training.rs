//! Float8 training of layers: outputs, gradients, and convergence of a model.

use burn::module::{AutodiffModule, Module, Param};
use burn::nn;
use burn::nn::{LayerNorm, LayerNormConfig, Relu};
use burn::optim::{AdamConfig, GradientsParams, Optimizer};
use burn::record::{FullPrecisionSettings, NamedMpkBytesRecorder, Recorder};
use burn::tensor::backend::{AutodiffBackend, Backend};
use burn::tensor::{DType, Tensor, TensorData};
use burn_autodiff::Autodiff;
use burn_flex::Flex;
use calorimeter_recipes::module::LayerOutcome;
use calorimeter_recipes::quantize::quantize as on_the_host;
use calorimeter_recipes::training::{Float8Backend, OperandFormats, TrainingOperand};
use calorimeter_recipes::{
    Dtype, Float8Training, FloatType, QuantLinear, Recipe, RecipeError, TrainingRecipe, convert_to_float8_training,
    quantize,
};

/// Values determined by their position, with row and column factors over three octaves, so that a scale of the wrong
/// row or column is detected.
fn test_values(rows: usize, cols: usize, seed: u64, dtype: Dtype) -> Vec<f32> {
    let number = |at: usize| {
        let mixed = (at as u64 + 1 + (seed << 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let gains = f32::powi(2.0, (at / cols % 4) as i32) * f32::powi(2.0, -((at % cols % 4) as i32));
        dtype.round(((mixed >> 40) as f32 / (1u32 << 23) as f32 - 1.0) * gains)
    };
    (0..rows * cols).map(number).collect()
}

fn tensor<B: Backend>(values: &[f32], [rows, cols]: [usize; 2], device: &B::Device, dtype: Dtype) -> Tensor<B, 2> {
    Tensor::from_data(TensorData::new(values.to_vec(), [rows, cols]), (device, dtype.burn()))
}

fn values<B: Backend, const D: usize>(tensor: Tensor<B, D>) -> Vec<f32> {
    tensor.into_data().convert::<f32>().into_vec().unwrap()
}

fn transposed(values: &[f32], cols: usize) -> Vec<f32> {
    let rows = values.len() / cols;
    (0..values.len()).map(|at| values[at % rows * cols + at / rows]).collect()
}

/// Returns `left · rightᵀ` of the dequantized operands in f64; `sum` is the length of the reduction dimension.
fn reference_matmul(left: &[f32], right: &[f32], sum: usize, operands: Option<OperandFormats>) -> Vec<f64> {
    let dequantize = |values: &[f32], format: Option<_>| match format {
        Some(format) => on_the_host(values, sum, format).dequantize(),
        None => values.to_vec(),
    };
    let (left, right) = match operands {
        Some(operands) => (dequantize(left, operands.left), dequantize(right, operands.right)),
        None => (left.to_vec(), right.to_vec()),
    };
    let dot = |row: &[f32], other: &[f32]| row.iter().zip(other).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
    left.chunks(sum).flat_map(|row| right.chunks(sum).map(move |other| dot(row, other))).collect()
}

fn relative_l2(found: &[f32], exact: &[f64]) -> f64 {
    let power = |values: &mut dyn Iterator<Item = f64>| values.map(|value| value * value).sum::<f64>();
    let error = power(&mut found.iter().zip(exact).map(|(found, exact)| f64::from(*found) - exact));
    (error / power(&mut exact.iter().copied())).sqrt()
}

fn trainings() -> Vec<Float8Training> {
    let named = TrainingRecipe::ALL.map(TrainingRecipe::training);
    let without = |operand| TrainingRecipe::ALL.map(|recipe| recipe.training().with_unquantized(operand));
    named.into_iter().chain(TrainingOperand::ALL.into_iter().flat_map(without)).collect()
}

/// Runs a layer forward and backward: output, and gradients of input, weight and bias.
fn forward_backward<B: QuantAutodiff>(
    [x, w, g]: [&[f32]; 3],
    [m, k, n]: [usize; 3],
    training: Float8Training,
    device: &B::Device,
    dtype: Dtype,
) -> [Vec<f32>; 4] {
    let input = tensor::<B>(x, [m, k], device, dtype).require_grad();
    let weight = tensor::<B>(w, [k, n], device, dtype);
    let bias = Tensor::<B, 1>::zeros([n], (device, dtype.burn()));
    let plain = nn::Linear { weight: Param::from_tensor(weight), bias: Some(Param::from_tensor(bias)) };
    let (layer, _) = convert_to_float8_training(QuantLinear::from(plain), training, |_, _| true).unwrap();
    let output = layer.forward(input.clone());
    let grads = (output.clone() * tensor::<B>(g, [m, n], device, dtype)).sum().backward();
    let linear = layer.float().unwrap();
    let weight = linear.weight.val().grad(&grads).unwrap();
    let bias = linear.bias.as_ref().unwrap().val().grad(&grads).unwrap();
    [values(output), values(input.grad(&grads).unwrap()), values(weight), values(bias)]
}

/// Autodiff backend with float8 matmuls in both passes.
trait QuantAutodiff: AutodiffBackend<FloatElem: Into<f64>> + Float8Backend {}
impl<B: AutodiffBackend<FloatElem: Into<f64>> + Float8Backend> QuantAutodiff for B {}

/// Square sizes, where a missing transposition has a valid shape, and ragged sizes.
const SIZES: [[usize; 3]; 4] = [[32, 32, 32], [5, 33, 70], [1, 64, 3], [130, 17, 40]];

/// Relative tolerance of f32 matmuls.
const F32_TOLERANCE: f64 = 2e-6;
/// Relative tolerance of f32 matmuls on tensor cores, which round operands to TF32.
#[cfg(feature = "full")]
const TF32_TOLERANCE: f64 = 5e-4;

/// Output and gradients equal matmuls of the quantized operands, each quantized along the reduction dimension.
fn check_gemms<B: QuantAutodiff>(sizes: &[[usize; 3]], device: &B::Device, dtypes: &[Dtype], f32_error: f64) {
    check_each::<B>(sizes, device, dtypes, f32_error, &trainings());
}

fn check_each<B: QuantAutodiff>(
    sizes: &[[usize; 3]],
    device: &B::Device,
    dtypes: &[Dtype],
    f32_error: f64,
    trainings: &[Float8Training],
) {
    for &sizes @ [m, k, n] in sizes {
        for &dtype in dtypes {
            let (x, w, g) = (test_values(m, k, 1, dtype), test_values(k, n, 2, dtype), test_values(m, n, 3, dtype));
            for &training in trainings {
                let found = forward_backward::<B>([&x, &w, &g], sizes, training, device, dtype);
                let (w_t, x_t, g_t) = (transposed(&w, n), transposed(&x, k), transposed(&g, n));
                let exact = [
                    reference_matmul(&x, &w_t, k, training.output),
                    reference_matmul(&g, &w, n, training.grad_input),
                    reference_matmul(
                        &x_t,
                        &g_t,
                        m,
                        training
                            .grad_weight
                            .map(|OperandFormats { left, right }| OperandFormats { left: right, right: left }),
                    ),
                    g_t.chunks(m).map(|column| column.iter().map(|x| f64::from(*x)).sum()).collect(),
                ];
                let tolerance = if dtype == Dtype::F32 { f32_error } else { 1.5 * dtype.unit_roundoff() };
                for ((found, exact), what) in found.iter().zip(&exact).zip(["output", "grad x", "grad w", "grad bias"])
                {
                    let error = relative_l2(found, exact);
                    let all = (found.len(), exact.len());
                    assert!(all.0 == all.1 && error <= tolerance, "{what} {sizes:?} {dtype} {training:?}: {error:e}");
                }
            }
        }
    }
}

/// Gradients in the dtype of the model equal finite differences of the loss; float8 gradients are close to them.
fn check_gradients<B: QuantAutodiff>(device: &B::Device, f32_error: f64) {
    let [m, k, n] = [6, 48, 10];
    let (x, w, g) =
        (test_values(m, k, 4, Dtype::F32), test_values(k, n, 5, Dtype::F32), test_values(m, n, 6, Dtype::F32));
    let loss = |x: &[f64], w: &[f64]| {
        let at = |row: usize, col: usize| (0..k).map(|i| x[row * k + i] * w[i * n + col]).sum::<f64>();
        (0..m * n).map(|place| (at(place / n, place % n)).tanh() * f64::from(g[place])).sum::<f64>()
    };
    let wide = |values: &[f32]| values.iter().map(|value| f64::from(*value)).collect::<Vec<_>>();
    let (wide_x, wide_w) = (wide(&x), wide(&w));
    let slope = |of: &dyn Fn(f64) -> f64| (of(1e-5) - of(-1e-5)) / 2e-5;
    let perturbed = |values: &[f64], at: usize, by: f64| {
        let mut values = values.to_vec();
        values[at] += by;
        values
    };
    let by_input: Vec<f64> = (0..m * k).map(|at| slope(&|by| loss(&perturbed(&wide_x, at, by), &wide_w))).collect();
    let by_weight: Vec<f64> = (0..k * n).map(|at| slope(&|by| loss(&wide_x, &perturbed(&wide_w, at, by)))).collect();
    let none = TrainingOperand::ALL.into_iter().fold(Float8Training::rowwise(), Float8Training::with_unquantized);
    let all = TrainingRecipe::ALL.map(|recipe| (recipe.training(), 1e-3..0.2));
    for (training, within) in [(none, 0.0..5.0 * f32_error)].into_iter().chain(all) {
        let input = tensor::<B>(&x, [m, k], device, Dtype::F32).require_grad();
        let weight = Param::from_tensor(tensor::<B>(&w, [k, n], device, Dtype::F32));
        let layer = QuantLinear::from(nn::Linear { weight, bias: None });
        let (layer, _) = convert_to_float8_training(layer, training, |_, _| true).unwrap();
        let loss = layer.forward(input.clone()).tanh() * tensor(&g, [m, n], device, Dtype::F32);
        let grads = loss.sum().backward();
        let weight = layer.float().unwrap().weight.val().grad(&grads).unwrap();
        let errors =
            [relative_l2(&values(input.grad(&grads).unwrap()), &by_input), relative_l2(&values(weight), &by_weight)];
        assert!(errors.iter().all(|error| within.contains(error)), "{training}: {errors:?}");
    }
}

#[derive(Module, Debug)]
struct Mlp<B: Backend> {
    up: QuantLinear<B>,
    norm: LayerNorm<B>,
    hidden: QuantLinear<B>,
    head: QuantLinear<B>,
}

const CLASSES: usize = 5;
const FEATURES: usize = 24;
const HIDDEN: usize = 48;
const BATCH: usize = 32;

impl<B: Backend> Mlp<B> {
    /// Identical parameters on every device.
    fn new(device: &B::Device) -> Self {
        let linear = |k: usize, n: usize, seed| {
            let bound = 1.0 / (k as f32).sqrt();
            let weights: Vec<f32> = test_values(1, k * n, seed, Dtype::F32)
                .iter()
                .enumerate()
                .map(|(at, x)| x * bound * f32::powi(2.0, (at % 4) as i32))
                .collect();
            let weight = Param::from_tensor(tensor(&weights, [k, n], device, Dtype::F32));
            let bias = Param::from_tensor(Tensor::zeros([n], (device, DType::F32)));
            QuantLinear::from(nn::Linear { weight, bias: Some(bias) })
        };
        Self {
            up: linear(FEATURES, HIDDEN, 11),
            norm: LayerNormConfig::new(HIDDEN).init(device),
            hidden: linear(HIDDEN, HIDDEN, 12),
            head: linear(HIDDEN, CLASSES, 13),
        }
    }

    fn forward(&self, input: Tensor<B, 2>) -> Tensor<B, 2> {
        let hidden = Relu::new().forward(self.norm.forward(self.up.forward(input)));
        self.head.forward(Relu::new().forward(self.hidden.forward(hidden)))
    }
}

/// Batch of points, classified by a hidden linear layer; one label in five is random, so that the loss cannot reach
/// zero.
fn batch<B: Backend>(step: usize, device: &B::Device) -> (Tensor<B, 2>, Tensor<B, 2>) {
    let flat = |count: usize, seed: u64| {
        let number = |at: usize| {
            let mixed = (at as u64 + 1 + (seed << 20)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            (mixed >> 40) as f32 / (1u32 << 23) as f32 - 1.0
        };
        (0..count).map(number).collect::<Vec<f32>>()
    };
    let points = flat(BATCH * FEATURES, 100 + step as u64);
    let hidden_weight = flat(FEATURES * CLASSES, 7);
    let noise = flat(BATCH * 2, 1_000_000 + step as u64);
    let class = |row: usize| {
        let score = |class: usize| {
            points[row * FEATURES..][..FEATURES]
                .iter()
                .zip(&hidden_weight[class * FEATURES..])
                .map(|(x, w)| x * w)
                .sum::<f32>()
        };
        let best = (0..CLASSES).max_by(|&a, &b| score(a).total_cmp(&score(b))).unwrap();
        let any = ((noise[row * 2 + 1] + 1.0) / 2.0 * CLASSES as f32) as usize % CLASSES;
        if noise[row * 2] < -0.6 { any } else { best }
    };
    let labels: Vec<f32> = (0..BATCH)
        .flat_map(|row| {
            let right = class(row);
            (0..CLASSES).map(move |class| f32::from(u8::from(class == right)))
        })
        .collect();
    (tensor(&points, [BATCH, FEATURES], device, Dtype::F32), tensor(&labels, [BATCH, CLASSES], device, Dtype::F32))
}

/// Mean loss over the last fifth of `steps` training steps.
fn final_loss<B: QuantAutodiff>(steps: usize, training: Option<Float8Training>, device: &B::Device) -> f64 {
    let mut model = Mlp::<B>::new(device);
    if let Some(training) = training {
        model = convert_to_float8_training(model, training, |_, _| true).unwrap().0;
    }
    let mut optimizer = AdamConfig::new().init();
    let (mut total, mut counted) = (0.0, 0);
    for step in 0..steps {
        let (points, labels) = batch::<B>(step, device);
        let probabilities = burn::tensor::activation::log_softmax(model.forward(points), 1);
        let loss = (probabilities * labels).sum().neg() / BATCH as f32;
        let grads = GradientsParams::from_grads(loss.backward(), &model);
        model = optimizer.step(2e-3, model, grads);
        if step >= steps - steps / 5 {
            total += loss.into_scalar().into();
            counted += 1;
        }
    }
    assert_eq!(model.hidden.float8(), training, "optimizer steps keep the conversion");
    total / f64::from(counted)
}

fn check_learning<B: QuantAutodiff>(steps: usize, recipes: &[TrainingRecipe], most: f64, device: &B::Device) {
    let plain = final_loss::<B>(steps, None, device);
    let guessed = (CLASSES as f64).ln();
    assert!(plain < 0.95 * guessed && plain > 0.2, "{plain}, random guessing {guessed}");
    for recipe in recipes {
        let loss = final_loss::<B>(steps, Some(recipe.training()), device);
        println!("{recipe}: {loss:.4}, unquantized {plain:.4}");
        assert!((loss / plain - 1.0).abs() < most, "{recipe}: {loss}, unquantized {plain}");
    }
}

#[test]
fn gemms_match_quantized_reference() {
    check_gemms::<Autodiff<Flex>>(&SIZES, &Default::default(), &Dtype::ALL, F32_TOLERANCE);
}

#[test]
fn gradients_match_finite_differences() {
    check_gradients::<Autodiff<Flex>>(&Default::default(), F32_TOLERANCE);
}

#[test]
fn float8_training_matches_baseline_loss() {
    check_learning::<Autodiff<Flex>>(500, &TrainingRecipe::ALL, 0.02, &Default::default());
}

#[test]
fn recipes_map_to_training_recipes() {
    let training = |name: &str| name.parse::<Recipe>().unwrap().training();
    assert_eq!(training("baseline"), Ok(None));
    for recipe in TrainingRecipe::ALL {
        assert_eq!(training(&recipe.to_string()), Ok(Some(recipe)));
    }
    assert_eq!(training("float8dq"), Ok(Some(TrainingRecipe::TENSORWISE)));
    assert_eq!(training("float8dq-row"), Ok(Some(TrainingRecipe::ROWWISE)));
    let error = training("int8wo").unwrap_err();
    assert!(matches!(&error, RecipeError::Unsupported(why) if why.starts_with("int8wo: ")), "{error:?}");
    let config = "rowwise".parse::<Recipe>().unwrap().quant_config(Dtype::F32, None);
    assert!(matches!(config, Err(RecipeError::Unsupported(_))), "{config:?}");
}

#[test]
fn infinite_gradients_propagate() {
    for recipe in TrainingRecipe::ALL {
        let (x, w, mut g) =
            (test_values(4, 64, 1, Dtype::F32), test_values(64, 8, 2, Dtype::F32), test_values(4, 8, 3, Dtype::F32));
        g[9] = f32::INFINITY;
        let device = Default::default();
        let [_, input, weight, _] =
            forward_backward::<Autodiff<Flex>>([&x, &w, &g], [4, 64, 8], recipe.training(), &device, Dtype::F32);
        assert!(input.iter().any(|x| !x.is_finite()) && weight.iter().any(|x| !x.is_finite()), "{recipe}");
    }
}

#[test]
fn converted_model_is_a_burn_module() {
    type B = Autodiff<Flex>;
    let device = Default::default();
    let (model, report) =
        convert_to_float8_training(Mlp::<B>::new(&device), TrainingRecipe::ROWWISE, |path, _| path != "head").unwrap();
    let outcomes: Vec<_> = report.layers.iter().map(|layer| (layer.path.as_str(), layer.outcome)).collect();
    assert_eq!(
        outcomes,
        [
            ("up", LayerOutcome::ConvertedToFloat8),
            ("hidden", LayerOutcome::ConvertedToFloat8),
            ("head", LayerOutcome::Excluded)
        ]
    );
    assert_eq!((report.recipe.as_str(), report.bytes_before()), ("rowwise", report.bytes_after()));
    assert_eq!(model.up.float8(), Some(Float8Training::rowwise()));
    assert_eq!(
        model.up.to_string(),
        "QuantLinear {d_input: 24, d_output: 48, bias: true, float8: rowwise, params: 1200}"
    );

    let recorder = NamedMpkBytesRecorder::<FullPrecisionSettings>::new();
    let saved = Recorder::<B>::record(&recorder, model.clone().into_record(), ()).unwrap();
    let plain = Recorder::<B>::record(&recorder, Mlp::<B>::new(&device).into_record(), ()).unwrap();
    assert_eq!(saved.len(), plain.len());
    let loaded = model.clone().load_record(recorder.load(saved, &device).unwrap());
    assert_eq!(loaded.up.float8(), model.up.float8(), "loading keeps the conversion");
    let moved = model.clone().to_device(&device).fork(&device);
    assert_eq!(moved.up.float8(), model.up.float8());

    let points = batch::<Flex>(0, &device).0;
    let evaluated = model.valid();
    assert_eq!(evaluated.up.float8(), None);
    assert_eq!(values(evaluated.forward(points.clone())), values(Mlp::<Flex>::new(&device).forward(points)));
    let int8: Recipe = "int8wo".parse().unwrap();
    let (quantized, _) = quantize(evaluated, &int8, |_, _| true).unwrap();
    let error = convert_to_float8_training(quantized, TrainingRecipe::MXFP8, |_, _| true).unwrap_err();
    let cause = Box::new(RecipeError::AlreadyQuantized { recipe: int8.name() });
    assert_eq!(error, RecipeError::Layer { path: "up".into(), cause });
    let (again, _) = convert_to_float8_training(model, TrainingRecipe::MXFP8, |path, _| path == "up").unwrap();
    let now = [again.up.float8(), again.hidden.float8()];
    assert_eq!(now, [Some(Float8Training::mxfp8()), Some(Float8Training::rowwise())]);
}

#[cfg(feature = "full")]
mod gpu {
    use super::*;
    use burn_cubecl::CubeBackend;
    use burn_fusion::Fusion;
    use burn_wgpu::{WgpuDevice, WgpuRuntime};
    use calorimeter_recipes::training::CastStrategy;

    type Vulkan = CubeBackend<WgpuRuntime, f32, i32, u8>;
    type Cuda = CubeBackend<cubecl::cuda::CudaRuntime, f32, i32, u8>;

    #[test]
    #[ignore = "needs Vulkan"]
    fn vulkan_training_matches_reference() {
        // Every size compiles kernels.
        check_gemms::<Autodiff<Vulkan>>(&SIZES[1..2], &WgpuDevice::Cpu, &[Dtype::F32], F32_TOLERANCE);
        check_gradients::<Autodiff<Fusion<Vulkan>>>(&WgpuDevice::Cpu, F32_TOLERANCE);
        let long = std::env::var("CALORIMETER_TORTURE").is_ok_and(|form| form == "long");
        let steps = if long { 500 } else { 50 };
        check_learning::<Autodiff<Vulkan>>(steps, &[TrainingRecipe::ROWWISE], 0.02, &WgpuDevice::Cpu);
    }

    #[test]
    #[ignore = "needs Vulkan"]
    fn fused_casts_match_reference_on_vulkan() {
        let trainings: Vec<_> =
            trainings().into_iter().map(|training| training.with_cast_strategy(CastStrategy::Fused)).collect();
        // Every size compiles kernels.
        check_each::<Autodiff<Vulkan>>(&SIZES[3..], &WgpuDevice::Cpu, &[Dtype::F32], F32_TOLERANCE, &trainings);
    }

    #[test]
    #[ignore = "needs CUDA"]
    fn cuda_training_matches_reference() {
        let device = burn_cuda::CudaDevice::new(0);
        check_gemms::<Autodiff<Cuda>>(&SIZES, &device, &Dtype::ALL, TF32_TOLERANCE);
        let fused = trainings().into_iter().map(|training| training.with_cast_strategy(CastStrategy::Fused));
        check_each::<Autodiff<Cuda>>(&SIZES, &device, &Dtype::ALL, TF32_TOLERANCE, &fused.collect::<Vec<_>>());
        check_gradients::<Autodiff<Fusion<Cuda>>>(&device, TF32_TOLERANCE);
        check_learning::<Autodiff<Cuda>>(500, &TrainingRecipe::ALL, 0.02, &device);
    }
}
