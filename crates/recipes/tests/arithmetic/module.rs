//! Quantization of a user-defined burn module in place.

use burn::module::{Module, ModuleMapper, Param};
use burn::nn;
use burn::nn::{Gelu, LayerNorm, LayerNormConfig};
use burn::record::{BinBytesRecorder, FullPrecisionSettings, NamedMpkBytesRecorder, Recorder};
use burn::tensor::backend::Backend;
use burn::tensor::{DType, Tensor};
use burn::tensor::{Distribution, TensorData};
use burn_flex::Flex;
use calorimeter_recipes::format::{Format, Grouping};
use calorimeter_recipes::module::LayerOutcome;
use calorimeter_recipes::{
    Dtype, FloatType, MatmulMode, QuantConfig, QuantLinear, Recipe, RecipeError, RecipeVariant, Sparsity, Weight,
    quantize,
};

const WIDTH: usize = 128;
const HIDDEN: usize = 192;

/// Block with layers of type `L`, so that records of both layer types can be compared.
#[derive(Module, Debug)]
struct Block<B: Backend, L> {
    norm: LayerNorm<B>,
    up: L,
    down: Option<L>,
}

#[derive(Module, Debug)]
struct Mlp<B: Backend, L> {
    blocks: Vec<Block<B, L>>,
    head: nn::Linear<B>,
}

type Plain = Mlp<Flex, nn::Linear<Flex>>;
type Model = Mlp<Flex, QuantLinear<Flex>>;

fn plain_model() -> Plain {
    let device = Default::default();
    let linear = |k, n| nn::LinearConfig::new(k, n).init(&device);
    let block = |_| Block {
        norm: LayerNormConfig::new(WIDTH).init(&device),
        up: linear(WIDTH, HIDDEN),
        down: Some(nn::LinearConfig::new(HIDDEN, WIDTH).with_bias(false).init(&device)),
    };
    let mlp = Mlp { blocks: (0..2).map(block).collect(), head: linear(WIDTH, 10) };
    // burn initializes parameters on first access, separately in every clone.
    mlp.map(&mut CastTo(Dtype::F32))
}

fn replaceable(Mlp { blocks, head }: Plain) -> Model {
    let block = |Block { norm, up, down }: Block<Flex, nn::Linear<Flex>>| Block {
        norm,
        up: up.into(),
        down: down.map(Into::into),
    };
    Mlp { blocks: blocks.into_iter().map(block).collect(), head }
}

fn model() -> Model {
    replaceable(plain_model())
}

impl Model {
    fn forward(&self, input: Tensor<Flex, 3>) -> Tensor<Flex, 3> {
        let forward = |input: Tensor<Flex, 3>, block: &Block<Flex, QuantLinear<Flex>>| {
            let hidden = Gelu::new().forward(block.up.forward(block.norm.forward(input.clone())));
            input + block.down.as_ref().expect("every block has one").forward(hidden)
        };
        self.head.forward(self.blocks.iter().fold(input, forward))
    }
}

fn random<const D: usize>(shape: [usize; D]) -> Tensor<Flex, D> {
    Tensor::random(shape, Distribution::Normal(0.0, 1.0), &Default::default())
}

fn values<const D: usize>(tensor: Tensor<Flex, D>) -> Vec<f32> {
    tensor.into_data().convert::<f32>().into_vec().unwrap()
}

fn recipe(name: &str) -> Recipe {
    name.parse().unwrap()
}

/// Example recipes that quantize weights without a sparsity.
fn recipes(dtype: Dtype) -> Vec<Recipe> {
    let quantizes = |recipe: &Recipe| recipe.quant_config(dtype, None).is_ok_and(|config| config.weight.is_some());
    Recipe::examples().into_iter().filter(quantizes).collect()
}

/// Expected output of a layer, and the sum of the magnitudes of the terms of each output.
fn reference(recipe: Recipe, linear: &nn::Linear<Flex>, input: &[f32]) -> (Vec<f64>, Vec<f64>) {
    let [k, n] = linear.weight.dims();
    let dtype = Dtype::from_burn(linear.weight.dtype()).unwrap();
    let config = recipe.quant_config(dtype, None).unwrap();
    let weights = values(linear.weight.val());
    let weight = Weight::new(n, k, (0..n * k).map(|at| weights[at % k * n + at / k]).collect(), dtype);
    let weight = config.effective_weight(&weight).unwrap();
    let input = config.effective_input(input, k).unwrap_or_else(|| input.to_vec());
    let bias = linear.bias.as_ref().map_or_else(|| vec![0.0; n], |bias| values(bias.val()));
    let output = |row: &[f32], channel: usize| {
        let terms = row.iter().zip(weight.row(channel)).map(|(&x, &w)| f64::from(x) * f64::from(w));
        let terms: Vec<_> = terms.chain([f64::from(bias[channel])]).collect();
        (terms.iter().sum::<f64>(), terms.iter().map(|term| term.abs()).sum::<f64>())
    };
    input.chunks(k).flat_map(|row| (0..n).map(move |channel| (row, channel))).map(|(r, c)| output(r, c)).unzip()
}

