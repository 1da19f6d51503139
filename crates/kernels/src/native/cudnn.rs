//! cuDNN 9, as far as graphs of operations need it: its handle and its descriptors. The numbers are those
//! of the enumerations in its header.

use std::{
    ffi::{CStr, c_int, c_void},
    ptr,
    sync::Arc,
};

use cudarc::driver::CudaStream;

use super::{
    NativeError,
    cudnn_functions::{Functions, Raw, loaded},
    driver,
    libraries::Library,
};

fn functions() -> Result<&'static Functions, NativeError> {
    Library::Cudnn.require()?;
    Ok(loaded().expect("what is required is there"))
}

impl Functions {
    fn check(&self, doing: &'static str, status: c_int) -> Result<(), NativeError> {
        if status == 0 {
            return Ok(());
        }
        // SAFETY: answers a text of the library's own for any status.
        let status = unsafe { CStr::from_ptr((self.error_string)(status)) };
        Err(NativeError::Cudnn { doing, status: status.to_string_lossy().into_owned() })
    }
}

/// A handle whose work is enqueued on one stream.
pub(super) struct Handle {
    functions: &'static Functions,
    raw: Raw,
    stream: Arc<CudaStream>,
}

// SAFETY: a handle may be used by any one thread at a time.
unsafe impl Send for Handle {}

impl Handle {
    pub(super) fn create(stream: &Arc<CudaStream>) -> Result<Self, NativeError> {
        let functions = functions()?;
        stream.context().bind_to_thread().map_err(driver::failed("selecting the device"))?;
        let mut raw = ptr::null_mut();
        // SAFETY: writes one pointer; the device's context is current.
        functions.check("creating a cuDNN handle", unsafe { (functions.create)(&mut raw) })?;
        let handle = Self { functions, raw, stream: stream.clone() };
        // SAFETY: a live handle and a live stream, which the handle keeps.
        let status = unsafe { (functions.set_stream)(raw, stream.cu_stream().cast()) };
        functions.check("giving cuDNN a stream", status)?;
        Ok(handle)
    }

    /// Such as 9.10.2.
    pub(super) fn version(&self) -> String {
        // SAFETY: takes nothing and returns a number.
        let version = unsafe { (self.functions.version)() };
        format!("{}.{}.{}", version / 10_000, version / 100 % 100, version % 100)
    }

    /// Enqueues a finished plan on the memory of a finished pack.
    ///
    /// # Safety
    /// The pack's addresses are of memory that is as large as the plan's tensors and its workspace, and whose uses the
    /// handle's stream orders.
    pub(super) unsafe fn execute(&self, plan: &Descriptor, pack: &Descriptor) -> Result<(), NativeError> {
        self.stream.context().bind_to_thread().map_err(driver::failed("selecting the device"))?;
        // SAFETY: all three are live; the rest is the caller's.
        let status = unsafe { (self.functions.execute)(self.raw, plan.raw, pack.raw) };
        self.functions.check("enqueuing a plan", status)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let context = self.stream.context();
        context.record_err(context.bind_to_thread());
        // SAFETY: created by `create` and destroyed once. Nothing can be done about a refusal.
        let _ = unsafe { (self.functions.destroy)(self.raw) };
    }
}

/// Kinds of descriptors.
#[derive(Debug, Clone, Copy)]
#[repr(i32)]
pub(super) enum Kind {
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

/// A value of an attribute, by the library's number for its type.
pub(super) trait Value: Copy {
    const TYPE: c_int;
}

/// A type of numbers.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub(super) struct DataType(pub(super) c_int);

/// How engines are chosen.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub(super) struct Mode(pub(super) c_int);

/// Whether the filter is turned.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub(super) struct ConvolutionMode(pub(super) c_int);

/// A function of single numbers.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub(super) struct PointwiseMode(pub(super) c_int);

/// A descriptor that another refers to, which must outlive it.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub(super) struct Reference(Raw);

/// An address of the device.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub(super) struct Address(pub(super) u64);

/// The handle as a value.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
struct OfHandle(Raw);

macro_rules! values {
    ($($value:ty = $number:literal),*) => { $(impl Value for $value { const TYPE: c_int = $number; })* };
}
values! {
    OfHandle = 0, DataType = 1, bool = 2, i64 = 3, f32 = 4, Address = 6, ConvolutionMode = 7, Mode = 8, PointwiseMode = 14,
    Reference = 15
}

/// A descriptor: attributes are set, it is finished, and then it may be read and referred to.
pub(super) struct Descriptor {
    functions: &'static Functions,
    raw: Raw,
}

// SAFETY: a descriptor may be used by any one thread at a time.
unsafe impl Send for Descriptor {}

impl Descriptor {
    pub(super) fn new(kind: Kind) -> Result<Self, NativeError> {
        let functions = functions()?;
        let mut raw = ptr::null_mut();
        // SAFETY: writes one pointer.
        let status = unsafe { (functions.create_descriptor)(kind as c_int, &mut raw) };
        functions.check("creating a descriptor", status)?;
        Ok(Self { functions, raw })
    }

    /// With an attribute, by the library's number for it.
    pub(super) fn with<T: Value>(self, attribute: c_int, values: &[T]) -> Result<Self, NativeError> {
        let count = values.len() as i64;
        // SAFETY: a live descriptor; the library copies as many values of this type as are there.
        let status = unsafe {
            (self.functions.set_attribute)(self.raw, attribute, T::TYPE, count, values.as_ptr().cast::<c_void>())
        };
        self.functions.check("describing an operation", status).map(|()| self)
    }

    /// With the handle that it is for.
    pub(super) fn with_handle(self, attribute: c_int, handle: &Handle) -> Result<Self, NativeError> {
        self.with(attribute, &[OfHandle(handle.raw)])
    }

    pub(super) fn finished(self) -> Result<Self, NativeError> {
        // SAFETY: a live descriptor.
        let status = unsafe { (self.functions.finalize)(self.raw) };
        self.functions.check("finishing a description", status).map(|()| self)
    }

    /// For a descriptor that will not outlive this one.
    pub(super) fn reference(&self) -> Reference {
        Reference(self.raw)
    }

    /// A single number.
    pub(super) fn number(&self, attribute: c_int) -> Result<i64, NativeError> {
        let (mut value, mut count) = (0_i64, 0);
        // SAFETY: a live descriptor, and room for the one value that is asked for.
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
        self.functions.check("asking about a plan", status).map(|()| value)
    }

    /// Fills descriptors of one kind with those that an attribute has, and answers them: as many as there are, up to `most`.
    pub(super) fn descriptors(&self, attribute: c_int, kind: Kind, most: usize) -> Result<Vec<Self>, NativeError> {
        let mut descriptors: Vec<Self> = (0..most).map(|_| Self::new(kind)).collect::<Result<_, _>>()?;
        let mut raw: Vec<Raw> = descriptors.iter().map(|descriptor| descriptor.raw).collect();
        let mut count = 0;
        // SAFETY: live descriptors of the kind that the attribute has, as many as are asked for.
        let status = unsafe {
            (self.functions.get_attribute)(
                self.raw,
                attribute,
                Reference::TYPE,
                most as i64,
                &mut count,
                raw.as_mut_ptr().cast::<c_void>(),
            )
        };
        self.functions.check("asking for engines", status)?;
        descriptors.truncate(count.clamp(0, most as i64) as usize);
        Ok(descriptors)
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: created by `new` and destroyed once. Nothing can be done about a refusal.
        let _ = unsafe { (self.functions.destroy_descriptor)(self.raw) };
    }
}
