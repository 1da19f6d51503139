//! What every kernel of AdamW is told.

/// The settings of AdamW at one step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Adamw {
    /// How far a weight goes.
    pub learning_rate: f64,
    /// What the mean of gradients and that of their squares keep of themselves.
    pub betas: [f64; 2],
    /// What makes means over the steps so far of them.
    pub corrections: [f64; 2],
    /// Added to the root of the second.
    pub epsilon: f64,
    /// The share that a weight loses of itself, for each unit of the learning rate.
    pub decay: f64,
}
