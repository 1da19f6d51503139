//! GPU memory counters through CUPTI's range profiler.

use super::{check_libraries, error_message};
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

/// Bytes transferred between a GPU and its memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryTraffic {
    /// Bytes read from memory.
    pub read: u64,
    /// Bytes written to memory.
    pub written: u64,
}

/// Reader of one GPU's memory counters, which include the traffic of all processes.
///
/// The profiler changes how a process runs, so do not time anything in a process that has opened one.
pub struct TrafficMeter {
    context: Arc<CudaContext>,
    target: *mut Target,
    host: *mut Host,
    config: Vec<u8>,
    counters: Vec<u8>,
}

const METRICS: [&CStr; 2] = [c"dram__bytes_read.sum", c"dram__bytes_write.sum"];

/// Creates call parameters: size first, all other fields zero unless set. The size ends with the last field, which must
/// be named if padding follows it.
macro_rules! parameters {
    ($kind:ident to $last:ident { $($fields:tt)* }) => {{
        let mut parameters = parameters!($kind { $($fields)* });
        parameters.structSize = offset_of!(sys::$kind, $last) + size_of_val(&parameters.$last);
        parameters
    }};
    ($kind:ident { $($field:ident: $value:expr),* $(,)? }) => {{
        // SAFETY: sizes, pointers and plain integers, for all of which zero is valid.
        let mut parameters: sys::$kind = unsafe { std::mem::zeroed() };
        parameters.structSize = size_of::<sys::$kind>();
        $(parameters.$field = $value;)*
        parameters
    }};
}

/// Calls a function with its parameters, which contain the results afterwards.
macro_rules! call {
    ($doing:expr, $function:ident, $parameters:expr) => {{
        let mut parameters = $parameters;
        // SAFETY: the parameters belong to this function and state their size; their pointers outlive the call.
        check_status($doing, unsafe { sys::$function(&mut parameters) })?;
        parameters
    }};
}

