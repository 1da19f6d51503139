//! Kernels of known duration on a dedicated stream.

use calorimeter_timing::{Failure, Work};
use cudarc::driver::{CudaContext, CudaFunction, CudaStream, LaunchConfig, PushKernelArg, result, sys::CUevent_flags};
use cudarc::nvrtc::compile_ptx;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Dependent steps that compilers cannot shorten, with a result that is stored.
const SOURCE: &str = r#"
extern "C" __global__ void spin(unsigned steps, unsigned* out) {
    unsigned x = steps;
    #pragma unroll 8
    for (unsigned i = 0; i < steps; ++i) x = (x ^ (x >> 7)) * 1664525u + 1u;
    *out = x;
}
extern "C" __global__ void idle(unsigned, unsigned*) {}
"#;

pub(crate) struct TestGpu {
    pub stream: Arc<CudaStream>,
    pub spin: CudaFunction,
    pub idle: CudaFunction,
    out: u64,
    steps_per_us: f64,
}

/// Serializes the tests: they share one GPU, and CUPTI makes one recording at a time.
pub(crate) fn lock_gpu() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the GPU with a lock on it.
pub(crate) fn gpu() -> (&'static TestGpu, MutexGuard<'static, ()>) {
    static GPU: LazyLock<TestGpu> = LazyLock::new(TestGpu::open);
    let turn = lock_gpu();
    (&GPU, turn)
}

impl TestGpu {
    fn open() -> Self {
        let context = CudaContext::new(0).unwrap();
        let stream = context.new_stream().unwrap();
        let module = context.load_module(compile_ptx(SOURCE).unwrap()).unwrap();
        let [spin, idle] = ["spin", "idle"].map(|name| module.load_function(name).unwrap());
        // SAFETY: a context is current on this thread; the allocation lives as long as the process.
        let out = unsafe { result::malloc_sync(4) }.unwrap();
        let mut gpu = Self { stream, spin, idle, out, steps_per_us: 100.0 };
        gpu.calibrate();
        gpu
    }

    /// Warms the GPU up and measures its step rate.
    fn calibrate(&mut self) {
        const STEPS: u32 = 500_000;
        let begun = Instant::now();
        let mut micros = f64::MAX;
        while begun.elapsed() < Duration::from_millis(500) {
            let timed = Some(CUevent_flags::CU_EVENT_DEFAULT);
            let start = self.stream.record_event(timed).unwrap();
            self.launch(&self.spin, STEPS).unwrap();
            let end = self.stream.record_event(timed).unwrap();
            micros = f64::from(start.elapsed_ms(&end).unwrap()) * 1e3;
        }
        self.steps_per_us = f64::from(STEPS) / micros;
        println!("one step takes {:.3} ns", 1e3 / self.steps_per_us);
    }

    /// Launches that spin for about `micros` microseconds.
    pub(crate) fn spins(&self, micros: f64) -> Launches<'_> {
        self.steps((micros * self.steps_per_us) as u32)
    }

    pub(crate) fn steps(&self, steps: u32) -> Launches<'_> {
        Launches { gpu: self, kernel: &self.spin, steps, trouble: Trouble::None }
    }

    /// Launches that do nothing.
    pub(crate) fn idles(&self) -> Launches<'_> {
        Launches { gpu: self, kernel: &self.idle, steps: 0, trouble: Trouble::None }
    }

    /// Allocates, fills and frees `bytes` bytes.
    pub(crate) fn touch_memory(&self, bytes: usize) -> Result<(), Failure> {
        self.stream.context().bind_to_thread()?;
        // SAFETY: a context is current; the memory is freed once, after the only work that uses it.
        unsafe {
            let address = result::malloc_sync(bytes)?;
            result::memset_d8_async(address, 1, bytes, self.stream.cu_stream())?;
            self.stream.synchronize()?;
            result::free_sync(address)?;
        }
        Ok(())
    }

    /// Two blocks of device memory with the lifetime of the process.
    pub(crate) fn two_blocks(&self, bytes: usize) -> Result<[u64; 2], Failure> {
        self.stream.context().bind_to_thread()?;
        // SAFETY: a context is current; the blocks are never freed.
        unsafe { Ok([result::malloc_sync(bytes)?, result::malloc_sync(bytes)?]) }
    }

    /// Copies `bytes` bytes `count` times from one block to the other.
    pub(crate) fn copy_memory(&self, [from, to]: [u64; 2], bytes: usize, count: usize) -> Result<(), Failure> {
        self.stream.context().bind_to_thread()?;
        for _ in 0..count {
            // SAFETY: both blocks have this size and live as long as the process.
            unsafe { result::memcpy_dtod_async(to, from, bytes, self.stream.cu_stream())? };
        }
        Ok(self.stream.synchronize()?)
    }

    fn launch(&self, kernel: &CudaFunction, steps: u32) -> Result<(), Failure> {
        let mut launch = self.stream.launch_builder(kernel);
        launch.arg(&steps).arg(&self.out);
        let one = LaunchConfig { grid_dim: (1, 1, 1), block_dim: (1, 1, 1), shared_mem_bytes: 0 };
        // SAFETY: the arguments match both kernels, and `out` is a word of device memory.
        unsafe { launch.launch(one) }?;
        Ok(())
    }
}

/// Fault injected into launches.
pub(crate) enum Trouble {
    None,
    /// Waits for the device after launching.
    Waits,
    /// Fails after this number of launches.
    FailsAfter(u32),
}

pub(crate) struct Launches<'a> {
    gpu: &'a TestGpu,
    kernel: &'a CudaFunction,
    pub steps: u32,
    trouble: Trouble,
}

impl Launches<'_> {
    pub(crate) fn with(self, trouble: Trouble) -> Self {
        Self { trouble, ..self }
    }
}

impl Work for Launches<'_> {
    fn launch(&mut self) -> Result<(), Failure> {
        match &mut self.trouble {
            Trouble::FailsAfter(0) => return Err("this launch fails".into()),
            Trouble::FailsAfter(left) => *left -= 1,
            _ => {}
        }
        self.gpu.launch(self.kernel, self.steps)?;
        match self.trouble {
            Trouble::Waits => self.synchronize(),
            _ => Ok(()),
        }
    }

    fn synchronize(&mut self) -> Result<(), Failure> {
        Ok(self.gpu.stream.synchronize()?)
    }
}
