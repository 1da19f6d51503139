//! cuDNN 9 backend API for operation graphs: handle and descriptors. Numeric values are those of the enumerations in
//! its header.

use std::{
    ffi::{CStr, c_int, c_void},
    ptr,
    sync::Arc,
};

use cudarc::driver::CudaStream;

use super::{
    NativeError,
    cudnn_functions::{CudnnFunctions, RawPointer, load_once},
    driver,
    libraries::CudaLibrary,
};

fn functions() -> Result<&'static CudnnFunctions, NativeError> {
    CudaLibrary::Cudnn.require()?;
    Ok(load_once().expect("the library was loaded by `require`"))
}

impl CudnnFunctions {
    fn check(&self, doing: &'static str, status: c_int) -> Result<(), NativeError> {
        if status == 0 {
            return Ok(());
        }
        // SAFETY: returns a static string for any status.
        let status = unsafe { CStr::from_ptr((self.error_string)(status)) };
        Err(NativeError::Cudnn { doing, status: status.to_string_lossy().into_owned() })
    }
}

/// cuDNN handle bound to one stream.
pub(super) struct CudnnHandle {
    functions: &'static CudnnFunctions,
    raw: RawPointer,
    stream: Arc<CudaStream>,
}

// SAFETY: a handle may be used by one thread at a time, on any thread.
unsafe impl Send for CudnnHandle {}

impl CudnnHandle {
    pub(super) fn create(stream: &Arc<CudaStream>) -> Result<Self, NativeError> {
        let functions = functions()?;
        stream.context().bind_to_thread().map_err(driver::driver_error("selecting the device"))?;
        let mut raw = ptr::null_mut();
        // SAFETY: writes one pointer; the device's context is current.
        functions.check("creating a cuDNN handle", unsafe { (functions.create)(&mut raw) })?;
        let handle = Self { functions, raw, stream: stream.clone() };
        // SAFETY: a live handle and a live stream, which the handle keeps alive.
        let status = unsafe { (functions.set_stream)(raw, stream.cu_stream().cast()) };
        functions.check("setting the cuDNN stream", status)?;
        Ok(handle)
    }

    /// Library version, e.g. 9.10.2.
    pub(super) fn version(&self) -> String {
        // SAFETY: takes no arguments and returns an integer.
        let version = unsafe { (self.functions.version)() };
        format!("{}.{}.{}", version / 10_000, version / 100 % 100, version % 100)
    }

    /// Enqueues a finalized execution plan on the memory of a finalized variant pack.
    ///
    /// # Safety
    /// The addresses in the pack must refer to memory that is as large as the tensors and the workspace of the plan,
    /// and that is accessed only on the stream of the handle.
    pub(super) unsafe fn execute(&self, plan: &CudnnDescriptor, pack: &CudnnDescriptor) -> Result<(), NativeError> {
        self.stream.context().bind_to_thread().map_err(driver::driver_error("selecting the device"))?;
        // SAFETY: all three are live; the caller guarantees the memory.
        let status = unsafe { (self.functions.execute)(self.raw, plan.raw, pack.raw) };
        self.functions.check("enqueuing a plan", status)
    }
}

impl Drop for CudnnHandle {
    fn drop(&mut self) {
        let context = self.stream.context();
        context.record_err(context.bind_to_thread());
        // SAFETY: created by `create` and destroyed once. An error cannot be handled here.
        let _ = unsafe { (self.functions.destroy)(self.raw) };
    }
}

/// Descriptor types of the backend API.
#[derive(Debug, Clone, Copy)]
#[repr(i32)]
pub(super) enum DescriptorKind {
    Pointwise = 0,
    Convolution = 1,
    Engine = 2,
    EngineConfig = 3,
    Heuristics = 4,
    Plan = 5,
    ConvolutionForward = 10,
    PointwiseOperation = 13,
    Graph = 15,
    VariantPack = 16,
    Tensor = 17,
}

/// Attribute value, with the type code of the library.
pub(super) trait AttributeValue: Copy {
    const TYPE: c_int;
}

/// Element type of a tensor.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub(super) struct CudnnDataType(pub(super) c_int);

/// Engine heuristic.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub(super) struct HeuristicMode(pub(super) c_int);

/// Convolution or cross-correlation.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub(super) struct ConvolutionMode(pub(super) c_int);

/// Pointwise function.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub(super) struct PointwiseMode(pub(super) c_int);

