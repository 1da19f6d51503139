//! Where a run that goes on may write: its folder has links, its journal names folders, and both may come from somebody else.

use super::Place;
use calorimeter_case::{Mode, Record};
use std::collections::HashSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Exchanges folders for exports that lie outside the working directory and the run's own surroundings for folders in that of the
/// run; answers what to say of it.
pub fn keep_within(records: &mut [Record], place: &Place) -> Vec<String> {
    let (mut notes, mut told_of) = (Vec::new(), HashSet::new());
    let exports = records.iter_mut().filter_map(|record| record.case.export.as_mut());
    for told in exports.flat_map(|export| [&mut export.csv_path, &mut export.metrics_dir]).flatten() {
        let path = Path::new(&*told);
        if told.contains("://") || is_within(path, &place.dir) {
            continue;
        }
        let inside = place.dir.join(path.file_name().unwrap_or_default());
        if told_of.insert(told.clone()) {
            notes.push(format!(
                "what belongs into {told} is in {}: a journal that is resumed may come from somebody else, and does not lead \
                 out of the working directory and the folder of its run",
                inside.display()
            ));
        }
        *told = inside.display().to_string();
    }
    notes
}

/// Whether a path stays in the working directory or in the folder that holds the run's, its links followed.
fn is_within(path: &Path, dir: &Path) -> bool {
    let leads_out = path.components().any(|part| part == Component::ParentDir);
    let beside = std::path::absolute(dir).ok().and_then(|dir| Some(dir.parent()?.to_owned()));
    let here = [Some(PathBuf::from(".")), beside];
    !leads_out && here.iter().flatten().any(|folder| real(path).starts_with(real(folder)))
}

/// A path without its links, as far as it is there.
fn real(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let real = |part: &Path| Some(fs::canonicalize(part).ok()?.join(path.strip_prefix(part).ok()?));
    path.ancestors().find_map(real).unwrap_or(path)
}

/// A link below the folder of the run that leads out of it, or a folder of tables that does: they would be written through.
pub fn link_out(place: &Place) -> Option<PathBuf> {
    let tables = [Mode::Inference, Mode::Training].map(|mode| place.output_dir.join(mode.name()));
    let leads_out = |link: &PathBuf, folder: &Path| {
        fs::symlink_metadata(link).is_ok_and(|there| there.is_symlink())
            && fs::canonicalize(link).map_or(true, |target| !target.starts_with(real(folder)))
    };
    let table = tables.into_iter().find(|table| leads_out(table, &place.output_dir));
    table.or_else(|| links_below(&place.dir).into_iter().find(|link| leads_out(link, &place.dir)))
}

fn links_below(folder: &Path) -> Vec<PathBuf> {
    let mut links = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_symlink() => links.push(entry.path()),
            Ok(kind) if kind.is_dir() => links.extend(links_below(&entry.path())),
            _ => {}
        }
    }
    links
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_leads_out_of_the_surroundings_is_told_from_what_does_not() {
        for (path, within) in [
            ("tables", true),
            ("a/b", true),
            ("/data/results/tables", true),
            ("/data/other", false),
            ("../tables", false),
            ("/data/results/../other", false),
        ] {
            assert_eq!(is_within(Path::new(path), Path::new("/data/results/20261101-101500")), within, "{path}");
        }
    }
}
