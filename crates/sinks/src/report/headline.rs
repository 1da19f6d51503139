//! Headline of a run: device, driver, dtypes, date and command.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;

use super::run::SummarizedRun;

/// Facts at the head of the page, in the subtitles of the plots, and in the Markdown summary.
#[derive(Serialize)]
pub(super) struct RunHeadline {
    /// Devices of the cases with name, driver and, for a CPU, number of threads.
    pub(super) devices: Vec<String>,
    pub(super) dtypes: Vec<String>,
    /// Start of the run; absent without a journal.
    pub(super) started: Option<String>,
    pub(super) command: Option<String>,
    /// Paths of the configuration files.
    pub(super) configs: Vec<String>,
}

impl RunHeadline {
    pub(super) fn new(run: &SummarizedRun) -> Self {
        let header = run.header.as_ref();
        let environment = header.map_or(&Value::Null, |header| &header.environment);
        let names: BTreeSet<String> = run.cases.iter().map(|case| case.device.to_string()).collect();
        let dtypes: BTreeSet<String> = run.cases.iter().map(|case| case.element.to_string()).collect();
        let sources = header.and_then(|header| header.config.get("sources")?.as_array()).into_iter().flatten();
        Self {
            devices: names.into_iter().map(|name| describe_device(name, environment)).collect(),
            dtypes: dtypes.into_iter().collect(),
            started: header
                .map(|header| header.started.replace('T', " ").chars().take(16).collect::<String>() + " UTC"),
            command: header.filter(|header| !header.argv.is_empty()).map(|header| header.argv.join(" ")),
            configs: sources.filter_map(|source| Some(source.get("path")?.as_str()?.to_owned())).collect(),
        }
    }

    /// Devices and dtypes of several runs in one line.
    pub(super) fn subtitle(headlines: &[Self]) -> String {
        let joined = |part: fn(&Self) -> &Vec<String>| {
            let all: BTreeSet<&str> = headlines.iter().flat_map(|one| part(one).iter().map(String::as_str)).collect();
            all.into_iter().collect::<Vec<_>>()
        };
        let (devices, dtypes) = (joined(|one| &one.devices).join("; "), joined(|one| &one.dtypes).join(", "));
        [devices, dtypes].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ")
    }
}

/// Device with its name and driver, as recorded in the environment of a run.
fn describe_device(device: String, environment: &Value) -> String {
    let described = environment.get("devices").and_then(Value::as_array).into_iter().flatten();
    let Some(facts) = described.into_iter().find(|known| known.get("device").is_some_and(|known| *known == *device))
    else {
        return device;
    };
    let text = |facts: &Value, name: &str| facts.get(name)?.as_str().filter(|text| !text.is_empty()).map(String::from);
    let driver =
        facts.get("sensors").and_then(|sensors| text(sensors, "driver")).map(|version| format!("driver {version}"));
    let name = text(facts, "name").filter(|name| *name != device);
    let parts: Vec<String> = [name, text(facts, "driver"), driver].into_iter().flatten().collect();
    if parts.is_empty() { device } else { format!("{device}: {}", parts.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn devices_have_name_and_driver() {
        let sensors = json!({ "driver": "580.159.04" });
        let environment = json!({ "devices": [
            { "device": "cuda:0", "name": "NVIDIA H200", "driver": "CUDA 13.0", "sensors": sensors },
            { "device": "cpu", "name": "EPYC", "driver": "" },
        ] });
        let describe = |device: &str| describe_device(device.into(), &environment);
        assert_eq!(describe("cuda:0"), "cuda:0: NVIDIA H200, CUDA 13.0, driver 580.159.04");
        assert_eq!(describe("cpu"), "cpu: EPYC");
        assert_eq!(describe("cuda:1"), "cuda:1");
        assert_eq!(describe_device("mock".into(), &Value::Null), "mock");
    }
}
