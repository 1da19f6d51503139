//! Matmuls that skip 5 % of their work are rejected, in every dtype and at any time.

use crate::scene::{Scene, find_record};
use crate::seeded_random::{first_seed, is_short, tries};
use calorimeter_kernels::host::{FloatGemm, FloatVec, HostGemmWeight};
use calorimeter_runner::dialects::ConfigSource;
use calorimeter_runner::run::{OutputDirs, Request, RunEvent, RunListener};
use calorimeter_runner::worker::InProcess;
use calorimeter_sinks::Status;
use calorimeter_zoo::{
    DeviceKind, Implementation, OpenRequest, Output, Subject, Workload, ZooError, register_implementation,
};

/// Skipped work.
#[derive(Debug, Clone, Copy, PartialEq)]
enum SkippedWork {
    None,
    /// The end of the reduction dimension.
    Depth,
    /// The last columns, except in passes whose output is checked.
    Columns,
}

/// Buffers of one pass.
struct ProductSet {
    x: Vec<f32>,
    weight: FloatGemm,
    y: Vec<f32>,
    ran: bool,
}

struct Product {
    sets: Vec<ProductSet>,
    next: usize,
    cols: usize,
    without: SkippedWork,
}

fn open(opening: OpenRequest<'_>, without: SkippedWork) -> Result<Box<dyn Workload>, ZooError> {
    let set = |set: u32| -> Result<ProductSet, ZooError> {
        let [x, weight] = &opening.inputs_of_set(set)?[..] else { unreachable!("a product has two operands") };
        let depth = if without == SkippedWork::Depth { x.cols - x.cols / 20 } else { x.cols };
        let rows = x.values.chunks(x.cols).flat_map(|row| row[..depth].iter().copied()).collect();
        let turned = (0..weight.cols).flat_map(|col| (0..depth).map(move |row| weight.values[row * weight.cols + col]));
        let weights = HostGemmWeight::Floats(FloatVec::F32(turned.collect()));
        let y = vec![f32::NAN; x.rows * weight.cols];
        Ok(ProductSet { x: rows, weight: FloatGemm::new(weights, weight.cols, depth), y, ran: false })
    };
    let cols = opening.operator()?.1[1].cols;
    let sets = (0..opening.setup.sets.max(1)).map(set).collect::<Result<_, _>>()?;
    Ok(Box::new(Product { sets, next: 0, cols, without }))
}

impl Product {
    fn read(&self, set: usize) -> Vec<Output> {
        let values = self.sets[set].y.clone();
        vec![Output { rows: values.len() / self.cols, cols: self.cols, values }]
    }

    fn multiply(&mut self) -> usize {
        let set = self.next;
        self.next = (set + 1) % self.sets.len();
        let ProductSet { x, weight, y, ran } = &mut self.sets[set];
        weight.run(x, y);
        *ran = true;
        set
    }
}

impl Workload for Product {
    fn launch(&mut self) -> Result<(), ZooError> {
        let set = self.multiply();
        if self.without == SkippedWork::Columns {
            let kept = self.cols - self.cols / 20;
            self.sets[set].y.chunks_mut(self.cols).for_each(|row| row[kept..].fill(0.0));
        }
        Ok(())
    }

    fn synchronize(&mut self) -> Result<(), ZooError> {
        Ok(())
    }

    fn outputs(&mut self) -> Result<Vec<Output>, ZooError> {
        let set = self.multiply();
        Ok(self.read(set))
    }

    fn last_outputs(&mut self, set: u32) -> Result<Option<Vec<Output>>, ZooError> {
        let set = set as usize;
        Ok(self.sets[set].ran.then(|| self.read(set)))
    }

    fn next_set(&self) -> u32 {
        self.next as u32
    }
}

struct NullListener;

impl RunListener for NullListener {
    fn on_event(&mut self, _: RunEvent) {}
}

#[test]
fn skipping_five_percent_is_rejected_in_every_dtype() {
    let subject: Subject = "matmul".parse().unwrap();
    for (name, without) in
        [("whole", SkippedWork::None), ("shallow", SkippedWork::Depth), ("narrow", SkippedWork::Columns)]
    {
        let implementation = Implementation::register(name, "a product of this test").unwrap();
        let by = move |opening: OpenRequest<'_>| open(opening, without);
        register_implementation(subject, implementation, DeviceKind::Cpu, by).unwrap();
    }
    let (tries, first) = (tries(2, 100) as u64, first_seed(0));
    let axes = if is_short() { "{m: 64, k: 256, n: 256}" } else { "{m: 1024, k: 4096, n: 4096}" };
    let (mut refused, mut executor) = (0, InProcess::default());
    for seed in first..first + tries {
        let scene = Scene::new();
        let text = format!(
            "device: cpu
dtype: f32
seed: {seed}
timing: {{min_time: 1ms, max_time: 60s, warm_up: 1ms, max_warm_up: 1ms, min_windows: 5, max_windows: 5, window: 1ms}}
models: [{{model: matmul, axes: {axes}, implementations: [whole, shallow, narrow]}}]"
        );
        let source = ConfigSource { path: "inline.yml".into(), text };
        let prepared = Request { sources: vec![source], ..Request::default() }.prepare().unwrap();
        let place = OutputDirs { dir: scene.path("out"), output_dir: scene.path("out") };
        let outcome = prepared.start(&place, &mut executor, &mut NullListener).unwrap();
        let whole = find_record(&outcome.records, "/whole/");
        assert!(whole.is_ok(), "{whole:?}");
        for name in ["/shallow/", "/narrow/"] {
            let record = find_record(&outcome.records, name);
            assert_eq!(record.outcome.status, Status::Mismatch, "seed {seed}: {record:?}");
            refused += 1;
        }
        println!("{refused} of {refused} were refused, and none of the {} that were whole", seed + 1 - first);
    }
}
