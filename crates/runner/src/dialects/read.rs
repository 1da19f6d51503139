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
