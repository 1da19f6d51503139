//! Open case of an external program as a workload.

use crate::ExternalError;
use crate::process::{SharedProcess, lock};
use crate::protocol::{MeasuredTime, OpenCase, Reply, Request};
use crate::shared_buffers::{POISON, SharedBuffers};
use calorimeter_case::Clock;
use calorimeter_zoo::{ImageLayout, Output, RemotePasses, Workload, ZooError};
use std::collections::HashMap;
use std::io;
use std::time::{Duration, Instant};

/// Names of clocks that measure elapsed time on the host.
const HOST_CLOCKS: [&str; 2] = ["wall", "wall-e2e"];
/// Minimum duration of a window whose reported time is compared with the time that passed in this process. Messages
/// take a large share of shorter windows.
const MIN_COMPARED_WINDOW: Duration = Duration::from_millis(1);
/// Minimum total duration of windows before the total reported time is compared with the total passed time.
const MIN_COMPARED_TIME: Duration = Duration::from_millis(200);
/// Minimum reported time, as a share of the passed time.
const MIN_REPORTED_SHARE: f64 = 0.5;

/// Number of compared launches with new inputs, and of compared launches with repeated inputs. If repeated inputs have
/// no effect on times, every launch with repeated inputs is faster than every launch with new inputs, in two successive
/// comparisons, in 1 of 63,504 cases.
const REPETITION_ROUNDS: usize = 5;
/// Maximum bytes of inputs that are rewritten before each launch with new or repeated inputs. An implementation that
/// compares inputs, or hashes of inputs, finds changed bytes also if only a part of the inputs is rewritten.
const MAX_REPETITION_BYTES: u64 = 256 << 20;
/// Minimum time of a launch with repeated inputs relative to a launch with new inputs.
const MIN_REPEATED_SHARE: f64 = 0.7;

/// Launches of an open case, counted and timed.
struct Launches {
    process: SharedProcess,
    id: u64,
    sets: u32,
    next_set: u32,
    /// True for each buffer set whose outputs were written by a launch.
    written: Vec<bool>,
    /// Number of launches that were not sent to the program yet.
    pending: u32,
    /// Name of each kind of clock that was used.
    clocks: HashMap<Clock, String>,
    /// Clock of the last window, if one followed the last check.
    timed: Option<Clock>,
    /// Total time that the program reported by host clocks.
    reported: Duration,
    /// Total time that passed in this process during the windows of `reported`.
    passed: Duration,
}

impl Launches {
    /// Runs launches, and returns the time by a clock.
    fn run(&mut self, launches: u32, clock: Option<Clock>) -> Result<Option<MeasuredTime>, ExternalError> {
        let mut process = lock(&self.process);
        let start = Instant::now();
        let time = match process.request(&Request::Run { id: self.id, set: self.next_set, launches, clock })? {
            Reply::Ran { time } => time,
            other => return Err(process.unexpected(&other)),
        };
        let passed = start.elapsed();
        match (clock, &time) {
            (None, None) => {}
            (Some(clock), Some(time)) => {
                if Duration::from_nanos(time.nanos) > passed {
                    let (reported, passed) = (time.nanos, passed.as_nanos());
                    return Err(process.violation(format!("it reported {reported} ns for a window of {passed} ns")));
                }
                let known = self.clocks.entry(clock).or_insert_with(|| time.clock.clone());
                if *known != time.clock {
                    return Err(process.violation(format!("its clock {known} became {}", time.clock)));
                }
            }
            _ => return Err(process.unexpected(&Reply::Ran { time })),
        }
        drop(process);
        self.advance(launches);
        // Device clocks exclude the time in which the device waits for the host.
        if let Some(time) = &time
            && HOST_CLOCKS.contains(&&*time.clock)
        {
            self.compare(time.nanos, passed)?;
        }
        Ok(time)
    }

