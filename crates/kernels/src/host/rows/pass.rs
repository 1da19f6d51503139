//! Rows shared out among threads, widened to f32 and rounded back.

use crate::host::cut::share_out;
use crate::host::float_set::FloatSet;
use crate::host::lanes::{FloatJob, Lanes};
use crate::host::numbers::Numbers;
use crate::rowwise::widen;
use core::array::from_fn;
use core::ops::Range;

/// A number as it is stored.
pub trait Number: Copy + Sync {
    /// Those that are stored so.
    fn stored(numbers: &Numbers) -> Option<&[Self]>;

    /// The same in f32.
    fn wide(self) -> f32;
}

impl Number for f32 {
    fn stored(numbers: &Numbers) -> Option<&[Self]> {
        if let Numbers::F32(numbers) = numbers { Some(numbers) } else { None }
    }

    #[inline(always)]
    fn wide(self) -> f32 {
        self
    }
}

/// The bit pattern of a bf16.
impl Number for u16 {
    fn stored(numbers: &Numbers) -> Option<&[Self]> {
        if let Numbers::Bf16(numbers) = numbers { Some(numbers) } else { None }
    }

    #[inline(always)]
    fn wide(self) -> f32 {
        widen(self)
    }
}

/// Rows out of rows, in f32.
pub trait RowFunction<const IN: usize, const SHARED: usize, const OUT: usize>: Copy + Sync {
    /// Makes a row of each output out of one of each input and of those that all rows share. It must be inlined.
    fn row<L: Lanes, N: Number>(
        self,
        lanes: L,
        inputs: [&[N]; IN],
        shared: [&[f32]; SHARED],
        outputs: [&mut [f32]; OUT],
    );
}

/// A value of each row, of which the mean is wanted.
pub trait RowValue<const IN: usize>: Copy + Sync {
    /// Columns of each input, if not as many as there are.
    fn columns(self, columns: usize) -> [usize; IN] {
        [columns; IN]
    }

    /// The value. It must be inlined.
    fn value<L: Lanes>(self, lanes: L, inputs: [&[f32]; IN]) -> f64;
}

/// Blocks of rows for each thread, so that one that is held up delays the others by a quarter at most.
const BLOCKS: usize = 4;

/// Numbers of a piece where each stands alone: few, so that memory delivers the next ones while these are computed.
const PIECE: usize = 512;

/// Fewer numbers than these are worth no other thread.
const LEAST: usize = 1 << 14;

/// Computes every row.
pub fn of_rows<const IN: usize, const SHARED: usize, const OUT: usize>(
    set: FloatSet,
    function: impl RowFunction<IN, SHARED, OUT>,
    inputs: &[Numbers],
    columns: usize,
    outputs: &mut [Numbers],
) {
    assert_eq!((inputs.len(), outputs.len()), (IN + SHARED, OUT), "inputs and outputs");
    let (inputs, shared) = inputs.split_at(IN);
    let count = outputs[0].len();
    assert!(columns > 0 && count.is_multiple_of(columns), "{count} numbers in rows of {columns}");
    assert!(shared.iter().all(|shared| shared.len() == columns), "what rows share has {columns} numbers");
    go(set, function, inputs, shared, columns, outputs);
}

/// Computes every number, of which each stands alone.
pub fn of_elements<const IN: usize>(
    set: FloatSet,
    function: impl RowFunction<IN, 0, 1>,
    inputs: &[Numbers],
    outputs: &mut [Numbers],
) {
    assert_eq!((inputs.len(), outputs.len()), (IN, 1), "inputs and outputs");
    go(set, function, inputs, &[], PIECE, outputs);
}

/// Computes the mean of every row's value, added up in their order.
pub fn mean<const IN: usize>(
    set: FloatSet,
    function: impl RowValue<IN>,
    inputs: &[Numbers],
    columns: usize,
    outputs: &mut [Numbers],
) {
    let output = one_number(outputs);
    let columns = function.columns(columns);
    let rows = inputs[0].len() / columns[0];
    for (input, columns) in inputs.iter().zip(columns) {
        assert_eq!(input.len(), rows * columns, "{rows} rows of {columns}");
    }
    let values = values(set, function, inputs, columns, rows);
    *output = (values.iter().sum::<f64>() / rows as f64) as f32;
}

/// Adds up the values of all pieces, in their order, where every number stands alone.
pub fn total<const IN: usize>(set: FloatSet, function: impl RowValue<IN>, inputs: &[Numbers], outputs: &mut [Numbers]) {
    let output = one_number(outputs);
    let count = inputs[0].len();
    assert!(inputs.iter().all(|input| input.len() == count), "{count} numbers of an operand");
    let values = values(set, function, inputs, [PIECE; IN], count.div_ceil(PIECE));
    *output = values.iter().sum::<f64>() as f32;
}

