//! Memory over time: allocations, peaks, and live blocks at any moment.
//!
//! A [`Timeline`] comes from one [`MemorySource`] and contains only what that source reports. On the host it is a
//! [`Recording`] of a [`CountingAllocator`]; on a device it is built from CUPTI records or samples of a pool.
//!
//! ```standalone_crate
//! use calorimeter_timing::memory::{CountingAllocator, Recording};
//! use std::alloc::System;
//!
//! #[global_allocator]
//! static ALLOCATOR: CountingAllocator = CountingAllocator(System);
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let mut recording = Recording::start()?;
//!     let weights = vec![0_u8; 1_000_000];
//!     recording.mark("before inference");
//!     drop(vec![0_u8; 500_000]);
//!     recording.mark("after inference");
//!     let timeline = recording.finish();
//!     assert!(timeline.peaks().allocated >= Some(1_500_000));
//!     let after = timeline.snapshot(timeline.marks[1].at_ns);
//!     assert_eq!(after.largest[0].bytes, 1_000_000);
//! #   drop(weights);
//!     Ok(())
//! }
//! ```

#[allow(unsafe_code, reason = "a global allocator is an unsafe trait")]
mod allocator;
#[cfg(feature = "cuda")]
mod device;
mod event;
#[allow(unsafe_code, reason = "a large buffer of zeros that costs nothing until it is written")]
mod ledger;
mod live;
mod recording;
mod snapshot;
mod source;
mod timeline;

pub use allocator::CountingAllocator;
pub use event::{AllocationTotals, LostEvents, MemoryEvent, PoolSample, TimelineMark};
pub use live::LiveBlock;
pub use recording::{Recording, RecordingError};
pub use snapshot::{SizeClass, Snapshot};
pub use source::{MemorySource, Quantity};
pub use timeline::{MemoryPeaks, Timeline, TimelineBound};
