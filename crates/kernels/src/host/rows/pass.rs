//! Parallel passes over rows, with conversion to f32 and back.

use crate::host::float_isa::FloatIsa;
use crate::host::float_simd::{FloatSimd, FloatTask};
use crate::host::float_vec::FloatVec;
use crate::host::partition::run_parallel;
use crate::rowwise::bf16_to_f32;
use core::array::from_fn;
use core::ops::Range;

/// Stored float type.
pub(super) trait FloatElement: Copy + Sync {
    /// Returns the elements if they have this type.
    fn as_slice(numbers: &FloatVec) -> Option<&[Self]>;

    /// Converts to f32.
    fn to_f32(self) -> f32;
}

impl FloatElement for f32 {
    fn as_slice(numbers: &FloatVec) -> Option<&[Self]> {
        if let FloatVec::F32(numbers) = numbers { Some(numbers) } else { None }
    }

    #[inline(always)]
    fn to_f32(self) -> f32 {
        self
    }
}

/// bf16 bit pattern.
impl FloatElement for u16 {
    fn as_slice(numbers: &FloatVec) -> Option<&[Self]> {
        if let FloatVec::Bf16(numbers) = numbers { Some(numbers) } else { None }
    }

    #[inline(always)]
    fn to_f32(self) -> f32 {
        bf16_to_f32(self)
    }
}

/// Function from input rows to output rows, in f32.
pub(super) trait RowFunction<const IN: usize, const SHARED: usize, const OUT: usize>: Copy + Sync {
    /// Computes a row of every output from a row of every input and the rows shared by all. Must be inlined.
    fn row<L: FloatSimd, N: FloatElement>(
        self,
        lanes: L,
        inputs: [&[N]; IN],
        shared: [&[f32]; SHARED],
        outputs: [&mut [f32]; OUT],
    );
}

/// Reduction of a row to one value; the operator returns the mean or sum.
pub(super) trait RowReduction<const IN: usize>: Copy + Sync {
    /// Columns of each input, if they differ.
    fn columns(self, columns: usize) -> [usize; IN] {
        [columns; IN]
    }

    /// Returns the value of a row. Must be inlined.
    fn value<L: FloatSimd>(self, lanes: L, inputs: [&[f32]; IN]) -> f64;
}

/// Blocks per thread, so that one delayed thread delays the others by at most a quarter.
const BLOCKS_PER_THREAD: usize = 4;

/// Elements per chunk of an element-wise operator: few, so that loads of the next chunk overlap with computation.
const CHUNK: usize = 512;

/// Minimum elements for which another thread pays off.
const MIN_BLOCK_ELEMENTS: usize = 1 << 14;

/// Applies a function to every row.
pub(super) fn map_rows<const IN: usize, const SHARED: usize, const OUT: usize>(
    set: FloatIsa,
    function: impl RowFunction<IN, SHARED, OUT>,
    inputs: &[FloatVec],
    columns: usize,
    outputs: &mut [FloatVec],
) {
    assert_eq!((inputs.len(), outputs.len()), (IN + SHARED, OUT), "inputs and outputs");
    let (inputs, shared) = inputs.split_at(IN);
    let count = outputs[0].len();
    assert!(columns > 0 && count.is_multiple_of(columns), "{count} elements in rows of {columns}");
    assert!(shared.iter().all(|shared| shared.len() == columns), "shared rows have {columns} elements");
    dispatch_dtype(set, function, inputs, shared, columns, outputs);
}

/// Applies an element-wise function.
pub(super) fn map_elements<const IN: usize>(
    set: FloatIsa,
    function: impl RowFunction<IN, 0, 1>,
    inputs: &[FloatVec],
    outputs: &mut [FloatVec],
) {
    assert_eq!((inputs.len(), outputs.len()), (IN, 1), "inputs and outputs");
    dispatch_dtype(set, function, inputs, &[], CHUNK, outputs);
}

