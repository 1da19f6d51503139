//! How burn, and CubeCL's runtime, which drives every GPU, are set up.

use burn_std::config::{BurnConfig, RuntimeConfig};
use calorimeter_case::TuningLevel;

/// Sets burn and the GPU runtime up for measuring; call it once, before anything is opened: whatever is not set here they would
/// read from files in the working directory and above, and from the environment. Kernels that were tuned are kept in
/// `tuning`, which must belong to one GPU and one level: the runtime's own cache does not tell one from another. Where kernels
/// are looked at, the runtime waits for each and logs its name and time: nothing else can be measured then.
pub fn configure(tuning: Option<&std::path::Path>, level: TuningLevel, look: bool) {
    BurnConfig::set(BurnConfig::default());
    #[cfg(any(feature = "cuda", feature = "wgpu"))]
    {
        use cubecl::config::{CubeClRuntimeConfig, autotune::AutotuneLevel, cache::CacheConfig};
        let mut config = CubeClRuntimeConfig::default();
        config.autotune.level = match level {
            // Below this level a kernel is chosen by whichever shape of a bucket came first.
            TuningLevel::Full => AutotuneLevel::Full,
            // Its buckets end at powers of 2.5; those of the two levels between have at most one power of two each.
            TuningLevel::Quick => AutotuneLevel::Minimal,
        };
        if let Some(tuning) = tuning {
            config.autotune.cache = CacheConfig::File(tuning.to_owned());
        }
        if look {
            config.profiling.logger.level = cubecl::config::profiling::ProfilingLogLevel::Medium;
            config.profiling.logger.log = Some(cubecl_common::config::logger::LogCrateLevel::Info);
        }
        CubeClRuntimeConfig::set(config);
    }
    #[cfg(not(any(feature = "cuda", feature = "wgpu")))]
    let _ = (tuning, level, look);
}

/// The size under which the runtime's tuner keeps what it decides for this one: at the full level itself.
pub fn tuned_as(size: u64) -> u64 {
    #[cfg(any(feature = "cuda", feature = "wgpu"))]
    return cubecl::tune::anchor(size as usize, None, None, None) as u64;
    #[cfg(not(any(feature = "cuda", feature = "wgpu")))]
    size
}