fn sqnr_db(exact: &[f32], given: &[f32]) -> f32 {
    let power = |values: &mut dyn Iterator<Item = f32>| values.map(|x| x * x).sum::<f32>();
    let error = power(&mut exact.iter().zip(given).map(|(a, b)| a - b));
    10.0 * (power(&mut exact.iter().copied()) / error).log10()
}

#[test]
fn quantized_layer_matches_reference() {
    for dtype in [Dtype::F32, Dtype::Bf16, Dtype::F16] {
        for recipe in recipes(dtype) {
            for bias in [true, false] {
                let linear = nn::LinearConfig::new(WIDTH, HIDDEN).with_bias(bias).init::<Flex>(&Default::default());
                let linear = linear.map(&mut CastTo(dtype));
                let input = random([2, 3, WIDTH]).cast(dtype.burn());
                let (exact, sizes) = reference(recipe, &linear, &values(input.clone()));
                let (layer, _) = quantize(QuantLinear::from(linear), &recipe, |_, _| true).unwrap();
                let output = layer.forward(input);
                assert_eq!((output.dims(), output.dtype()), ([2, 3, HIDDEN], dtype.burn()));
                // Accumulators are f32, so with an f32 layer rounding errors add up.
                let tolerance = dtype.unit_roundoff() * if dtype == Dtype::F32 { 8.0 } else { 2.0 };
                for ((given, exact), size) in values(output).into_iter().zip(exact).zip(sizes) {
                    let error = (f64::from(given) - exact).abs();
                    assert!(error <= tolerance * size, "{recipe} {dtype} bias {bias}: {given} for {exact}");
                }
            }
        }
    }
}

struct CastTo(Dtype);

impl<B: Backend> ModuleMapper<B> for CastTo {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<B, D>>) -> Param<Tensor<B, D>> {
        param.map(|tensor| tensor.cast(self.0.burn()))
    }
}

#[test]
fn quantized_model_is_accurate() {
    let (model, input) = (model(), random([2, 3, WIDTH]));
    let exact = values(model.forward(input.clone()));
    for recipe in recipes(Dtype::F32) {
        let (quantized, _) = quantize(model.clone(), &recipe, |_, _| true).unwrap();
        assert!(
            quantized.blocks.iter().all(|block| block.up.recipe() == Some(recipe.name()) && block.up.float().is_none())
        );
        let decibels = sqnr_db(&exact, &values(quantized.forward(input.clone())));
        assert!(decibels > 12.0 && decibels.is_finite(), "{recipe}: {decibels} dB");
    }
    assert!(model.blocks.iter().all(|block| block.up.recipe().is_none()));
}

#[test]
fn layer_accepts_a_vector() {
    let linear = nn::LinearConfig::new(WIDTH, 7).init::<Flex>(&Default::default());
    let (layer, _) = quantize(QuantLinear::from(linear), &recipe("int8dq"), |_, _| true).unwrap();
    let input = random([1, WIDTH]);
    assert_eq!(values(layer.forward(input.clone().squeeze::<1>())), values(layer.forward(input)));
}

