//! Which way a tensor moves from one buffer set to the next.

/// Which way a tensor moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Along {
    /// Its parts are whole rows.
    Rows,
    /// Its parts are whole columns.
    Columns,
    /// It is the same in every set.
    Nothing,
}
