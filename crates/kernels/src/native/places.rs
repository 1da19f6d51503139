//! Matrices whose numbers follow from their places: they are made on the device instead of being brought there.

use super::{
    Buffer, Machine, NativeError,
    kernel::{Extent, Geometry, Kernel, common_macros},
    nvrtc::Source,
};
use crate::Dtype;

/// A matrix of numbers, each of which follows from a key and its place alone; `cuda/places.cu` has the arithmetic.
#[derive(Debug, Clone, Copy)]
pub struct Places<'a> {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
    /// What sets one matrix apart from another.
    pub key: u64,
    /// How numbers are spread before anything else is done to them.
    pub spread: Spread,
    /// What they are multiplied by then, if some places are louder than others.
    pub gains: Option<PlaceGains<'a>>,
    /// What rows are multiplied by after that; none where nothing is.
    pub factors: &'a [f32],
    /// Row r is moved by this, (r mod 9) - 4 times.
    pub means: f32,
    /// What both are looked up in.
    pub tables: Tables<'a>,
}

/// How numbers are spread.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Spread {
    /// Normally.
    Normal,
    /// Evenly from the first to the second.
    Between(f32, f32),
}

/// Gains in steps, 256 to an octave.
#[derive(Debug, Clone, Copy)]
pub struct PlaceGains<'a> {
    /// What sets one matrix apart from another.
    pub seed: u64,
    /// Octaves of the gains of rows.
    pub rows: u32,
    /// Octaves of the gains of columns.
    pub columns: u32,
    /// Runs of neighbors that share a gain of one octave, from the shortest.
    pub runs: &'a [usize],
    /// Whether a run is as high as it is long.
    pub square: bool,
    /// Whether negative numbers have a gain of their own in the longest run.
    pub skewed: bool,
    /// The gain of the last columns, and how many these are.
    pub tail: (f32, usize),
    /// The gain of all.
    pub evened: f32,
}

/// What numbers are looked up in.
#[derive(Debug, Clone, Copy)]
pub struct Tables<'a> {
    /// Where segments of normal numbers begin, 32 in each of 32 octaves, and how far they reach, in parts of 2^24.
    pub quantiles: &'a [[f32; 2]; OCTAVES * SEGMENTS],
    /// The powers of two of an octave's 256 steps.
    pub powers: &'a [f32; STEPS],
}

const OCTAVES: usize = 32;
const SEGMENTS: usize = 32;
const STEPS: usize = 256;
const MOST_RUNS: usize = 8;
const THREADS: usize = 256;
const PIECES: usize = 8;

impl Places<'_> {
    /// What the kernel is told, word by word.
    fn words(&self) -> Result<Vec<u32>, NativeError> {
        let Self { key, spread, gains, factors, means, tables, .. } = self;
        let runs = gains.map_or(&[][..], |gains| gains.runs);
        if runs.len() > MOST_RUNS {
            let what = "the runs that share a gain";
            return Err(NativeError::InvalidSize { what, limit: MOST_RUNS, value: runs.len() });
        }
        let wide = |value: u64| [value as u32, (value >> 32) as u32];
        let (kind, from, to) = match *spread {
            Spread::Normal => (0, 0.0, 0.0),
            Spread::Between(from, to) => (1, from, to),
        };
        let mut words = vec![kind];
        words.extend(wide(*key));
        words.extend([from, to - from, to, *means].map(f32::to_bits));
        words.push((!factors.is_empty()).into());
        words.push(gains.is_some().into());
        match gains {
            Some(PlaceGains { seed, rows, columns, square, skewed, tail: (tail, of), evened, .. }) => {
                words.extend(wide(*seed));
                words.extend([*rows, *columns, (*square).into(), (*skewed).into()]);
                words.extend([tail.to_bits(), *of as u32, evened.to_bits()]);
            }
            None => words.extend([0; 9]),
        }
        words.push(runs.len() as u32);
        words.extend((0..MOST_RUNS).map(|at| runs.get(at).map_or(1, |&run| run as u32)));
        words.extend(tables.quantiles.iter().flatten().chain(tables.powers).chain(*factors).map(|x| x.to_bits()));
        Ok(words)
    }
}

impl Machine {
    /// A new buffer with the numbers of a matrix, rounded to a type.
    pub fn places(&self, places: &Places<'_>, kind: Dtype) -> Result<Buffer, NativeError> {
        let Places { rows, cols, factors, .. } = *places;
        let (count, part) = (rows * cols, THREADS * PIECES);
        let limit = i32::MAX as usize * part;
        if !(1..=limit).contains(&count) {
            return Err(NativeError::InvalidSize { what: "the number of elements", limit, value: count });
        }
        if !factors.is_empty() && factors.len() != rows {
            return Err(NativeError::InvalidSize { what: "the factors of rows", limit: rows, value: factors.len() });
        }
        let words: Vec<u8> = places.words()?.into_iter().flat_map(u32::to_le_bytes).collect();
        let bytes = count * kind.width();
        let extent = Extent {
            reads: vec![("how", words.len())],
            writes: vec![("y", bytes)],
            sizes: (cols as u64, count as u64),
        };
        let geometry = Geometry { blocks: count.div_ceil(part) as u32, threads: (THREADS as u32, 1) };
        let kernel = Kernel::prepare(self, Source::Places, "places", macros(kind), extent, geometry)?;
        let (how, mut y) = (self.upload(&words)?, self.allocate(bytes)?);
        kernel.enqueue(&how.memory, &mut y.memory)?;
        Ok(y)
    }
}

fn macros(kind: Dtype) -> Vec<String> {
    let mut macros = common_macros("places", kind, 1);
    let sizes = [
        ("THREADS", THREADS),
        ("PIECES", PIECES),
        ("OCTAVES", OCTAVES),
        ("SEGMENTS", SEGMENTS),
        ("STEPS", STEPS),
        ("MOST_RUNS", MOST_RUNS),
    ];
    macros.extend(sizes.map(|(name, size)| format!("{name}={size}")));
    macros.push("GOLDEN=0x9e3779b97f4a7c15ull".to_string());
    macros
}

#[cfg(test)]
mod tests {
    use super::super::nvrtc::tests::assert_compiles;
    use super::*;

    #[test]
    fn the_source_compiles_for_every_type() {
        Dtype::ALL.into_iter().for_each(|kind| assert_compiles(Source::Places, &macros(kind)));
    }
}
