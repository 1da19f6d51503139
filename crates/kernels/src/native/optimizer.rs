//! Optimizer steps.

use super::{
    CudaDevice, CudaKernel, NativeError,
    kernel::{KernelArgs, LaunchGeometry, common_macros},
    nvrtc::CudaSource,
};
use crate::{Adamw, Dtype};

/// Update rule.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum OptimizerRule {
    /// Plain SGD.
    Sgd {
        /// Learning rate.
        learning_rate: f64,
    },
    /// AdamW.
    Adamw(Adamw),
}

const THREADS: usize = 256;

impl CudaKernel {
    /// Optimizer step of `weights` weights, with f32 moments if the rule has any. Inputs: weight, gradient, moments;
    /// outputs: weight and moments after the step.
    pub fn optimizer_step(
        device: &CudaDevice,
        kind: Dtype,
        rule: OptimizerRule,
        weights: usize,
    ) -> Result<Self, NativeError> {
        let width = if weights.is_multiple_of(4) { 4 } else { 1 };
        let pieces = weights / width;
        let geometry = LaunchGeometry::new(pieces.div_ceil(THREADS), (THREADS, 1))?;
        let name = format!("{}_{kind}", rule.name());
        let (bytes, wide) = (weights * kind.width(), 4 * weights);
        let (mut reads, mut writes) = (vec![("weight", bytes), ("gradient", bytes)], vec![("weight", bytes)]);
        if let OptimizerRule::Adamw(_) = rule {
            let moments = [("mean", wide), ("square", wide)];
            reads.extend(moments);
            writes.extend(moments);
        }
        let (macros, args) = (macros(&name, kind, rule, width), KernelArgs::new(reads, writes, (pieces, 0)));
        let kernel = Self::prepare(device, CudaSource::Optimizer, &name, macros, args, geometry)?;
        Ok(kernel.with_description(format!("{name}: {THREADS} threads per block, {width} weights per thread")))
    }
}

impl OptimizerRule {
    fn name(self) -> &'static str {
        match self {
            Self::Sgd { .. } => "descent",
            Self::Adamw(_) => "adamw",
        }
    }
}

fn macros(name: &str, kind: Dtype, rule: OptimizerRule, width: usize) -> Vec<String> {
    let mut macros = common_macros(name, kind, width);
    macros.push(format!("THREADS={THREADS}"));
    let mut number = |name: &str, value: f64| macros.push(format!("{name}={:e}f", value as f32));
    match rule {
        OptimizerRule::Sgd { learning_rate } => number("LEARNING_RATE", learning_rate),
        OptimizerRule::Adamw(Adamw { learning_rate, betas, corrections, epsilon, decay }) => {
            number("LEARNING_RATE", learning_rate);
            // 1 - beta is computed in f64: in f32 it would have a relative error of 1e-5.
            for (name, beta) in ["1", "2"].into_iter().zip(betas) {
                number(&format!("BETA{name}"), beta);
                number(&format!("ONE_MINUS_BETA{name}"), 1.0 - beta);
            }
            number("INV_BIAS_CORRECTION1", corrections[0]);
            number("INV_BIAS_CORRECTION2", corrections[1]);
            number("EPSILON", epsilon);
            number("WEIGHT_DECAY", decay);
            macros.push("ADAMW".into());
        }
    }
    macros
}

#[cfg(test)]
mod tests {
    use super::super::nvrtc::tests::assert_compiles;
    use super::*;

    #[test]
    #[ignore = "needs NVRTC"]
    fn source_compiles_for_every_rule_and_dtype() {
        let settings =
            Adamw { learning_rate: 0.01, betas: [0.9, 0.999], corrections: [1.5, 100.0], epsilon: 1e-8, decay: 0.01 };
        for rule in [OptimizerRule::Sgd { learning_rate: 0.5 }, OptimizerRule::Adamw(settings)] {
            for kind in Dtype::ALL {
                for width in [1, 4] {
                    assert_compiles(CudaSource::Optimizer, &macros("step", kind, rule, width));
                }
            }
        }
    }
}
