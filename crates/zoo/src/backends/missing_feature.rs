//! Cargo feature that this build lacks.

use crate::{DeviceKind, Implementation};
use std::fmt;

/// Cargo feature that this build lacks: `vulkan, metal: not part of this build; build with …`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingFeature {
    /// Device kinds of the backend.
    pub kinds: &'static [DeviceKind],
    /// Name of the feature.
    pub feature: &'static str,
    /// Implementations that the feature adds.
    pub implementations: &'static [Implementation],
    /// True if `native` runs on these devices without the feature.
    pub has_native: bool,
}

impl MissingFeature {
    /// Missing devices, or missing implementations on devices that `native` supports: `eager, fused, cube on cuda`.
    pub fn subject(&self) -> String {
        let kinds = join(self.kinds);
        if self.has_native { format!("{} on {kinds}", join(self.implementations)) } else { kinds }
    }

    /// Command-line option of Cargo that adds the feature.
    pub fn remedy(&self) -> String {
        remedy(self.feature)
    }
}

/// Reason why an implementation is unsupported, with the remedy.
pub(crate) fn missing_feature(feature: &str) -> String {
    format!("not part of this build; {}", remedy(feature))
}

fn remedy(feature: &str) -> String {
    format!("build with `--features {feature}`")
}

fn join(items: &[impl ToString]) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

impl fmt::Display for MissingFeature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.subject(), missing_feature(self.feature))
    }
}

#[cfg(test)]
mod tests {
    use super::super::missing_features;
    use super::*;

    #[test]
    fn subject_names_devices_or_implementations() {
        let devices = MissingFeature {
            kinds: &[DeviceKind::Vulkan, DeviceKind::Metal],
            feature: "wgpu",
            implementations: &[Implementation::Eager, Implementation::Fused],
            has_native: false,
        };
        assert_eq!(devices.subject(), "vulkan, metal");
        let implementations = MissingFeature { has_native: true, ..devices };
        assert_eq!(implementations.subject(), "eager, fused on vulkan, metal");
    }

    #[test]
    fn missing_features_match_this_build() {
        let missing: Vec<&str> = missing_features().iter().map(|missing| missing.feature).collect();
        let features =
            [("cpu", cfg!(feature = "cpu")), ("cuda", cfg!(feature = "cuda")), ("wgpu", cfg!(feature = "wgpu"))];
        let absent: Vec<&str> = features.iter().filter(|(_, present)| !present).map(|(name, _)| *name).collect();
        assert_eq!(missing, absent);
        let native = missing_features().into_iter().find(|missing| missing.kinds.contains(&DeviceKind::Cuda));
        assert!(native.is_none_or(|missing| missing.has_native == cfg!(feature = "native")));
    }
}
