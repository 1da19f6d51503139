//! Candidate algorithms for a matmul from cuBLASLt's heuristic.

use std::{mem, ptr};

use cudarc::cublaslt::{
    result::{self, CublasError},
    sys::{
        self, cublasLtMatmulHeuristicResult_t as Candidate,
        cublasLtMatmulPreferenceAttributes_t as PreferenceAttribute, cublasLtReductionScheme_t as Reduction,
    },
};

use super::cublaslt_descriptor::own_descriptor;

/// Matmul as passed to the heuristic. Handle and descriptors must be live.
pub(super) struct HeuristicQuery {
    pub(super) handle: sys::cublasLtHandle_t,
    pub(super) operation: sys::cublasLtMatmulDesc_t,
    pub(super) w: sys::cublasLtMatrixLayout_t,
    pub(super) x: sys::cublasLtMatrixLayout_t,
    pub(super) y: sys::cublasLtMatrixLayout_t,
    pub(super) workspace_bytes: usize,
}

impl HeuristicQuery {
    /// Number of candidates to request.
    const MAX_CANDIDATES: usize = 8;

    /// Returns the proposed algorithms, in the order of the library's estimate.
    pub(super) fn candidates(&self) -> Result<Vec<Candidate>, CublasError> {
        let Self { handle, operation, w, x, y, workspace_bytes } = *self;
        let preference = own_descriptor(result::create_matmul_pref(), result::destroy_matmul_pref)?;
        let workspace_limit = workspace_bytes as u64;
        // Split-K partial sums must be reduced in f32, never in the output dtype.
        let reductions = Reduction::CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE as u32;
        // SAFETY: a live preference; the first attribute is a 64-bit integer and the second a 32-bit mask.
        unsafe {
            result::set_matmul_pref_attribute(
                preference.raw,
                PreferenceAttribute::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                ptr::from_ref(&workspace_limit).cast(),
                size_of_val(&workspace_limit),
            )?;
            result::set_matmul_pref_attribute(
                preference.raw,
                PreferenceAttribute::CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                ptr::from_ref(&reductions).cast(),
                size_of_val(&reductions),
            )?;
        }
        // SAFETY: integers, a float and a status whose zero is success: all zeros is a valid value.
        let mut candidates: [Candidate; Self::MAX_CANDIDATES] = unsafe { mem::zeroed() };
        let mut found = 0;
        // SAFETY: every descriptor is live, and the array holds the number of results that is requested.
        unsafe {
            sys::cublasLtMatmulAlgoGetHeuristic(
                handle,
                operation,
                w,
                x,
                y,
                y,
                preference.raw,
                Self::MAX_CANDIDATES as i32,
                candidates.as_mut_ptr(),
                &mut found,
            )
        }
        .result()?;
        let found = found.clamp(0, Self::MAX_CANDIDATES as i32) as usize;
        Ok(candidates[..found].iter().copied().filter(|candidate| self.is_usable(candidate)).collect())
    }

    /// Returns an algorithm that was proposed for another matmul if the library supports it for this one.
    pub(super) fn check_candidate(&self, other: &Candidate) -> Option<Candidate> {
        // SAFETY: integers, a float and a status whose zero is success: all zeros is a valid value.
        let mut candidate: Candidate = unsafe { mem::zeroed() };
        // SAFETY: every descriptor is live, and so are the algorithm and the result.
        let answer = unsafe {
            sys::cublasLtMatmulAlgoCheck(
                self.handle,
                self.operation,
                self.w,
                self.x,
                self.y,
                self.y,
                &other.algo,
                &mut candidate,
            )
        };
        candidate.algo = other.algo;
        (answer.result().is_ok() && self.is_usable(&candidate)).then_some(candidate)
    }

    fn is_usable(&self, candidate: &Candidate) -> bool {
        candidate.state == sys::cublasStatus_t::CUBLAS_STATUS_SUCCESS && candidate.workspaceSize <= self.workspace_bytes
    }
}
