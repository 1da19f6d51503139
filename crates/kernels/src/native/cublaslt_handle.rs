//! cuBLASLt library handle.

use super::{NativeError, driver::driver_error, libraries::CudaLibrary};
use cudarc::{
    cublaslt::{
        result::{self, CublasError},
        sys,
    },
    driver::CudaContext,
};
use std::sync::Arc;

/// cuBLASLt handle of one device.
#[derive(Debug)]
pub(super) struct CublasLtHandle {
    pub(super) raw: sys::cublasLtHandle_t,
    pub(super) context: Arc<CudaContext>,
}

// SAFETY: a cuBLASLt handle may be used by several threads concurrently; each matmul passes its own stream.
unsafe impl Send for CublasLtHandle {}
// SAFETY: a cuBLASLt handle may be used by several threads concurrently; each matmul passes its own stream.
unsafe impl Sync for CublasLtHandle {}

impl CublasLtHandle {
    pub(super) fn create(context: &Arc<CudaContext>) -> Result<Self, NativeError> {
        CudaLibrary::CublasLt.require()?;
        context.bind_to_thread().map_err(driver_error("selecting the device"))?;
        let raw = result::create_handle().map_err(cublaslt_error("creating a cuBLASLt handle"))?;
        Ok(Self { raw, context: context.clone() })
    }
}

impl Drop for CublasLtHandle {
    fn drop(&mut self) {
        self.context.record_err(self.context.bind_to_thread());
        // SAFETY: created by `create` and destroyed once. An error cannot be handled here.
        let _ = unsafe { result::destroy_handle(self.raw) };
    }
}

/// Returns a converter from cuBLASLt errors to [`NativeError`] that names the action.
pub(super) fn cublaslt_error(doing: impl Into<String>) -> impl Fn(CublasError) -> NativeError {
    let doing = doing.into();
    move |error| NativeError::CublasLt { doing: doing.clone(), status: error.to_string() }
}
