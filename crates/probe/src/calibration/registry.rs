//! Append-only registry of profiles: one folder per hardware, one file per calibration.

use super::profile::{CalibrationProfile, SCHEMA, VERSION, hardware_id};
use calorimeter_case::read_text;
use calorimeter_sinks::{SinkError, atomic};
use chrono::Utc;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Maximum size of a profile; typical ones have a few hundred KiB.
const MAX_PROFILE_BYTES: u64 = 16 << 20;

/// Adds a profile under the current time. Never replaces a file.
pub fn add(registry: &Path, profile: &CalibrationProfile) -> Result<PathBuf, SinkError> {
    let bytes = to_json(profile);
    loop {
        let time = Utc::now().format("%Y%m%dT%H%M%S%.3fZ");
        let path = registry.join(&profile.environment.hardware_id).join(format!("{time}.json"));
        if atomic::write_new(&path, &bytes)? {
            return Ok(path);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Returns the newest profile of a hardware.
pub fn latest(registry: &Path, hardware: &str) -> Result<PathBuf, String> {
    let folder = registry.join(hardware_id(hardware));
    let files = std::fs::read_dir(&folder).map_err(|error| {
        let known = std::fs::read_dir(registry).into_iter().flatten().flatten();
        let mut known: Vec<String> = known.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        known.sort_unstable();
        format!("no profile of {hardware:?} in {}: {error}; available: {}", registry.display(), known.join(", "))
    })?;
    let profiles = files.flatten().map(|file| file.path()).filter(|path| path.extension().is_some_and(|e| e == "json"));
    profiles.max().ok_or_else(|| format!("no profile in {}", folder.display()))
}

/// True if a path names a profile, judged by its extension. Runs are folders, journals or Parquet files.
pub fn is_profile(path: &Path) -> bool {
    path.is_file() && path.extension().is_some_and(|ending| ending == "json")
}

impl CalibrationProfile {
    /// Reads a profile of this or an older version.
    pub fn read(path: &Path) -> Result<Self, String> {
        let file = path.display();
        let text = read_text(path, MAX_PROFILE_BYTES).map_err(|error| format!("cannot read {file}: {error}"))?;
        let value: serde_json::Value = serde_json::from_str(&text).map_err(|error| format!("{file}: {error}"))?;
        if value["schema"] != SCHEMA {
            let schema = &value["schema"];
            return Err(format!(
                "{file} is not a profile of `calorimeter calibrate`: schema {schema}, expected {SCHEMA}"
            ));
        }
        if value["version"].as_u64().is_none_or(|version| version > u64::from(VERSION)) {
            let version = &value["version"];
            return Err(format!(
                "{file}: unsupported version {version}, expected at most {VERSION}; update this program"
            ));
        }
        // Parsed from the text again: `Value` would sort the axes by name.
        serde_json::from_str(&text).map_err(|error| format!("{file}: {error}"))
    }

    /// Writes the profile to a file.
    pub fn write(&self, path: &Path) -> Result<(), SinkError> {
        atomic::write_named(path, &to_json(self))
    }
}

fn to_json(profile: &CalibrationProfile) -> Vec<u8> {
    // Keys are strings and all floats are finite, so serialization cannot fail.
    let mut bytes = serde_json::to_vec_pretty(profile).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}
