//! Counters of a GPU's memory, through CUPTI's range profiler.

use super::{explain, present};
use crate::Failure;
use cudarc::cupti::result::CuptiError;
use cudarc::cupti::sys::{
    self, CUpti_Profiler_Host_Object as Host, CUpti_ProfilerRange as Range, CUpti_ProfilerReplayMode as Replay,
    CUpti_ProfilerType as Profiler, CUpti_RangeProfiler_Object as Target, CUptiResult as Status,
};
use cudarc::driver::CudaContext;
use std::ffi::{CStr, c_char};
use std::mem::offset_of;
use std::sync::Arc;

/// Bytes that went between a GPU and its memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Traffic {
    /// Read from the memory.
    pub read: u64,
    /// Written to it.
    pub written: u64,
}

/// Reads the counters of one GPU's memory. What is counted is the whole GPU's, whoever uses it.
///
/// Reading changes how a process runs, so time nothing in a process that has opened one.
pub struct TrafficMeter {
    context: Arc<CudaContext>,
    target: *mut Target,
    host: *mut Host,
    config: Vec<u8>,
    counters: Vec<u8>,
}

const METRICS: [&CStr; 2] = [c"dram__bytes_read.sum", c"dram__bytes_write.sum"];

/// Parameters of a call: their own size first, everything else zero until it is set. Their size ends with their last
/// field, which is named where padding follows it.
macro_rules! parameters {
    ($kind:ident to $last:ident { $($fields:tt)* }) => {{
        let mut parameters = parameters!($kind { $($fields)* });
        parameters.structSize = offset_of!(sys::$kind, $last) + size_of_val(&parameters.$last);
        parameters
    }};
    ($kind:ident { $($field:ident: $value:expr),* $(,)? }) => {{
        // SAFETY: sizes, pointers and plain numbers, for all of which zero is a value.
        let mut parameters: sys::$kind = unsafe { std::mem::zeroed() };
        parameters.structSize = size_of::<sys::$kind>();
        $(parameters.$field = $value;)*
        parameters
    }};
}

/// Calls a function with its parameters, which hold its answers afterwards.
macro_rules! call {
    ($doing:expr, $function:ident, $parameters:expr) => {{
        let mut parameters = $parameters;
        // SAFETY: the parameters are those of this function and say their size; what they point to outlives the call.
        checked($doing, unsafe { sys::$function(&mut parameters) })?;
        parameters
    }};
}

impl TrafficMeter {
    /// The counters of the GPU with this number, or why they cannot be read.
    pub fn open(index: usize) -> Result<Self, String> {
        present()?;
        let context = CudaContext::new(index).map_err(|error| error.to_string())?;
        call!("loading its profiler", cuptiProfilerInitialize, parameters!(CUpti_Profiler_Initialize_Params {}));
        let asked = parameters!(CUpti_Device_GetChipName_Params { deviceIndex: index });
        let chip = call!("asking for the chip", cuptiDeviceGetChipName, asked).pChipName;
        let mut meter = Self {
            context,
            target: std::ptr::null_mut(),
            host: std::ptr::null_mut(),
            config: Vec::new(),
            counters: Vec::new(),
        };
        meter.configure(chip)?;
        meter.enable()?;
        Ok(meter)
    }

    /// Bytes that go between the GPU and its memory while `body` runs, which waits for whatever it launches.
    pub fn measure(&mut self, body: impl FnOnce() -> Result<(), Failure>) -> Result<Traffic, Failure> {
        self.context.bind_to_thread()?;
        let target = self.target;
        self.clear()?;
        let asked = parameters!(CUpti_RangeProfiler_SetConfig_Params to targetNestingLevel {
            pRangeProfilerObject: target,
            configSize: self.config.len(),
            pConfig: self.config.as_ptr(),
            counterDataImageSize: self.counters.len(),
            pCounterDataImage: self.counters.as_mut_ptr(),
            range: Range::CUPTI_UserRange,
            replayMode: Replay::CUPTI_UserReplay,
            maxRangesPerPass: 1,
            numNestingLevels: 1,
            minNestingLevel: 1,
            targetNestingLevel: 1,
        });
        call!("setting counters up", cuptiRangeProfilerSetConfig, asked);
        let asked = parameters!(CUpti_RangeProfiler_Start_Params { pRangeProfilerObject: target });
        call!("starting counters", cuptiRangeProfilerStart, asked);
        let counted = self.range(body);
        // Also after a failure: a profiler that goes on would refuse the next start.
        let asked = parameters!(CUpti_RangeProfiler_Stop_Params to isAllPassSubmitted { pRangeProfilerObject: target });
        let stopped = call!("stopping counters", cuptiRangeProfilerStop, asked);
        counted?;
        let asked = parameters!(CUpti_RangeProfiler_DecodeData_Params { pRangeProfilerObject: target });
        let decoded = call!("collecting counters", cuptiRangeProfilerDecodeData, asked);
        if stopped.isAllPassSubmitted == 0 || decoded.numOfRangeDropped > 0 {
            return Err("CUPTI counted only part of what ran".into());
        }
        Ok(self.evaluate()?)
    }

    fn range(&self, body: impl FnOnce() -> Result<(), Failure>) -> Result<(), Failure> {
        let asked = parameters!(CUpti_RangeProfiler_PushRange_Params {
            pRangeProfilerObject: self.target,
            pRangeName: c"traffic".as_ptr(),
        });
        call!("beginning to count", cuptiRangeProfilerPushRange, asked);
        let done = body();
        self.context.bind_to_thread()?;
        let asked = parameters!(CUpti_RangeProfiler_PopRange_Params { pRangeProfilerObject: self.target });
        call!("ending to count", cuptiRangeProfilerPopRange, asked);
        done
    }

