//! Models, each a room: what it is and costs, and one file for each way to run it.

pub mod linear;
pub mod ln_linear;
pub mod transformer_block;

use crate::registry::table::Zoo;

/// One line for each family.
pub(crate) fn register(zoo: &Zoo) {
    zoo.models([linear::LinearModel]).burn().native();
    zoo.models(ln_linear::LnLinear::all()).burn().native();
    zoo.models([transformer_block::TransformerBlock]).burn();
}
