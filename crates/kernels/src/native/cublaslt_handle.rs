//! The handle of cuBLASLt.

use super::{NativeError, driver::failed, libraries::Library};
use cudarc::{
    cublaslt::{
        result::{self, CublasError},
        sys,
    },
    driver::CudaContext,
};
use std::sync::Arc;

/// A cuBLASLt handle for one device.
#[derive(Debug)]
pub(super) struct Handle {
    pub(super) raw: sys::cublasLtHandle_t,
    pub(super) context: Arc<CudaContext>,
}

// SAFETY: a cuBLASLt handle may be used from several threads at once; each product names its own stream.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

impl Handle {
    pub(super) fn create(context: &Arc<CudaContext>) -> Result<Self, NativeError> {
        Library::CublasLt.require()?;
        context.bind_to_thread().map_err(failed("selecting the device"))?;
        let raw = result::create_handle().map_err(refused("creating a cuBLASLt handle"))?;
        Ok(Self { raw, context: context.clone() })
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.context.record_err(self.context.bind_to_thread());
        // SAFETY: created by `create` and destroyed once. Nothing can be done about a refusal.
        let _ = unsafe { result::destroy_handle(self.raw) };
    }
}

/// Names the action in an error of the library.
pub(super) fn refused(doing: impl Into<String>) -> impl Fn(CublasError) -> NativeError {
    let doing = doing.into();
    move |error| NativeError::CublasLt { doing: doing.clone(), status: error.to_string() }
}
