//! Plots of the page as SVG and PNG files, for papers and slides, with the page's initial selections.

mod accuracy;
mod axis;
mod bars;
mod calibration;
mod canvas;
mod chart;
mod clocks;
mod fusion;
mod grid;
mod heat_map;
mod memory;
mod number_format;
mod operators;
mod palette;
mod picture;
mod report_rows;
mod roofline;
mod sizes;
mod training;

use std::path::{Path, PathBuf};

use super::run::{ReportedProfile, ReportedRun};
use crate::{SinkError, atomic};
use canvas::PlotError;
use picture::Picture;
use report_rows::ReportRows;

/// Draws the plots for which records and profiles have values; returns the paths `NAME.svg` and `NAME.png`.
pub fn write_plots(runs: &[ReportedRun], profiles: &[ReportedProfile], dir: &Path) -> Result<Vec<PathBuf>, SinkError> {
    let mut paths = Vec::new();
    for (name, picture) in pictures(&ReportRows::new(runs)).into_iter().chain(calibration::pictures(profiles)?) {
        let mut put = |ending: &str, drawn: Result<Vec<u8>, PlotError>| {
            let path = dir.join(name).with_extension(ending);
            let bytes = drawn.map_err(|cause| SinkError::format(&path, cause))?;
            atomic::write(&path, &bytes)?;
            paths.push(path);
            Ok(())
        };
        put("svg", picture.svg().map(String::into_bytes))?;
        put("png", picture.png())?;
    }
    Ok(paths)
}

/// Plots of the records, in the order of the page.
fn pictures(rows: &ReportRows<'_>) -> Vec<(&'static str, Picture)> {
    let one = |name, picture: Option<Picture>| picture.map(|picture| (name, picture));
    let before = [one("speed-ups", heat_map::picture(rows)), one("roofline", roofline::picture(rows))];
    let after = [
        one("accuracy", accuracy::picture(rows)),
        one("memory", memory::picture(rows)),
        one("operators", operators::picture(rows)),
        one("training", training::picture(rows)),
        one("fusion", fusion::picture(rows)),
        one("clocks", clocks::picture(rows)),
    ];
    before.into_iter().flatten().chain(sizes::pictures(rows)).chain(after.into_iter().flatten()).collect()
}
