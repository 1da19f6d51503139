//! NVTX ranges for NVIDIA's profilers: one per stretch of launches of a case.

use calorimeter_case::CaseId;
#[cfg(feature = "native")]
use calorimeter_timing::nvtx;

/// NVTX range of the case that is currently launched. Without a profiler it costs one flag check.
pub(super) struct CaseRange {
    ids: Vec<CaseId>,
    current: Option<usize>,
    #[cfg(feature = "native")]
    open: Option<nvtx::NvtxRange>,
}

impl CaseRange {
    /// Creates a range without a current case.
    pub(super) fn new(ids: Vec<CaseId>) -> Self {
        Self {
            ids,
            current: None,
            #[cfg(feature = "native")]
            open: None,
        }
    }

    /// Switches to a case.
    pub(super) fn enter(&mut self, case: usize) {
        if self.current == Some(case) {
            return;
        }
        self.current = Some(case);
        #[cfg(feature = "native")]
        {
            // NVTX ranges nest: the previous one must end first.
            self.open = None;
            self.open = self.ids.get(case).map(|id| nvtx::NvtxRange::start(id));
        }
        #[cfg(not(feature = "native"))]
        let _ = &self.ids;
    }
}