#[test]
fn report_lists_every_linear_layer() {
    let mut visited = Vec::new();
    let (model, report) = quantize(model(), &recipe("int8wo"), |path, size| {
        visited.push((path.to_owned(), size));
        path != "blocks.1.down"
    })
    .unwrap();
    let (up, down) = ([HIDDEN, WIDTH], [WIDTH, HIDDEN]);
    let sizes = [("blocks.0.up", up), ("blocks.0.down", down), ("blocks.1.up", up), ("blocks.1.down", down)];
    assert_eq!(visited, sizes.map(|(path, size)| (path.to_owned(), size)));
    let before = 4 * (WIDTH * HIDDEN) as u64;
    let after = |n| (WIDTH * HIDDEN + 4 * n) as u64;
    let layers = report.layers.iter().map(|l| (l.path.as_str(), l.outcome, l.bytes_before, l.bytes_after));
    assert_eq!(
        layers.collect::<Vec<_>>(),
        [
            ("blocks.0.up", LayerOutcome::Quantized, before, after(HIDDEN)),
            ("blocks.0.down", LayerOutcome::Quantized, before, after(WIDTH)),
            ("blocks.1.up", LayerOutcome::Quantized, before, after(HIDDEN)),
            ("blocks.1.down", LayerOutcome::Excluded, before, before),
            ("head", LayerOutcome::NotReplaceable, 5120, 5120),
        ]
    );
    assert_eq!(report.unconverted().map(|layer| layer.path.as_str()).collect::<Vec<_>>(), ["blocks.1.down", "head"]);
    assert_eq!(report.bytes_after(), before + 5120 + 2 * after(HIDDEN) + after(WIDTH));
    assert!(
        report
            .to_string()
            .contains(&format!("head          {}: [10, 128], 5120 -> 5120 bytes", LayerOutcome::NotReplaceable))
    );
    assert!(model.blocks[1].down.as_ref().unwrap().float().is_some());
    assert!(
        model.blocks[0].up.clone().map(&mut CastTo(Dtype::F32)).recipe().is_some(),
        "other mappers do not change it"
    );
}

fn layer_error(path: &str, cause: RecipeError) -> RecipeError {
    RecipeError::Layer { path: path.into(), cause: cause.into() }
}

#[test]
fn layers_are_quantized_once() {
    let (model, _) = quantize(model(), &recipe("int8wo"), |path, _| path.ends_with("up")).unwrap();
    let error = quantize(model.clone(), &recipe("int8dq"), |_, _| true).unwrap_err();
    assert_eq!(error, layer_error("blocks.0.up", RecipeError::AlreadyQuantized { recipe: recipe("int8wo").name() }));
    let (model, report) = quantize(model, &recipe("int8dq"), |path, _| path.ends_with("down")).unwrap();
    assert_eq!(report.layers[0].outcome, LayerOutcome::AlreadyQuantized(recipe("int8wo").name()));
    assert_eq!(report.layers[1].outcome, LayerOutcome::Quantized);
    assert_eq!(report.layers[0].bytes_before, report.layers[0].bytes_after);
    assert_eq!(model.blocks[1].up.recipe(), Some(recipe("int8wo").name()));
    assert_eq!(model.blocks[1].down.as_ref().unwrap().recipe(), Some(recipe("int8dq").name()));
}

#[test]
fn custom_config_needs_no_recipe() {
    let format = |bits| Format::symmetric(bits, Grouping::Block(32), Dtype::F32, Dtype::F32);
    let own = QuantConfig::dynamic(Dtype::F32, format(4), format(8), MatmulMode::Values);
    let (quantized, report) = quantize(model(), &own, |_, _| true).unwrap();
    assert_eq!(report.layers[0].bytes_after, own.weight_bytes(HIDDEN, WIDTH));
    assert_eq!(quantized.blocks[0].up.recipe().unwrap().as_str(), "custom configuration");
    let half = QuantConfig { dtype: Dtype::Bf16, ..own };
    let error = quantize(model(), &half, |_, _| true).unwrap_err();
    let cause = RecipeError::WeightDtype { found: DType::F32, supported: vec![DType::BF16] };
    assert_eq!(error, layer_error("blocks.0.up", cause));
    let pruned = RecipeVariant { recipe: Recipe::BASELINE, sparsity: Some(Sparsity::DEFAULT_BLOCK) };
    let (_, report) = quantize(model(), &pruned, |_, _| true).unwrap();
    assert!(report.to_string().ends_with("bytes") && report.bytes_after() < report.bytes_before() / 2, "{report}");
}

