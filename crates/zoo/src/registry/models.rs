//! The ways to run registered models.

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

/// The ways to run some models of one family; each method adds one.
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
        // Kept for the life of the process.
        let models: Vec<&'static D> = models.into_iter().map(|model| &*Box::leak(Box::new(model))).collect();
        for model in &models {
            self.models.add(model.name(), *model)?;
        }
        Ok(ModelWays { zoo: self, models })
    }

    /// Registers models of ours.
    pub(crate) fn models<D: Definition>(&self, models: impl IntoIterator<Item = D>) -> ModelWays<'_, D> {
        self.model(models).expect("our own names differ")
    }
}

impl<D: Definition> ModelWays<'_, D> {
    /// By burn's operations, under every recipe: `eager` on every device, `fused` on every GPU.
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

    /// By burn's operations, but for weights that CubeCL kernels of ours multiply as they are stored: `cube` on every GPU.
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

    /// By CUDA's libraries and kernels, `native` on CUDA: the baseline, and recipes whose weights its kernels take packed or
    /// whose codes they multiply.
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

    /// By kernels of the processor: `native` on it.
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
            self.zoo.insert(subject, implementation, kind, make(model)).expect("each way is added once");
        }
    }
}

/// `eager` on every backend, `fused` on those that fuse.
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

/// `cube` on backends of CubeCL.
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
