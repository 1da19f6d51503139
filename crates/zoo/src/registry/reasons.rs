//! Reasons why a combination is unsupported, with alternatives derived from the table.

use super::table::Zoo;
use crate::{Device, DeviceKind, Implementation, Subject};
use calorimeter_recipes::Shortcut;

/// Reason for a missing table entry.
pub fn absent(zoo: &Zoo, subject: Subject, implementation: Implementation, device: Device) -> String {
    let kinds = |of: Implementation| -> Vec<DeviceKind> {
        DeviceKind::known().into_iter().filter(|kind| zoo.has(subject, of, *kind)).collect()
    };
    let implementations: Vec<Implementation> =
        Implementation::known().into_iter().filter(|of| !kinds(*of).is_empty()).collect();
    let here = implementations.iter().copied().filter(|of| zoo.has(subject, *of, device.kind()));
    let here: Vec<String> = here.map(|of| format!("`{of}`")).collect();
    let elsewhere = kinds(implementation);
    match (&implementations[..], implementation, device) {
        ([], ..) => format!("{subject} has no implementation in this version"),
        ([only], ..) => {
            let on = listed(&kinds(*only), "and");
            format!("{subject} has only `{only}` on {on}, not `{implementation}` on {device}")
        }
        (_, Implementation::Fused, Device::Cpu) if !elsewhere.is_empty() => {
            let on = listed(&elsewhere, "or");
            format!("the CPU backend does not fuse; {} it, `fused` needs {on}", runs(&here, "on"))
        }
        (_, Implementation::Cube, Device::Cpu) if !elsewhere.is_empty() => {
            let on = listed(&elsewhere, "and");
            format!("CubeCL kernels run on {on}; on the CPU there is {}", listed(&here, "and"))
        }
        _ if elsewhere.is_empty() => {
            format!("{subject} has no `{implementation}` kernel in this version; {} it", runs(&here, ""))
        }
        _ => {
            let on = listed(&elsewhere, "and");
            let instead = if here.is_empty() { String::new() } else { format!("; {} it there", runs(&here, "")) };
            format!("`{implementation}` of {subject} supports {on} and not {device} in this version{instead}")
        }
    }
}

/// Reason why an implementation does not support a recipe with reduced precision.
pub fn no_shortcut(shortcut: Shortcut, implementation: Implementation, device: Device) -> String {
    let (what, instead) = match shortcut {
        Shortcut::Tf32 => (
            "round f32 operands to TF32",
            "`baseline` runs here, and its record reports if tensor cores used TF32 anyway",
        ),
        _ => ("use fast accumulation", "the recipe without `-fast` runs here, with f32 accumulators"),
    };
    format!("only `native` on cuda can {what}, not `{implementation}` on {device}; {instead}")
}

/// Formats `` `eager` and `fused` run``.
fn runs(implementations: &[String], word: &str) -> String {
    let verb = if implementations.len() > 1 { "run" } else { "runs" };
    format!("{} {verb} {word}", listed(implementations, "and")).trim_end().to_owned()
}

/// Formats `cuda, vulkan and metal`.
fn listed(names: &[impl ToString], word: &str) -> String {
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    match &names[..] {
        [] => "nothing".into(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} {word} {last}", first.join(", ")),
    }
}
