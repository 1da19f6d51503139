//! Builder for the implementations of models.

use super::WorkloadFactory;
#[cfg(any(feature = "cuda", feature = "wgpu"))]
use super::factories::GuardedCubeModel;
use super::factories::{BurnModelFactory, HostModelFactory, MissingBackend};
#[cfg(feature = "native")]
use super::factories::{CudaModelFactory, GuardedNativeModel};
use super::table::Zoo;
#[cfg(any(feature = "cuda", feature = "wgpu"))]
use crate::CubeOf;
use crate::backends::{self, BackendVisitor, BurnBackend};
use crate::{BurnModel, Definition, DeviceKind, HostModel, Implementation, Model, NativeModel, Subject};
#[cfg(any(feature = "cuda", feature = "wgpu"))]
use burn_cubecl::CubeRuntime;
use calorimeter_case::NameTaken;
use calorimeter_recipes::QuantConfig;

/// Builder for the implementations of a family of models; each method registers one.
pub struct ModelBuilder<'z, D: 'static> {
    zoo: &'z Zoo,
    models: Vec<&'static D>,
}

impl Zoo {
    /// Registers models of one family.
    pub(crate) fn model<D: Definition>(
        &self,
        models: impl IntoIterator<Item = D>,
    ) -> Result<ModelBuilder<'_, D>, NameTaken> {
        // Leaked, because handles live as long as the process.
        let models: Vec<&'static D> = models.into_iter().map(|model| &*Box::leak(Box::new(model))).collect();
        for model in &models {
            self.models.add(model.name(), *model)?;
        }
        Ok(ModelBuilder { zoo: self, models })
    }

    /// Registers built-in models.
    pub(crate) fn models<D: Definition>(&self, models: impl IntoIterator<Item = D>) -> ModelBuilder<'_, D> {
        self.model(models).expect("built-in names are unique")
    }
}

impl<D: Definition> ModelBuilder<'_, D> {
    /// Registers burn operations for every recipe: `eager` on every device, `fused` on every GPU.
    pub fn burn(self) -> Self
    where
        D: BurnModel,
    {
        backends::visit_backends(&BurnModelVisitor(&self));
        for (kind, backend) in backends::missing_device_kinds() {
            self.add_missing(Implementation::Eager, kind, backend.feature);
            if backend.gpu {
                self.add_missing(Implementation::Fused, kind, backend.feature);
            }
        }
        self
    }

    /// Registers burn operations with our CubeCL kernels for quantized weights: `cube` on every GPU.
    pub fn cube(self) -> Self
    where
        D: BurnModel,
    {
        #[cfg(any(feature = "cuda", feature = "wgpu"))]
        backends::visit_backends(&CubeModelVisitor(&self));
        for (kind, backend) in backends::missing_device_kinds().filter(|(_, backend)| backend.gpu) {
            self.add_missing(Implementation::Cube, kind, backend.feature);
        }
        self
    }

    /// Registers CUDA libraries and kernels as `native` on CUDA, for the baseline and recipes with a kernel.
    pub fn native(self) -> Self
    where
        D: NativeModel,
    {
        #[cfg(feature = "native")]
        self.insert(Implementation::Native, DeviceKind::Cuda, |model| {
            Box::new(GuardedNativeModel(Box::new(CudaModelFactory(model))))
        });
        #[cfg(not(feature = "native"))]
        self.add_missing(Implementation::Native, DeviceKind::Cuda, "native");
        self
    }

    /// Registers CPU kernels as `native` on the CPU.
    pub fn host(self) -> Self
    where
        D: HostModel,
    {
        self.insert(Implementation::Native, DeviceKind::Cpu, |model| Box::new(HostModelFactory(model)));
        self
    }

    fn add_burn<B: BurnBackend>(&self, implementation: Implementation, kinds: &[DeviceKind])
    where
        D: BurnModel,
    {
        for &kind in kinds {
            self.insert(implementation, kind, |model| {
                let forward = move |shape, linears, input| model.forward::<B>(shape, linears, input);
                Box::new(BurnModelFactory::<B> { upload: QuantConfig::upload::<B>, forward: Box::new(forward) })
            });
        }
    }

    fn add_missing(&self, implementation: Implementation, kind: DeviceKind, feature: &'static str) {
        self.insert(implementation, kind, |_| Box::new(MissingBackend { feature }));
    }

    fn insert(
        &self,
        implementation: Implementation,
        kind: DeviceKind,
        make: impl Fn(&'static D) -> Box<dyn WorkloadFactory>,
    ) {
        for &model in &self.models {
            let subject = Subject::Model(Model::new(model));
            self.zoo
                .insert(subject, implementation, kind, make(model))
                .expect("each implementation is registered once");
        }
    }
}

/// Registers `eager` on every backend and `fused` on those that fuse.
struct BurnModelVisitor<'a, D: 'static>(&'a ModelBuilder<'a, D>);

impl<D: BurnModel> BackendVisitor for BurnModelVisitor<'_, D> {
    fn visit_cpu<B: BurnBackend>(&self, kinds: &[DeviceKind]) {
        self.0.add_burn::<B>(Implementation::Eager, kinds);
    }

    #[cfg(any(feature = "cuda", feature = "wgpu"))]
    fn visit_gpu<R: CubeRuntime, Fused: BurnBackend>(&self, kinds: &[DeviceKind])
    where
        CubeOf<R>: BurnBackend,
    {
        self.0.add_burn::<CubeOf<R>>(Implementation::Eager, kinds);
        self.0.add_burn::<Fused>(Implementation::Fused, kinds);
    }
}

/// Registers `cube` on CubeCL backends.
#[cfg(any(feature = "cuda", feature = "wgpu"))]
struct CubeModelVisitor<'a, D: 'static>(&'a ModelBuilder<'a, D>);

#[cfg(any(feature = "cuda", feature = "wgpu"))]
impl<D: BurnModel> BackendVisitor for CubeModelVisitor<'_, D> {
    fn visit_gpu<R: CubeRuntime, Fused: BurnBackend>(&self, kinds: &[DeviceKind])
    where
        CubeOf<R>: BurnBackend,
    {
        for &kind in kinds {
            self.0.insert(Implementation::Cube, kind, |model| {
                let forward = move |shape, linears, input| model.forward::<CubeOf<R>>(shape, linears, input);
                let upload = QuantConfig::upload_with_kernels::<CubeOf<R>>;
                Box::new(GuardedCubeModel(Box::new(BurnModelFactory { upload, forward: Box::new(forward) })))
            });
        }
    }
}