    /// Counts launches that ran.
    fn advance(&mut self, launches: u32) {
        for launch in 0..launches.min(self.sets) {
            self.written[((self.next_set + launch) % self.sets) as usize] = true;
        }
        self.next_set = ((u64::from(self.next_set) + u64::from(launches)) % u64::from(self.sets)) as u32;
    }

    /// Compares the time that a host clock reported with the time that passed in this process.
    fn compare(&mut self, nanos: u64, passed: Duration) -> Result<(), ExternalError> {
        if passed >= MIN_COMPARED_WINDOW {
            self.reported += Duration::from_nanos(nanos);
            self.passed += passed;
        }
        if self.passed > MIN_COMPARED_TIME && self.reported < self.passed.mul_f64(MIN_REPORTED_SHARE) {
            let (reported, passed) = (self.reported.as_millis(), self.passed.as_millis());
            return Err(ExternalError::Reported(format!(
                "the program reported {reported} ms for windows that took {passed} ms"
            )));
        }
        Ok(())
    }

    /// Sends the pending launches and waits for them.
    fn finish(&mut self) -> Result<(), ExternalError> {
        match std::mem::take(&mut self.pending) {
            0 => Ok(()),
            pending => self.run(pending, None).map(|_| ()),
        }
    }

    /// Time of launches by a clock.
    fn measure(&mut self, launches: u32, clock: Clock) -> Result<MeasuredTime, ExternalError> {
        self.finish()?;
        let time = self.run(launches, Some(clock))?;
        time.ok_or_else(|| lock(&self.process).unexpected(&Reply::Ran { time: None }))
    }

    /// Copies the last outputs of a set to the shared memory.
    fn store(&mut self, set: u32) -> Result<(), ExternalError> {
        let mut process = lock(&self.process);
        match process.request(&Request::Store { id: self.id, set })? {
            Reply::Stored {} => Ok(()),
            other => Err(process.unexpected(&other)),
        }
    }
}

impl Drop for Launches {
    fn drop(&mut self) {
        // The program may have ended; then it holds no resources.
        let _ = lock(&self.process).request(&Request::Close { id: self.id });
    }
}

/// Times of single launches in nanoseconds.
#[derive(Debug, Default)]
struct Repetitions {
    /// Times of launches whose inputs differ from the inputs of the previous launch.
    new: Vec<u64>,
    /// Times of launches with the inputs of the previous launch.
    repeated: Vec<u64>,
}

/// True if every launch with repeated inputs takes less time than every launch with new inputs, by a clear margin.
fn skips_repeated_work(Repetitions { new, repeated }: &Repetitions) -> bool {
    let is_separated = repeated.iter().max() < new.iter().min();
    let fastest = |times: &[u64]| times.iter().copied().min().unwrap_or_default() as f64;
    is_separated && fastest(repeated) < MIN_REPEATED_SHARE * fastest(new)
}

/// Inputs of all buffer sets, as bytes.
pub(crate) struct SetInputs {
    /// Function that computes the inputs of a set, except the weights of a model.
    pub of_set: Box<dyn Fn(u32) -> Vec<Vec<u8>> + Send>,
    /// Number of inputs that `of_set` returns.
    pub count: usize,
    /// True if the inputs of sets differ.
    pub vary: bool,
}

/// Case of an external program.
///
/// The program may skip the computation of a launch. A checked pass on buffers that an earlier launch wrote therefore
/// has new inputs, and the earlier outputs remain in place. An implementation that writes a stored result, or nothing,
/// then fails the gate. An implementation that changes inputs fails, too.
///
/// The number of a set denotes the content of the set: buffer set i begins with content i, and each checked pass with
/// new inputs replaces the content by the next content.
pub(crate) struct ExternalWorkload {
    launches: Launches,
    buffers: SharedBuffers,
    /// Content of each buffer set.
    contents: Vec<u32>,
    inputs: SetInputs,
    kernel: Option<String>,
    /// Time to quantize the weights of one buffer set.
    pub(crate) quantization_time: Option<Duration>,
    /// Layout and shape of each output that is converted to channels-first layout when it is read.
    pub(crate) image_outputs: Vec<Option<(ImageLayout, [u64; 2])>>,
}

