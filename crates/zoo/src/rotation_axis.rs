//! Axis along which a tensor is rotated between buffer sets.

/// Axis along which a tensor is rotated from one buffer set to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RotationAxis {
    /// Rotation by whole rows.
    Rows,
    /// Rotation by whole columns.
    Columns,
    /// No rotation: every set holds identical content.
    Fixed,
}
