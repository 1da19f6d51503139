//! Configuration of burn and of the CubeCL runtime.

use burn_std::config::{BurnConfig, RuntimeConfig};
use calorimeter_case::TuningLevel;

/// Configures burn and the GPU runtime for measurements. Must be called once, before any device is opened.
///
/// Settings that are not made here would be read from files in the working directory and its parents, and from the
/// environment. `tuning` is the autotune cache directory; it must belong to one GPU and one level, which the runtime's
/// cache does not distinguish. With `log_kernels` the runtime waits for each kernel and logs its name and time, so that
/// nothing else can be measured.
pub fn configure(tuning: Option<&std::path::Path>, level: TuningLevel, log_kernels: bool) {
    BurnConfig::set(BurnConfig::default());
    #[cfg(any(feature = "cuda", feature = "wgpu"))]
    {
        use cubecl::config::{CubeClRuntimeConfig, autotune::AutotuneLevel, cache::CacheConfig};
        let mut config = CubeClRuntimeConfig::default();
        config.autotune.level = match level {
            // Below this level a kernel is chosen by the first shape of a bucket.
            TuningLevel::Full => AutotuneLevel::Full,
            // Buckets end at powers of 2.5; those of the two intermediate levels span at most a power of two.
            TuningLevel::Quick => AutotuneLevel::Minimal,
        };
        if let Some(tuning) = tuning {
            config.autotune.cache = CacheConfig::File(tuning.to_owned());
        }
        if log_kernels {
            config.profiling.logger.level = cubecl::config::profiling::ProfilingLogLevel::Medium;
            config.profiling.logger.log = Some(cubecl_common::config::logger::LogCrateLevel::Info);
        }
        CubeClRuntimeConfig::set(config);
    }
    #[cfg(not(any(feature = "cuda", feature = "wgpu")))]
    let _ = (tuning, level, log_kernels);
}

/// Returns the size under which the autotuner caches its choice for `size`: at the full level `size` itself.
pub fn autotune_anchor(size: u64) -> u64 {
    #[cfg(any(feature = "cuda", feature = "wgpu"))]
    return cubecl::tune::anchor(size as usize, None, None, None) as u64;
    #[cfg(not(any(feature = "cuda", feature = "wgpu")))]
    size
}
