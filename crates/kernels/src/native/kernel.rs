//! Launches of CUDA C++ kernels of this crate.

use std::sync::Arc;

use cudarc::driver::{CudaFunction, CudaStream, LaunchConfig, PushKernelArg, sys::CUfunction_attribute};

use super::{
    CudaDevice, DeviceBuffer, NativeError,
    driver::{DeviceMemory, driver_error},
    im2col_tiles::Im2colTiles,
    nvrtc::CudaSource,
    sizes::{check_elements, check_size},
    tma_tiles::{TensorMap, TmaTiles},
};
use crate::Dtype;

/// Compiled kernel with its arguments and launch geometry, created by [`CudaKernel::softmax`], [`CudaKernel::rms_norm`]
/// and others.
// Every kernel takes the pointers of its inputs, outputs and workspace, then two or three `u64` sizes, then its TMA tensor
// maps, if any. It never accesses memory beyond the extent in its `KernelArgs`, whatever the geometry.
#[derive(Debug)]
pub struct CudaKernel {
    function: CudaFunction,
    stream: Arc<CudaStream>,
    launch: LaunchConfig,
    /// Cooperative launch: all blocks must be resident.
    cooperative: bool,
    /// True if every thread reads each element that it writes before it writes the element.
    in_place: bool,
    args: KernelArgs,
    third_size: Option<u64>,
    workspace: Vec<DeviceMemory>,
    description: String,
    tma_tiles: Vec<TmaTiles>,
    /// Boxed because few kernels have them.
    im2col_tiles: Option<Box<Im2colTiles>>,
}

