//! What algorithms cuBLASLt has for a product.

use std::{mem, ptr};

use cudarc::cublaslt::{
    result::{self, CublasError},
    sys::{
        self, cublasLtMatmulHeuristicResult_t as Candidate,
        cublasLtMatmulPreferenceAttributes_t as PreferenceAttribute, cublasLtReductionScheme_t as Reduction,
    },
};

use super::cublaslt_descriptor::owned;

/// A product as the library knows it. Handle and descriptors are live.
pub(super) struct Question {
    pub(super) handle: sys::cublasLtHandle_t,
    pub(super) operation: sys::cublasLtMatmulDesc_t,
    pub(super) w: sys::cublasLtMatrixLayout_t,
    pub(super) x: sys::cublasLtMatrixLayout_t,
    pub(super) y: sys::cublasLtMatrixLayout_t,
    pub(super) workspace_bytes: usize,
}

impl Question {
    /// How many to ask for.
    const MOST: usize = 8;

    /// What the library proposes, in the order of its estimate.
    pub(super) fn proposals(&self) -> Result<Vec<Candidate>, CublasError> {
        let Self { handle, operation, w, x, y, workspace_bytes } = *self;
        let preference = owned(result::create_matmul_pref(), result::destroy_matmul_pref)?;
        let workspace_limit = workspace_bytes as u64;
        // Partial sums of a split k are added in f32 too, never in the output's type.
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
        // SAFETY: integers, a float and a status whose zero is success: all zeros is a value of it.
        let mut candidates: [Candidate; Self::MOST] = unsafe { mem::zeroed() };
        let mut found = 0;
        // SAFETY: every descriptor is live, and the array has room for as many results as are asked for.
        unsafe {
            sys::cublasLtMatmulAlgoGetHeuristic(
                handle,
                operation,
                w,
                x,
                y,
                y,
                preference.raw,
                Self::MOST as i32,
                candidates.as_mut_ptr(),
                &mut found,
            )
        }
        .result()?;
        let found = found.clamp(0, Self::MOST as i32) as usize;
        Ok(candidates[..found].iter().copied().filter(|candidate| self.is_usable(candidate)).collect())
    }

    /// An algorithm that was proposed for another product, if the library has it for this one, too.
    pub(super) fn has(&self, other: &Candidate) -> Option<Candidate> {
        // SAFETY: as above.
        let mut candidate: Candidate = unsafe { mem::zeroed() };
        // SAFETY: every descriptor is live, and so are the algorithm and the place for what is said of it.
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
