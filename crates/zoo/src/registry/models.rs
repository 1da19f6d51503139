//! Builder for the implementations of models.

use super::Opener;
#[cfg(feature = "cuda")]
use super::openers::ModelOnCuda;
use super::openers::{FormsAlone, ModelOnBurn, ModelOnHost, NotBuilt, ProductsAlone};
use super::table::Zoo;
#[cfg(any(feature = "cuda", feature = "wgpu"))]
use crate::CubeOf;
use crate::backends::{self, BurnBackend, EachBackend};
use crate::{BurnModel, Definition, DeviceKind, HostModel, Implementation, Model, NativeModel, Subject};
#[cfg(any(feature = "cuda", feature = "wgpu"))]
use burn_cubecl::CubeRuntime;
use calorimeter_case::NameTaken;
use calorimeter_recipes::Treatment;

/// Builder for the implementations of a family of models; each method registers one.
pub struct ModelWays<'z, D: 'static> {
    zoo: &'z Zoo,
    models: Vec<&'static D>,
}

impl Zoo {
    /// Registers models of one family.
    pub(crate) fn model<D: Definition>(
        &self,
        models: impl IntoIterator<Item = D>,
    ) -> Result<ModelWays<'_, D>, NameTaken> {
        // Leaked, because handles live as long as the process.
        let models: Vec<&'static D> = models.into_iter().map(|model| &*Box::leak(Box::new(model))).collect();
        for model in &models {
            self.models.add(model.name(), *model)?;
        }
        Ok(ModelWays { zoo: self, models })
    }

    /// Registers built-in models.
    pub(crate) fn models<D: Definition>(&self, models: impl IntoIterator<Item = D>) -> ModelWays<'_, D> {
        self.model(models).expect("built-in names are unique")
    }
}

impl<D: Definition> ModelWays<'_, D> {
    /// Registers burn operations for every recipe: `eager` on every device, `fused` on every GPU.
    pub fn burn(self) -> Self
    where
        D: BurnModel,
    {
        backends::each(&ByBurn(&self));
        for (kind, gpu) in backends::not_built() {
            self.put(Implementation::Eager, kind, |_| Box::new(NotBuilt { burn: true }));
            if gpu {
                self.put(Implementation::Fused, kind, |_| Box::new(NotBuilt { burn: true }));
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
        backends::each(&ByCube(&self));
        for (kind, _) in backends::not_built().filter(|(_, gpu)| *gpu) {
            self.put(Implementation::Cube, kind, |_| Box::new(ProductsAlone(Box::new(NotBuilt { burn: true }))));
        }
        self
    }

    /// Registers CUDA libraries and kernels as `native` on CUDA, for the baseline and recipes with a kernel.
    pub fn native(self) -> Self
    where
        D: NativeModel,
    {
        self.put(Implementation::Native, DeviceKind::Cuda, |model| {
            #[cfg(feature = "cuda")]
            let opener = ModelOnCuda(model);
            #[cfg(not(feature = "cuda"))]
            let (opener, _) = (NotBuilt { burn: false }, model);
            Box::new(FormsAlone(Box::new(opener)))
        });
        self
    }

    /// Registers CPU kernels as `native` on the CPU.
    pub fn host(self) -> Self
    where
        D: HostModel,
    {
        self.put(Implementation::Native, DeviceKind::Cpu, |model| Box::new(ModelOnHost(model)));
        self
    }

    fn on<B: BurnBackend>(&self, implementation: Implementation, kinds: &[DeviceKind])
    where
        D: BurnModel,
    {
        for &kind in kinds {
            self.put(implementation, kind, |model| {
                let forward = move |shape, linears, input| model.forward::<B>(shape, linears, input);
                Box::new(ModelOnBurn::<B> { upload: Treatment::upload::<B>, forward: Box::new(forward) })
            });
        }
    }

    fn put(&self, implementation: Implementation, kind: DeviceKind, make: fn(&'static D) -> Box<dyn Opener>) {
        for &model in &self.models {
            let subject = Subject::Model(Model::of(model));
            self.zoo
                .insert(subject, implementation, kind, make(model))
                .expect("each implementation is registered once");
        }
    }
}

/// Registers `eager` on every backend and `fused` on those that fuse.
struct ByBurn<'a, D: 'static>(&'a ModelWays<'a, D>);

impl<D: BurnModel> EachBackend for ByBurn<'_, D> {
    fn processor<B: BurnBackend>(&self, kinds: &[DeviceKind]) {
        self.0.on::<B>(Implementation::Eager, kinds);
    }

    #[cfg(any(feature = "cuda", feature = "wgpu"))]
    fn gpu<R: CubeRuntime, Fused: BurnBackend>(&self, kinds: &[DeviceKind])
    where
        CubeOf<R>: BurnBackend,
    {
        self.0.on::<CubeOf<R>>(Implementation::Eager, kinds);
        self.0.on::<Fused>(Implementation::Fused, kinds);
    }
}

/// Registers `cube` on CubeCL backends.
#[cfg(any(feature = "cuda", feature = "wgpu"))]
struct ByCube<'a, D: 'static>(&'a ModelWays<'a, D>);

#[cfg(any(feature = "cuda", feature = "wgpu"))]
impl<D: BurnModel> EachBackend for ByCube<'_, D> {
    fn gpu<R: CubeRuntime, Fused: BurnBackend>(&self, kinds: &[DeviceKind])
    where
        CubeOf<R>: BurnBackend,
    {
        for &kind in kinds {
            self.0.put(Implementation::Cube, kind, |model| {
                let forward = move |shape, linears, input| model.forward::<CubeOf<R>>(shape, linears, input);
                let upload = Treatment::upload_for_product::<CubeOf<R>>;
                Box::new(ProductsAlone(Box::new(ModelOnBurn { upload, forward: Box::new(forward) })))
            });
        }
    }
}
