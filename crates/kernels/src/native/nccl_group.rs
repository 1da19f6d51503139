//! Collective communication among the GPUs of one host by NCCL, driven by one thread.

use std::{ffi::c_void, fmt, ptr, sync::Arc};

use cudarc::{
    driver::CudaStream,
    nccl::{
        result::{self, NcclError, NcclStatus},
        sys::{ncclComm_t, ncclDataType_t, ncclRedOp_t},
    },
};

use super::{CudaDevice, DeviceBuffer, NativeError, driver, libraries::CudaLibrary};
use crate::Dtype;

/// NCCL collective. Every rank contributes an input of `count` elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum NcclCollective {
    /// Every rank receives the sum of all inputs.
    AllReduce,
    /// Every rank receives the concatenation of all inputs.
    AllGather,
    /// Every rank receives its part of the sum of all inputs.
    ReduceScatter,
    /// Every rank receives its part of each input.
    AllToAll,
    /// Every rank receives the input of the previous rank, cyclically.
    SendReceive,
}

impl NcclCollective {
    /// Name in snake case.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AllReduce => "all_reduce",
            Self::AllGather => "all_gather",
            Self::ReduceScatter => "reduce_scatter",
            Self::AllToAll => "all_to_all",
            Self::SendReceive => "send_recv",
        }
    }

    /// Number of elements that each of `members` ranks receives.
    pub const fn received_elements(self, members: usize, count: usize) -> usize {
        match self {
            Self::AllReduce | Self::AllToAll | Self::SendReceive => count,
            Self::AllGather => count * members,
            Self::ReduceScatter => count / members,
        }
    }
}

/// GPUs with one NCCL communicator each.
pub struct NcclGroup {
    devices: Vec<Arc<CudaDevice>>,
    communicators: Vec<ncclComm_t>,
    version: i32,
}

// SAFETY: a communicator may be used by one thread at a time, on any thread.
unsafe impl Send for NcclGroup {}

impl NcclGroup {
    /// Creates the communicators; every device must be a different GPU.
    pub fn new(machines: Vec<Arc<CudaDevice>>) -> Result<Self, NativeError> {
        CudaLibrary::Nccl.require()?;
        let failed = nccl_error("creating NCCL communicators");
        let version = result::get_nccl_version().map_err(&failed)?;
        let ordinals: Vec<i32> = machines.iter().map(|device| device.info().ordinal as i32).collect();
        let mut communicators = vec![ptr::null_mut(); machines.len()];
        // SAFETY: both lists have the length passed.
        unsafe { result::comm_init_all(communicators.as_mut_ptr(), ordinals.len() as i32, ordinals.as_ptr()) }
            .map_err(&failed)?;
        Ok(Self { devices: machines, communicators, version })
    }

    /// Devices in rank order.
    pub fn devices(&self) -> &[Arc<CudaDevice>] {
        &self.devices
    }

    /// NCCL version and number of GPUs.
    pub fn algorithm(&self) -> String {
        let (major, minor, patch) = (self.version / 10_000, self.version / 100 % 100, self.version % 100);
        format!("NCCL {major}.{minor}.{patch}, {} GPUs", self.devices.len())
    }

    /// Enqueues a collective on the stream of each rank.
    pub fn enqueue(
        &self,
        collective: NcclCollective,
        kind: Dtype,
        count: usize,
        inputs: &[DeviceBuffer],
        outputs: &mut [DeviceBuffer],
    ) -> Result<(), NativeError> {
        let members = self.devices.len();
        for found in [inputs.len(), outputs.len()] {
            if found != members {
                return Err(NativeError::InputCount { needed: members, found });
            }
        }
        let (sent_bytes, received_bytes) =
            (count * kind.width(), collective.received_elements(members, count) * kind.width());
        let mut addresses = Vec::with_capacity(members);
        for ((device, input), output) in self.devices.iter().zip(inputs).zip(outputs) {
            let (stream, input, output) = (device.stream(), &input.memory, &output.memory);
            addresses.push((
                input.address("to send", stream, sent_bytes)?,
                output.address("to receive", stream, received_bytes)?,
            ));
        }
        let failed = nccl_error(collective.name());
        grouped_calls(&failed, || {
            for (rank, device) in self.devices.iter().enumerate() {
                device.stream().context().bind_to_thread().map_err(driver::driver_error("selecting a device"))?;
                let place = NcclRank { rank, members, communicator: self.communicators[rank], stream: device.stream() };
                // SAFETY: the buffers were checked to be on this rank's device and long enough.
                unsafe { place.enqueue(collective, kind, count, addresses[rank]) }.map_err(&failed)?;
            }
            Ok(())
        })
    }