/// Computes the mean of the values of all rows, added in row order.
pub(super) fn mean_of_rows<const IN: usize>(
    set: FloatIsa,
    function: impl RowReduction<IN>,
    inputs: &[FloatVec],
    columns: usize,
    outputs: &mut [FloatVec],
) {
    let output = scalar_output(outputs);
    let columns = function.columns(columns);
    let rows = inputs[0].len() / columns[0];
    for (input, columns) in inputs.iter().zip(columns) {
        assert_eq!(input.len(), rows * columns, "{rows} rows of {columns}");
    }
    let values = row_values(set, function, inputs, columns, rows);
    *output = (values.iter().sum::<f64>() / rows as f64) as f32;
}

/// Adds the values of all chunks in order.
pub(super) fn sum_of_chunks<const IN: usize>(
    set: FloatIsa,
    function: impl RowReduction<IN>,
    inputs: &[FloatVec],
    outputs: &mut [FloatVec],
) {
    let output = scalar_output(outputs);
    let count = inputs[0].len();
    assert!(inputs.iter().all(|input| input.len() == count), "operands have {count} elements");
    let values = row_values(set, function, inputs, [CHUNK; IN], count.div_ceil(CHUNK));
    *output = values.iter().sum::<f64>() as f32;
}

/// Returns the single element of the single output.
fn scalar_output(outputs: &mut [FloatVec]) -> &mut f32 {
    match outputs {
        [FloatVec::F32(output)] if output.len() == 1 => &mut output[0],
        _ => panic!("expected a single output with one f32 element"),
    }
}

/// Returns the value of each row; the last row may be shorter.
fn row_values<const IN: usize>(
    set: FloatIsa,
    function: impl RowReduction<IN>,
    inputs: &[FloatVec],
    columns: [usize; IN],
    rows: usize,
) -> Vec<f64> {
    assert_eq!(inputs.len(), IN, "inputs");
    let mut values = vec![0.0; rows];
    let block = block_rows(rows, columns[0]);
    run_parallel(values.chunks_mut(block).enumerate().collect(), |(at, values)| {
        let inputs = from_fn(|input| FloatSlice::new(&inputs[input]));
        set.run(ReductionTask { function, inputs, columns, first: at * block, values });
    });
    values
}

/// Rows per block of a thread.
pub(super) fn block_rows(rows: usize, columns: usize) -> usize {
    rows.div_ceil(BLOCKS_PER_THREAD * rayon::current_num_threads()).max(MIN_BLOCK_ELEMENTS.div_ceil(columns))
}

fn dispatch_dtype<const IN: usize, const SHARED: usize, const OUT: usize>(
    set: FloatIsa,
    function: impl RowFunction<IN, SHARED, OUT>,
    inputs: &[FloatVec],
    shared: &[FloatVec],
    columns: usize,
    outputs: &mut [FloatVec],
) {
    let count = outputs[0].len();
    for numbers in inputs.iter().chain(&*outputs) {
        assert_eq!(numbers.len(), count, "elements of an operand");
    }
    if let Some(inputs) = same_dtype_slices::<f32, IN>(inputs) {
        run_blocks(set, function, inputs, shared, columns, outputs);
    } else if let Some(inputs) = same_dtype_slices::<u16, IN>(inputs) {
        run_blocks(set, function, inputs, shared, columns, outputs);
    } else {
        panic!("inputs have different dtypes");
    }
}

/// Returns the elements of all operands if all have type `N`.
fn same_dtype_slices<N: FloatElement, const IN: usize>(inputs: &[FloatVec]) -> Option<[&[N]; IN]> {
    let inputs: Option<Vec<&[N]>> = inputs.iter().map(N::as_slice).collect();
    inputs?.try_into().ok()
}

