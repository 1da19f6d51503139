//! Containment of a resumed run. Its folder may contain links and its journal may name folders; both may come from
//! another user.

use super::OutputDirs;
use calorimeter_case::{Mode, Record};
use std::collections::HashSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Redirects exports that lie outside the working directory and the parent of the run's folder into that folder;
/// returns notes.
pub(super) fn redirect_exports(records: &mut [Record], place: &OutputDirs) -> Vec<String> {
    let (mut notes, mut reported) = (Vec::new(), HashSet::new());
    let exports = records.iter_mut().filter_map(|record| record.case.export.as_mut());
    for path_text in exports.flat_map(|export| [&mut export.csv_path, &mut export.metrics_dir]).flatten() {
        let path = Path::new(&*path_text);
        if path_text.contains("://") || is_within(path, &place.dir) {
            continue;
        }
        let inside = place.dir.join(path.file_name().unwrap_or_default());
        if reported.insert(path_text.clone()) {
            notes.push(format!(
                "exports for {path_text} are in {}: a resumed journal may come from another user and must not write \
                 outside the working directory and the folder of its run",
                inside.display()
            ));
        }
        *path_text = inside.display().to_string();
    }
    notes
}

/// True if a path, with links resolved, is below the working directory or the parent of the run's folder.
fn is_within(path: &Path, dir: &Path) -> bool {
    let leads_out = path.components().any(|part| part == Component::ParentDir);
    let parent = std::path::absolute(dir).ok().and_then(|dir| Some(dir.parent()?.to_owned()));
    let allowed = [Some(PathBuf::from(".")), parent];
    !leads_out && allowed.iter().flatten().any(|folder| resolve_links(path).starts_with(resolve_links(folder)))
}

/// Absolute path with links resolved in the part that exists.
fn resolve_links(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let real = |part: &Path| Some(fs::canonicalize(part).ok()?.join(path.strip_prefix(part).ok()?));
    path.ancestors().find_map(real).unwrap_or(path)
}

/// Returns a link below the run's folder, or a table folder, that leads elsewhere; files would be written through it.
pub(super) fn escaping_link(place: &OutputDirs) -> Option<PathBuf> {
    let tables = [Mode::Inference, Mode::Training].map(|mode| place.output_dir.join(mode.name()));
    let leads_out = |link: &PathBuf, folder: &Path| {
        fs::symlink_metadata(link).is_ok_and(|there| there.is_symlink())
            && fs::canonicalize(link).map_or(true, |target| !target.starts_with(resolve_links(folder)))
    };
    let table = tables.into_iter().find(|table| leads_out(table, &place.output_dir));
    table.or_else(|| symlinks_below(&place.dir).into_iter().find(|link| leads_out(link, &place.dir)))
}

fn symlinks_below(folder: &Path) -> Vec<PathBuf> {
    let mut links = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_symlink() => links.push(entry.path()),
            Ok(kind) if kind.is_dir() => links.extend(symlinks_below(&entry.path())),
            _ => {}
        }
    }
    links
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_outside_the_run_are_detected() {
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
