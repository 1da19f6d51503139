//! The ways to run registered operators.

#[cfg(feature = "cuda")]
use super::openers::OperatorOnCuda;
use super::openers::{MakePass, NotBuilt, OnBurn, OperatorOnHost, SpecsAlone};
use super::{Opener, Zoo};
#[cfg(feature = "cpu")]
use crate::backends::cpu;
#[cfg(feature = "cuda")]
use crate::backends::cuda;
#[cfg(feature = "wgpu")]
use crate::backends::wgpu;
use crate::backends::{self, BurnBackend};
use crate::{BurnPass, CubePass, DeviceKind, HostOpen, Implementation, NativeOpen, Operation, Operator, Spec, Subject};
use calorimeter_case::NameTaken;

/// The ways to run some operators of one family; each method adds one. An operator is run where it has a way, and nothing
/// else says so.
pub struct OperatorWays<'z, O: 'static> {
    zoo: &'z Zoo,
    operators: Vec<&'static O>,
}

/// What is true of every size and number type.
fn every<O>(_: &O, _: &Spec) -> Result<(), String> {
    Ok(())
}

impl Zoo {
    /// Registers operators of one family.
    pub(crate) fn operator<O: Operation>(
        &self,
        operators: impl IntoIterator<Item = O>,
    ) -> Result<OperatorWays<'_, O>, NameTaken> {
        // Kept for the life of the process.
        let operators: Vec<&'static O> =
            operators.into_iter().map(|operator| &*Box::leak(Box::new(operator))).collect();
        for operator in &operators {
            self.operators.add(operator.name(), *operator)?;
        }
        Ok(OperatorWays { zoo: self, operators })
    }

    /// Registers operators of ours.
    pub(crate) fn operators<O: Operation>(&self, operators: impl IntoIterator<Item = O>) -> OperatorWays<'_, O> {
        self.operator(operators).expect("our own names differ")
    }
}

impl<O: Operation> OperatorWays<'_, O> {
    /// By burn's operations: `eager` on every device, `fused` on every GPU.
    pub fn burn(self) -> Self
    where
        O: BurnPass,
    {
        use Implementation::{Eager, Fused};
        #[cfg(feature = "cpu")]
        self.eager_on::<cpu::Eager>(&[DeviceKind::Cpu]);
        #[cfg(feature = "cuda")]
        {
            self.eager_on::<cuda::Eager>(&[DeviceKind::Cuda]);
            self.fused_on::<cuda::Fused>(&[DeviceKind::Cuda]);
        }
        #[cfg(feature = "wgpu")]
        {
            self.eager_on::<wgpu::Eager>(backends::WGPU);
            self.fused_on::<wgpu::Fused>(backends::WGPU);
        }
        for kind in backends::not_built() {
            self.not_built(Eager, kind);
            if kind.is_gpu() {
                self.not_built(Fused, kind);
            }
        }
        self
    }

    /// `fused` on the processor too: what algebra folds needs no kernel that fuses.
    pub fn folds(self) -> Self
    where
        O: BurnPass,
    {
        #[cfg(feature = "cpu")]
        self.fused_on::<cpu::Eager>(&[DeviceKind::Cpu]);
        #[cfg(not(feature = "cpu"))]
        self.not_built(Implementation::Fused, DeviceKind::Cpu);
        self
    }

    /// By a CubeCL kernel: `cube` on every GPU.
    pub fn cube(self) -> Self
    where
        O: CubePass,
    {
        #[cfg(feature = "cuda")]
        self.add::<cuda::Eager>(Implementation::Cube, &[DeviceKind::Cuda], |operator| {
            Box::new(move |spec, inputs| operator.pass::<cuda::Runtime>(spec, inputs))
        });
        #[cfg(feature = "wgpu")]
        self.add::<wgpu::Eager>(Implementation::Cube, backends::WGPU, |operator| {
            Box::new(move |spec, inputs| operator.pass::<wgpu::Runtime>(spec, inputs))
        });
        for kind in backends::not_built().filter(|kind| kind.is_gpu()) {
            self.not_built(Implementation::Cube, kind);
        }
        self
    }

    /// By CUDA's libraries and kernels: `native` on CUDA.
    pub fn native(self) -> Self
    where
        O: NativeOpen,
    {
        self.native_where(every)
    }

    /// The same for some sizes and number types alone; the error says which.
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

    /// By plain Rust: `native` on the processor.
    pub fn host(self) -> Self
    where
        O: HostOpen,
    {
        self.host_where(every)
    }

    /// The same for some sizes and number types alone; the error says which.
    pub fn host_where(self, taken: fn(&O, &Spec) -> Result<(), String>) -> Self
    where
        O: HostOpen,
    {
        for &operator in &self.operators {
            let opener = some(operator, taken, OperatorOnHost(operator));
            self.put(operator, Implementation::Native, DeviceKind::Cpu, opener);
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

    /// A pass on a backend of burn.
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
        self.zoo.insert(subject, implementation, kind, opener).expect("each way is added once");
    }
}

/// An opener for what is taken.
fn some<O: Operation>(
    operator: &'static O,
    taken: fn(&O, &Spec) -> Result<(), String>,
    opener: impl Opener,
) -> Box<dyn Opener> {
    Box::new(SpecsAlone { taken: Box::new(move |spec| taken(operator, spec)), opener: Box::new(opener) })
}
