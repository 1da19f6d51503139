//! RAII wrappers of cuBLASLt descriptors.

use std::ptr;

use cudarc::cublaslt::{
    result::{self, CublasError},
    sys::{self, cublasLtMatmulDescAttributes_t as DescAttribute},
};

/// Descriptor with its destructor function.
#[derive(Debug)]
pub(super) struct OwnedDescriptor<T: Copy> {
    pub(super) raw: T,
    destroy: unsafe fn(T) -> Result<(), CublasError>,
}

pub(super) fn own_descriptor<T: Copy>(
    raw: Result<T, CublasError>,
    destroy: unsafe fn(T) -> Result<(), CublasError>,
) -> Result<OwnedDescriptor<T>, CublasError> {
    Ok(OwnedDescriptor { raw: raw?, destroy })
}

impl<T: Copy> Drop for OwnedDescriptor<T> {
    fn drop(&mut self) {
        // SAFETY: `raw` came from the matching create function and is destroyed once. An error cannot be handled here.
        let _ = unsafe { (self.destroy)(self.raw) };
    }
}

impl OwnedDescriptor<sys::cublasLtMatmulDesc_t> {
    /// Sets an attribute; `T` must be its type.
    pub(super) fn set_attribute<T: Copy>(&self, attribute: DescAttribute, value: T) -> Result<(), CublasError> {
        // SAFETY: a live descriptor; the library copies the value before it returns and rejects a wrong size.
        unsafe { result::set_matmul_desc_attribute(self.raw, attribute, ptr::from_ref(&value).cast(), size_of::<T>()) }
    }

    /// Sets the device addresses of the scales of A (w) and B (x).
    pub(super) fn set_scales(&self, [a, b]: [u64; 2]) -> Result<(), CublasError> {
        self.set_attribute(DescAttribute::CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, a)?;
        self.set_attribute(DescAttribute::CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, b)
    }
}
