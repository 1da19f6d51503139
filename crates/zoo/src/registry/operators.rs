//! Builder for the implementations of operators.

use super::WorkloadFactory;
#[cfg(feature = "native")]
use super::factories::CudaOperatorFactory;
use super::factories::{BurnOperatorFactory, GuardedOperator, MissingBackend};
use super::table::Zoo;
#[cfg(any(feature = "cuda", feature = "wgpu"))]
use crate::CubeOf;
use crate::backends::{self, BackendVisitor, BurnBackend};
use crate::burn_workload::PassFactory;
use crate::{BurnPass, CubePass, DeviceKind, Implementation, NativeOpen, Operation, Operator, Spec, Subject};
#[cfg(any(feature = "cuda", feature = "wgpu"))]
use burn_cubecl::CubeRuntime;
use calorimeter_case::NameTaken;

/// Builder for the implementations of a family of operators; each method registers one.
///
/// Registration is the only declaration of support.
pub struct OperatorBuilder<'z, O: 'static> {
    zoo: &'z Zoo,
    operators: Vec<&'static O>,
}

/// Accepts every size and element type.
fn accept_all<O>(_: &O, _: &Spec) -> Result<(), String> {
    Ok(())
}

impl Zoo {
    /// Registers operators of one family.
    pub(crate) fn operator<O: Operation>(
        &self,
        operators: impl IntoIterator<Item = O>,
    ) -> Result<OperatorBuilder<'_, O>, NameTaken> {
        // Leaked, because handles live as long as the process.
        let operators: Vec<&'static O> =
            operators.into_iter().map(|operator| &*Box::leak(Box::new(operator))).collect();
        for operator in &operators {
            self.operators.add(operator.name(), *operator)?;
        }
        Ok(OperatorBuilder { zoo: self, operators })
    }

    /// Registers built-in operators.
    pub(crate) fn operators<O: Operation>(&self, operators: impl IntoIterator<Item = O>) -> OperatorBuilder<'_, O> {
        self.operator(operators).expect("built-in names are unique")
    }
}

impl<O: Operation> OperatorBuilder<'_, O> {
    /// Registers burn operations: `eager` on every device, `fused` on every GPU.
    pub fn burn(self) -> Self
    where
        O: BurnPass,
    {
        backends::visit_backends(&BurnOperatorVisitor(&self));
        for (kind, backend) in backends::missing_device_kinds() {
            self.add_missing(Implementation::Eager, kind, backend.feature);
            if backend.gpu {
                self.add_missing(Implementation::Fused, kind, backend.feature);
            }
        }
        self
    }

    /// Registers `fused` on the CPU as well, for operators that are fused by algebraic simplification.
    pub fn fused_on_cpu(self) -> Self
    where
        O: BurnPass,
    {
        backends::visit_backends(&CpuFusedVisitor(&self));
        for (kind, backend) in backends::missing_device_kinds().filter(|(_, backend)| !backend.gpu) {
            self.add_missing(Implementation::Fused, kind, backend.feature);
        }
        self
    }

    /// Registers a CubeCL kernel: `cube` on every GPU.
    pub fn cube(self) -> Self
    where
        O: CubePass,
    {
        self.cube_where(accept_all)
    }

    /// Registers a CubeCL kernel for sizes, element types and recipes that `taken` accepts.
    pub fn cube_where(self, taken: fn(&O, &Spec) -> Result<(), String>) -> Self
    where
        O: CubePass,
    {
        #[cfg(any(feature = "cuda", feature = "wgpu"))]
        backends::visit_backends(&CubeOperatorVisitor(&self, taken));
        #[cfg(not(any(feature = "cuda", feature = "wgpu")))]
        let _ = taken;
        for (kind, backend) in backends::missing_device_kinds().filter(|(_, backend)| backend.gpu) {
            self.add_missing(Implementation::Cube, kind, backend.feature);
        }
        self
    }

    /// Registers CUDA libraries and kernels: `native` on CUDA.
    pub fn native(self) -> Self
    where
        O: NativeOpen,
    {
        self.native_where(accept_all)
    }

    /// Registers CUDA libraries and kernels for sizes and element types that `taken` accepts.
    pub fn native_where(self, taken: fn(&O, &Spec) -> Result<(), String>) -> Self
    where
        O: NativeOpen,
    {
        #[cfg(feature = "native")]
        for &operator in &self.operators {
            let factory = guarded(operator, taken, CudaOperatorFactory(operator));
            self.insert(operator, Implementation::Native, DeviceKind::Cuda, factory);
        }
        #[cfg(not(feature = "native"))]
        {
            let _ = taken;
            self.add_missing(Implementation::Native, DeviceKind::Cuda, "native");
        }
        self
    }

    /// Registers `native` on the CPU; the factory itself checks what it supports.
    pub fn host(self, opener: impl WorkloadFactory + Copy) -> Self {
        for &operator in &self.operators {
            self.insert(operator, Implementation::Native, DeviceKind::Cpu, Box::new(opener));
        }
        self
    }

    fn eager_on<B: BurnBackend>(&self, kinds: &[DeviceKind])
    where
        O: BurnPass,
    {
        self.add_burn::<B>(Implementation::Eager, kinds, |operator| {
            Box::new(move |spec, inputs| Ok(operator.pass::<B>(spec, inputs)))
        });
    }

    fn fused_on<B: BurnBackend>(&self, kinds: &[DeviceKind])
    where
        O: BurnPass,
    {
        self.add_burn::<B>(Implementation::Fused, kinds, |operator| {
            Box::new(move |spec, inputs| Ok(operator.fused_pass::<B>(spec, inputs)))
        });
    }

    /// Registers a pass on a burn backend.
    fn add_burn<B: BurnBackend>(
        &self,
        implementation: Implementation,
        kinds: &[DeviceKind],
        make: fn(&'static O) -> Box<PassFactory<B>>,
    ) {
        for &operator in &self.operators {
            for &kind in kinds {
                self.insert(operator, implementation, kind, Box::new(BurnOperatorFactory(make(operator))));
            }
        }
    }

    fn add_missing(&self, implementation: Implementation, kind: DeviceKind, feature: &'static str) {
        for &operator in &self.operators {
            self.insert(operator, implementation, kind, Box::new(MissingBackend { feature }));
        }
    }

    fn insert(
        &self,
        operator: &'static O,
        implementation: Implementation,
        kind: DeviceKind,
        opener: Box<dyn WorkloadFactory>,
    ) {
        let subject = Subject::Operator(Operator::new(operator));
        self.zoo.insert(subject, implementation, kind, opener).expect("each implementation is registered once");
    }
}

