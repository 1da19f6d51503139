//! `calorimeter time`.

use super::error::CliError;
use super::options::{AxisChoice, EXIT_CODES, RunArguments};
use super::run::execute;
use crate::Exit;
use crate::entries::{Entry, Origin, Programs, Size};
use crate::run::Request;
use calorimeter_shapes::{Axis, Grid, MAX_SHAPES, SizeValues};
use calorimeter_zoo::foreign::{Argument, AxisExpression, ForeignProgram, KernelSource, split_command};
use clap::Args;
use std::path::Path;

/// Time external programs: commands, shared libraries, CUDA C++ kernels.
///
/// Each program is a case with the same measurement, verdicts, records, files and exit codes as in `run`. The first
/// program is the reference for the others. Kernels and libraries receive identical buffers, and their outputs must
/// match those of the first program. A library implements the interface of calorimeter.h; see the page `foreign` of the
/// book.
#[derive(Debug, Args)]
#[command(after_long_help = examples())]
pub(super) struct TimeArguments {
    /// Shared libraries (.so, .dylib), CUDA C++ sources (.cu), and command lines such as 'sleep 0.1'
    #[arg(value_name = "PROGRAM")]
    pub programs: Vec<String>,
    /// Command line to time, after the programs; no shell is involved, use sh -c '…' for pipes
    #[arg(long = "command", value_name = "LINE")]
    pub commands: Vec<String>,
    /// Command to time, after all others
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
    /// Name of the work in case ids [default: the kernel, or `command` or `library`]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Names of the programs, in order [default: from their files or words]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub labels: Vec<String>,
    /// Sizes along an axis; each value is a case. Libraries receive the values; in commands and labels {AXIS} is
    /// replaced by the value
    #[arg(long, value_name = "AXIS=N,…")]
    pub axis: Vec<AxisChoice>,
    /// Argument of kernels and libraries: a buffer such as f32:n:in, f32:n:out or f32:n:inout, or a value such as i32=n
    #[arg(long = "arg", value_name = "ARGUMENT")]
    pub arguments: Vec<Argument>,
    /// Allowed relative difference of outputs from the first program's, e.g. 1e-5 [default: that of a different
    /// summation order]
    #[arg(long, value_name = "FRACTION")]
    pub tolerance: Option<f64>,
    /// Floating-point operations of one call, e.g. 2*m*k*n
    #[arg(long, value_name = "AMOUNT")]
    pub flops: Option<AxisExpression>,
    /// Minimum memory traffic of one call in bytes, e.g. 12*n
    #[arg(long, value_name = "AMOUNT")]
    pub bytes: Option<AxisExpression>,
    /// Kernel in the CUDA C++ sources, e.g. add or add<float>
    #[arg(long, value_name = "KERNEL")]
    pub entry: Option<String>,
    /// Grid size in x, y and z, e.g. (n+255)/256
    #[arg(long, value_name = "AMOUNT,…", value_delimiter = ',')]
    pub grid: Vec<AxisExpression>,
    /// Block size in x, y and z
    #[arg(long, value_name = "AMOUNT,…", value_delimiter = ',')]
    pub block: Vec<AxisExpression>,
    /// Dynamic shared memory per block in bytes
    #[arg(long, value_name = "AMOUNT")]
    pub shared: Option<AxisExpression>,
    #[command(flatten)]
    pub run: RunArguments,
}

fn examples() -> String {
    format!(
        "Examples:
  calorimeter time './old input.txt' './new input.txt'
  calorimeter time -- ./a.out input.txt
  calorimeter time --command './old {{n}}' --command './new {{n}}' --axis n=1000,10000
  calorimeter time old.so new.so --axis n=1048576 --arg f32:n:in --arg f32:n:out
  calorimeter time a.cu b.cu --entry add --axis n=1048576 --arg f32:n:in --arg f32:n:out --arg i32=n \\
      --grid '(n+255)/256' --block 256

{EXIT_CODES}"
    )
}