/// Kernel arguments: for each named buffer the number of leading bytes that the kernel accesses, and the two sizes that
/// it receives.
#[derive(Debug, Clone)]
pub(super) struct KernelArgs {
    pub(super) reads: Vec<(&'static str, usize)>,
    pub(super) writes: Vec<(&'static str, usize)>,
    pub(super) sizes: (u64, u64),
}

impl KernelArgs {
    pub(super) fn new(
        reads: impl Into<Vec<(&'static str, usize)>>,
        writes: impl Into<Vec<(&'static str, usize)>>,
        sizes: (usize, usize),
    ) -> Self {
        Self { reads: reads.into(), writes: writes.into(), sizes: (sizes.0 as u64, sizes.1 as u64) }
    }

    /// Arguments of a kernel from one matrix to another of the same size.
    pub(super) fn for_matrix(kind: Dtype, rows: usize, columns: usize) -> Self {
        let bytes = rows * columns * kind.width();
        Self::new([("x", bytes)], [("y", bytes)], (rows, columns))
    }
}

/// Launch geometry: number of blocks, and threads of a block in two dimensions.
#[derive(Debug, Clone, Copy)]
pub(super) struct LaunchGeometry {
    pub(super) blocks: u32,
    pub(super) threads: (u32, u32),
}

impl LaunchGeometry {
    /// Returns an error if the number of blocks is out of range.
    pub(super) fn new(blocks: usize, threads: (usize, usize)) -> Result<Self, NativeError> {
        let blocks = check_size("the number of blocks", blocks)? as u32;
        Ok(Self { blocks, threads: (threads.0 as u32, threads.1 as u32) })
    }

    /// Geometry for `length` elements of which a thread processes `vectors` vectors.
    pub(super) fn for_elements(
        kind: Dtype,
        length: usize,
        threads: usize,
        vectors: usize,
    ) -> Result<Self, NativeError> {
        let width = vector_width(kind);
        check_elements(length, width)?;
        Self::new((length / width).div_ceil(threads * vectors).max(1), (threads, 1))
    }
}

impl CudaKernel {
    pub(super) fn prepare(
        device: &CudaDevice,
        source: CudaSource,
        name: &str,
        macros: Vec<String>,
        extent: KernelArgs,
        geometry: LaunchGeometry,
    ) -> Result<Self, NativeError> {
        let module = device.module(source, macros)?;
        Ok(Self {
            function: module.load_function(name).map_err(driver_error("looking up a compiled kernel"))?,
            stream: device.stream().clone(),
            launch: LaunchConfig {
                grid_dim: (geometry.blocks, 1, 1),
                block_dim: (geometry.threads.0, geometry.threads.1, 1),
                shared_mem_bytes: 0,
            },
            cooperative: false,
            in_place: false,
            args: extent,
            third_size: None,
            workspace: Vec::new(),
            description: name.to_string(),
            tma_tiles: Vec::new(),
            im2col_tiles: None,
        })
    }

    /// Sets the dynamic shared memory per block, in addition to static shared memory.
    pub(super) fn with_dynamic_smem(mut self, bytes: usize) -> Result<Self, NativeError> {
        // More than 48 KiB require an explicit opt-in. Shared memory of every GPU fits an i32.
        let asked = self
            .function
            .set_attribute(CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes as i32);
        asked.map_err(driver_error("setting the shared memory limit"))?;
        self.launch.shared_mem_bytes = bytes as u32;
        Ok(self)
    }

    /// Sets the description in records; the default is the kernel name.
    pub(super) fn with_description(self, description: String) -> Self {
        Self { description, ..self }
    }

    /// Adds a zeroed buffer of `bytes` bytes as the last argument before the sizes.
    pub(super) fn with_workspace(mut self, bytes: usize) -> Result<Self, NativeError> {
        let mut memory = DeviceMemory::allocate(&self.stream, bytes)?;
        memory.fill(0)?;
        self.workspace.push(memory);
        Ok(self)
    }

    /// Adds a third size.
    pub(super) fn with_third_size(self, size: usize) -> Self {
        Self { third_size: Some(size as u64), ..self }
    }

    /// Permits in-place launches. Valid only for kernels whose threads read every element that they write before
    /// writing it.
    pub(super) fn in_place(self) -> Self {
        Self { in_place: true, ..self }
    }

    /// Cooperative launch; fails if the grid does not fit on the device.
    pub(super) fn cooperative(mut self) -> Self {
        self.cooperative = true;
        self
    }

    /// Adds inputs that the kernel loads by TMA.
    pub(super) fn with_tma_tiles(mut self, boxes: Vec<TmaTiles>) -> Self {
        self.tma_tiles = boxes;
        self
    }

    /// Loads the first two inputs, images and filters, by TMA in im2col mode.
    pub(super) fn with_im2col_tiles(mut self, boxes: Im2colTiles) -> Self {
        self.im2col_tiles = Some(Box::new(boxes));
        self
    }

    /// Number of inputs.
    pub(super) fn input_count(&self) -> usize {
        self.args.reads.len()
    }

    /// Kernel name and launch configuration.
    pub fn algorithm(&self) -> String {
        self.description.clone()
    }

    /// Bytes that a launch reads from an input.
    pub fn input_bytes(&self, index: usize) -> usize {
        self.args.reads[index].1
    }

    /// Bytes that a launch writes to an output.
    pub fn output_bytes(&self, index: usize) -> usize {
        self.args.writes[index].1
    }

    /// Enqueues a launch with all inputs and outputs, in the order that the constructor documents.
    pub fn enqueue<'x, 'y>(
        &self,
        inputs: impl IntoIterator<Item = &'x DeviceBuffer>,
        outputs: impl IntoIterator<Item = &'y mut DeviceBuffer>,
    ) -> Result<(), NativeError> {
        let outputs = outputs.into_iter().map(|output| &mut output.memory);
        self.enqueue_all(inputs.into_iter().map(|input| &input.memory), outputs)
    }

    /// Enqueues a launch with all inputs and outputs, in the order of the arguments.
    pub(super) fn enqueue_all<'x, 'y>(
        &self,
        inputs: impl IntoIterator<Item = &'x DeviceMemory>,
        outputs: impl IntoIterator<Item = &'y mut DeviceMemory>,
    ) -> Result<(), NativeError> {
        let KernelArgs { reads, writes, .. } = &self.args;
        let mut addresses = Vec::with_capacity(reads.len() + writes.len() + self.workspace.len());
        let input_count = self.push_addresses(reads, inputs, &mut addresses)?;
        NativeError::check_input_count(reads.len(), input_count)?;
        let output_count = self.push_addresses(writes, outputs.into_iter().map(|output| &*output), &mut addresses)?;
        assert_eq!(writes.len(), output_count, "one buffer per output");
        self.launch(addresses)
    }

    /// Appends the addresses of buffers for named arguments; returns the number of buffers.
    fn push_addresses<'x>(
        &self,
        arguments: &[(&'static str, usize)],
        buffers: impl IntoIterator<Item = &'x DeviceMemory>,
        addresses: &mut Vec<u64>,
    ) -> Result<usize, NativeError> {
        let mut count = 0;
        for memory in buffers {
            if let Some(&(what, bytes)) = arguments.get(count) {
                addresses.push(memory.address(what, &self.stream, bytes)?);
            }
            count += 1;
        }
        Ok(count)
    }

    /// Enqueues an in-place launch, which only activations support.
    pub fn enqueue_in_place(&self, x: &mut DeviceBuffer) -> Result<(), NativeError> {
        assert!(self.in_place, "{} cannot run in place", self.description);
        let address = x.memory.address("x", &self.stream, self.args.reads[0].1)?;
        self.launch(vec![address; 2])
    }

    fn launch(&self, mut addresses: Vec<u64>) -> Result<(), NativeError> {
        for memory in &self.workspace {
            addresses.push(memory.address("workspace", &self.stream, memory.len())?);
        }
        let mut maps: Vec<TensorMap> =
            self.tma_tiles.iter().map(|boxes| boxes.map(addresses[boxes.input])).collect::<Result<_, _>>()?;
        if let Some(boxes) = &self.im2col_tiles {
            maps.extend(boxes.maps(addresses[0], addresses[1])?);
        }
        let mut launch = self.stream.launch_builder(&self.function);
        for address in &addresses {
            launch.arg(address);
        }
        let (first, second) = &self.args.sizes;
        launch.arg(first).arg(second);
        if let Some(third) = &self.third_size {
            launch.arg(third);
        }
        for map in &maps {
            launch.arg(map);
        }
        // SAFETY: the arguments have the documented layout. All addresses cover the bytes that the kernel accesses, on
        // the stream that orders these accesses and outlives this work.
        let launched = unsafe {
            if self.cooperative { launch.launch_cooperative(self.launch) } else { launch.launch(self.launch) }
        };
        launched.map_err(driver_error("launching a kernel"))?;
        Ok(())
    }
}

/// Macros of every source: element dtype, elements per vector access, and kernel name.
pub(super) fn common_macros(name: &str, kind: Dtype, width: usize) -> Vec<String> {
    let element = match kind {
        Dtype::F32 => "ELEMENT_F32",
        Dtype::F16 => "ELEMENT_F16",
        Dtype::Bf16 => "ELEMENT_BF16",
    };
    vec![element.to_string(), format!("WIDTH={width}"), format!("KERNEL={name}")]
}

/// Elements in a 16-byte access, the widest available.
pub(super) fn vector_width(kind: Dtype) -> usize {
    16 / kind.width()
}
