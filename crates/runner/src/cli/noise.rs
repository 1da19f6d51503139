//! `calorimeter noise`.

use super::options::{NoiseArguments, TextFormat};
use super::{CliError, print};
use crate::Exit;
use crate::cache;
use crate::noise::{NoiseError, measure};
use crate::noise_floor::Noise;
use crate::progress::{interrupted, listen_for_interrupts};
use crate::worker::{Kept, Subprocess};
use calorimeter_case::record::Speedup;

pub fn noise(arguments: NoiseArguments) -> Result<Exit, CliError> {
    listen_for_interrupts();
    let NoiseArguments { device, comparisons, format } = arguments;
    let keep = Kept { tuning: cache::folder("tuning"), peaks: cache::folder("peaks"), never_tune: false, look: false };
    let mut count = 0;
    let mut show = |speedup: &Speedup| {
        count += 1;
        eprintln!("{count:>4} of {comparisons}  {:.4}x  {}", speedup.ratio, speedup.verdict);
    };
    let noise = match measure(device, comparisons, &mut Subprocess::new(keep), &interrupted, &mut show) {
        Ok(noise) => noise,
        Err(NoiseError::Interrupted) => return Ok(Exit::Interrupted),
        Err(NoiseError::Run(error)) => return Err(error.into()),
        Err(NoiseError::Failed(reason)) => {
            eprintln!("error: {reason}");
            return Ok(Exit::Broken);
        }
    };
    Ok(print(&match format {
        TextFormat::Text => text(&noise),
        TextFormat::Json => serde_json::to_string_pretty(&noise).unwrap_or_default() + "\n",
    }))
}

fn text(noise: &Noise) -> String {
    let percent = |share: f64| format!("{:.2} %", 100.0 * share);
    format!(
        "{} against itself, {} comparisons, clock {}\n\
         false verdicts     {:>8}  a difference was found where there is none; at most 5 % should be\n\
         intervals off 1    {:>8}  without a margin; more than about 5 % are real, if small: two places in memory differ\n\
         SAME               {:>8}  the rest was inconclusive\n\
         floor              {:>8}  95 % of the ratios were within this of 1\n\
         margin             {:>8}  kept for verdicts on this device\n",
        noise.case,
        noise.comparisons,
        noise.stopwatch,
        percent(noise.false_verdict_rate),
        percent(noise.interval_miss_rate),
        percent(noise.same_rate),
        percent(noise.floor),
        percent(noise.margin),
    )
}