#[test]
fn quantizing_no_layer_is_an_error() {
    let unconverted = |error| match error {
        RecipeError::NothingConverted { layers } => layers.into_iter().map(|layer| layer.outcome).collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    let error = quantize(model().head, &recipe("int8wo"), |_, _| true).unwrap_err();
    assert_eq!(unconverted(error), [LayerOutcome::NotReplaceable]);
    let error = quantize(model(), &recipe("int8wo"), |_, _| false).unwrap_err();
    assert_eq!(unconverted(error)[..4], [LayerOutcome::Excluded; 4]);
    let norm = LayerNormConfig::new(3).init::<Flex>(&Default::default());
    assert_eq!(unconverted(quantize(norm, &recipe("int8wo"), |_, _| true).unwrap_err()), []);
    let (model, report) = quantize(model(), &Recipe::BASELINE, |_, _| true).unwrap();
    assert_eq!(report.layers[0].outcome, LayerOutcome::UnquantizedByRecipe);
    assert!(model.blocks[0].up.float().is_some());
}

#[test]
fn error_names_the_failing_layer() {
    let layer = |weight: [[f32; 2]; 2]| {
        let (weight, bias) = (Param::from_data(TensorData::from(weight), &Default::default()), None);
        vec![QuantLinear::<Flex>::from(nn::Linear { weight, bias })]
    };
    let error = quantize(layer([[1.0, 2.0], [3.0, f32::NAN]]), &recipe("int8wo"), |_, _| true).unwrap_err();
    assert_eq!(error, layer_error("0", RecipeError::NotFinite { row: 1, group: 0 }));
    let double = layer([[1.0; 2]; 2]).map(&mut CastToF64);
    let error = quantize(double, &recipe("int8wo"), |_, _| true).unwrap_err();
    let supported = vec![DType::F32, DType::F16, DType::BF16];
    assert_eq!(error, layer_error("0", RecipeError::WeightDtype { found: DType::F64, supported }));
}

struct CastToF64;

impl<B: Backend> ModuleMapper<B> for CastToF64 {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<B, D>>) -> Param<Tensor<B, D>> {
        param.map(|tensor| tensor.cast(DType::F64))
    }
}

#[test]
fn unquantized_records_match_plain_layers() {
    let (plain, device) = (plain_model(), Default::default());
    let model = replaceable(plain.clone());
    let named = NamedMpkBytesRecorder::<FullPrecisionSettings>::new();
    let bytes = Recorder::<Flex>::record(&named, plain.clone().into_record(), ()).unwrap();
    assert!(Recorder::<Flex>::record(&named, model.clone().into_record(), ()).unwrap() == bytes);
    let other = self::model().load_record(named.load(bytes, &device).unwrap());
    let input = random([1, 2, WIDTH]);
    assert_eq!(values(other.forward(input.clone())), values(model.forward(input)));

    let unnamed = BinBytesRecorder::<FullPrecisionSettings>::new();
    let bytes = Recorder::<Flex>::record(&unnamed, model.into_record(), ()).unwrap();
    let back = self::plain_model().load_record(unnamed.load(bytes, &device).unwrap());
    assert_eq!(values(back.blocks[0].up.weight.val()), values(plain.blocks[0].up.weight.val()));
}

#[test]
#[should_panic(expected = "int8wo cannot be saved")]
fn saving_a_quantized_model_panics() {
    let (model, _) = quantize(model(), &recipe("int8wo"), |_, _| true).unwrap();
    model.into_record();
}

#[test]
#[should_panic(expected = "int8wo cannot be loaded into")]
fn loading_into_a_quantized_model_panics() {
    let record = model().into_record();
    let (model, _) = quantize(model(), &recipe("int8wo"), |_, _| true).unwrap();
    model.load_record(record);
}

#[test]
fn quantized_layer_is_a_burn_module() {
    fn assert_send_sync<T: Send + Sync>(_: &T) {}
    let device = Default::default();
    let layer = QuantLinear::from(nn::LinearConfig::new(3, 5).init::<Flex>(&device));
    assert_eq!(layer.to_string(), "QuantLinear {d_input: 3, d_output: 5, bias: true, params: 20}");
    let (layer, _) = quantize(layer, &recipe("int8wo"), |_, _| true).unwrap();
    assert_eq!(layer.to_string(), "QuantLinear {d_input: 3, d_output: 5, bias: true, recipe: int8wo, params: 20}");
    assert_eq!(layer.devices(), [device]);
    assert_send_sync(&layer);
    let moved = layer.clone().to_device(&device).fork(&device);
    let input = random([4, 3]);
    assert_eq!(values(moved.forward(input.clone())), values(layer.forward(input)));
}

#[test]
fn nested_quantization_is_independent() {
    let inner = || quantize(model().head, &recipe("int8wo"), |_, _| true).is_err();
    let (model, _) = quantize(model(), &recipe("int8wo"), |_, _| inner()).unwrap();
    assert!(model.blocks.iter().all(|block| block.up.recipe().is_some()));
}
