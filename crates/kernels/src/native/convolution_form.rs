//! The sizes of convolutions.

use std::fmt;

use super::{NativeError, sizes::checked_size};
use crate::Dtype;

/// Channels and filters are stored in multiples of this, which is an access of 16 bytes.
const STORED: usize = 8;

/// The sizes of a convolution with square filters. Images, filters and what comes out are stored channels last, and channels
/// and filters in eights, those that fill up being zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConvolutionForm {
    /// How many there are.
    pub images: usize,
    /// Rows of an image.
    pub height: usize,
    /// Pixels of a row.
    pub width: usize,
    /// Numbers of a pixel.
    pub channels: usize,
    /// Numbers of a pixel that come out.
    pub filters: usize,
    /// Taps of a filter in each direction.
    pub side: usize,
    /// Pixels from tap to tap of neighbors that come out.
    pub stride: usize,
    /// Zeros around the image.
    pub padding: usize,
    /// Whether what is below zero becomes zero.
    pub relu: bool,
}

impl ConvolutionForm {
    /// Rows of what comes out, and pixels of a row.
    pub fn out_size(&self) -> [usize; 2] {
        [self.height, self.width].map(|size| (size + 2 * self.padding - self.side) / self.stride + 1)
    }

    /// Pixels that come out of all images.
    pub fn pixels(&self) -> usize {
        let [height, width] = self.out_size();
        self.images * height * width
    }

    /// Numbers that a pixel has in memory.
    pub fn stored_channels(&self) -> usize {
        self.channels.next_multiple_of(STORED)
    }

    /// Numbers that a pixel has in memory when it comes out.
    pub fn stored_filters(&self) -> usize {
        self.filters.next_multiple_of(STORED)
    }

    /// Bytes of the images: `[images, height, width, stored channels]`.
    pub fn x_bytes(&self, kind: Dtype) -> usize {
        self.images * self.height * self.width * self.stored_channels() * kind.width()
    }

    /// Bytes of the filters: `[stored filters, side, side, stored channels]`.
    pub fn w_bytes(&self, kind: Dtype) -> usize {
        self.stored_filters() * self.side * self.side * self.stored_channels() * kind.width()
    }

    /// Bytes of the bias: a number for each stored filter.
    pub fn bias_bytes(&self, kind: Dtype) -> usize {
        self.stored_filters() * kind.width()
    }

    /// Bytes of what comes out: `[images, rows, pixels of a row, stored filters]`.
    pub fn y_bytes(&self, kind: Dtype) -> usize {
        self.pixels() * self.stored_filters() * kind.width()
    }

    pub(super) fn check(&self) -> Result<(), NativeError> {
        let Self { images, height, width, channels, filters, side, stride, padding, .. } = *self;
        let sizes = [("images", images), ("rows", height), ("pixels", width), ("channels", channels)];
        for (what, size) in sizes.into_iter().chain([("filters", filters), ("taps", side), ("the stride", stride)]) {
            checked_size(what, size)?;
        }
        let refused = |why| Err(NativeError::ConvolutionForm { convolution: self.to_string(), why });
        match () {
            () if side > height + 2 * padding || side > width + 2 * padding => refused("the filters are larger"),
            () if side > 128 || padding > 127 => {
                refused("filters have up to 128 taps a side, and images padding up to 127")
            }
            () if stride > 8 => refused("a stride is at most 8"),
            () => checked_size("the number of pixels", self.pixels()).map(drop),
        }
    }
}

impl fmt::Display for ConvolutionForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { images, height, width, channels, filters, side, stride, padding, relu } = self;
        write!(
            f,
            "a convolution of {images} images of {height}x{width} and {channels} channels with {filters} filters of \
             {side}x{side}, stride {stride}, padding {padding}{}",
            if *relu { ", and ReLU" } else { "" }
        )
    }
}
