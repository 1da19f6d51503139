//! Sizes and layouts of convolutions.

use std::fmt;

use super::{NativeError, sizes::check_size};
use crate::Dtype;

/// Alignment of channels and filters in memory: a 16-byte access.
const CHANNEL_ALIGNMENT: usize = 8;

/// Convolution with square filters. Images, filters and outputs are stored channels-last. Channels and filters are
/// padded with zeros to multiples of 8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConvolutionSpec {
    /// Number of images.
    pub images: usize,
    /// Image height.
    pub height: usize,
    /// Image width.
    pub width: usize,
    /// Input channels.
    pub channels: usize,
    /// Output channels.
    pub filters: usize,
    /// Height and width of a filter.
    pub filter_size: usize,
    /// Stride in both directions.
    pub stride: usize,
    /// Zero padding on each side.
    pub padding: usize,
    /// True to apply ReLU.
    pub relu: bool,
}

impl ConvolutionSpec {
    /// Height and width of the output.
    pub fn out_size(&self) -> [usize; 2] {
        [self.height, self.width].map(|size| (size + 2 * self.padding - self.filter_size) / self.stride + 1)
    }

    /// Output pixels of all images.
    pub fn output_pixels(&self) -> usize {
        let [height, width] = self.out_size();
        self.images * height * width
    }

    /// Input channels with padding.
    pub fn stored_channels(&self) -> usize {
        self.channels.next_multiple_of(CHANNEL_ALIGNMENT)
    }

    /// Output channels with padding.
    pub fn stored_filters(&self) -> usize {
        self.filters.next_multiple_of(CHANNEL_ALIGNMENT)
    }

    /// Bytes of the images: `[images, height, width, stored channels]`.
    pub fn x_bytes(&self, kind: Dtype) -> usize {
        self.images * self.height * self.width * self.stored_channels() * kind.width()
    }

    /// Bytes of the filters: `[stored filters, side, side, stored channels]`.
    pub fn w_bytes(&self, kind: Dtype) -> usize {
        self.stored_filters() * self.filter_size * self.filter_size * self.stored_channels() * kind.width()
    }

    /// Bytes of the bias: `[stored filters]`.
    pub fn bias_bytes(&self, kind: Dtype) -> usize {
        self.stored_filters() * kind.width()
    }

    /// Bytes of the output: `[images, height, width, stored filters]`.
    pub fn y_bytes(&self, kind: Dtype) -> usize {
        self.output_pixels() * self.stored_filters() * kind.width()
    }

    pub(super) fn check(&self) -> Result<(), NativeError> {
        let Self { images, height, width, channels, filters, filter_size: side, stride, padding, .. } = *self;
        let sizes = [("images", images), ("rows", height), ("pixels", width), ("channels", channels)];
        for (what, size) in
            sizes.into_iter().chain([("filters", filters), ("filter size", side), ("the stride", stride)])
        {
            check_size(what, size)?;
        }
        let refused = |why| Err(NativeError::UnsupportedConvolution { convolution: self.to_string(), why });
        match () {
            () if side > height + 2 * padding || side > width + 2 * padding => {
                refused("the filter exceeds the padded image")
            }
            () if side > 128 || padding > 127 => refused("filter size is limited to 128 and padding to 127"),
            () if stride > 8 => refused("stride is limited to 8"),
            () => check_size("the number of pixels", self.output_pixels()).map(drop),
        }
    }
}

impl fmt::Display for ConvolutionSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { images, height, width, channels, filters, filter_size: side, stride, padding, relu } = self;
        write!(
            f,
            "{images} images of {height}x{width} with {channels} channels, {filters} filters of {side}x{side}, stride {stride}, \
             padding {padding}{}",
            if *relu { ", ReLU" } else { "" }
        )
    }
}
