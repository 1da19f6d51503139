//! Open case of an external program as a workload.

use crate::ExternalError;
use crate::process::{SharedProcess, lock};
use crate::protocol::{OpenCase, Reply, Request};
use crate::shared_buffers::SharedBuffers;
use calorimeter_zoo::{Matrix, Output, RemotePasses, Workload, ZooError};
use std::io;
use std::time::{Duration, Instant};

/// Minimum duration of a window whose time is compared with this process's clock. Messages take a large share of
/// shorter windows.
const MIN_COMPARED_WINDOW: Duration = Duration::from_millis(1);
/// Minimum total duration of such windows before the sums of both clocks are compared.
const MIN_COMPARED_TIME: Duration = Duration::from_millis(200);
/// Minimum share of the passed time that a program must report.
const MIN_REPORTED_SHARE: f64 = 0.5;

/// Launches of an open case, counted and timed.
struct Launches {
    process: SharedProcess,
    id: u64,
    sets: u32,
    next_set: u32,
    /// Sets that some launch has written.
    written: Vec<bool>,
    /// Launches that were requested and have not been sent.
    pending: u32,
    /// Reported time of windows, and the time that passed here meanwhile.
    reported: Duration,
    passed: Duration,
}

impl Launches {
    /// Runs launches, and returns the time that the program measured.
    fn run(&mut self, launches: u32) -> Result<u64, ExternalError> {
        let mut process = lock(&self.process);
        let start = Instant::now();
        let nanos = match process.request(&Request::Run { id: self.id, set: self.next_set, launches })? {
            Reply::Ran { nanos } => nanos,
            other => return Err(process.unexpected(&other)),
        };
        let passed = start.elapsed();
        if Duration::from_nanos(nanos) > passed {
            return Err(process.violation(format!("it reported {nanos} ns for a window of {} ns", passed.as_nanos())));
        }
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
        for launch in 0..launches.min(self.sets) {
            self.written[((self.next_set + launch) % self.sets) as usize] = true;
        }
        self.next_set = ((u64::from(self.next_set) + u64::from(launches)) % u64::from(self.sets)) as u32;
        Ok(nanos)
    }

    /// Sends the pending launches and waits for them.
    fn finish(&mut self) -> Result<(), ExternalError> {
        match std::mem::take(&mut self.pending) {
            0 => Ok(()),
            pending => self.run(pending).map(|_| ()),
        }
    }
}

impl Drop for Launches {
    fn drop(&mut self) {
        // The program may have ended; then it holds no resources.
        let _ = lock(&self.process).request(&Request::Close { id: self.id });
    }
}

/// Function that computes the inputs of a buffer set, without inputs that are equal in all sets.
pub(crate) type InputsOfSet = Box<dyn Fn(u32) -> Vec<Matrix> + Send>;

/// Case of an external program.
///
/// The program is not trusted to compute in every launch. A checked pass on buffers that earlier launches wrote gets new
/// inputs, and the earlier outputs remain in place. An implementation that writes a stored result, or nothing, then
/// fails the gate; one that changes its inputs fails, too. Sets are therefore numbered by their content: buffer i begins with the content of set i, and each
/// such pass replaces the content by the next one.
pub(crate) struct ExternalWorkload {
    launches: Launches,
    buffers: SharedBuffers,
    /// Content of each buffer set.
    contents: Vec<u32>,
    inputs_of_set: InputsOfSet,
    weight_bytes: u64,
    kernel: Option<String>,
}

impl ExternalWorkload {
    /// Opens a case in a process. The message carries everything except the id.
    pub(crate) fn open(
        process: SharedProcess,
        buffers: SharedBuffers,
        inputs_of_set: InputsOfSet,
        weight_bytes: u64,
        mut case: OpenCase,
    ) -> Result<Self, ExternalError> {
        let sets = buffers.sets.len() as u32;
        let (id, kernel) = {
            let mut process = lock(&process);
            case.id = process.next_id();
            let id = case.id;
            match process.request(&Request::Open(Box::new(case)))? {
                Reply::Opened { kernel } => (id, kernel),
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
            reported: Duration::ZERO,
            passed: Duration::ZERO,
        };
        Ok(Self { launches, buffers, contents: (0..sets).collect(), inputs_of_set, weight_bytes, kernel })
    }

    /// Content of a buffer set in the next checked pass.
    fn next_content(&self, buffer: u32) -> u32 {
        match self.contents[buffer as usize] {
            content if !self.launches.written[buffer as usize] => content,
            // A single set alternates between two contents.
            content => (content + 1) % self.launches.sets.max(2),
        }
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
            self.contents[buffer as usize] = content;
            self.buffers.write_inputs(buffer, &(self.inputs_of_set)(content))
        } else {
            self.buffers.poison(buffer)
        };
        written.map_err(|error| self.sharing(error))?;
        self.launches.run(1)?;
        self.buffers.read(buffer).map_err(|error| self.sharing(error))
    }

    fn last_outputs(&mut self, set: u32) -> Result<Option<Vec<Output>>, ZooError> {
        self.launches.finish()?;
        let buffer = self.contents.iter().position(|&content| content == set);
        let buffer = buffer.filter(|&buffer| self.launches.written[buffer]);
        buffer.map(|buffer| self.buffers.read(buffer as u32).map_err(|error| self.sharing(error))).transpose()
    }

    fn next_set(&self) -> u32 {
        self.next_content((self.launches.next_set + self.launches.pending) % self.launches.sets)
    }

    fn weight_bytes(&self) -> u64 {
        self.weight_bytes
    }

    fn kernel(&self) -> Option<String> {
        self.kernel.clone()
    }

    fn remote_passes(&mut self) -> Option<&mut dyn RemotePasses> {
        Some(&mut self.launches)
    }
}

impl RemotePasses for Launches {
    fn time(&mut self, passes: u32) -> Result<u64, ZooError> {
        self.finish()?;
        Ok(self.run(passes)?)
    }
}
