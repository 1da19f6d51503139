//! Reasons why a combination is unsupported, with alternatives derived from the table.

use super::table::Zoo;
use crate::{Device, DeviceKind, Implementation, Subject};
use calorimeter_recipes::PrecisionHint;

/// Reason for a missing table entry.
pub(super) fn missing_entry(zoo: &Zoo, subject: Subject, implementation: Implementation, device: Device) -> String {
    let kinds = |of: Implementation| -> Vec<DeviceKind> {
        DeviceKind::all().into_iter().filter(|kind| zoo.has(subject, of, *kind)).collect()
    };
    let implementations: Vec<Implementation> =
        Implementation::all().into_iter().filter(|of| !kinds(*of).is_empty()).collect();
    let here = implementations.iter().copied().filter(|of| zoo.has(subject, *of, device.kind()));
    let here: Vec<String> = here.map(|of| format!("`{of}`")).collect();
    let elsewhere = kinds(implementation);
    match (&implementations[..], implementation, device) {
        ([], ..) => format!("{subject} has no implementation in this version"),
        ([only], ..) => {
            let on = join_words(&kinds(*only), "and");
            format!("{subject} has only `{only}` on {on}, not `{implementation}` on {device}")
        }
        (_, Implementation::Fused, Device::Cpu) if !elsewhere.is_empty() => {
            let on = join_words(&elsewhere, "or");
            format!("the CPU backend does not fuse; {} it, `fused` needs {on}", run_clause(&here, "on"))
        }
        (_, Implementation::Cube, Device::Cpu) if !elsewhere.is_empty() => {
            let on = join_words(&elsewhere, "and");
            format!("CubeCL kernels run on {on}; on the CPU there is {}", join_words(&here, "and"))
        }
        _ if elsewhere.is_empty() => {
            format!("{subject} has no `{implementation}` kernel in this version; {} it", run_clause(&here, ""))
        }
        _ => {
            let on = join_words(&elsewhere, "and");
            let instead = if here.is_empty() { String::new() } else { format!("; {} it there", run_clause(&here, "")) };
            format!("`{implementation}` of {subject} supports {on} and not {device} in this version{instead}")
        }
    }
}

/// Reason why an implementation does not support a recipe with reduced precision.
pub(super) fn unsupported_shortcut(shortcut: PrecisionHint, implementation: Implementation, device: Device) -> String {
    let (what, instead) = match shortcut {
        PrecisionHint::Tf32 => (
            "round f32 operands to TF32",
            "`baseline` runs here, and its record reports if tensor cores used TF32 anyway",
        ),
        _ => ("use fast accumulation", "the recipe without `-fast` runs here, with f32 accumulators"),
    };
    format!("only `native` on cuda can {what}, not `{implementation}` on {device}; {instead}")
}

/// Formats `` `eager` and `fused` run``.
fn run_clause(implementations: &[String], word: &str) -> String {
    let verb = if implementations.len() > 1 { "run" } else { "runs" };
    format!("{} {verb} {word}", join_words(implementations, "and")).trim_end().to_owned()
}

/// Formats `cuda, vulkan and metal`.
fn join_words(names: &[impl ToString], word: &str) -> String {
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    match &names[..] {
        [] => "nothing".into(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} {word} {last}", first.join(", ")),
    }
}
