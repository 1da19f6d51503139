//! `calorimeter noise`.

use super::error::CliError;
use super::options::{NoiseArguments, TextFormat};
use crate::Exit;
use crate::noise::{NoiseError, NoiseRequest, measure};
use crate::print::print;
use crate::progress::{install_interrupt_handler, interrupted};
use crate::worker::{Subprocess, WorkerCaches};
use calorimeter_case::record::Speedup;
use calorimeter_probe::noise_floor::{DeviceNoise, NoiseRates, WorkloadNoise};
use calorimeter_sinks::{cache, log_line};

pub(super) fn noise(arguments: NoiseArguments) -> Result<Exit, CliError> {
    install_interrupt_handler();
    let NoiseArguments { device, comparisons, filter, lock_clocks, format } = arguments;
    let keep = WorkerCaches {
        autotune_dir: cache::cache_dir("tuning"),
        peaks_dir: cache::cache_dir("peaks"),
        ..WorkerCaches::default()
    };
    let mut count = 0;
    let mut show = |case: &str, speedup: &Speedup| {
        count += 1;
        log_line!("{count:>4} of {comparisons}  {:.4}x  {:<8} {case}", speedup.ratio, speedup.verdict);
    };
    let stored = filter.is_none();
    let wanted = NoiseRequest { device, count: comparisons, filter, lock_clocks };
    let noise = match measure(&wanted, &mut Subprocess::new(keep), &interrupted, &mut show) {
        Ok(noise) => noise,
        Err(NoiseError::Interrupted) => return Ok(Exit::Interrupted),
        Err(NoiseError::Run(error)) => return Err(error.into()),
        Err(NoiseError::Failed(reason)) => {
            log_line!("error: {reason}");
            return Ok(Exit::CaseFailed);
        }
    };
    print(&match format {
        TextFormat::Text => text(&noise, stored),
        TextFormat::Json => serde_json::to_string_pretty(&noise).unwrap_or_default() + "\n",
    })?;
    Ok(Exit::Success)
}

fn percent(share: f64) -> String {
    format!("{:.2} %", 100.0 * share)
}

fn text(noise: &DeviceNoise, stored: bool) -> String {
    let mut text = format!("{:>9} {:>9} {:>9} {:>9}  compared with itself\n", "false", "off 1", "SAME", "floor");
    let mut row = |rates: &NoiseRates, label: &str| {
        let NoiseRates { false_verdict_rate, interval_miss_rate, same_rate, floor, .. } = *rates;
        let shares = [false_verdict_rate, interval_miss_rate, same_rate, floor];
        text += &shares.map(|share| format!("{:>9} ", percent(share))).concat();
        text += &format!(" {label}\n");
    };
    for WorkloadNoise { case, stopwatch, rates } in &noise.workloads {
        row(rates, &format!("{case}, {} comparisons, clock {stopwatch}", rates.comparisons));
    }
    let DeviceNoise { total, processes, .. } = noise;
    row(total, &format!("all {} comparisons, in {processes} processes", total.comparisons));
    let margin = match stored {
        true => "stored for 30 days for verdicts on this device with this driver and clock policy",
        false => "not stored: --filter excluded workloads",
    };
    text + &format!(
        "\n\
         false   verdicts of a difference, all of them false; 5 % or less is expected\n\
         off 1   intervals that exclude 1; more than about 5 % indicates real but small effects of memory placement\n\
         SAME    verdicts of no difference; the remaining ones are UNCLEAR\n\
         floor   95 % of the ratios were within this of 1\n\
         margin  {}, {margin}\n",
        percent(noise.margin)
    )
}
