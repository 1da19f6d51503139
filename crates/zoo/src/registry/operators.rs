//! Builder for the implementations of operators.

use super::Opener;
#[cfg(feature = "cuda")]
use super::openers::OperatorOnCuda;
use super::openers::{NotBuilt, OnBurn, SpecsAlone};
use super::table::Zoo;
#[cfg(any(feature = "cuda", feature = "wgpu"))]
use crate::CubeOf;
use crate::backends::{self, BurnBackend, EachBackend};
use crate::burn_workload::MakePass;
use crate::{BurnPass, CubePass, DeviceKind, Implementation, NativeOpen, Operation, Operator, Spec, Subject};
#[cfg(any(feature = "cuda", feature = "wgpu"))]
use burn_cubecl::CubeRuntime;
use calorimeter_case::NameTaken;

/// Builder for the implementations of a family of operators; each method registers one.
///
/// Registration is the only declaration of support.
pub struct OperatorWays<'z, O: 'static> {
    zoo: &'z Zoo,
    operators: Vec<&'static O>,
}

/// Accepts every size and element type.
fn every<O>(_: &O, _: &Spec) -> Result<(), String> {
    Ok(())
}

impl Zoo {
    /// Registers operators of one family.
    pub(crate) fn operator<O: Operation>(
        &self,
        operators: impl IntoIterator<Item = O>,
    ) -> Result<OperatorWays<'_, O>, NameTaken> {
        // Leaked, because handles live as long as the process.
        let operators: Vec<&'static O> =
            operators.into_iter().map(|operator| &*Box::leak(Box::new(operator))).collect();
        for operator in &operators {
            self.operators.add(operator.name(), *operator)?;
        }
        Ok(OperatorWays { zoo: self, operators })
    }

    /// Registers built-in operators.
    pub(crate) fn operators<O: Operation>(&self, operators: impl IntoIterator<Item = O>) -> OperatorWays<'_, O> {
        self.operator(operators).expect("built-in names are unique")
    }
}

impl<O: Operation> OperatorWays<'_, O> {
    /// Registers burn operations: `eager` on every device, `fused` on every GPU.
    pub fn burn(self) -> Self
    where
        O: BurnPass,
    {
        backends::each(&ByBurn(&self));
        for (kind, gpu) in backends::not_built() {
            self.not_built(Implementation::Eager, kind);
            if gpu {
                self.not_built(Implementation::Fused, kind);
            }
        }
        self
    }

    /// Registers `fused` on the CPU as well, for operators that are fused by algebraic simplification.
    pub fn folds(self) -> Self
    where
        O: BurnPass,
    {
        backends::each(&Folded(&self));
        for (kind, _) in backends::not_built().filter(|(_, gpu)| !gpu) {
            self.not_built(Implementation::Fused, kind);
        }
        self
    }

    /// Registers a CubeCL kernel: `cube` on every GPU.
    pub fn cube(self) -> Self
    where
        O: CubePass,
    {
        self.cube_where(every)
    }

    /// Registers a CubeCL kernel for sizes, element types and recipes that `taken` accepts.
    pub fn cube_where(self, taken: fn(&O, &Spec) -> Result<(), String>) -> Self
    where
        O: CubePass,
    {
        #[cfg(any(feature = "cuda", feature = "wgpu"))]
        backends::each(&ByCube(&self, taken));
        for (kind, _) in backends::not_built().filter(|(_, gpu)| *gpu) {
            for &operator in &self.operators {
                self.put(operator, Implementation::Cube, kind, some(operator, taken, NotBuilt { burn: true }));
            }
        }
        self
    }

    /// Registers CUDA libraries and kernels: `native` on CUDA.
    pub fn native(self) -> Self
    where
        O: NativeOpen,
    {
        self.native_where(every)
    }

    /// Registers CUDA libraries and kernels for sizes and element types that `taken` accepts.
    pub fn native_where(self, taken: fn(&O, &Spec) -> Result<(), String>) -> Self
    where
        O: NativeOpen,
    {
        for &operator in &self.operators {
            #[cfg(feature = "cuda")]
            let opener = OperatorOnCuda(operator);
            #[cfg(not(feature = "cuda"))]
            let opener = NotBuilt { burn: false };
            self.put(operator, Implementation::Native, DeviceKind::Cuda, some(operator, taken, opener));
        }
        self
    }

    /// Registers `native` on the CPU; the factory itself checks what it supports.
    pub fn host(self, opener: impl Opener + Copy) -> Self {
        for &operator in &self.operators {
            self.put(operator, Implementation::Native, DeviceKind::Cpu, Box::new(opener));
        }
        self
    }

    fn eager_on<B: BurnBackend>(&self, kinds: &[DeviceKind])
    where
        O: BurnPass,
    {
        self.add::<B>(Implementation::Eager, kinds, |operator| {
            Box::new(move |spec, inputs| Ok(operator.pass::<B>(spec, inputs)))
        });
    }

    fn fused_on<B: BurnBackend>(&self, kinds: &[DeviceKind])
    where
        O: BurnPass,
    {
        self.add::<B>(Implementation::Fused, kinds, |operator| {
            Box::new(move |spec, inputs| Ok(operator.fused_pass::<B>(spec, inputs)))
        });
    }

    /// Registers a pass on a burn backend.
    fn add<B: BurnBackend>(
        &self,
        implementation: Implementation,
        kinds: &[DeviceKind],
        make: fn(&'static O) -> Box<MakePass<B>>,
    ) {
        for &operator in &self.operators {
            for &kind in kinds {
                self.put(operator, implementation, kind, Box::new(OnBurn(make(operator))));
            }
        }
    }

    fn not_built(&self, implementation: Implementation, kind: DeviceKind) {
        for &operator in &self.operators {
            self.put(operator, implementation, kind, Box::new(NotBuilt { burn: true }));
        }
    }

    fn put(&self, operator: &'static O, implementation: Implementation, kind: DeviceKind, opener: Box<dyn Opener>) {
        let subject = Subject::Operator(Operator::of(operator));
        self.zoo.insert(subject, implementation, kind, opener).expect("each implementation is registered once");
    }
}