/// Reference to a descriptor, which must outlive the referring one.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub(super) struct DescriptorRef(RawPointer);

/// Device address.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub(super) struct DeviceAddress(pub(super) u64);

/// Handle as an attribute value.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
struct HandleAttribute(RawPointer);

macro_rules! values {
    ($($value:ty = $number:literal),*) => { $(impl AttributeValue for $value { const TYPE: c_int = $number; })* };
}
values! {
    HandleAttribute = 0, CudnnDataType = 1, bool = 2, i64 = 3, f32 = 4, DeviceAddress = 6, ConvolutionMode = 7, HeuristicMode = 8, PointwiseMode = 14,
    DescriptorRef = 15
}

/// Backend descriptor: attributes are set, then it is finalized, then it can be queried and referred to.
pub(super) struct CudnnDescriptor {
    functions: &'static CudnnFunctions,
    raw: RawPointer,
}

// SAFETY: a descriptor may be used by one thread at a time, on any thread.
unsafe impl Send for CudnnDescriptor {}

impl CudnnDescriptor {
    pub(super) fn new(kind: DescriptorKind) -> Result<Self, NativeError> {
        let functions = functions()?;
        let mut raw = ptr::null_mut();
        // SAFETY: writes one pointer.
        let status = unsafe { (functions.create_descriptor)(kind as c_int, &mut raw) };
        functions.check("creating a descriptor", status)?;
        Ok(Self { functions, raw })
    }

    /// Sets an attribute by its numeric name.
    pub(super) fn with_attribute<T: AttributeValue>(self, attribute: c_int, values: &[T]) -> Result<Self, NativeError> {
        let count = values.len() as i64;
        // SAFETY: a live descriptor; the library copies `count` values of this type.
        let status = unsafe {
            (self.functions.set_attribute)(self.raw, attribute, T::TYPE, count, values.as_ptr().cast::<c_void>())
        };
        self.functions.check("setting a descriptor attribute", status).map(|()| self)
    }

    /// Sets the handle attribute.
    pub(super) fn with_handle(self, attribute: c_int, handle: &CudnnHandle) -> Result<Self, NativeError> {
        self.with_attribute(attribute, &[HandleAttribute(handle.raw)])
    }

    pub(super) fn finalize(self) -> Result<Self, NativeError> {
        // SAFETY: a live descriptor.
        let status = unsafe { (self.functions.finalize)(self.raw) };
        self.functions.check("finalizing a descriptor", status).map(|()| self)
    }

    /// Returns a reference for a descriptor that does not outlive this one.
    pub(super) fn reference(&self) -> DescriptorRef {
        DescriptorRef(self.raw)
    }

    /// Queries an integer attribute.
    pub(super) fn integer_attribute(&self, attribute: c_int) -> Result<i64, NativeError> {
        let (mut value, mut count) = (0_i64, 0);
        // SAFETY: a live descriptor, and memory for the one value that is requested.
        let status = unsafe {
            (self.functions.get_attribute)(
                self.raw,
                attribute,
                i64::TYPE,
                1,
                &mut count,
                ptr::from_mut(&mut value).cast::<c_void>(),
            )
        };
        self.functions.check("querying a descriptor attribute", status).map(|()| value)
    }

    /// Queries an attribute that is an array of descriptors; returns at most `most` of them.
    pub(super) fn descriptor_array(
        &self,
        attribute: c_int,
        kind: DescriptorKind,
        most: usize,
    ) -> Result<Vec<Self>, NativeError> {
        let mut descriptors: Vec<Self> = (0..most).map(|_| Self::new(kind)).collect::<Result<_, _>>()?;
        let mut raw: Vec<RawPointer> = descriptors.iter().map(|descriptor| descriptor.raw).collect();
        let mut count = 0;
        // SAFETY: `most` live descriptors of the attribute's type.
        let status = unsafe {
            (self.functions.get_attribute)(
                self.raw,
                attribute,
                DescriptorRef::TYPE,
                most as i64,
                &mut count,
                raw.as_mut_ptr().cast::<c_void>(),
            )
        };
        self.functions.check("querying engine configurations", status)?;
        descriptors.truncate(count.clamp(0, most as i64) as usize);
        Ok(descriptors)
    }
}

impl Drop for CudnnDescriptor {
    fn drop(&mut self) {
        // SAFETY: created by `new` and destroyed once. An error cannot be handled here.
        let _ = unsafe { (self.functions.destroy_descriptor)(self.raw) };
    }
}
