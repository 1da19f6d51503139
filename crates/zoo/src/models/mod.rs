//! Models, one folder each: `mod.rs` defines layout, cost and reference, the other files one implementation each.

pub mod linear;
pub mod ln_linear;
pub mod transformer_block;

use crate::registry::table::Zoo;

/// Registers all models.
pub(crate) fn register(zoo: &Zoo) {
    linear::register(zoo);
    ln_linear::register(zoo);
    transformer_block::register(zoo);
}