/// The only number of the only output.
fn one_number(outputs: &mut [Numbers]) -> &mut f32 {
    match outputs {
        [Numbers::F32(output)] if output.len() == 1 => &mut output[0],
        _ => panic!("one output of one number in f32 is made"),
    }
}

/// The value of each row; the last may be shorter.
fn values<const IN: usize>(
    set: FloatSet,
    function: impl RowValue<IN>,
    inputs: &[Numbers],
    columns: [usize; IN],
    rows: usize,
) -> Vec<f64> {
    assert_eq!(inputs.len(), IN, "inputs");
    let mut values = vec![0.0; rows];
    let block = rows_of_block(rows, columns[0]);
    share_out(values.chunks_mut(block).enumerate().collect(), |(at, values)| {
        let inputs = from_fn(|input| Stored::of(&inputs[input]));
        set.run(Values { function, inputs, columns, first: at * block, values });
    });
    values
}

/// Rows of the blocks that threads take.
pub fn rows_of_block(rows: usize, columns: usize) -> usize {
    rows.div_ceil(BLOCKS * rayon::current_num_threads()).max(LEAST.div_ceil(columns))
}

fn go<const IN: usize, const SHARED: usize, const OUT: usize>(
    set: FloatSet,
    function: impl RowFunction<IN, SHARED, OUT>,
    inputs: &[Numbers],
    shared: &[Numbers],
    columns: usize,
    outputs: &mut [Numbers],
) {
    let count = outputs[0].len();
    for numbers in inputs.iter().chain(&*outputs) {
        assert_eq!(numbers.len(), count, "numbers of an operand");
    }
    if let Some(inputs) = stored::<f32, IN>(inputs) {
        by_blocks(set, function, inputs, shared, columns, outputs);
    } else if let Some(inputs) = stored::<u16, IN>(inputs) {
        by_blocks(set, function, inputs, shared, columns, outputs);
    } else {
        panic!("inputs of more than one type");
    }
}

/// The numbers of each operand, if all are stored so.
fn stored<N: Number, const IN: usize>(inputs: &[Numbers]) -> Option<[&[N]; IN]> {
    let inputs: Option<Vec<&[N]>> = inputs.iter().map(N::stored).collect();
    inputs?.try_into().ok()
}