impl TrafficMeter {
    /// Opens the counters of a GPU by index, or returns why they cannot be read.
    pub fn open(index: usize) -> Result<Self, String> {
        check_libraries()?;
        let context = CudaContext::new(index).map_err(|error| error.to_string())?;
        call!("loading its profiler", cuptiProfilerInitialize, parameters!(CUpti_Profiler_Initialize_Params {}));
        let parameters = parameters!(CUpti_Device_GetChipName_Params { deviceIndex: index });
        let chip = call!("querying the chip name", cuptiDeviceGetChipName, parameters).pChipName;
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

    /// Measures the bytes transferred while `body` runs, which must synchronize everything it launches.
    pub fn measure(&mut self, body: impl FnOnce() -> Result<(), Failure>) -> Result<MemoryTraffic, Failure> {
        self.context.bind_to_thread()?;
        let target = self.target;
        self.clear()?;
        let parameters = parameters!(CUpti_RangeProfiler_SetConfig_Params to targetNestingLevel {
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
        call!("configuring counters", cuptiRangeProfilerSetConfig, parameters);
        let parameters = parameters!(CUpti_RangeProfiler_Start_Params { pRangeProfilerObject: target });
        call!("starting counters", cuptiRangeProfilerStart, parameters);
        let counted = self.count_range(body);
        // Also after a failure: a running profiler would reject the next start.
        let parameters =
            parameters!(CUpti_RangeProfiler_Stop_Params to isAllPassSubmitted { pRangeProfilerObject: target });
        let stopped = call!("stopping counters", cuptiRangeProfilerStop, parameters);
        counted?;
        let parameters = parameters!(CUpti_RangeProfiler_DecodeData_Params { pRangeProfilerObject: target });
        let decoded = call!("collecting counters", cuptiRangeProfilerDecodeData, parameters);
        if stopped.isAllPassSubmitted == 0 || decoded.numOfRangeDropped > 0 {
            return Err("CUPTI counted only part of the work".into());
        }
        Ok(self.evaluate()?)
    }

    fn count_range(&self, body: impl FnOnce() -> Result<(), Failure>) -> Result<(), Failure> {
        let parameters = parameters!(CUpti_RangeProfiler_PushRange_Params {
            pRangeProfilerObject: self.target,
            pRangeName: c"traffic".as_ptr(),
        });
        call!("starting a range", cuptiRangeProfilerPushRange, parameters);
        let result = body();
        self.context.bind_to_thread()?;
        let parameters = parameters!(CUpti_RangeProfiler_PopRange_Params { pRangeProfilerObject: self.target });
        call!("ending a range", cuptiRangeProfilerPopRange, parameters);
        result
    }

    /// Selects the counters.
    fn configure(&mut self, chip: *const c_char) -> Result<(), String> {
        let mut names = metric_names();
        let available = self.counter_availability()?;
        let parameters = parameters!(CUpti_Profiler_Host_Initialize_Params {
            profilerType: Profiler::CUPTI_PROFILER_TYPE_RANGE_PROFILER,
            pChipName: chip,
            pCounterAvailabilityImage: available.as_ptr(),
        });
        self.host = call!("opening its profiler", cuptiProfilerHostInitialize, parameters).pHostObject;
        let host = self.host;
        let parameters = parameters!(CUpti_Profiler_Host_ConfigAddMetrics_Params {
            pHostObject: host,
            ppMetricNames: names.as_mut_ptr(),
            numMetrics: names.len(),
        });
        call!("selecting counters", cuptiProfilerHostConfigAddMetrics, parameters);
        let parameters = parameters!(CUpti_Profiler_Host_GetConfigImageSize_Params { pHostObject: host });
        let size = call!("selecting counters", cuptiProfilerHostGetConfigImageSize, parameters).configImageSize;
        self.config = vec![0; size];
        let parameters = parameters!(CUpti_Profiler_Host_GetConfigImage_Params {
            pHostObject: host,
            configImageSize: size,
            pConfigImage: self.config.as_mut_ptr(),
        });
        call!("selecting counters", cuptiProfilerHostGetConfigImage, parameters);
        let parameters = parameters!(CUpti_Profiler_Host_GetNumOfPasses_Params {
            configImageSize: size,
            pConfigImage: self.config.as_mut_ptr(),
        });
        match call!("selecting counters", cuptiProfilerHostGetNumOfPasses, parameters).numOfPasses {
            1 => Ok(()),
            passes => Err(format!("this GPU needs {passes} passes to count memory traffic; only one is supported")),
        }
    }

    /// Returns the counters available on this machine.
    fn counter_availability(&self) -> Result<Vec<u8>, String> {
        let ctx = self.context.cu_ctx();
        let parameters = parameters!(CUpti_Profiler_GetCounterAvailability_Params { ctx: ctx.cast() });
        let size =
            call!("querying counters", cuptiProfilerGetCounterAvailability, parameters).counterAvailabilityImageSize;
        let mut image = vec![0; size];
        let parameters = parameters!(CUpti_Profiler_GetCounterAvailability_Params {
            ctx: ctx.cast(),
            counterAvailabilityImageSize: size,
            pCounterAvailabilityImage: image.as_mut_ptr(),
        });
        call!("querying counters", cuptiProfilerGetCounterAvailability, parameters);
        Ok(image)
    }

    fn enable(&mut self) -> Result<(), String> {
        let parameters = parameters!(CUpti_RangeProfiler_Enable_Params { ctx: self.context.cu_ctx().cast() });
        self.target = call!("enabling counters", cuptiRangeProfilerEnable, parameters).pRangeProfilerObject;
        let mut names = metric_names();
        let parameters = parameters!(CUpti_RangeProfiler_GetCounterDataSize_Params {
            pRangeProfilerObject: self.target,
            pMetricNames: names.as_mut_ptr(),
            numMetrics: names.len(),
            maxNumOfRanges: 1,
            maxNumRangeTreeNodes: 1,
        });
        let size = call!("allocating counters", cuptiRangeProfilerGetCounterDataSize, parameters).counterDataSize;
        self.counters = vec![0; size];
        Ok(())
    }

    /// Clears previous counts.
    fn clear(&mut self) -> Result<(), String> {
        let parameters = parameters!(CUpti_RangeProfiler_CounterDataImage_Initialize_Params {
            pRangeProfilerObject: self.target,
            counterDataSize: self.counters.len(),
            pCounterData: self.counters.as_mut_ptr(),
        });
        call!("clearing counters", cuptiRangeProfilerCounterDataImageInitialize, parameters);
        Ok(())
    }

    fn evaluate(&self) -> Result<MemoryTraffic, String> {
        let (mut names, mut values) = (metric_names(), [f64::NAN; METRICS.len()]);
        let parameters = parameters!(CUpti_Profiler_Host_EvaluateToGpuValues_Params {
            pHostObject: self.host,
            pCounterDataImage: self.counters.as_ptr(),
            counterDataImageSize: self.counters.len(),
            ppMetricNames: names.as_mut_ptr(),
            numMetrics: names.len(),
            pMetricValues: values.as_mut_ptr(),
        });
        call!("reading counters", cuptiProfilerHostEvaluateToGpuValues, parameters);
        match values {
            [read, written] if read >= 0.0 && written >= 0.0 => {
                Ok(MemoryTraffic { read: read as u64, written: written as u64 })
            }
            _ => Err(format!("CUPTI returned invalid counter values: {values:?}")),
        }
    }
}

impl Drop for TrafficMeter {
    fn drop(&mut self) {
        let target = self.target;
        let mut disable = parameters!(CUpti_RangeProfiler_Disable_Params { pRangeProfilerObject: target });
        let mut close = parameters!(CUpti_Profiler_Host_Deinitialize_Params { pHostObject: self.host });
        // SAFETY: both objects belong to CUPTI, are valid unless null, and are not used afterwards.
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

fn metric_names() -> [*const c_char; METRICS.len()] {
    METRICS.map(CStr::as_ptr)
}

fn check_status(doing: &str, status: Status) -> Result<(), String> {
    match status {
        Status::CUPTI_SUCCESS => Ok(()),
        status => Err(error_message(doing, CuptiError(status))),
    }
}
