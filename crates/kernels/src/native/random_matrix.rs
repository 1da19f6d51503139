//! Random matrices that are generated on the device instead of uploaded.

use super::{
    ComputeCapability, CudaDevice, CudaKernel, DeviceBuffer, NativeError,
    kernel::{KernelArgs, LaunchGeometry, common_macros},
    nvrtc::CudaSource,
    sizes::check_elements,
};
use crate::{Dtype, Element};

/// Random matrix whose elements are computed independently from a key and the element index; the arithmetic is in the
/// CUDA source of this module.
#[derive(Debug, Clone, Copy)]
pub struct DeviceRandomMatrix<'a> {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
    /// Key of the random generator.
    pub key: u64,
    /// Distribution before gains, factors and offsets.
    pub spread: ValueDistribution,
    /// Position-dependent gains, applied first.
    pub gains: Option<MagnitudeGains<'a>>,
    /// Factor per row, applied second; empty for none.
    pub factors: &'a [f32],
    /// Offset unit: row r is shifted by this times (r mod 9) - 4.
    pub row_offset: f32,
    /// Lookup tables of the distribution and the gains.
    pub tables: RandomTables<'a>,
}

/// Distribution of random elements.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ValueDistribution {
    /// Standard normal.
    Normal,
    /// Uniform from the first to the second bound.
    Uniform(f32, f32),
}

/// Power-of-two gains in steps of 1/256 octave.
#[derive(Debug, Clone, Copy)]
pub struct MagnitudeGains<'a> {
    /// Key of the random generator.
    pub seed: u64,
    /// Range of the row gains in octaves.
    pub rows: u32,
    /// Range of the column gains in octaves.
    pub columns: u32,
    /// Lengths of runs of adjacent elements that share a gain from a range of one octave, in ascending order.
    pub runs: &'a [usize],
    /// True if runs extend over equally many rows.
    pub square: bool,
    /// True if negative elements have a separate gain in the longest run.
    pub skewed: bool,
    /// Gain of the last columns, and their number.
    pub tail: (f32, usize),
    /// Gain of all elements.
    pub common_gain: f32,
}

/// Lookup tables of the generator.
#[derive(Debug, Clone, Copy)]
pub struct RandomTables<'a> {
    /// Start and slope of the segments of the normal quantile function, 32 in each of 32 octaves, in units of 2^-24.
    pub quantiles: &'a [[f32; 2]; OCTAVES * SEGMENTS],
    /// Powers of two of the 256 steps of an octave.
    pub powers: &'a [f32; STEPS],
}

const OCTAVES: usize = 32;
const SEGMENTS: usize = 32;
const STEPS: usize = 256;
const MAX_RUNS: usize = 8;
const THREADS: usize = 256;
const ELEMENTS_PER_THREAD: usize = 8;

impl DeviceRandomMatrix<'_> {
    /// Serializes the parameters into the words that the kernel reads.
    fn parameter_words(&self) -> Result<Vec<u32>, NativeError> {
        let Self { key, spread, gains, factors, row_offset: means, tables, .. } = self;
        let runs = gains.map_or(&[][..], |gains| gains.runs);
        if runs.len() > MAX_RUNS {
            let what = "the number of gain runs";
            return Err(NativeError::InvalidSize { what, limit: MAX_RUNS, value: runs.len() });
        }
        let wide = |value: u64| [value as u32, (value >> 32) as u32];
        let (kind, from, to) = match *spread {
            ValueDistribution::Normal => (0, 0.0, 0.0),
            ValueDistribution::Uniform(from, to) => (1, from, to),
        };
        let mut words = vec![kind];
        words.extend(wide(*key));
        words.extend([from, to - from, to, *means].map(f32::to_bits));
        words.push((!factors.is_empty()).into());
        words.push(gains.is_some().into());
        match gains {
            Some(MagnitudeGains {
                seed, rows, columns, square, skewed, tail: (tail, of), common_gain: evened, ..
            }) => {
                words.extend(wide(*seed));
                words.extend([*rows, *columns, (*square).into(), (*skewed).into()]);
                words.extend([tail.to_bits(), *of as u32, evened.to_bits()]);
            }
            None => words.extend([0; 9]),
        }
        words.push(runs.len() as u32);
        words.extend((0..MAX_RUNS).map(|at| runs.get(at).map_or(1, |&run| run as u32)));
        words.extend(tables.quantiles.iter().flatten().chain(tables.powers).chain(*factors).map(|x| x.to_bits()));
        Ok(words)
    }
}

impl CudaDevice {
    /// True if the device generates random matrices of an element type.
    pub fn can_generate(&self, element: Element) -> bool {
        match element {
            Element::Float(_) => true,
            Element::E4m3 | Element::E5m2 => self.compute_capability() >= ComputeCapability::E4M3,
            _ => false,
        }
    }

    /// Allocates a buffer and fills it with the random matrix, rounded to an element type that the device can generate.
    pub fn random_matrix(
        &self,
        places: &DeviceRandomMatrix<'_>,
        element: Element,
    ) -> Result<DeviceBuffer, NativeError> {
        assert!(self.can_generate(element), "{element} is generated on the host");
        let DeviceRandomMatrix { rows, cols, factors, .. } = *places;
        let (count, part) = (rows * cols, THREADS * ELEMENTS_PER_THREAD);
        check_elements(count, part)?;
        if !factors.is_empty() && factors.len() != rows {
            return Err(NativeError::InvalidSize {
                what: "the number of row factors",
                limit: rows,
                value: factors.len(),
            });
        }
        let words: Vec<u8> = places.parameter_words()?.into_iter().flat_map(u32::to_le_bytes).collect();
        let bytes = count * element.bits() as usize / 8;
        let args = KernelArgs::new([("parameters", words.len())], [("y", bytes)], (cols, count));
        let geometry = LaunchGeometry::new(count.div_ceil(part), (THREADS, 1))?;
        let kernel =
            CudaKernel::prepare(self, CudaSource::RandomMatrix, "random_matrix", macros(element), args, geometry)?;
        let (how, mut y) = (self.upload(&words)?, self.allocate(bytes)?);
        kernel.enqueue([&how], [&mut y])?;
        Ok(y)
    }
}

fn macros(element: Element) -> Vec<String> {
    let (kind, stored) = match element {
        Element::Float(kind) => (kind, None),
        Element::E4m3 => (Dtype::F32, Some("STORE_E4M3")),
        _ => (Dtype::F32, Some("STORE_E5M2")),
    };
    let mut macros = common_macros("random_matrix", kind, 1);
    macros.extend(stored.map(String::from));
    let sizes = [
        ("THREADS", THREADS),
        ("ELEMENTS_PER_THREAD", ELEMENTS_PER_THREAD),
        ("OCTAVES", OCTAVES),
        ("SEGMENTS", SEGMENTS),
        ("STEPS", STEPS),
        ("MAX_RUNS", MAX_RUNS),
    ];
    macros.extend(sizes.map(|(name, size)| format!("{name}={size}")));
    macros.push("GOLDEN_GAMMA=0x9e3779b97f4a7c15ull".to_string());
    macros
}

#[cfg(test)]
mod tests {
    use super::super::nvrtc::tests::assert_compiles;
    use super::*;

    #[test]
    #[ignore = "needs NVRTC"]
    fn source_compiles_for_every_element_type() {
        let elements = Dtype::ALL.map(Element::Float).into_iter().chain([Element::E4m3, Element::E5m2]);
        elements.for_each(|element| assert_compiles(CudaSource::RandomMatrix, &macros(element)));
    }
}