    /// Waits for all ranks.
    pub fn synchronize(&self) -> Result<(), NativeError> {
        self.devices.iter().try_for_each(|device| device.synchronize())
    }
}

/// Runs calls as one NCCL group. Outside a group, each call would block until all other ranks have joined.
fn grouped_calls(
    failed: &impl Fn(NcclError) -> NativeError,
    calls: impl FnOnce() -> Result<(), NativeError>,
) -> Result<(), NativeError> {
    result::group_start().map_err(failed)?;
    let called = calls();
    // The group must be ended after an error too, because NCCL counts the nesting.
    let ended = result::group_end().map_err(failed);
    called.and(ended.map(drop))
}

/// Rank of a collective call.
struct NcclRank<'a> {
    rank: usize,
    members: usize,
    communicator: ncclComm_t,
    stream: &'a CudaStream,
}

impl NcclRank<'_> {
    unsafe fn enqueue(
        self,
        collective: NcclCollective,
        kind: Dtype,
        count: usize,
        (from, to): (u64, u64),
    ) -> Result<NcclStatus, NcclError> {
        let Self { rank, members, communicator, stream } = self;
        let (stream, element, sum) = (stream.cu_stream().cast(), nccl_dtype(kind), ncclRedOp_t::ncclSum);
        let part = count / members;
        let at = |start: u64, elements: usize| (start as usize + elements * kind.width()) as *mut c_void;
        // SAFETY: guaranteed by the caller.
        unsafe {
            match collective {
                NcclCollective::AllReduce => {
                    result::all_reduce(at(from, 0), at(to, 0), count, element, sum, communicator, stream)
                }
                NcclCollective::AllGather => {
                    result::all_gather(at(from, 0), at(to, 0), count, element, communicator, stream)
                }
                NcclCollective::ReduceScatter => {
                    result::reduce_scatter(at(from, 0), at(to, 0), part, element, sum, communicator, stream)
                }
                NcclCollective::AllToAll => {
                    for peer in 0..members {
                        let place = peer * part;
                        result::send(at(from, place), part, element, peer as i32, communicator, stream)?;
                        result::recv(at(to, place), part, element, peer as i32, communicator, stream)?;
                    }
                    Ok(NcclStatus::Success)
                }
                NcclCollective::SendReceive => {
                    let (next, before) = ((rank + 1) % members, (rank + members - 1) % members);
                    result::send(at(from, 0), count, element, next as i32, communicator, stream)?;
                    result::recv(at(to, 0), count, element, before as i32, communicator, stream)
                }
            }
        }
    }
}

impl Drop for NcclGroup {
    fn drop(&mut self) {
        for (device, &communicator) in self.devices.iter().zip(&self.communicators) {
            let context = device.stream().context();
            context.record_err(device.stream().synchronize());
            // SAFETY: created by `comm_init_all` and destroyed once, with no pending work on its stream. An error
            // cannot be handled here.
            let _ = unsafe { result::comm_destroy(communicator) };
        }
    }
}

impl fmt::Debug for NcclGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Team").field("algorithm", &self.algorithm()).finish_non_exhaustive()
    }
}

fn nccl_dtype(kind: Dtype) -> ncclDataType_t {
    match kind {
        Dtype::F32 => ncclDataType_t::ncclFloat32,
        Dtype::F16 => ncclDataType_t::ncclFloat16,
        Dtype::Bf16 => ncclDataType_t::ncclBfloat16,
    }
}

/// Returns a converter from NCCL errors to [`NativeError`] that names the action.
fn nccl_error(doing: &'static str) -> impl Fn(NcclError) -> NativeError {
    move |error| NativeError::Nccl { doing, status: format!("{:?}", error.0) }
}