/// Registers `eager` on every backend and `fused` on those that fuse.
struct BurnOperatorVisitor<'a, O: 'static>(&'a OperatorBuilder<'a, O>);

impl<O: BurnPass> BackendVisitor for BurnOperatorVisitor<'_, O> {
    fn visit_cpu<B: BurnBackend>(&self, kinds: &[DeviceKind]) {
        self.0.eager_on::<B>(kinds);
    }

    #[cfg(any(feature = "cuda", feature = "wgpu"))]
    fn visit_gpu<R: CubeRuntime, Fused: BurnBackend>(&self, kinds: &[DeviceKind])
    where
        CubeOf<R>: BurnBackend,
    {
        self.0.eager_on::<CubeOf<R>>(kinds);
        self.0.fused_on::<Fused>(kinds);
    }
}

/// Registers `fused` on CPU backends.
struct CpuFusedVisitor<'a, O: 'static>(&'a OperatorBuilder<'a, O>);

impl<O: BurnPass> BackendVisitor for CpuFusedVisitor<'_, O> {
    fn visit_cpu<B: BurnBackend>(&self, kinds: &[DeviceKind]) {
        self.0.fused_on::<B>(kinds);
    }
}

/// Registers `cube` on GPU backends.
#[cfg(any(feature = "cuda", feature = "wgpu"))]
struct CubeOperatorVisitor<'a, O: 'static>(&'a OperatorBuilder<'a, O>, fn(&O, &Spec) -> Result<(), String>);

#[cfg(any(feature = "cuda", feature = "wgpu"))]
impl<O: CubePass> BackendVisitor for CubeOperatorVisitor<'_, O> {
    fn visit_gpu<R: CubeRuntime, Fused: BurnBackend>(&self, kinds: &[DeviceKind])
    where
        CubeOf<R>: BurnBackend,
    {
        for &operator in &self.0.operators {
            for &kind in kinds {
                let make: Box<PassFactory<CubeOf<R>>> = Box::new(move |spec, inputs| operator.pass::<R>(spec, inputs));
                self.0.insert(
                    operator,
                    Implementation::Cube,
                    kind,
                    guarded(operator, self.1, BurnOperatorFactory(make)),
                );
            }
        }
    }
}

/// Restricts a factory to specs that `taken` accepts.
fn guarded<O: Operation>(
    operator: &'static O,
    taken: fn(&O, &Spec) -> Result<(), String>,
    opener: impl WorkloadFactory,
) -> Box<dyn WorkloadFactory> {
    Box::new(GuardedOperator { check: Box::new(move |spec| taken(operator, spec)), factory: Box::new(opener) })
}