    /// Chooses what is counted.
    fn configure(&mut self, chip: *const c_char) -> Result<(), String> {
        let mut names = names();
        let available = self.available()?;
        let asked = parameters!(CUpti_Profiler_Host_Initialize_Params {
            profilerType: Profiler::CUPTI_PROFILER_TYPE_RANGE_PROFILER,
            pChipName: chip,
            pCounterAvailabilityImage: available.as_ptr(),
        });
        self.host = call!("opening its profiler", cuptiProfilerHostInitialize, asked).pHostObject;
        let host = self.host;
        let asked = parameters!(CUpti_Profiler_Host_ConfigAddMetrics_Params {
            pHostObject: host,
            ppMetricNames: names.as_mut_ptr(),
            numMetrics: names.len(),
        });
        call!("choosing counters", cuptiProfilerHostConfigAddMetrics, asked);
        let asked = parameters!(CUpti_Profiler_Host_GetConfigImageSize_Params { pHostObject: host });
        let size = call!("choosing counters", cuptiProfilerHostGetConfigImageSize, asked).configImageSize;
        self.config = vec![0; size];
        let asked = parameters!(CUpti_Profiler_Host_GetConfigImage_Params {
            pHostObject: host,
            configImageSize: size,
            pConfigImage: self.config.as_mut_ptr(),
        });
        call!("choosing counters", cuptiProfilerHostGetConfigImage, asked);
        let asked = parameters!(CUpti_Profiler_Host_GetNumOfPasses_Params {
            configImageSize: size,
            pConfigImage: self.config.as_mut_ptr(),
        });
        match call!("choosing counters", cuptiProfilerHostGetNumOfPasses, asked).numOfPasses {
            1 => Ok(()),
            passes => Err(format!("this GPU needs {passes} passes to count what its memory reads and writes, not one")),
        }
    }

    /// Which counters this machine has.
    fn available(&self) -> Result<Vec<u8>, String> {
        let ctx = self.context.cu_ctx();
        let asked = parameters!(CUpti_Profiler_GetCounterAvailability_Params { ctx: ctx.cast() });
        let size =
            call!("asking for counters", cuptiProfilerGetCounterAvailability, asked).counterAvailabilityImageSize;
        let mut image = vec![0; size];
        let asked = parameters!(CUpti_Profiler_GetCounterAvailability_Params {
            ctx: ctx.cast(),
            counterAvailabilityImageSize: size,
            pCounterAvailabilityImage: image.as_mut_ptr(),
        });
        call!("asking for counters", cuptiProfilerGetCounterAvailability, asked);
        Ok(image)
    }

    fn enable(&mut self) -> Result<(), String> {
        let asked = parameters!(CUpti_RangeProfiler_Enable_Params { ctx: self.context.cu_ctx().cast() });
        self.target = call!("switching counters on", cuptiRangeProfilerEnable, asked).pRangeProfilerObject;
        let mut names = names();
        let asked = parameters!(CUpti_RangeProfiler_GetCounterDataSize_Params {
            pRangeProfilerObject: self.target,
            pMetricNames: names.as_mut_ptr(),
            numMetrics: names.len(),
            maxNumOfRanges: 1,
            maxNumRangeTreeNodes: 1,
        });
        let size = call!("making room for counters", cuptiRangeProfilerGetCounterDataSize, asked).counterDataSize;
        self.counters = vec![0; size];
        Ok(())
    }

    /// Forgets what was counted before.
    fn clear(&mut self) -> Result<(), String> {
        let asked = parameters!(CUpti_RangeProfiler_CounterDataImage_Initialize_Params {
            pRangeProfilerObject: self.target,
            counterDataSize: self.counters.len(),
            pCounterData: self.counters.as_mut_ptr(),
        });
        call!("clearing counters", cuptiRangeProfilerCounterDataImageInitialize, asked);
        Ok(())
    }

    fn evaluate(&self) -> Result<Traffic, String> {
        let (mut names, mut values) = (names(), [f64::NAN; METRICS.len()]);
        let asked = parameters!(CUpti_Profiler_Host_EvaluateToGpuValues_Params {
            pHostObject: self.host,
            pCounterDataImage: self.counters.as_ptr(),
            counterDataImageSize: self.counters.len(),
            ppMetricNames: names.as_mut_ptr(),
            numMetrics: names.len(),
            pMetricValues: values.as_mut_ptr(),
        });
        call!("reading counters", cuptiProfilerHostEvaluateToGpuValues, asked);
        match values {
            [read, written] if read >= 0.0 && written >= 0.0 => {
                Ok(Traffic { read: read as u64, written: written as u64 })
            }
            _ => Err(format!("CUPTI has no value for its counters: {values:?}")),
        }
    }
}

impl Drop for TrafficMeter {
    fn drop(&mut self) {
        let target = self.target;
        let mut disable = parameters!(CUpti_RangeProfiler_Disable_Params { pRangeProfilerObject: target });
        let mut close = parameters!(CUpti_Profiler_Host_Deinitialize_Params { pHostObject: self.host });
        // SAFETY: both objects are CUPTI's own, alive where they are not null, and used by nobody afterwards.
        unsafe {
            if !target.is_null() {
                sys::cuptiRangeProfilerDisable(&mut disable);
            }
            if !self.host.is_null() {
                sys::cuptiProfilerHostDeinitialize(&mut close);
            }
        }
    }
}

fn names() -> [*const c_char; METRICS.len()] {
    METRICS.map(CStr::as_ptr)
}

fn checked(doing: &str, status: Status) -> Result<(), String> {
    match status {
        Status::CUPTI_SUCCESS => Ok(()),
        status => Err(explain(doing, CuptiError(status))),
    }
}
