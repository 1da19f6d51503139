//! Plots of the page as SVG and PNG files, for papers and slides, with the page's initial selections.

mod accuracy;
pub(super) mod axis;
pub(super) mod bars;
pub(super) mod canvas;
pub(super) mod chart;
mod forest;
mod grid;
pub(super) mod heat_map;
pub(super) mod palette;
pub(super) mod picture;
mod roofline;
pub(super) mod sizes;

use std::path::{Path, PathBuf};

use super::calibration::Calibration;
use super::group_table::GROUP_TABLES;
use super::headline::RunHeadline;
use super::report_rows::ReportRows;
use super::run::{ReportedProfile, ReportedRun};
use crate::{SinkError, atomic};
use canvas::PlotError;
use picture::Picture;

/// Draws the plots for which records and profiles have values; returns the paths `NAME.svg` and `NAME.png`.
pub fn write_plots(runs: &[ReportedRun], profiles: &[ReportedProfile], dir: &Path) -> Result<Vec<PathBuf>, SinkError> {
    let mut paths = Vec::new();
    let headlines: Vec<RunHeadline> = runs.iter().map(|run| RunHeadline::new(&run.into())).collect();
    let subtitle = RunHeadline::subtitle(&headlines);
    let own = pictures(&ReportRows::new(runs)).into_iter();
    let own = own.map(|(name, picture)| (name.to_owned(), picture, subtitle.as_str()));
    let calibration = Calibration::new(profiles)?;
    let machines = calibration.subtitle.clone();
    let calibration = calibration.pictures().map(|(name, picture)| (name, picture, machines.as_str()));
    for (name, picture, subtitle) in own.chain(calibration) {
        let mut put = |ending: &str, drawn: Result<Vec<u8>, PlotError>| {
            let path = dir.join(&name).with_extension(ending);
            let bytes = drawn.map_err(|cause| SinkError::format(&path, cause))?;
            atomic::write(&path, &bytes)?;
            paths.push(path);
            Ok(())
        };
        put("svg", picture.svg(subtitle).map(String::into_bytes))?;
        put("png", picture.png(subtitle))?;
    }
    Ok(paths)
}

/// Plots of the records, in the order of the page.
fn pictures(rows: &ReportRows<'_>) -> Vec<(&'static str, Picture)> {
    let one = |name, picture: Option<Picture>| picture.map(|picture| (name, picture));
    let before = [
        one("speed-ups", forest::plot(rows).map(Picture::Forest)),
        one("mean-speed-ups", heat_map::picture(rows)),
        one("roofline", roofline::picture(rows)),
    ];
    let tables = GROUP_TABLES.iter().map(|table| one(table.id, table.bars(&rows.all).map(Picture::Bars)));
    let after = [one("accuracy", accuracy::picture(rows))].into_iter().chain(tables);
    before.into_iter().flatten().chain(sizes::pictures(rows)).chain(after.flatten()).collect()
}