pub(super) fn time(arguments: TimeArguments) -> Result<Exit, CliError> {
    let TimeArguments { programs, commands, command, name, labels, axis, run, .. } = &arguments;
    let nothing = programs.is_empty() && commands.is_empty() && command.is_empty();
    let entries = match &run.resume {
        Some(_) if !nothing || name.is_some() || !labels.is_empty() || !axis.is_empty() => {
            let why = "--resume continues the original plan: omit programs and sizes";
            return Err(CliError::Usage(why.into()));
        }
        Some(_) => Vec::new(),
        None => vec![entry(&arguments).map_err(CliError::Usage)?],
    };
    let request = Request { entries, ..Request::default() };
    let Some(mut finished) = execute(request, arguments.run)? else { return Ok(Exit::Success) };
    let exit = finished.print_summary();
    finished.finish(exit)
}

/// Builds the entry that the options request.
fn entry(asked: &TimeArguments) -> Result<Entry, String> {
    let TimeArguments { programs, commands, command, name, labels, arguments, tolerance, flops, bytes, .. } = asked;
    let here = std::env::current_dir().map_err(|error| format!("cannot determine the working directory: {error}"))?;
    let directory = utf8_path(here.as_os_str(), "the working directory")?;
    let on_host = |words| ForeignProgram::Command { words, directory: directory.clone() };
    let program = |text: &String| match is_file(text) {
        true => program_from_file(text, asked),
        false => split_command(text).map(on_host),
    };
    let mut programs = programs.iter().map(program).collect::<Result<Vec<_>, _>>()?;
    for line in commands {
        programs.push(on_host(split_command(line)?));
    }
    programs.extend(Some(command.clone()).filter(|words| !words.is_empty()).map(on_host));
    if programs.is_empty() {
        return Err("nothing to time: expected command lines such as 'sleep 0.1', or files (.so, .dylib, .cu)".into());
    }
    if !programs.iter().any(|program| matches!(program, ForeignProgram::Kernel(_))) && has_launch_options(asked) {
        return Err("--entry, --grid, --block and --shared require a CUDA C++ source (.cu)".into());
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

fn has_launch_options(asked: &TimeArguments) -> bool {
    let TimeArguments { entry, grid, block, shared, .. } = asked;
    entry.is_some() || !grid.is_empty() || !block.is_empty() || shared.is_some()
}

/// True for the path of a library or a CUDA C++ source. A path with blanks must exist; otherwise it is a command line.
fn is_file(program: &str) -> bool {
    let is_path =
        is_source(program) || program.ends_with(".so") || program.ends_with(".dylib") || program.contains(".so.");
    is_path && (!program.contains(char::is_whitespace) || Path::new(program).exists())
}

fn is_source(file: &str) -> bool {
    file.ends_with(".cu")
}

/// Builds the program of a library or a CUDA C++ source.
fn program_from_file(file: &str, asked: &TimeArguments) -> Result<ForeignProgram, String> {
    let path = std::path::absolute(file).map_err(|error| format!("{file:?}: {error}"))?;
    let path = utf8_path(path.as_os_str(), file)?;
    let TimeArguments { entry, grid, block, shared, .. } = asked;
    if is_source(file) {
        let Some(entry) = entry.clone() else {
            return Err(format!("{file} is CUDA C++: select a kernel with --entry"));
        };
        if grid.is_empty() || block.is_empty() {
            return Err(format!("{file} is CUDA C++: set the launch configuration of {entry} with --grid and --block"));
        }
        let (grid, block, shared) = (grid.clone(), block.clone(), shared.clone());
        return Ok(ForeignProgram::Kernel(KernelSource { path, entry, grid, block, shared }));
    }
    Ok(ForeignProgram::Library { path })
}

/// Checks that a path is valid UTF-8: records and journals store it as text.
fn utf8_path(path: &std::ffi::OsStr, what: &str) -> Result<String, String> {
    path.to_str()
        .map(ToOwned::to_owned)
        .ok_or_else(|| format!("{what}: expected a path in UTF-8, because journals record it"))
}

/// Sizes: the Cartesian product of all axes.
fn sizes(given: &[AxisChoice]) -> Result<Vec<Size>, String> {
    if given.is_empty() {
        return Ok(Vec::new());
    }
    let axes =
        given.iter().map(|AxisChoice { name, values }| Axis::new(name.clone(), SizeValues::List(values.clone())));
    let grid = Grid::product(axes).map_err(|error| format!("--axis: {error}"))?;
    if grid.count() > MAX_SHAPES {
        return Err(format!("--axis: {} sizes, more than {MAX_SHAPES}; give fewer values", grid.count()));
    }
    Ok(grid.iter().map(Size::custom).collect())
}
