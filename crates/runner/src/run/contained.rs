//! Where a run that goes on may write: its journal names folders, and may come from somebody else.

use super::Place;
use calorimeter_case::Record;
use std::collections::HashSet;
use std::path::{Component, Path};

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

/// Whether a path stays in the working directory or in the folder that holds the run's.
fn is_within(path: &Path, dir: &Path) -> bool {
    let leads_out = path.components().any(|part| part == Component::ParentDir);
    let beside = std::path::absolute(dir).ok().and_then(|dir| Some(dir.parent()?.to_owned()));
    !leads_out && (path.is_relative() || beside.is_some_and(|beside| path.starts_with(beside)))
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
