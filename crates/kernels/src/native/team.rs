//! Several GPUs of one host that exchange data through NCCL, driven by one thread.

use std::{ffi::c_void, fmt, ptr, sync::Arc};

use cudarc::{
    driver::CudaStream,
    nccl::{
        result::{self, NcclError, NcclStatus},
        sys::{ncclComm_t, ncclDataType_t, ncclRedOp_t},
    },
};

use super::{Buffer, Machine, NativeError, driver, libraries::Library};
use crate::Dtype;

/// What the members of a team do together. Each holds an input; `count` is the number of its elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Collective {
    /// Each gets the sum of all inputs.
    AllReduce,
    /// Each gets all inputs one after the other.
    AllGather,
    /// Each gets its part of the sum of all inputs.
    ReduceScatter,
    /// Each gets its part of each input.
    AllToAll,
    /// Each gets the input of the one before it, the first that of the last.
    SendReceive,
}

impl Collective {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AllReduce => "all_reduce",
            Self::AllGather => "all_gather",
            Self::ReduceScatter => "reduce_scatter",
            Self::AllToAll => "all_to_all",
            Self::SendReceive => "send_recv",
        }
    }

    /// How many elements a member of a team of `members` gets.
    pub const fn received(self, members: usize, count: usize) -> usize {
        match self {
            Self::AllReduce | Self::AllToAll | Self::SendReceive => count,
            Self::AllGather => count * members,
            Self::ReduceScatter => count / members,
        }
    }
}

/// GPUs with a communicator for each.
pub struct Team {
    machines: Vec<Arc<Machine>>,
    communicators: Vec<ncclComm_t>,
    version: i32,
}

// SAFETY: a communicator may be used by any one thread at a time.
unsafe impl Send for Team {}

impl Team {
    /// Connects machines, each of another GPU.
    pub fn new(machines: Vec<Arc<Machine>>) -> Result<Self, NativeError> {
        Library::Nccl.require()?;
        let failed = refused("connecting the GPUs");
        let version = result::get_nccl_version().map_err(&failed)?;
        let ordinals: Vec<i32> = machines.iter().map(|machine| machine.info().ordinal as i32).collect();
        let mut communicators = vec![ptr::null_mut(); machines.len()];
        // SAFETY: both lists are that long.
        unsafe { result::comm_init_all(communicators.as_mut_ptr(), ordinals.len() as i32, ordinals.as_ptr()) }
            .map_err(&failed)?;
        Ok(Self { machines, communicators, version })
    }

    /// Its members, in their order.
    pub fn machines(&self) -> &[Arc<Machine>] {
        &self.machines
    }

    /// Which library connects how many GPUs.
    pub fn algorithm(&self) -> String {
        let (major, minor, patch) = (self.version / 10_000, self.version / 100 % 100, self.version % 100);
        format!("NCCL {major}.{minor}.{patch} between {} GPUs", self.machines.len())
    }

    /// Enqueues a collective on the stream of each member, with its input and output.
    pub fn enqueue(
        &self,
        collective: Collective,
        kind: Dtype,
        count: usize,
        inputs: &[Buffer],
        outputs: &mut [Buffer],
    ) -> Result<(), NativeError> {
        let members = self.machines.len();
        for found in [inputs.len(), outputs.len()] {
            if found != members {
                return Err(NativeError::InputCount { needed: members, found });
            }
        }
        let (sent, got) = (count * kind.width(), collective.received(members, count) * kind.width());
        let mut addresses = Vec::with_capacity(members);
        for ((machine, input), output) in self.machines.iter().zip(inputs).zip(outputs) {
            let (stream, input, output) = (machine.stream(), &input.memory, &output.memory);
            addresses.push((input.address("to send", stream, sent)?, output.address("to receive", stream, got)?));
        }
        let failed = refused(collective.name());
        group(&failed, || {
            for (rank, machine) in self.machines.iter().enumerate() {
                machine.stream().context().bind_to_thread().map_err(driver::failed("selecting a device"))?;
                let place = Place { rank, members, communicator: self.communicators[rank], stream: machine.stream() };
                // SAFETY: the buffers were checked to be on this member's device and as long as is touched.
                unsafe { place.enqueue(collective, kind, count, addresses[rank]) }.map_err(&failed)?;
            }
            Ok(())
        })
    }

    /// Waits for every member.
    pub fn synchronize(&self) -> Result<(), NativeError> {
        self.machines.iter().try_for_each(|machine| machine.synchronize())
    }
}

/// Calls of one group start together: alone each would wait for the others.
fn group(
    failed: &impl Fn(NcclError) -> NativeError,
    calls: impl FnOnce() -> Result<(), NativeError>,
) -> Result<(), NativeError> {
    result::group_start().map_err(failed)?;
    let called = calls();
    // Also after a failure: the library counts.
    let ended = result::group_end().map_err(failed);
    called.and(ended.map(drop))
}

/// One member in a call.
struct Place<'a> {
    rank: usize,
    members: usize,
    communicator: ncclComm_t,
    stream: &'a CudaStream,
}

impl Place<'_> {
    unsafe fn enqueue(
        self,
        collective: Collective,
        kind: Dtype,
        count: usize,
        (from, to): (u64, u64),
    ) -> Result<NcclStatus, NcclError> {
        let Self { rank, members, communicator, stream } = self;
        let (stream, element, sum) = (stream.cu_stream().cast(), element(kind), ncclRedOp_t::ncclSum);
        let part = count / members;
        let at = |start: u64, elements: usize| (start as usize + elements * kind.width()) as *mut c_void;
        // SAFETY: the caller's.
        unsafe {
            match collective {
                Collective::AllReduce => {
                    result::all_reduce(at(from, 0), at(to, 0), count, element, sum, communicator, stream)
                }
                Collective::AllGather => {
                    result::all_gather(at(from, 0), at(to, 0), count, element, communicator, stream)
                }
                Collective::ReduceScatter => {
                    result::reduce_scatter(at(from, 0), at(to, 0), part, element, sum, communicator, stream)
                }
                Collective::AllToAll => {
                    for peer in 0..members {
                        let place = peer * part;
                        result::send(at(from, place), part, element, peer as i32, communicator, stream)?;
                        result::recv(at(to, place), part, element, peer as i32, communicator, stream)?;
                    }
                    Ok(NcclStatus::Success)
                }
                Collective::SendReceive => {
                    let (next, before) = ((rank + 1) % members, (rank + members - 1) % members);
                    result::send(at(from, 0), count, element, next as i32, communicator, stream)?;
                    result::recv(at(to, 0), count, element, before as i32, communicator, stream)
                }
            }
        }
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        for (machine, &communicator) in self.machines.iter().zip(&self.communicators) {
            let context = machine.stream().context();
            context.record_err(machine.stream().synchronize());
            // SAFETY: made by `comm_init_all`, destroyed once, and its stream has come to rest. An error has nobody to go
            // to.
            let _ = unsafe { result::comm_destroy(communicator) };
        }
    }
}

impl fmt::Debug for Team {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Team").field("algorithm", &self.algorithm()).finish_non_exhaustive()
    }
}

fn element(kind: Dtype) -> ncclDataType_t {
    match kind {
        Dtype::F32 => ncclDataType_t::ncclFloat32,
        Dtype::F16 => ncclDataType_t::ncclFloat16,
        Dtype::Bf16 => ncclDataType_t::ncclBfloat16,
    }
}

/// Names the action in an error of NCCL.
fn refused(doing: &'static str) -> impl Fn(NcclError) -> NativeError {
    move |error| NativeError::Nccl { doing, status: format!("{:?}", error.0) }
}
