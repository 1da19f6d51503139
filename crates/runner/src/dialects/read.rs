//! From files to what they ask for, in whichever dialect each is written.

use super::{Document, Source, accelerator, own};
use crate::devices::Devices;
use crate::entries::ConfigError;

/// Reads files one after the other; of their folders for results the first counts.
pub fn read(sources: &[Source], devices: &Devices) -> Result<Document, ConfigError> {
    let mut all = Document::default();
    for source in sources {
        all.append(match accelerator::is_one(&source.text) {
            true => accelerator::read(source, devices)?,
            false => own::read(source)?,
        });
    }
    Ok(all)
}
