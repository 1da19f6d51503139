//! Reading of configuration files in any dialect.

use super::{ConfigSource, Document, accelerator, own, yaml};
use crate::entries::ConfigError;
use calorimeter_probe::devices::Devices;
use calorimeter_shapes::MAX_SHAPES;

/// Reads files in order; the first output folder applies.
pub fn read(sources: &[ConfigSource], devices: &Devices) -> Result<Document, ConfigError> {
    let mut all = Document::default();
    for source in sources {
        yaml::check(source)?;
        all.append(match accelerator::is_accelerator_file(&source.text) {
            true => accelerator::read(source, devices)?,
            false => own::read(source)?,
        });
        let sizes: usize = all.entries.iter().map(|entry| entry.sizes.len()).sum();
        if sizes as u64 > MAX_SHAPES {
            let message =
                format!("{sizes} sizes including the previous files, more than {MAX_SHAPES}; run the files separately");
            return Err(ConfigError::invalid(source.path.clone(), message));
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    /// Refuses each truncated file with a position, or accepts it.
    #[test]
    fn truncated_files_are_read_or_refused_with_position() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs");
        let paths = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
        let files: Vec<_> = paths.filter(|path| path.extension().is_some_and(|ending| ending == "yml")).collect();
        assert!(files.len() >= 7, "{files:?}");
        let devices = Devices::simulated([]);
        for path in files {
            let complete = fs::read_to_string(&path).unwrap();
            let (mut accepted, mut refused) = (0, 0);
            for (end, _) in complete.char_indices().chain([(complete.len(), ' ')]) {
                let source = ConfigSource { path: path.clone(), text: complete[..end].to_owned() };
                match read(&[source], &devices) {
                    Ok(document) => accepted += usize::from(!document.entries.is_empty()),
                    Err(ConfigError::Invalid { place, .. }) if is_place_in(&place, &complete[..end]) => refused += 1,
                    Err(error) => panic!("{end} bytes: {error}"),
                }
            }
            assert!(accepted > 0 && refused > 0, "{}: {accepted}, {refused}", path.display());
        }
    }

    /// True for `:line:column` within a text.
    fn is_place_in(place: &str, text: &str) -> bool {
        let numbers: Option<Vec<usize>> = place.split(':').skip(1).map(|number| number.parse().ok()).collect();
        let Some([line, column]) = numbers.as_deref() else { return false };
        let lines: Vec<&str> = text.split('\n').collect();
        lines.get(line - 1).is_some_and(|line| *column <= line.chars().count() + 1)
    }
}