/// Registers `eager` on every backend and `fused` on those that fuse.
struct ByBurn<'a, O: 'static>(&'a OperatorWays<'a, O>);

impl<O: BurnPass> EachBackend for ByBurn<'_, O> {
    fn processor<B: BurnBackend>(&self, kinds: &[DeviceKind]) {
        self.0.eager_on::<B>(kinds);
    }

    #[cfg(any(feature = "cuda", feature = "wgpu"))]
    fn gpu<R: CubeRuntime, Fused: BurnBackend>(&self, kinds: &[DeviceKind])
    where
        CubeOf<R>: BurnBackend,
    {
        self.0.eager_on::<CubeOf<R>>(kinds);
        self.0.fused_on::<Fused>(kinds);
    }
}

/// Registers `fused` on CPU backends.
struct Folded<'a, O: 'static>(&'a OperatorWays<'a, O>);

impl<O: BurnPass> EachBackend for Folded<'_, O> {
    fn processor<B: BurnBackend>(&self, kinds: &[DeviceKind]) {
        self.0.fused_on::<B>(kinds);
    }
}

/// Registers `cube` on GPU backends.
#[cfg(any(feature = "cuda", feature = "wgpu"))]
struct ByCube<'a, O: 'static>(&'a OperatorWays<'a, O>, fn(&O, &Spec) -> Result<(), String>);

#[cfg(any(feature = "cuda", feature = "wgpu"))]
impl<O: CubePass> EachBackend for ByCube<'_, O> {
    fn gpu<R: CubeRuntime, Fused: BurnBackend>(&self, kinds: &[DeviceKind])
    where
        CubeOf<R>: BurnBackend,
    {
        for &operator in &self.0.operators {
            for &kind in kinds {
                let make: Box<MakePass<CubeOf<R>>> = Box::new(move |spec, inputs| operator.pass::<R>(spec, inputs));
                self.0.put(operator, Implementation::Cube, kind, some(operator, self.1, OnBurn(make)));
            }
        }
    }
}

/// Restricts a factory to specs that `taken` accepts.
fn some<O: Operation>(
    operator: &'static O,
    taken: fn(&O, &Spec) -> Result<(), String>,
    opener: impl Opener,
) -> Box<dyn Opener> {
    Box::new(SpecsAlone { taken: Box::new(move |spec| taken(operator, spec)), opener: Box::new(opener) })
}
