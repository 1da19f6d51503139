//! `calorimeter time`.

use super::error::CliError;
use super::options::{AxisChoice, EXIT_CODES, RunArguments};
use super::run::execute;
use crate::Exit;
use crate::entries::{Entry, Origin, Programs, Size};
use crate::run::Request;
use calorimeter_shapes::{Axis, Grid, MAX_SHAPES, Values};
use calorimeter_zoo::foreign::{Amount, Argument, KernelSource, Program, words};
use clap::Args;

/// Time programs that are not ours: commands, shared libraries, CUDA C++ kernels.
///
/// Each is a case like any other, with the same rounds, verdicts, records, files and exit codes as `run`; the others are
/// compared with the first. Kernels and libraries are given the same buffers, and what they leave there must be what the first
/// leaves. A library has the interface of calorimeter.h, which the page `foreign` of the book describes.
#[derive(Debug, Args)]
#[command(after_long_help = examples())]
pub struct TimeArguments {
    /// Shared libraries (.so, .dylib) and CUDA C++ sources (.cu)
    #[arg(value_name = "FILE")]
    pub files: Vec<String>,
    /// A command in one line, after the files; no shell is started, so that pipes take sh -c '…'
    #[arg(long = "command", value_name = "LINE")]
    pub commands: Vec<String>,
    /// A command in words, after all others
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
    /// What the work is called in ids [default: the kernel, or `command` or `library`]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// What the programs are called, in their order [default: by their files or words]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub labels: Vec<String>,
    /// Sizes: each value is a case. Libraries are told of them; in a command an axis in braces stands for its value, and in
    /// what follows its name
    #[arg(long, value_name = "AXIS=N,…")]
    pub axis: Vec<AxisChoice>,
    /// An argument of kernels and libraries: a buffer as f32:n:in, f32:n:out or f32:n:inout, or a value as i32=n
    #[arg(long = "arg", value_name = "ARGUMENT")]
    pub arguments: Vec<Argument>,
    /// How far outputs may be from the first's, e.g. 1e-5 [default: as far as sums in another order]
    #[arg(long, value_name = "SHARE")]
    pub tolerance: Option<f64>,
    /// Floating-point operations of one call, e.g. 2*m*k*n
    #[arg(long, value_name = "AMOUNT")]
    pub flops: Option<Amount>,
    /// Bytes that one call must move at least, e.g. 12*n
    #[arg(long, value_name = "AMOUNT")]
    pub bytes: Option<Amount>,
    /// The kernel in CUDA C++ sources, e.g. add or add<float>
    #[arg(long, value_name = "KERNEL")]
    pub entry: Option<String>,
    /// Its blocks in x, y and z, e.g. (n+255)/256
    #[arg(long, value_name = "AMOUNT,…", value_delimiter = ',')]
    pub grid: Vec<Amount>,
    /// Threads of a block in x, y and z
    #[arg(long, value_name = "AMOUNT,…", value_delimiter = ',')]
    pub block: Vec<Amount>,
    /// Bytes of shared memory for a block, besides what the source declares
    #[arg(long, value_name = "AMOUNT")]
    pub shared: Option<Amount>,
    #[command(flatten)]
    pub run: RunArguments,
}

fn examples() -> String {
    format!(
        "Examples:
  calorimeter time -- ./a.out input.txt
  calorimeter time --command './old {{n}}' --command './new {{n}}' --axis n=1000,10000
  calorimeter time old.so new.so --axis n=1048576 --arg f32:n:in --arg f32:n:out
  calorimeter time a.cu b.cu --entry add --axis n=1048576 --arg f32:n:in --arg f32:n:out --arg i32=n \\
      --grid '(n+255)/256' --block 256

{EXIT_CODES}"
    )
}

pub fn time(arguments: TimeArguments) -> Result<Exit, CliError> {
    let TimeArguments { files, commands, command, name, labels, axis, run, .. } = &arguments;
    let nothing = files.is_empty() && commands.is_empty() && command.is_empty();
    let entries = match &run.resume {
        Some(_) if !nothing || name.is_some() || !labels.is_empty() || !axis.is_empty() => {
            let why = "--resume goes on with what was asked for then: leave programs and sizes out";
            return Err(CliError::Usage(why.into()));
        }
        Some(_) => Vec::new(),
        None => vec![entry(&arguments).map_err(CliError::Usage)?],
    };
    let request = Request { entries, ..Request::default() };
    let Some(mut finished) = execute(request, arguments.run)? else { return Ok(Exit::Fine) };
    let exit = finished.sum_up();
    finished.end(exit)
}