fn by_blocks<N: Number, const IN: usize, const SHARED: usize, const OUT: usize>(
    set: FloatSet,
    function: impl RowFunction<IN, SHARED, OUT>,
    inputs: [&[N]; IN],
    shared: &[Numbers],
    columns: usize,
    outputs: &mut [Numbers],
) {
    let count = outputs[0].len();
    let block = columns * rows_of_block(count.div_ceil(columns), columns);
    let mut blocks: Vec<_> = outputs.iter_mut().map(|output| StoredMut::of(output).blocks(block)).collect();
    let blocks: Vec<[StoredMut<'_>; OUT]> = (0..count.div_ceil(block))
        .map(|_| from_fn(|output| blocks[output].next().expect("outputs have as many blocks as numbers")))
        .collect();
    share_out(blocks.into_iter().enumerate().collect(), |(at, outputs)| {
        let shared = from_fn(|input| Stored::of(&shared[input]));
        set.run(Rows { function, inputs, shared, columns, first: at * block, outputs });
    });
}

/// Numbers in f32, from the start of a line of the cache on: a vector that lies in two lines takes two reads.
#[derive(Default)]
struct Buffer(Vec<f32>);

impl Buffer {
    const LINE: usize = 64;

    #[inline(always)]
    fn numbers(&self, count: usize) -> &[f32] {
        &self.0[self.0.as_ptr().align_offset(Self::LINE)..][..count]
    }

    #[inline(always)]
    fn place(&mut self, count: usize) -> &mut [f32] {
        self.0.resize(count + Self::LINE / size_of::<f32>(), 0.0);
        let start = self.0.as_ptr().align_offset(Self::LINE);
        &mut self.0[start..][..count]
    }
}

/// Numbers that are read.
#[derive(Clone, Copy)]
enum Stored<'a> {
    F32(&'a [f32]),
    Bf16(&'a [u16]),
}

impl<'a> Stored<'a> {
    fn of(numbers: &'a Numbers) -> Self {
        match numbers {
            Numbers::F32(numbers) => Self::F32(numbers),
            Numbers::Bf16(numbers) => Self::Bf16(numbers),
        }
    }

    #[inline(always)]
    fn len(self) -> usize {
        match self {
            Self::F32(numbers) => numbers.len(),
            Self::Bf16(numbers) => numbers.len(),
        }
    }

    /// Writes some of them to a buffer in f32, if they are not stored so.
    #[inline(always)]
    fn widen(self, range: Range<usize>, buffer: &mut Buffer) {
        if let Self::Bf16(numbers) = self {
            for (number, &bits) in buffer.place(range.len()).iter_mut().zip(&numbers[range]) {
                *number = widen(bits);
            }
        }
    }

    /// The same numbers where they are in f32.
    fn widened<'b>(self, range: Range<usize>, buffer: &'b Buffer) -> &'b [f32]
    where
        'a: 'b,
    {
        match self {
            Self::F32(numbers) => &numbers[range],
            Self::Bf16(_) => buffer.numbers(range.len()),
        }
    }
}

/// Numbers that are written.
enum StoredMut<'a> {
    F32(&'a mut [f32]),
    Bf16(&'a mut [u16]),
}

impl<'a> StoredMut<'a> {
    fn of(numbers: &'a mut Numbers) -> Self {
        match numbers {
            Numbers::F32(numbers) => Self::F32(numbers),
            Numbers::Bf16(numbers) => Self::Bf16(numbers),
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

    /// Where some of them are computed: in their place, or in a buffer if they are not stored in f32.
    #[inline(always)]
    fn place<'b>(&'b mut self, range: Range<usize>, buffer: &'b mut Buffer) -> &'b mut [f32] {
        match self {
            Self::F32(numbers) => &mut numbers[range],
            Self::Bf16(_) => buffer.place(range.len()),
        }
    }

    /// Rounds what lies in the buffer, if it does.
    #[inline(always)]
    fn round<L: Lanes>(&mut self, lanes: L, range: Range<usize>, buffer: &Buffer) {
        if let Self::Bf16(numbers) = self {
            lanes.round_to_bf16(buffer.numbers(range.len()), &mut numbers[range]);
        }
    }
}

/// The rows of a block.
struct Rows<'a, F, N, const IN: usize, const SHARED: usize, const OUT: usize> {
    function: F,
    inputs: [&'a [N]; IN],
    shared: [Stored<'a>; SHARED],
    columns: usize,
    /// Numbers before the block.
    first: usize,
    outputs: [StoredMut<'a>; OUT],
}

impl<F, N, const IN: usize, const SHARED: usize, const OUT: usize> FloatJob for Rows<'_, F, N, IN, SHARED, OUT>
where
    F: RowFunction<IN, SHARED, OUT>,
    N: Number,
{
    #[inline(always)]
    fn on<L: Lanes>(self, lanes: L) {
        let Self { function, inputs, shared, columns, first, mut outputs } = self;
        // What a closure given to an array does may stay outside, without the set's instructions: numbers are widened and
        // rounded in loops.
        let mut of_shared: [Buffer; SHARED] = from_fn(|_| Buffer::default());
        for (shared, buffer) in shared.iter().zip(&mut of_shared) {
            shared.widen(0..columns, buffer);
        }
        let shared = from_fn(|at| shared[at].widened(0..columns, &of_shared[at]));
        let mut of_outputs: [Buffer; OUT] = from_fn(|_| Buffer::default());
        for start in (0..outputs[0].len()).step_by(columns) {
            // Where each number stands alone, the last piece may be shorter.
            let range = start..outputs[0].len().min(start + columns);
            let of_all = first + range.start..first + range.end;
            let rows = inputs.map(|numbers| &numbers[of_all.clone()]);
            let mut places = outputs.iter_mut().zip(&mut of_outputs);
            let to = from_fn(|_| {
                let (output, buffer) = places.next().expect("there is a buffer for each output");
                output.place(range.clone(), buffer)
            });
            function.row(lanes, rows, shared, to);
            for (output, buffer) in outputs.iter_mut().zip(&of_outputs) {
                output.round(lanes, range.clone(), buffer);
            }
        }
    }
}

/// The values of a block's rows.
struct Values<'a, F, const IN: usize> {
    function: F,
    inputs: [Stored<'a>; IN],
    columns: [usize; IN],
    /// Rows before the block.
    first: usize,
    values: &'a mut [f64],
}

impl<F: RowValue<IN>, const IN: usize> FloatJob for Values<'_, F, IN> {
    #[inline(always)]
    fn on<L: Lanes>(self, lanes: L) {
        let Self { function, inputs, columns, first, values } = self;
        let mut of_inputs: [Buffer; IN] = from_fn(|_| Buffer::default());
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
