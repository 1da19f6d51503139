//! `calorimeter accuracy`: recipes compared without timing.

use crate::scene::{Scene, TABLES, find_record};
use calorimeter_case::record::Execution;
use calorimeter_case::record::Preparation;
use calorimeter_case::record::Rates;
use calorimeter_case::record::Time;
use calorimeter_case::{Dtype, Implementation, Name};
use calorimeter_recipes::Recipe;
use calorimeter_sinks::{Record, Status};
use std::collections::BTreeSet;

/// True if the record contains no measured time.
fn is_untimed(record: &Record) -> bool {
    let Record {
        speedup,
        execution: Execution { stopwatch, .. },
        time: Time { time_ns, windows, converged, .. },
        rates: Rates { tflops, gbps, .. },
        preparation: Preparation { prime_ns, granularity_ns, .. },
        ..
    } = record;
    stopwatch.is_none()
        && (time_ns.is_none() && windows.is_empty() && converged.is_none() && speedup.is_none())
        && (tflops.is_none() && gbps.is_none() && prime_ns.is_none() && granularity_ns.is_none())
}

#[test]
fn default_plan_covers_all_models() {
    let scene = Scene::new();
    let records = scene.run("accuracy --device mock --out out --format jsonl").expect_code(0).records();
    for model in ["linear", "ln_linear_gelu", "transformer_block"] {
        let cases = records.iter().map(|record| &record.case).filter(|case| case.workload == model);
        let (dense, sparse): (Vec<_>, Vec<_>) = cases.partition(|case| case.sparsity.is_none());
        let shown: BTreeSet<String> = dense.iter().map(|case| case.recipe.to_string()).collect();
        assert_eq!(shown, Recipe::examples().iter().map(ToString::to_string).collect(), "{model}");
        let sparsities: BTreeSet<&str> = sparse.iter().filter_map(|case| case.sparsity.map(Name::as_str)).collect();
        assert_eq!(sparsities, BTreeSet::from(["semi-sparse", "block-0.9-64"]), "{model}");
        assert!(
            dense.iter().all(|case| case.implementation == Implementation::Eager && case.element == Dtype::F32.into()),
            "{model}"
        );
    }
    let unsupported = records.iter().filter(|record| record.outcome.status != Status::Ok).map(|record| &record.case);
    assert!(unsupported.clone().count() == 3 && unsupported.into_iter().all(|case| case.recipe == "marlin"));
}

#[test]
fn finer_recipes_are_more_accurate_on_the_cpu() {
    let scene = Scene::new();
    let filter = "--filter /linear/(int8wo|int4wo-128|uintx-2-64)/";
    let ended = scene.run(&format!("accuracy --device cpu --out out --color never {filter}"));
    ended.expect_code(0);
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert_eq!(lines[0], "f32  cpu  eager  SQNR in dB");
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words(lines[1]), ["recipe", "linear", "weights", "quantize"]);
    assert_eq!(words(lines[2]), ["m64-k512-n512"]);
    let rows: Vec<Vec<String>> = lines[3..7].iter().map(|line| words(line)).collect();
    let column = |at: usize| rows.iter().map(|row| row[at].as_str()).collect::<Vec<_>>();
    assert_eq!(column(0), ["baseline", "int8wo", "int4wo-128", "uintx-2-64"]);
    assert_eq!(column(2), ["100.0%", "25.2%", "14.1%", "7.9%"]);
    let sqnr: Vec<f64> = column(1).iter().map(|cell| cell.parse().unwrap()).collect();
    for (found, least, most) in
        [(sqnr[0], 110.0, 140.0), (sqnr[1], 44.0, 52.0), (sqnr[2], 20.0, 28.0), (sqnr[3], 6.0, 13.0)]
    {
        assert!((least..most).contains(&found), "{sqnr:?}");
    }
    assert_eq!(rows[0][3], "-", "a baseline is not quantized");
    assert!(rows[1..].iter().all(|row| row.len() == 5), "a time has a unit: {rows:?}");

    let contents = scene.journal("out");
    assert!(contents.summary.is_some() && contents.records.len() == 4);
    assert!(contents.records.iter().all(is_untimed));
    for name in TABLES {
        assert!(scene.path("out").join(name).is_file(), "{name}");
    }
    assert!(!scene.path("out/inference").exists(), "scripts for torchao read times, and there are none");
}

