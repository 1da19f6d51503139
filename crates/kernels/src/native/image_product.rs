//! Convolutions by the warp groups of Hopper, which multiply what the copy engine gathers under each tap.

use std::sync::Arc;

use super::{
    ComputeCapability, ConvolutionForm, Machine, NativeError,
    driver::Memory,
    image_boxes::ImageBoxes,
    kernel::{Extent, Geometry, Kernel, common_macros, widest},
    nvrtc::Source,
    sizes::{MULTIPROCESSORS, checked_size},
};
use crate::Dtype;

/// The kernel.
#[derive(Debug)]
pub(super) struct ImageProduct {
    kernel: Kernel,
    algorithm: String,
}

/// Pixels of y in a tile.
const PIXELS: usize = 128;
/// A group that brings and two that multiply.
const THREADS: u32 = 3 * 128;

impl ImageProduct {
    /// Compiles for a form that was checked.
    pub(super) fn new(machine: &Arc<Machine>, kind: Dtype, form: ConvolutionForm) -> Result<Self, NativeError> {
        machine.require_exactly("a convolution by products of warp groups", ComputeCapability::WARP_GROUPS)?;
        let cut = Cut::new(form);
        let (pixels, filters) = (form.pixels(), form.stored_filters());
        checked_size("the number of pixels", pixels)?;
        let name = format!("image_product_{kind}");
        let extent = Extent {
            reads: vec![("x", form.x_bytes(kind)), ("w", form.w_bytes(kind)), ("bias", form.bias_bytes(kind))],
            writes: vec![("y", form.y_bytes(kind))],
            sizes: (pixels as u64, filters as u64),
        };
        let geometry = Geometry { blocks: cut.blocks(form) as u32, threads: (THREADS, 1) };
        let macros = macros(&name, kind, form, cut);
        let kernel = Kernel::prepare(machine, Source::ImageProduct, &name, macros, extent, geometry)?;
        let ConvolutionForm { images, height, width, side, stride, padding, .. } = form;
        let boxes = ImageBoxes {
            kind,
            images,
            height,
            width,
            channels: form.stored_channels(),
            filters,
            side,
            stride,
            padding,
            pixels: PIXELS,
            box_filters: cut.filters,
        };
        Ok(Self {
            kernel: kernel.with_image_boxes(boxes).with_shared(cut.stages * cut.stage_bytes())?,
            algorithm: format!(
                "{name}: products of warp groups, {PIXELS} pixels by {} filters a tile, {} steps of 64 channels in a \
                 block's memory",
                cut.filters, cut.stages
            ),
        })
    }

    /// Enqueues one run: x, w, bias and y.
    pub(super) fn enqueue(&self, [x, w, bias]: [&Memory; 3], y: &mut Memory) -> Result<(), NativeError> {
        self.kernel.enqueue_all(&[x, w, bias], &mut [y])
    }

    pub(super) fn algorithm(&self) -> &str {
        &self.algorithm
    }
}

/// How the product is dealt to blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cut {
    /// Filters in a tile.
    filters: usize,
    /// Steps in a block's memory.
    stages: usize,
}

impl Cut {
    /// What a block may have of its memory, less what the kernel declares.
    const SHARED: usize = 224 << 10;

    fn new(form: ConvolutionForm) -> Self {
        let stored = form.stored_filters();
        // The widest of those that compute the fewest filters in vain.
        let filters = [256, 128, 64].into_iter().min_by_key(|width| stored.next_multiple_of(*width)).unwrap_or(64);
        let cut = Self { filters, stages: 1 };
        Self { stages: (Self::SHARED / cut.stage_bytes()).min(8), ..cut }
    }

    fn stage_bytes(&self) -> usize {
        2 * 64 * (PIXELS + self.filters)
    }

    /// No more than can run at once.
    fn blocks(&self, form: ConvolutionForm) -> usize {
        (form.pixels().div_ceil(PIXELS) * form.stored_filters().div_ceil(self.filters)).min(MULTIPROCESSORS)
    }
}

fn macros(name: &str, kind: Dtype, form: ConvolutionForm, cut: Cut) -> Vec<String> {
    let ConvolutionForm { side, stride, padding, relu, .. } = form;
    let [height, width] = form.out_size();
    let mut macros = common_macros(name, kind, widest(kind));
    macros.extend([format!("SIDE={side}"), format!("STRIDE={stride}"), format!("PADDING={padding}")]);
    macros.extend([format!("OUT_HEIGHT={height}"), format!("OUT_WIDTH={width}")]);
    macros.extend([format!("CHANNELS={}", form.stored_channels()), format!("RELU={}", u8::from(relu))]);
    macros.extend([format!("COLUMNS={}", cut.filters), format!("STAGES={}", cut.stages)]);
    macros
}

#[cfg(test)]
mod tests {
    use super::super::nvrtc::tests::assert_compiles;
    use super::*;

    fn form(filters: usize, images: usize) -> ConvolutionForm {
        let (height, width, channels) = (14, 14, 100);
        ConvolutionForm { images, height, width, channels, filters, side: 3, stride: 1, padding: 1, relu: true }
    }

    #[test]
    fn the_fewest_filters_are_computed_in_vain() {
        for (filters, width) in [(1, 64), (64, 64), (65, 128), (130, 64), (256, 256), (384, 128), (512, 256)] {
            assert_eq!(Cut::new(form(filters, 8)).filters, width, "{filters}");
        }
    }

    #[test]
    fn a_block_has_memory_for_several_steps() {
        for filters in [1, 128, 256] {
            let cut = Cut::new(form(filters, 8));
            assert!(cut.stages >= 4 && cut.stages * cut.stage_bytes() <= Cut::SHARED, "{cut:?}");
        }
    }

    #[test]
    fn the_source_compiles_for_every_cut() {
        for kind in [Dtype::F16, Dtype::Bf16] {
            for filters in [64, 128, 256] {
                for relu in [false, true] {
                    let form = ConvolutionForm { relu, ..form(filters, 8) };
                    assert_compiles(Source::ImageProduct, &macros("image_product", kind, form, Cut::new(form)));
                }
            }
        }
    }
}