impl ExternalWorkload {
    /// Opens a case in a process. `case` is complete except for the id.
    pub(crate) fn open(
        process: SharedProcess,
        buffers: SharedBuffers,
        inputs: SetInputs,
        mut case: OpenCase,
    ) -> Result<Self, ExternalError> {
        let sets = buffers.sets();
        let (id, kernel, quantization) = {
            let mut process = lock(&process);
            case.id = process.next_id();
            let id = case.id;
            match process.request(&Request::Open(Box::new(case)))? {
                Reply::Opened { kernel, quantization_nanos } => (id, kernel, quantization_nanos),
                other => return Err(process.unexpected(&other)),
            }
        };
        let launches = Launches {
            process,
            id,
            sets,
            next_set: 0,
            written: vec![false; sets as usize],
            pending: 0,
            clocks: HashMap::new(),
            timed: None,
            reported: Duration::ZERO,
            passed: Duration::ZERO,
        };
        let (contents, quantization_time) = ((0..sets).collect(), quantization.map(Duration::from_nanos));
        Ok(Self { launches, buffers, contents, inputs, kernel, quantization_time, image_outputs: Vec::new() })
    }

    /// Content of a buffer set in the next checked pass.
    fn next_content(&self, buffer: u32) -> u32 {
        match self.contents[buffer as usize] {
            content if !self.launches.written[buffer as usize] => content,
            // A single set alternates between two contents.
            content => (content + 1) % self.launches.sets.max(2),
        }
    }

    /// Outputs of the last launch on a set.
    fn read(&mut self, buffer: u32) -> Result<Vec<Output>, ZooError> {
        self.launches.store(buffer)?;
        let mut outputs = self.buffers.read(buffer).map_err(|error| self.sharing(error))?;
        for (output, images) in outputs.iter_mut().zip(&self.image_outputs) {
            if let Some((layout, [rows, cols])) = *images {
                let values = layout.to_channels_first(&output.values);
                *output = Output { rows: rows as usize, cols: cols as usize, values };
            }
        }
        Ok(outputs)
    }

    /// Fails if launches take less time with the inputs of the previous launch than with new inputs, because the
    /// implementation then skips work that an earlier launch has done. The inputs of the buffer set are undefined
    /// afterwards.
    fn check_repeated_launches(&mut self, buffer: u32, clock: Clock) -> Result<(), ZooError> {
        let mut times = self.time_repetitions(buffer, clock)?;
        // A disturbance may slow down the launches of one batch.
        if skips_repeated_work(&times) {
            times = self.time_repetitions(buffer, clock)?;
        }
        self.launches.next_set = buffer;
        if !skips_repeated_work(&times) {
            return Ok(());
        }
        let Repetitions { new, repeated } = times;
        let reason =
            format!("launches take {new:?} ns with new inputs, and {repeated:?} ns if the inputs are repeated");
        Err(ExternalError::Reported(reason).into())
    }

    /// Times single launches on a buffer set, alternately with new and with repeated inputs.
    fn time_repetitions(&mut self, buffer: u32, clock: Clock) -> Result<Repetitions, ZooError> {
        // A single launch of a graph cannot be timed by its clock.
        let clock = if clock == Clock::Graph { Clock::Device } else { clock };
        let mut times = Repetitions::default();
        for _ in 0..REPETITION_ROUNDS {
            for (positions, times) in [(1, &mut times.new), (0, &mut times.repeated)] {
                let rotated = self.buffers.rotate_inputs(buffer, self.inputs.count, positions, MAX_REPETITION_BYTES);
                rotated.map_err(|error| self.sharing(error))?;
                self.launches.next_set = buffer;
                times.push(self.launches.measure(1, clock)?.nanos);
            }
        }
        Ok(times)
    }

