//! A weight's step under its optimizer.

use std::sync::Arc;

use super::{
    Buffer, Machine, NativeError,
    kernel::{Extent, Geometry, Kernel, common_macros},
    nvrtc::Source,
    sizes::checked_size,
};
use crate::{Adamw, Dtype};

/// How a weight follows its gradient.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum OptimizerRule {
    /// It loses a share of it.
    Descent {
        /// The share.
        learning_rate: f64,
    },
    /// AdamW.
    Adamw(Adamw),
}

/// A plan of all weights after a step, with their moments in f32 where the rule has some.
#[derive(Debug)]
pub struct OptimizerStep {
    kernel: Kernel,
    algorithm: String,
}

const THREADS: usize = 256;

impl OptimizerStep {
    /// Compiles for so many weights.
    pub fn new(machine: &Arc<Machine>, kind: Dtype, rule: OptimizerRule, weights: usize) -> Result<Self, NativeError> {
        let width = if weights.is_multiple_of(4) { 4 } else { 1 };
        let pieces = weights / width;
        let blocks = checked_size("the number of blocks", pieces.div_ceil(THREADS))?;
        let name = format!("{}_{kind}", rule.name());
        let (bytes, wide) = (weights * kind.width(), 4 * weights);
        let (mut reads, mut writes) = (vec![("weight", bytes), ("gradient", bytes)], vec![("weight", bytes)]);
        if let OptimizerRule::Adamw(_) = rule {
            let moments = [("mean", wide), ("square", wide)];
            reads.extend(moments);
            writes.extend(moments);
        }
        let extent = Extent { reads, writes, sizes: (pieces as u64, 0) };
        let geometry = Geometry { blocks: blocks as u32, threads: (THREADS as u32, 1) };
        let macros = macros(&name, kind, rule, width);
        Ok(Self {
            kernel: Kernel::prepare(machine, Source::Optimizer, &name, macros, extent, geometry)?,
            algorithm: format!("{name}: {THREADS} threads per block, {width} weights per thread"),
        })
    }

    /// Enqueues one run: of weight, gradient and moments the weight and the moments after the step.
    pub fn enqueue(&self, inputs: &[&Buffer], outputs: &mut [&mut Buffer]) -> Result<(), NativeError> {
        let inputs: Vec<_> = inputs.iter().map(|input| &input.memory).collect();
        let mut outputs: Vec<_> = outputs.iter_mut().map(|output| &mut output.memory).collect();
        self.kernel.enqueue_all(&inputs, &mut outputs)
    }

    /// The kernel and how it was cut up.
    pub fn algorithm(&self) -> &str {
        &self.algorithm
    }
}

impl OptimizerRule {
    fn name(self) -> &'static str {
        match self {
            Self::Descent { .. } => "descent",
            Self::Adamw(_) => "adamw",
        }
    }
}

fn macros(name: &str, kind: Dtype, rule: OptimizerRule, width: usize) -> Vec<String> {
    let mut macros = common_macros(name, kind, width);
    macros.push(format!("THREADS={THREADS}"));
    let mut number = |name: &str, value: f64| macros.push(format!("{name}={:e}f", value as f32));
    match rule {
        OptimizerRule::Descent { learning_rate } => number("LEARNING_RATE", learning_rate),
        OptimizerRule::Adamw(Adamw { learning_rate, betas, corrections, epsilon, decay }) => {
            number("LEARNING_RATE", learning_rate);
            // In f32 what a beta leaves would be off by a hundred thousandth.
            for (name, beta) in ["FIRST", "SECOND"].into_iter().zip(betas) {
                number(&format!("{name}_BETA"), beta);
                number(&format!("{name}_REST"), 1.0 - beta);
            }
            number("FIRST_CORRECTION", corrections[0]);
            number("SECOND_CORRECTION", corrections[1]);
            number("EPSILON", epsilon);
            number("DECAY", decay);
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
    fn the_source_compiles_for_every_rule_and_type() {
        let settings =
            Adamw { learning_rate: 0.01, betas: [0.9, 0.999], corrections: [1.5, 100.0], epsilon: 1e-8, decay: 0.01 };
        for rule in [OptimizerRule::Descent { learning_rate: 0.5 }, OptimizerRule::Adamw(settings)] {
            for kind in Dtype::ALL {
                for width in [1, 4] {
                    assert_compiles(Source::Optimizer, &macros("step", kind, rule, width));
                }
            }
        }
    }
}
