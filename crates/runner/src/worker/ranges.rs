//! Ranges that NVIDIA's tools show: one for each stretch in which a case is launched.

use calorimeter_case::CaseId;
#[cfg(feature = "cuda")]
use calorimeter_timing::nvtx;

/// The range of the case that is launched at this moment. Nothing but a look at a flag while no tool listens.
pub struct Range {
    ids: Vec<CaseId>,
    current: Option<usize>,
    #[cfg(feature = "cuda")]
    open: Option<nvtx::Range>,
}

impl Range {
    /// No case yet.
    pub fn new(ids: Vec<CaseId>) -> Self {
        Self {
            ids,
            current: None,
            #[cfg(feature = "cuda")]
            open: None,
        }
    }

    /// This case from now on.
    pub fn enter(&mut self, case: usize) {
        if self.current == Some(case) {
            return;
        }
        self.current = Some(case);
        #[cfg(feature = "cuda")]
        {
            // Ranges are stacked: the one before ends first.
            self.open = None;
            self.open = self.ids.get(case).map(|id| nvtx::Range::start(id));
        }
        #[cfg(not(feature = "cuda"))]
        let _ = &self.ids;
    }
}
