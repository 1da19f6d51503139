//! A kernel of somebody else's source.

use std::{fmt, sync::Arc};

use cudarc::{
    driver::{CudaFunction, CudaStream, result, sys::CUfunction_attribute},
    nvrtc::Ptx,
};

use super::{Buffer, Machine, NativeError, driver::failed, nvrtc};

/// How a kernel is launched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaunchForm {
    /// Blocks in x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y and z.
    pub block: [u32; 3],
    /// Bytes of shared memory for each block, besides what the source declares.
    pub shared: u32,
}

/// What a kernel is given.
#[derive(Debug)]
pub enum ForeignArgument {
    /// The address of device memory.
    Buffer(Buffer),
    /// The bytes of a value, as the parameter's type has them.
    Value(Vec<u8>),
}

/// A kernel of a CUDA C++ source that is not ours, compiled for this GPU.
///
/// Nobody checks what it touches: one that goes beyond its buffers spoils device memory, or ends its context. A process
/// that runs it should have nothing to lose.
#[derive(Debug)]
pub struct ForeignKernel {
    function: CudaFunction,
    stream: Arc<CudaStream>,
    form: LaunchForm,
    entry: String,
}

impl fmt::Display for LaunchForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sides = |[x, y, z]: [u32; 3]| format!("{x}x{y}x{z}");
        write!(f, "{} blocks of {} threads", sides(self.grid), sides(self.block))?;
        if self.shared > 0 { write!(f, ", {} bytes of shared memory", self.shared) } else { Ok(()) }
    }
}

impl ForeignKernel {
    /// Compiles a source for its kernel `entry`, which may be in a namespace or one of a template: `add<float>`.
    pub fn compile(
        machine: &Machine,
        path: &str,
        text: &str,
        entry: &str,
        form: LaunchForm,
    ) -> Result<Self, NativeError> {
        let (image, name) = nvrtc::compile_foreign(path, text, entry, machine.compute_capability())?;
        let context = machine.stream().context();
        let module = context.load_module(Ptx::from_binary(image)).map_err(failed("loading a compiled kernel"))?;
        let function = module.load_function(&name).map_err(failed("looking up a compiled kernel"))?;
        // More than 48 KiB must be asked for; no GPU has as much as an i32 counts.
        let shared = i32::try_from(form.shared).map_err(|_| NativeError::InvalidSize {
            what: "the shared memory of a block",
            limit: i32::MAX as usize,
            value: form.shared as usize,
        })?;
        if shared > 0 {
            let asked =
                function.set_attribute(CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared);
            asked.map_err(failed("asking for the memory of a block"))?;
        }
        Ok(Self { function, stream: machine.stream().clone(), form, entry: entry.to_string() })
    }

    /// Enqueues one launch with arguments in the order of its parameters. Their number and types are taken on trust.
    pub fn enqueue(&self, arguments: &mut [ForeignArgument]) -> Result<(), NativeError> {
        let addresses: Vec<u64> = arguments
            .iter()
            .map(|argument| match argument {
                ForeignArgument::Buffer(buffer) => buffer.memory.address("of the kernel", &self.stream, 0),
                ForeignArgument::Value(_) => Ok(0),
            })
            .collect::<Result<_, _>>()?;
        let mut parameters: Vec<*mut std::ffi::c_void> = arguments
            .iter_mut()
            .zip(&addresses)
            .map(|(argument, address)| match argument {
                ForeignArgument::Buffer(_) => std::ptr::from_ref(address).cast_mut().cast(),
                ForeignArgument::Value(bytes) => bytes.as_mut_ptr().cast(),
            })
            .collect();
        let LaunchForm { grid, block, shared } = self.form;
        self.stream.context().bind_to_thread().map_err(failed("selecting the device"))?;
        // SAFETY: the function and the stream are live and of one context; every parameter points to its value, which the
        // call copies. What the kernel does with them is said to be nobody's promise.
        unsafe {
            result::launch_kernel(
                self.function.cu_function(),
                grid.into(),
                block.into(),
                shared,
                self.stream.cu_stream(),
                &mut parameters,
            )
        }
        .map_err(failed("launching a kernel"))
    }

    /// The kernel and how it is launched.
    pub fn algorithm(&self) -> String {
        format!("{}: {}", self.entry, self.form)
    }
}
