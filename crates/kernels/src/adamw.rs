//! AdamW settings shared by all backends.

/// AdamW settings of one step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Adamw {
    /// Learning rate.
    pub learning_rate: f64,
    /// Decay rates of the first and the second moment.
    pub betas: [f64; 2],
    /// Bias-correction factors of the first and the second moment at this step.
    pub corrections: [f64; 2],
    /// Constant added to the square root of the second moment.
    pub epsilon: f64,
    /// Weight decay, multiplied by the learning rate.
    pub decay: f64,
}
