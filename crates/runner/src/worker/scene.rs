//! What every step of a group's way needs.

use super::context::Context;
use super::event::Listener;
use super::operands::Operands;
use super::protocol::Assignment;

/// What every step of a group's way needs.
pub struct Scene<'a> {
    pub assignment: &'a Assignment,
    pub operands: &'a mut Operands,
    pub context: &'a mut Context,
    pub listener: &'a mut dyn Listener,
}
