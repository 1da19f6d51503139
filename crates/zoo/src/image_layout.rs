//! Layout of images in memory.

/// Images in a matrix of an operator, one after another, each channel by channel (channels-first).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageLayout {
    /// Channels of an image.
    pub channels: u64,
    /// Pixels of a channel.
    pub pixels: u64,
}

impl ImageLayout {
    /// Rows and columns of the images pixel by pixel (channels-last): a row is a pixel, and a column is a channel.
    pub fn channels_last_shape(self, elements: u64) -> [u64; 2] {
        [elements / self.channels.max(1), self.channels]
    }

    /// Converts images from channels-first to channels-last.
    pub fn to_channels_last(self, images: &[f32]) -> Vec<f32> {
        transpose_each(images, self.channels as usize, self.pixels as usize)
    }

    /// Converts images from channels-last to channels-first.
    pub fn to_channels_first(self, images: &[f32]) -> Vec<f32> {
        transpose_each(images, self.pixels as usize, self.channels as usize)
    }
}

/// Transposes consecutive matrices.
fn transpose_each(matrices: &[f32], rows: usize, cols: usize) -> Vec<f32> {
    let mut transposed = vec![0.0; matrices.len()];
    let size = (rows * cols).max(1);
    for (matrix, target) in matrices.chunks_exact(size).zip(transposed.chunks_exact_mut(size)) {
        for (col, line) in target.chunks_exact_mut(rows).enumerate() {
            for (row, value) in line.iter_mut().enumerate() {
                *value = matrix[row * cols + col];
            }
        }
    }
    transposed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_converted_image_by_image() {
        let layout = ImageLayout { channels: 2, pixels: 3 };
        let first: Vec<f32> = (0..12).map(|value| value as f32).collect();
        let last = layout.to_channels_last(&first);
        assert_eq!(last, [0.0, 3.0, 1.0, 4.0, 2.0, 5.0, 6.0, 9.0, 7.0, 10.0, 8.0, 11.0]);
        assert_eq!(layout.to_channels_first(&last), first);
        assert_eq!(layout.channels_last_shape(12), [6, 2]);
    }
}
