//! Why something cannot be run, and what there is instead: read from the table.

use super::table::Zoo;
use crate::{Device, DeviceKind, Implementation, Subject};
use calorimeter_recipes::Shortcut;

/// Why the table has no entry.
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
        ([], ..) => format!("nothing runs {subject} in this version"),
        ([only], ..) => {
            let on = listed(&kinds(*only), "and");
            format!("{subject} is measured by `{only}` on {on} alone, not by `{implementation}` on {device}")
        }
        (_, Implementation::Fused, Device::Cpu) if !elsewhere.is_empty() => {
            let on = listed(&elsewhere, "or");
            format!("the CPU backend fuses nothing; {} it, `fused` needs {on}", runs(&here, "on"))
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
            format!("`{implementation}` of {subject} is written for {on} and not for {device} in this version{instead}")
        }
    }
}

/// Why kernels are not told to be coarser than their numbers.
pub fn no_shortcut(shortcut: Shortcut, implementation: Implementation, device: Device) -> String {
    let (what, instead) = match shortcut {
        Shortcut::Tf32 => (
            "multiply f32 as TF32",
            "`baseline` runs here, and its record says so where tensor cores made TF32 of it all the same",
        ),
        _ => (
            "add up products of codes in the registers of tensor cores",
            "the recipe without `-fast` runs here, with sums in f32",
        ),
    };
    format!("`native` on cuda alone can be told to {what}, not `{implementation}` on {device}; {instead}")
}

/// `` `eager` and `fused` run``
fn runs(implementations: &[String], word: &str) -> String {
    let verb = if implementations.len() > 1 { "run" } else { "runs" };
    format!("{} {verb} {word}", listed(implementations, "and")).trim_end().to_owned()
}

/// `cuda, vulkan and metal`
fn listed(names: &[impl ToString], word: &str) -> String {
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    match &names[..] {
        [] => "nothing".into(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} {word} {last}", first.join(", ")),
    }
}
