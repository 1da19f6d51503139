//! `single_device_hbm_copy`: copy of `num_elements` elements within device memory. Traffic: one read and one write per
//! element.

mod burn;
#[cfg(feature = "native")]
mod native;
mod reference;

use crate::operators::dtypes::{FLOATS, check_dtypes};
use crate::registry::table::Zoo;
use crate::{Cost, Operand, Operation, OutputSlot, Signature, Spec, Suite, ZooError};

/// Operator `single_device_hbm_copy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HbmCopy;

/// Registers `single_device_hbm_copy` with its implementations.
pub(super) fn register(zoo: &Zoo) {
    zoo.operators([HbmCopy]).burn().native();
}

impl Signature for HbmCopy {
    fn name(&self) -> &'static str {
        "single_device_hbm_copy"
    }

    fn description(&self) -> &'static str {
        "copy of num_elements elements within device memory"
    }

    fn axes(&self) -> &'static [&'static str] {
        &["num_elements"]
    }

    fn check(&self, spec: &Spec) -> Result<(), ZooError> {
        check_dtypes(self.name(), spec, FLOATS, &[])
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        vec![Operand::normal(1, spec.axis("num_elements"), spec.element)]
    }

    fn outputs(&self, spec: &Spec) -> Vec<OutputSlot> {
        vec![OutputSlot::new(1, spec.axis("num_elements"), spec.element)]
    }
}

impl Cost for HbmCopy {
    fn flops(&self, _: &Spec) -> u64 {
        0
    }
}

impl Operation for HbmCopy {
    fn suite(&self) -> Suite {
        Suite::Gemm
    }
}
