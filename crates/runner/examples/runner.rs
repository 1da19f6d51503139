//! Embeds `calorimeter-runner` in a program: runs the cases below, or the ones of a file, and prints each record as it
//! arrives.
//!
//! `cargo run -p calorimeter-runner --example runner [-- configs/quickstart.yml]`

use calorimeter_runner::dialects::ConfigSource;
use calorimeter_runner::run::{OutputDirs, Request, RunError, RunEvent, RunListener};
use calorimeter_runner::worker::{Subprocess, WorkerCaches, serve_if_worker};

const CASES: &str = "
device: cpu
dtype: f32
recipes: [baseline, int8wo]
timing: {precision: 5%, max_time: 500ms, max_warm_up: 500ms}
models: [{model: ln_linear_gelu, shapes: [{name: custom, shapes: [[1, 512, 512], [32, 512, 512]]}]}]
";

struct Lines;

impl RunListener for Lines {
    fn on_event(&mut self, event: RunEvent) {
        let RunEvent::CaseFinished(record) = event else { return };
        let time = record.time.time_ns.map_or_else(String::new, |time| format!("{:.1} us", time.median / 1e3));
        println!("{:<62} {:9} {time:>12}", record.case.id, record.outcome.status.to_string());
    }
}

fn main() -> Result<(), RunError> {
    // Workers are further processes of this program; in a worker this call does not return.
    serve_if_worker();
    let source = match std::env::args_os().nth(1) {
        Some(path) => ConfigSource::read(path.as_ref())?,
        None => ConfigSource { path: "inline.yml".into(), text: CASES.into() },
    };
    let prepared = Request { sources: vec![source], ..Request::default() }.prepare()?;
    let place = OutputDirs::create_below("results".as_ref())?;
    let outcome = prepared.start(&place, &mut Subprocess::new(WorkerCaches::default()), &mut Lines)?;
    println!("{} cases, {} files in {}", outcome.records.len(), outcome.paths.len(), place.dir.display());
    Ok(())
}
