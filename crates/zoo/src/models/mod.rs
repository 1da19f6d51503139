//! Models, each a room: what it is and costs, and one file for each way to run it.

pub mod linear;
pub mod ln_linear;
pub mod transformer_block;

use crate::registry::table::Zoo;

/// One line for each room.
pub(crate) fn register(zoo: &Zoo) {
    linear::register(zoo);
    ln_linear::register(zoo);
    transformer_block::register(zoo);
}
