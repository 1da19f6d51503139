//! What cuBLASLt is told about a product.

use std::ptr;

use cudarc::cublaslt::{
    result::{self, CublasError},
    sys::{self, cublasLtMatmulDescAttributes_t as DescAttribute},
};

/// A descriptor with the function that destroys it.
#[derive(Debug)]
pub(super) struct Owned<T: Copy> {
    pub(super) raw: T,
    destroy: unsafe fn(T) -> Result<(), CublasError>,
}

pub(super) fn owned<T: Copy>(
    raw: Result<T, CublasError>,
    destroy: unsafe fn(T) -> Result<(), CublasError>,
) -> Result<Owned<T>, CublasError> {
    Ok(Owned { raw: raw?, destroy })
}

impl<T: Copy> Drop for Owned<T> {
    fn drop(&mut self) {
        // SAFETY: `raw` came from the matching create function and is destroyed once. Nothing can be done about a refusal.
        let _ = unsafe { (self.destroy)(self.raw) };
    }
}

impl Owned<sys::cublasLtMatmulDesc_t> {
    /// Sets an attribute whose value is of the type given.
    pub(super) fn set<T: Copy>(&self, attribute: DescAttribute, value: T) -> Result<(), CublasError> {
        // SAFETY: a live descriptor; the library reads the value before it returns, and refuses a size that is not the
        // attribute's.
        unsafe { result::set_matmul_desc_attribute(self.raw, attribute, ptr::from_ref(&value).cast(), size_of::<T>()) }
    }

    /// The device addresses of the scales of the library's A and B, which are our w and x.
    pub(super) fn set_scales(&self, [a, b]: [u64; 2]) -> Result<(), CublasError> {
        self.set(DescAttribute::CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, a)?;
        self.set(DescAttribute::CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, b)
    }
}
