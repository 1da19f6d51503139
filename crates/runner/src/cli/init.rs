//! `calorimeter init`: writes a commented configuration file.

use super::error::CliError;
use crate::Exit;
use calorimeter_sinks::{SinkError, log_line};
use clap::Args;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::PathBuf;

/// Commented configuration file.
const TEMPLATE: &str = include_str!("init.yml");

/// Write a commented configuration file to edit.
///
/// The file measures int8 weights in two models on the best device. Existing files are never overwritten.
#[derive(Debug, Args)]
pub(super) struct InitArguments {
    /// File to create
    #[arg(value_name = "FILE", default_value = "calorimeter.yml")]
    pub file: PathBuf,
}

pub(super) fn init(InitArguments { file: path }: InitArguments) -> Result<Exit, CliError> {
    let mut file = File::create_new(&path).map_err(|cause| match cause.kind() {
        ErrorKind::AlreadyExists => {
            CliError::Usage(format!("{} already exists and is not overwritten; choose another name", path.display()))
        }
        _ => SinkError::Write { path: path.clone(), cause }.into(),
    })?;
    file.write_all(TEMPLATE.as_bytes()).map_err(|cause| SinkError::Write { path: path.clone(), cause })?;
    let path = path.display();
    log_line!("wrote {path}; edit it, then: calorimeter run {path}");
    Ok(Exit::Success)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialects::ConfigSource;
    use crate::entries::Overrides;
    use crate::run::Request;

    #[test]
    fn template_can_be_planned() {
        let source = ConfigSource { path: "calorimeter.yml".into(), text: TEMPLATE.into() };
        let overrides = Overrides { device: Some("cpu".parse().unwrap()), ..Overrides::default() };
        let prepared = Request { sources: vec![source], overrides, ..Request::default() }.prepare().unwrap();
        assert!(prepared.notes.is_empty(), "{:?}", prepared.notes);
        let unsupported: Vec<_> = prepared.plan().cases().filter(|(_, supported)| supported.is_err()).collect();
        assert!(prepared.plan().len() >= 8 && unsupported.is_empty(), "{unsupported:?}");
    }

    /// Each line that is commented out is a valid setting.
    #[test]
    fn optional_settings_of_the_template_are_valid() {
        let mut changed = 0;
        for line in TEMPLATE.lines().filter(|line| line.trim_start().starts_with("#: ")) {
            let text = TEMPLATE.replace(line, &line.replacen("#: ", "", 1));
            let source = ConfigSource { path: "calorimeter.yml".into(), text };
            let overrides = Overrides { device: Some("cpu".parse().unwrap()), ..Overrides::default() };
            let planned = Request { sources: vec![source], overrides, ..Request::default() }.prepare();
            assert!(planned.is_ok(), "{line}: {:?}", planned.err());
            changed += 1;
        }
        assert!(changed >= 4);
    }
}