    fn sharing(&self, error: io::Error) -> ZooError {
        let program = lock(&self.launches.process).program().to_string();
        ExternalError::Sharing { program, error }.into()
    }
}

impl Workload for ExternalWorkload {
    fn launch(&mut self) -> Result<(), ZooError> {
        self.launches.pending += 1;
        Ok(())
    }

    fn synchronize(&mut self) -> Result<(), ZooError> {
        Ok(self.launches.finish()?)
    }

    fn outputs(&mut self) -> Result<Vec<Output>, ZooError> {
        self.launches.finish()?;
        let buffer = self.launches.next_set;
        let content = self.next_content(buffer);
        let written = if self.launches.written[buffer as usize] {
            if let Some(input) = self.buffers.changed_input(buffer).map_err(|error| self.sharing(error))? {
                return Err(ExternalError::Reported(format!("the implementation changed input {input}")).into());
            }
            if let Some(clock) = self.launches.timed.take() {
                self.check_repeated_launches(buffer, clock)?;
            }
            self.contents[buffer as usize] = content;
            let written = self.buffers.write_inputs(buffer, &(self.inputs.of_set)(content));
            // With equal inputs, earlier outputs would pass the check.
            if self.inputs.vary { written } else { written.and_then(|()| self.buffers.fill_outputs(buffer, 0)) }
        } else {
            self.buffers.fill_outputs(buffer, POISON)
        };
        written.map_err(|error| self.sharing(error))?;
        self.launches.run(1, None)?;
        self.read(buffer)
    }

    fn last_outputs(&mut self, set: u32) -> Result<Option<Vec<Output>>, ZooError> {
        self.launches.finish()?;
        let buffer = self.contents.iter().position(|&content| content == set);
        let buffer = buffer.filter(|&buffer| self.launches.written[buffer]);
        buffer.map(|buffer| self.read(buffer as u32)).transpose()
    }

    fn next_set(&self) -> u32 {
        self.next_content((self.launches.next_set + self.launches.pending) % self.launches.sets)
    }

    /// PyTorch and Triton multiply f32 operands on tensor cores if a user allows it.
    fn may_use_tf32(&self) -> bool {
        self.buffers.is_on_gpu()
    }

    fn quantization_time(&self) -> Option<Duration> {
        self.quantization_time
    }

    fn kernel(&self) -> Option<String> {
        self.kernel.clone()
    }

    fn remote_passes(&mut self) -> Option<&mut dyn RemotePasses> {
        Some(&mut self.launches)
    }
}

impl RemotePasses for Launches {
    fn clock_name(&mut self, clock: Clock) -> Result<String, ZooError> {
        Ok(self.measure(0, clock)?.clock)
    }

    fn time(&mut self, passes: u32, clock: Clock) -> Result<u64, ZooError> {
        self.timed = Some(clock);
        Ok(self.measure(passes, clock)?.nanos)
    }

    fn kernel_calls(&mut self, passes: u32) -> Result<Vec<(String, u64)>, ZooError> {
        self.finish()?;
        let mut process = lock(&self.process);
        let kernels = match process.request(&Request::Trace { id: self.id, set: self.next_set, launches: passes })? {
            Reply::Traced { kernels } => kernels,
            other => return Err(process.unexpected(&other).into()),
        };
        drop(process);
        self.advance(passes);
        Ok(kernels)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skipped_work_differs_in_every_launch() {
        let skips = |new: [u64; 3], repeated: [u64; 3]| {
            skips_repeated_work(&Repetitions { new: new.into(), repeated: repeated.into() })
        };
        assert!(skips([100, 110, 105], [10, 12, 60]));
        // Disturbances of some launches, and small differences of all.
        assert!(!skips([100, 300, 290], [10, 110, 12]));
        assert!(!skips([100, 110, 105], [80, 85, 90]));
    }
}
