//! Golden files: runs on the mock device are reproducible to the digit.
//!
//! `CALORIMETER_REGENERATE=1 cargo test -p calorimeter-runner --test program golden` regenerates the expected files.

use crate::pseudo_terminal::Terminal;
use crate::scene::{ProgramOutput, Scene, fixture};
use std::fs;
use std::process::Stdio;

#[test]
fn mock_run_matches_golden_table_and_csv() {
    let scene = Scene::with(&fs::read_to_string(fixture("golden/run.yml")).unwrap());
    let ended = scene.run("run c.yml --out out --color never");
    ended.expect_code(3);
    let csv = fs::read_to_string(scene.path("out/results.csv")).unwrap();
    for (name, content) in [("golden/table.txt", &ended.stdout), ("golden/results.csv", &csv)] {
        compare_with_golden(name, content);
    }
    for verdict in ["FASTER", "SLOWER", "SAME", "UNCLEAR", "not converged"] {
        assert!(ended.stdout.contains(verdict), "the run shows no {verdict}");
    }
}

#[test]
fn tables_fit_the_terminal_width() {
    // Without a terminal the width is 120.
    for (columns, expected) in [(80, "table_80"), (100, "table_100"), (120, "table"), (200, "table_200")] {
        let scene = Scene::with(&fs::read_to_string(fixture("golden/run.yml")).unwrap());
        let shown = terminal_output(&scene, "run c.yml --out out --color never", columns);
        compare_with_golden(&format!("golden/{expected}.txt"), &shown);
        for line in shown.lines().filter(|line| !line.contains('/') || line.contains("/s")) {
            assert!(line.chars().count() <= columns.into(), "{columns}: {line}");
        }
    }
}

/// First screens of new users on terminals of three widths: quick start, two suites, and a torchao file.
#[test]
fn screens_match_golden_files() {
    let root = fixture("../../../..").canonicalize().unwrap();
    let quickstart = fs::read_to_string(root.join("configs/quickstart.yml")).unwrap() + QUICKSTART_RULES;
    let torchao = fs::read_to_string(fixture("torchao/benchmark_config.L1.yml")).unwrap();
    for (screen, arguments) in [
        ("quickstart", "run quickstart.yml --device mock --implementations eager,native"),
        ("ops", "ops --device mock --ops layer_norm,softmax,mse_loss"),
        ("gemm", "gemm --device mock --ops gemm,stream_triad,host_device,all_reduce,attention"),
        ("max_autotune", "run torchao.yml --device mock --recipes int4wo-32,int4wo-128,marlin"),
    ] {
        for columns in [80, 100, 120] {
            let scene = Scene::new();
            scene.write("quickstart.yml", &quickstart);
            scene.write("torchao.yml", &torchao);
            let mut command = scene.command(&format!("{arguments} --out out --color never"));
            // Files specify their own rules.
            command.env("CALORIMETER_MOCK_RULES", SUITE_RULES);
            let shown = Terminal::with_columns(columns).stdout_of(command.stderr(Stdio::null()));
            compare_with_golden(&format!("golden/screens/{screen}_{columns}.txt"), &shown);
            for verdict in ["FASTER", "SLOWER", "SAME", "UNCLEAR"] {
                assert!(screen != "ops" || shown.contains(verdict), "{columns}: no {verdict}");
            }
            for line in shown.lines() {
                assert!(line.chars().count() <= columns.into(), "{screen}, {columns}: {line}");
            }
        }
    }
}

#[test]
fn invalid_mock_rules_are_refused() {
    let scene = Scene::new();
    let mut command = scene.command("ops --device mock --ops softmax --dry-run");
    let ended = ProgramOutput::from_command(command.env("CALORIMETER_MOCK_RULES", "[{nanos: fast}]"));
    assert!(ended.error().contains("CALORIMETER_MOCK_RULES"), "{ended:?}");
}

/// Mock rules of the quick start: every verdict, and every reason without one.
const QUICKSTART_RULES: &str = "
mock:
  - {match: 'linear/baseline/native', nanos: 480000, noise: 0.01}
  - {match: 'linear/int8wo/eager', nanos: 2600000, noise: 0.02}
  - {match: 'linear/int8wo/native', nanos: 130000, noise: 0.01}
  - {match: 'linear/baseline/eager', nanos: 510000, noise: 0.01}
  - {match: 'gelu/int8wo/eager', fault: mismatch}
  - {match: 'gelu/int8wo/native', fault: error, after: 30}
";

/// Mock rules of the suites: every verdict, kernels that are fastest from some size on, and unclear comparisons.
const SUITE_RULES: &str = "
- {match: 'mse_loss/.*/cube/', nanos: 10200, noise: 0.3}
- {match: '/native/.*(1000|-n256|4194304|mib16|head_dim128)', nanos: 6400, noise: 0.01}
- {match: '/native/', nanos: 12500, noise: 0.01}
- {match: '/cube/', nanos: 10050, noise: 0.01}
- {match: '/fused/', nanos: 8000, noise: 0.01}
- {nanos: 10000, noise: 0.01}
";

/// Output of the program on a terminal.
fn terminal_output(scene: &Scene, arguments: &str, columns: u16) -> String {
    Terminal::with_columns(columns).stdout_of(scene.command(arguments).stderr(Stdio::null()))
}

/// Compares with the expected file, or regenerates it.
pub(crate) fn compare_with_golden(name: &str, content: &str) {
    if std::env::var_os("CALORIMETER_REGENERATE").is_some() {
        fs::write(fixture(name), content).unwrap();
    }
    let expected = fs::read_to_string(fixture(name)).unwrap();
    for (number, (line, expected)) in content.lines().zip(expected.lines()).enumerate() {
        assert_eq!(line, expected, "line {} of {name}", number + 1);
    }
    assert_eq!(content.len(), expected.len(), "{name}");
}
