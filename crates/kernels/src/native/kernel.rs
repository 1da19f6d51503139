//! Launching one of our own kernels.

use std::sync::Arc;

use cudarc::driver::{CudaFunction, CudaStream, LaunchConfig, PushKernelArg, sys::CUfunction_attribute};

use super::{
    Machine, NativeError,
    boxes::{Boxes, TensorMap},
    driver::{Memory, failed},
    image_boxes::ImageBoxes,
    nvrtc::Source,
};
use crate::Dtype;

/// A compiled kernel with its sizes.
///
/// Every kernel of this crate takes the pointers of its [`Extent`], those it reads first, then two `u64`, and then how it
/// copies boxes, if it does; it keeps to that extent whatever the launch's sizes.
#[derive(Debug)]
pub(super) struct Kernel {
    function: CudaFunction,
    stream: Arc<CudaStream>,
    launch: LaunchConfig,
    /// Whether all of its blocks have to run at once.
    at_once: bool,
    extent: Extent,
    boxes: Vec<Boxes>,
    /// Boxed, as few have them.
    image_boxes: Option<Box<ImageBoxes>>,
}

/// What a kernel touches: of each named buffer nothing but the first so many bytes. The two sizes are the numbers from
/// which it knows.
#[derive(Debug, Clone)]
pub(super) struct Extent {
    pub(super) reads: Vec<(&'static str, usize)>,
    pub(super) writes: Vec<(&'static str, usize)>,
    pub(super) sizes: (u64, u64),
}

impl Extent {
    /// All elements of a matrix, to another of the same size.
    pub(super) fn of_matrix(kind: Dtype, rows: usize, columns: usize) -> Self {
        let bytes = rows * columns * kind.width();
        Self { reads: vec![("x", bytes)], writes: vec![("y", bytes)], sizes: (rows as u64, columns as u64) }
    }
}

/// How a kernel is cut up: blocks, and threads in the two directions of a block.
#[derive(Debug, Clone, Copy)]
pub(super) struct Geometry {
    pub(super) blocks: u32,
    pub(super) threads: (u32, u32),
}

impl Kernel {
    pub(super) fn prepare(
        machine: &Machine,
        source: Source,
        name: &str,
        macros: Vec<String>,
        extent: Extent,
        geometry: Geometry,
    ) -> Result<Self, NativeError> {
        let module = machine.module(source, macros)?;
        Ok(Self {
            function: module.load_function(name).map_err(failed("looking up a compiled kernel"))?,
            stream: machine.stream().clone(),
            launch: LaunchConfig {
                grid_dim: (geometry.blocks, 1, 1),
                block_dim: (geometry.threads.0, geometry.threads.1, 1),
                shared_mem_bytes: 0,
            },
            at_once: false,
            extent,
            boxes: Vec::new(),
            image_boxes: None,
        })
    }

    /// With so many bytes of memory for each block, besides what its source declares.
    pub(super) fn with_shared(mut self, bytes: usize) -> Result<Self, NativeError> {
        // More than 48 KiB must be asked for; no GPU has as much as an i32 counts.
        let asked = self
            .function
            .set_attribute(CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes as i32);
        asked.map_err(failed("asking for the memory of a block"))?;
        self.launch.shared_mem_bytes = bytes as u32;
        Ok(self)
    }

    /// With blocks that wait for each other: a launch fails where not all of them fit.
    pub(super) fn at_once(mut self) -> Self {
        self.at_once = true;
        self
    }

    /// With inputs that it copies in boxes.
    pub(super) fn with_boxes(mut self, boxes: Vec<Boxes>) -> Self {
        self.boxes = boxes;
        self
    }

    /// With images and filters, its first two inputs, that it copies in boxes.
    pub(super) fn with_image_boxes(mut self, boxes: ImageBoxes) -> Self {
        self.image_boxes = Some(Box::new(boxes));
        self
    }

    /// How many inputs it takes.
    pub(super) fn inputs(&self) -> usize {
        self.extent.reads.len()
    }

    /// Bytes of the first input.
    pub(super) fn bytes(&self) -> usize {
        self.extent.reads[0].1
    }

    /// From `x` to `y`.
    pub(super) fn enqueue(&self, x: &Memory, y: &mut Memory) -> Result<(), NativeError> {
        self.enqueue_all(&[x], &mut [y])
    }

    /// From all inputs to all outputs, in the order of the extent.
    pub(super) fn enqueue_all(&self, inputs: &[&Memory], outputs: &mut [&mut Memory]) -> Result<(), NativeError> {
        let Extent { reads, writes, .. } = &self.extent;
        NativeError::unless_inputs(reads.len(), inputs.len())?;
        assert_eq!(writes.len(), outputs.len(), "a plan passes all its outputs");
        let inputs = reads.iter().zip(inputs).map(|((what, bytes), memory)| memory.address(what, &self.stream, *bytes));
        let outputs =
            writes.iter().zip(outputs).map(|((what, bytes), memory)| memory.address(what, &self.stream, *bytes));
        let addresses: Vec<u64> = inputs.chain(outputs).collect::<Result<_, _>>()?;
        self.launch(&addresses)
    }

    /// From `x` to itself. Only for kernels whose every thread reads what it will write before it writes it.
    pub(super) fn enqueue_in_place(&self, x: &mut Memory) -> Result<(), NativeError> {
        let Extent { reads, writes, .. } = &self.extent;
        let address = x.address("x", &self.stream, reads[0].1.max(writes[0].1))?;
        self.launch(&[address, address])
    }

    fn launch(&self, addresses: &[u64]) -> Result<(), NativeError> {
        let mut maps: Vec<TensorMap> =
            self.boxes.iter().map(|boxes| boxes.map(addresses[boxes.input])).collect::<Result<_, _>>()?;
        if let Some(boxes) = &self.image_boxes {
            maps.extend(boxes.maps(addresses[0], addresses[1])?);
        }
        let mut launch = self.stream.launch_builder(&self.function);
        for address in addresses {
            launch.arg(address);
        }
        let (first, second) = &self.extent.sizes;
        launch.arg(first).arg(second);
        for map in &maps {
            launch.arg(map);
        }
        // SAFETY: the arguments are those described above; all addresses were checked to cover the bytes that the kernel
        // touches, on the stream that orders their uses and outlives this work.
        let launched =
            unsafe { if self.at_once { launch.launch_cooperative(self.launch) } else { launch.launch(self.launch) } };
        launched.map_err(failed("launching a kernel"))?;
        Ok(())
    }
}

/// What every source needs to know: the element type, how many of them one access moves, and what to call the kernel.
pub(super) fn common_macros(name: &str, kind: Dtype, width: usize) -> Vec<String> {
    let element = match kind {
        Dtype::F32 => "ELEMENT_F32",
        Dtype::F16 => "ELEMENT_F16",
        Dtype::Bf16 => "ELEMENT_BF16",
    };
    vec![element.to_string(), format!("WIDTH={width}"), format!("KERNEL={name}")]
}

/// Elements in one access of 16 bytes, the widest there is.
pub(super) fn widest(kind: Dtype) -> usize {
    16 / kind.width()
}
