//! Kernels compiled from a user's CUDA C++ source.

use std::{fmt, sync::Arc};

use cudarc::{
    driver::{CudaFunction, CudaStream, result, sys::CUfunction_attribute},
    nvrtc::Ptx,
};

use super::{CudaDevice, DeviceBuffer, NativeError, driver::driver_error, nvrtc};

/// Launch configuration of a user's kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserLaunchConfig {
    /// Grid dimensions in blocks.
    pub grid: [u32; 3],
    /// Block dimensions in threads.
    pub block: [u32; 3],
    /// Dynamic shared memory per block in bytes.
    pub dynamic_smem: u32,
}

/// Kernel argument.
#[derive(Debug)]
pub enum ForeignArgument {
    /// Address of device memory.
    Buffer(DeviceBuffer),
    /// Bytes of a value, in the representation of the parameter type.
    Value(Vec<u8>),
}

/// Kernel from a user's CUDA C++ source, compiled for this GPU.
///
/// Memory accesses are not checked: a kernel that leaves its buffers can corrupt device memory or destroy the context.
/// Run it in a process whose state is expendable.
#[derive(Debug)]
pub struct ForeignKernel {
    function: CudaFunction,
    stream: Arc<CudaStream>,
    spec: UserLaunchConfig,
    entry: String,
}

impl fmt::Display for UserLaunchConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sides = |[x, y, z]: [u32; 3]| format!("{x}x{y}x{z}");
        write!(f, "{} blocks of {} threads", sides(self.grid), sides(self.block))?;
        if self.dynamic_smem > 0 { write!(f, ", {} bytes of shared memory", self.dynamic_smem) } else { Ok(()) }
    }
}

impl ForeignKernel {
    /// Compiles a source for its kernel `entry`, which may be in a namespace or an instance of a template:
    /// `add<float>`.
    pub fn compile(
        device: &CudaDevice,
        path: &str,
        text: &str,
        entry: &str,
        spec: UserLaunchConfig,
    ) -> Result<Self, NativeError> {
        let (image, name) = nvrtc::compile_foreign(path, text, entry, device.compute_capability())?;
        let context = device.stream().context();
        let module = context.load_module(Ptx::from_binary(image)).map_err(driver_error("loading a compiled kernel"))?;
        let function = module.load_function(&name).map_err(driver_error("looking up a compiled kernel"))?;
        // More than 48 KiB require an explicit opt-in. Shared memory of every GPU fits an i32.
        let shared = i32::try_from(spec.dynamic_smem).map_err(|_| NativeError::InvalidSize {
            what: "the shared memory of a block",
            limit: i32::MAX as usize,
            value: spec.dynamic_smem as usize,
        })?;
        if shared > 0 {
            let asked =
                function.set_attribute(CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared);
            asked.map_err(driver_error("setting the shared memory limit"))?;
        }
        Ok(Self { function, stream: device.stream().clone(), spec, entry: entry.to_string() })
    }

    /// Enqueues a launch with arguments in parameter order. Number and types of the arguments are not checked.
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
        let UserLaunchConfig { grid, block, dynamic_smem: shared } = self.spec;
        self.stream.context().bind_to_thread().map_err(driver_error("selecting the device"))?;
        // SAFETY: function and stream are live and belong to one context; every parameter points to its value, which
        // the call copies. The accesses of the kernel itself are unchecked, as documented.
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
        .map_err(driver_error("launching a kernel"))
    }

    /// Kernel name and launch configuration.
    pub fn algorithm(&self) -> String {
        format!("{}: {}", self.entry, self.spec)
    }
}
