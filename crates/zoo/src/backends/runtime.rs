//! How burn, and CubeCL's runtime, which drives every GPU, are set up.

use burn_std::config::{BurnConfig, RuntimeConfig};

/// Sets burn and the GPU runtime up for measuring; call it once, before anything is opened: whatever is not set here they would
/// read from files in the working directory and above, and from the environment. Kernels that were tuned are kept in
/// `tuning`, which must belong to one GPU: the runtime's own cache does not tell one from another. Where kernels are
/// looked at, the runtime waits for each and logs its name and time: nothing else can be measured then.
pub fn configure(tuning: Option<&std::path::Path>, look: bool) {
    BurnConfig::set(BurnConfig::default());
    #[cfg(any(feature = "cuda", feature = "wgpu"))]
    {
        use cubecl::config::{CubeClRuntimeConfig, autotune::AutotuneLevel, cache::CacheConfig};
        let mut config = CubeClRuntimeConfig::default();
        // Below this level a kernel is chosen by whichever shape of a bucket came first.
        config.autotune.level = AutotuneLevel::Full;
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
    let _ = (tuning, look);
}