#[test]
fn failures_appear_in_the_table_with_reason() {
    let scene = Scene::with(
        "recipes: [baseline, int8wo, marlin]
device: mock
dtype: f32
implementations: [eager]
models:
  - {shapes: [{name: custom, shapes: [[8, 8, 8], [16, 16, 16]]}]}
  - {name: named, model: ln_linear_gelu, shapes: [{name: custom, shapes: [[8, 8, 8]]}]}
mock: [{match: 'linear/int8wo.*m8-', fault: mismatch}, {match: 'linear/int8wo.*m16-', fault: abort}]
",
    );
    let ended = scene.run("accuracy c.yml --out out --color never");
    ended.expect_code(3);
    assert_eq!(
        ended.stdout,
        "f32  mock  eager  SQNR in dB
recipe      linear       linear  ln_linear_gelu  weights  quantize
          m8-k8-n8  m16-k16-n16        m8-k8-n8
                                          named
baseline         -            -               -        -         -
int8wo    mismatch      crashed               -        -         -

9 cases: 4 ok, 1 mismatch, 1 crashed, 3 unsupported
not measured
  mismatch, 1 case
    wrong output: the mock device was told to be wrong
      inference/linear/int8wo/eager/mock/f32/m8-k8-n8
  crashed, 1 case
    its worker process aborted (signal 6)
      inference/linear/int8wo/eager/mock/f32/m16-k16-n16
  3 cases unsupported: recipe marlin is for weights of which two of every four are zero; with semi-sparse in
  sparsity_config_recipe_names it runs
"
    );
}

#[test]
fn records_contain_weight_bytes() {
    let scene = Scene::with(
        "recipes: [baseline, int8wo, int8dq, fp6]
sparsities: [semi-sparse, block]
device: cpu
dtype: f32
models: [{shapes: [{name: custom, shapes: [[4, 256, 128]]}]}]
",
    );
    let records = scene.run("accuracy c.yml --out out --format jsonl").expect_code(0).records();
    let (weights, channels) = (256 * 128, 128);
    for (recipe, bytes) in [
        ("baseline", weights * 4),
        ("int8wo", weights + channels * 4),
        ("int8dq", weights + channels * 4),
        ("fp6", weights * 6 / 8 + channels * 4),
        // Half of the values, and four index bits per group of four.
        ("baseline+semi-sparse", weights / 2 * 4 + weights / 8),
        ("int8dq+semi-sparse", weights / 2 + weights / 8 + channels * 4),
        // One of four blocks in both block rows, and its index.
        ("baseline+block-0.9-64", 2 * (64 * 64 * 4 + 4)),
    ] {
        let record = find_record(&records, &format!("/{recipe}/"));
        assert_eq!(
            (record.weights.weight_bytes, record.weights.baseline_weight_bytes),
            (Some(bytes), Some(weights * 4)),
            "{recipe}"
        );
        assert_eq!(record.weights.quantise_ns.is_some(), recipe != "baseline");
    }
}

#[test]
fn invalid_requests_are_refused_before_running() {
    let scene = Scene::with("recipes: [int8w0]\nmodels: [{shapes: [{name: custom, shapes: [[8, 8, 8]]}]}]\n");
    for (arguments, message) in [
        ("c.yml", "c.yml:1:11: recipes[0]: unknown recipe \"int8w0\"; did you mean \"int8wo\"?"),
        ("missing.yml", "cannot read missing.yml: No such file"),
        ("--device mock --filter int9", "--filter \"int9\" matches none of the 114 cases"),
    ] {
        let ended = scene.run(&format!("accuracy {arguments} --out out"));
        assert!(ended.error().starts_with(message), "{ended:?}");
        assert!(!scene.path("out").exists());
    }
    scene.run("accuracy --precision 1%").expect_code(2);
    let plan = scene.run("accuracy --device cpu --dry-run --format jsonl");
    assert_eq!(plan.expect_code(0).objects().len(), 114);
}

/// Two sequences of a transformer block are compared.
#[test]
fn sampled_outputs_have_an_accuracy() {
    let scene = Scene::new();
    let block = "accuracy --device cpu --format jsonl --out block --filter transformer_block/baseline/eager";
    let records = scene.run(block).expect_code(0).records();
    assert!(!records.is_empty() && records.iter().all(|record| record.accuracy.is_some()), "{records:?}");
}
