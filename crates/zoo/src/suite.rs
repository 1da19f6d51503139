//! Groups of operators.

/// Groups of operators, most of them a command of their own. What an operator is, it declares itself: a suite says only
/// where it is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Suite {
    /// Matrix products, quantisation, and what runs beside them in large models.
    Gemm,
    /// Normalisations, activations, losses.
    Ops,
    /// Patterns that are worth fusing.
    Fusion,
    /// Memory, linear algebra and launches, by which a machine is calibrated.
    Calibration,
    /// Copies between host and device, and exchange between devices.
    Links,
    /// What other programs measure on other machines.
    Elsewhere,
    /// What other crates add.
    Custom,
}

impl Suite {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gemm => "gemm",
            Self::Ops => "ops",
            Self::Fusion => "fusion",
            Self::Calibration => "calibration",
            Self::Links => "links",
            Self::Elsewhere => "elsewhere",
            Self::Custom => "custom",
        }
    }
}