fn run_blocks<N: FloatElement, const IN: usize, const SHARED: usize, const OUT: usize>(
    set: FloatIsa,
    function: impl RowFunction<IN, SHARED, OUT>,
    inputs: [&[N]; IN],
    shared: &[FloatVec],
    columns: usize,
    outputs: &mut [FloatVec],
) {
    let count = outputs[0].len();
    let block = columns * block_rows(count.div_ceil(columns), columns);
    let mut blocks: Vec<_> = outputs.iter_mut().map(|output| FloatSliceMut::new(output).blocks(block)).collect();
    let blocks: Vec<[FloatSliceMut<'_>; OUT]> = (0..count.div_ceil(block))
        .map(|_| from_fn(|output| blocks[output].next().expect("every output has this number of blocks")))
        .collect();
    run_parallel(blocks.into_iter().enumerate().collect(), |(at, outputs)| {
        let shared = from_fn(|input| FloatSlice::new(&shared[input]));
        set.run(RowsTask { function, inputs, shared, columns, first: at * block, outputs });
    });
}

/// f32 buffer aligned to a cache line: a vector that crosses two lines takes two loads.
#[derive(Default)]
struct AlignedBuffer(Vec<f32>);

impl AlignedBuffer {
    const LINE: usize = 64;

    #[inline(always)]
    fn slice(&self, count: usize) -> &[f32] {
        &self.0[self.0.as_ptr().align_offset(Self::LINE)..][..count]
    }

    #[inline(always)]
    fn resize(&mut self, count: usize) -> &mut [f32] {
        self.0.resize(count + Self::LINE / size_of::<f32>(), 0.0);
        let start = self.0.as_ptr().align_offset(Self::LINE);
        &mut self.0[start..][..count]
    }
}

/// Input elements.
#[derive(Clone, Copy)]
enum FloatSlice<'a> {
    F32(&'a [f32]),
    Bf16(&'a [u16]),
}

impl<'a> FloatSlice<'a> {
    fn new(numbers: &'a FloatVec) -> Self {
        match numbers {
            FloatVec::F32(numbers) => Self::F32(numbers),
            FloatVec::Bf16(numbers) => Self::Bf16(numbers),
        }
    }

    #[inline(always)]
    fn len(self) -> usize {
        match self {
            Self::F32(numbers) => numbers.len(),
            Self::Bf16(numbers) => numbers.len(),
        }
    }

    /// Converts a range to f32 in the buffer, unless stored in f32.
    #[inline(always)]
    fn widen(self, range: Range<usize>, buffer: &mut AlignedBuffer) {
        if let Self::Bf16(numbers) = self {
            for (number, &bits) in buffer.resize(range.len()).iter_mut().zip(&numbers[range]) {
                *number = bf16_to_f32(bits);
            }
        }
    }

    /// Returns the range in f32, from the input or the buffer.
    fn widened<'b>(self, range: Range<usize>, buffer: &'b AlignedBuffer) -> &'b [f32]
    where
        'a: 'b,
    {
        match self {
            Self::F32(numbers) => &numbers[range],
            Self::Bf16(_) => buffer.slice(range.len()),
        }
    }
}

/// Output elements.
enum FloatSliceMut<'a> {
    F32(&'a mut [f32]),
    Bf16(&'a mut [u16]),
}

impl<'a> FloatSliceMut<'a> {
    fn new(numbers: &'a mut FloatVec) -> Self {
        match numbers {
            FloatVec::F32(numbers) => Self::F32(numbers),
            FloatVec::Bf16(numbers) => Self::Bf16(numbers),
        }
    }

    fn blocks(self, size: usize) -> Box<dyn Iterator<Item = Self> + 'a> {
        match self {
            Self::F32(numbers) => Box::new(numbers.chunks_mut(size).map(Self::F32)),
            Self::Bf16(numbers) => Box::new(numbers.chunks_mut(size).map(Self::Bf16)),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::F32(numbers) => numbers.len(),
            Self::Bf16(numbers) => numbers.len(),
        }
    }

    /// Returns the memory for computing a range in f32: the output itself, or the buffer.
    #[inline(always)]
    fn output_slice<'b>(&'b mut self, range: Range<usize>, buffer: &'b mut AlignedBuffer) -> &'b mut [f32] {
        match self {
            Self::F32(numbers) => &mut numbers[range],
            Self::Bf16(_) => buffer.resize(range.len()),
        }
    }

    /// Rounds the buffer to the output, unless stored in f32.
    #[inline(always)]
    fn round<L: FloatSimd>(&mut self, lanes: L, range: Range<usize>, buffer: &AlignedBuffer) {
        if let Self::Bf16(numbers) = self {
            lanes.round_to_bf16(buffer.slice(range.len()), &mut numbers[range]);
        }
    }
}

/// Task: rows of a block.
struct RowsTask<'a, F, N, const IN: usize, const SHARED: usize, const OUT: usize> {
    function: F,
    inputs: [&'a [N]; IN],
    shared: [FloatSlice<'a>; SHARED],
    columns: usize,
    /// Elements before the block.
    first: usize,
    outputs: [FloatSliceMut<'a>; OUT],
}

impl<F, N, const IN: usize, const SHARED: usize, const OUT: usize> FloatTask for RowsTask<'_, F, N, IN, SHARED, OUT>
where
    F: RowFunction<IN, SHARED, OUT>,
    N: FloatElement,
{
    #[inline(always)]
    fn execute<L: FloatSimd>(self, lanes: L) {
        let Self { function, inputs, shared, columns, first, mut outputs } = self;
        // Closures passed to array functions may be compiled without the set's instructions, so conversions are written
        // as loops.
        let mut of_shared: [AlignedBuffer; SHARED] = from_fn(|_| AlignedBuffer::default());
        for (shared, buffer) in shared.iter().zip(&mut of_shared) {
            shared.widen(0..columns, buffer);
        }
        let shared = from_fn(|at| shared[at].widened(0..columns, &of_shared[at]));
        let mut of_outputs: [AlignedBuffer; OUT] = from_fn(|_| AlignedBuffer::default());
        for start in (0..outputs[0].len()).step_by(columns) {
            // The last chunk of an element-wise operator may be shorter.
            let range = start..outputs[0].len().min(start + columns);
            let of_all = first + range.start..first + range.end;
            let rows = inputs.map(|numbers| &numbers[of_all.clone()]);
            let mut places = outputs.iter_mut().zip(&mut of_outputs);
            let to = from_fn(|_| {
                let (output, buffer) = places.next().expect("one buffer per output");
                output.output_slice(range.clone(), buffer)
            });
            function.row(lanes, rows, shared, to);
            for (output, buffer) in outputs.iter_mut().zip(&of_outputs) {
                output.round(lanes, range.clone(), buffer);
            }
        }
    }
}

/// Task: values of the rows of a block.
struct ReductionTask<'a, F, const IN: usize> {
    function: F,
    inputs: [FloatSlice<'a>; IN],
    columns: [usize; IN],
    /// Rows before the block.
    first: usize,
    values: &'a mut [f64],
}

impl<F: RowReduction<IN>, const IN: usize> FloatTask for ReductionTask<'_, F, IN> {
    #[inline(always)]
    fn execute<L: FloatSimd>(self, lanes: L) {
        let Self { function, inputs, columns, first, values } = self;
        let mut of_inputs: [AlignedBuffer; IN] = from_fn(|_| AlignedBuffer::default());
        for (row, value) in values.iter_mut().enumerate() {
            let place = |input: usize| {
                let end = (first + row + 1) * columns[input];
                (first + row) * columns[input]..end.min(inputs[input].len())
            };
            for (at, buffer) in of_inputs.iter_mut().enumerate() {
                inputs[at].widen(place(at), buffer);
            }
            *value = function.value(lanes, from_fn(|at| inputs[at].widened(place(at), &of_inputs[at])));
        }
    }
}
