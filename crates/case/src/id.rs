//! Case ids.

use crate::{Axes, Device, Element, Implementation, Mode, Name, Regime};
use std::sync::Arc;
use std::{fmt, ops::Deref};

/// Readable id, unique within a run, e.g. `inference/linear/int8wo/fused/cuda:0/bf16/m1024-k1024-n1024`. The plan
/// builds it once; comparisons, workers and journals refer to cases by it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CaseId(Arc<str>);

/// Components of a case id.
#[derive(Clone, Copy, Debug)]
pub struct CaseIdentity<'a> {
    /// Mode or suite.
    pub mode: Mode,
    /// Model or operator.
    pub workload: Name,
    /// Recipe, and the sparsity combined with it.
    pub variant: (Name, Option<Name>),
    /// Implementation.
    pub implementation: Implementation,
    /// Device.
    pub device: Device,
    /// Dtype.
    pub element: Element,
    /// Dtype of the outputs, if it can be chosen.
    pub output: Option<Element>,
    /// Shape.
    pub axes: &'a Axes,
    /// Timing mode.
    pub regime: Regime,
    /// Number of equal cases earlier in the plan.
    pub repeat: u32,
}

impl fmt::Display for CaseIdentity<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { mode, workload, variant: (recipe, sparsity), implementation, device, element, .. } = self;
        write!(f, "{mode}/{workload}/{recipe}")?;
        if let Some(sparsity) = sparsity {
            write!(f, "+{sparsity}")?;
        }
        write!(f, "/{implementation}/{device}/{element}")?;
        if let Some(output) = self.output {
            write!(f, "-{output}")?;
        }
        if self.axes.iter().next().is_some() {
            write!(f, "/{}", self.axes)?;
        }
        if self.regime != Regime::default() {
            write!(f, "/{}", self.regime)?;
        }
        match self.repeat {
            0 => Ok(()),
            repeat => write!(f, "#{}", repeat + 1),
        }
    }
}

impl From<CaseIdentity<'_>> for CaseId {
    fn from(identity: CaseIdentity<'_>) -> Self {
        identity.to_string().into()
    }
}

impl From<&str> for CaseId {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl From<String> for CaseId {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl Deref for CaseId {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl std::str::FromStr for CaseId {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(text.into())
    }
}

crate::serde_by_name!(CaseId, "the id of a case");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Dtype, Suite};

    #[test]
    fn id_omits_default_parts() {
        let axes = Axes::from([("m", 8), ("k", 64), ("n", 32)]);
        let plain = CaseIdentity {
            mode: Mode::Inference,
            workload: Name::new("linear"),
            variant: (Name::new("int8wo"), None),
            implementation: Implementation::Fused,
            device: Device::Cuda(0),
            element: Dtype::Bf16.into(),
            output: None,
            axes: &axes,
            regime: Regime::DeviceCold,
            repeat: 0,
        };
        assert_eq!(&*CaseId::from(plain), "inference/linear/int8wo/fused/cuda:0/bf16/m8-k64-n32");
        let special = CaseIdentity {
            mode: Mode::Operator(Suite::Gemm),
            workload: Name::new("gemm"),
            variant: (Name::new("baseline"), Some(Name::new("semi-sparse"))),
            device: Device::Cpu,
            output: Some(Element::E4m3),
            regime: Regime::HostE2e,
            repeat: 1,
            ..plain
        };
        let id = "gemm/gemm/baseline+semi-sparse/fused/cpu/bf16-e4m3/m8-k64-n32/host-e2e#2";
        assert_eq!(&*CaseId::from(special), id);
    }
}