/// What the options ask for.
fn entry(asked: &TimeArguments) -> Result<Entry, String> {
    let TimeArguments { files, commands, command, name, labels, arguments, tolerance, flops, bytes, .. } = asked;
    let here = std::env::current_dir().map_err(|error| format!("the working directory is unknown: {error}"))?;
    let directory = text(here.as_os_str(), "the working directory")?;
    let mut programs = files.iter().map(|file| program(file, asked)).collect::<Result<Vec<_>, _>>()?;
    let lines = commands.iter().map(|line| words(line));
    let command = Some(command.clone()).filter(|words| !words.is_empty()).map(Ok);
    for words in lines.chain(command) {
        programs.push(Program::Command { words: words?, directory: directory.clone() });
    }
    if programs.is_empty() {
        return Err("nothing to time: name files, or a command behind --".into());
    }
    if !programs.iter().any(|program| matches!(program, Program::Kernel(_))) && has_launch(asked) {
        return Err("--entry, --grid, --block and --shared are for CUDA C++ sources (.cu), and there is none".into());
    }
    if !labels.is_empty() && labels.len() != programs.len() {
        return Err(format!("--labels: {} names for {} programs", labels.len(), programs.len()));
    }
    let mut labels = labels.iter().cloned();
    let programs = programs.into_iter().map(|program| (labels.next(), program)).collect();
    let programs = Programs {
        name: name.clone(),
        programs,
        arguments: arguments.clone(),
        tolerance: *tolerance,
        flops: flops.clone(),
        bytes: bytes.clone(),
    };
    programs.entry(Origin::command("time"), sizes(&asked.axis)?)
}

fn has_launch(asked: &TimeArguments) -> bool {
    let TimeArguments { entry, grid, block, shared, .. } = asked;
    entry.is_some() || !grid.is_empty() || !block.is_empty() || shared.is_some()
}

/// What a file is, by its name.
fn program(file: &str, asked: &TimeArguments) -> Result<Program, String> {
    let path = std::path::absolute(file).map_err(|error| format!("{file:?}: {error}"))?;
    let path = text(path.as_os_str(), file)?;
    let TimeArguments { entry, grid, block, shared, .. } = asked;
    if file.ends_with(".cu") {
        let Some(entry) = entry.clone() else {
            return Err(format!("{file} is CUDA C++: say by --entry which of its kernels is meant"));
        };
        if grid.is_empty() || block.is_empty() {
            return Err(format!("{file} is CUDA C++: say by --grid and --block how {entry} is launched"));
        }
        let (grid, block, shared) = (grid.clone(), block.clone(), shared.clone());
        return Ok(Program::Kernel(KernelSource { path, entry, grid, block, shared }));
    }
    if file.ends_with(".so") || file.ends_with(".dylib") || file.contains(".so.") {
        return Ok(Program::Library { path });
    }
    Err(format!(
        "{file} is neither a shared library (.so, .dylib) nor CUDA C++ (.cu); a command stands behind --, or in --command"
    ))
}

/// A path that records and journals keep as text.
fn text(path: &std::ffi::OsStr, what: &str) -> Result<String, String> {
    path.to_str().map(ToOwned::to_owned).ok_or_else(|| format!("{what} is no UTF-8, and journals are to name it"))
}

/// Every combination of the values of all axes.
fn sizes(given: &[AxisChoice]) -> Result<Vec<Size>, String> {
    if given.is_empty() {
        return Ok(Vec::new());
    }
    let axes = given.iter().map(|AxisChoice { name, values }| Axis::new(name.clone(), Values::List(values.clone())));
    let grid = Grid::product(axes).map_err(|error| format!("--axis: {error}"))?;
    if grid.count() > MAX_SHAPES {
        return Err(format!("--axis: {} sizes, more than {MAX_SHAPES}; give fewer values", grid.count()));
    }
    Ok(grid.iter().map(Size::custom).collect())
}
