//! What is said of a measurement: the words that the crates of Calorimeter share, so that none is defined twice.

mod axes;
mod counts;
mod device;
mod dtype;
mod element;
mod implementation;
mod name;
mod nearest;
mod regime;
mod registry;
mod written;

pub use axes::{Axes, AxisGivenTwice};
pub use counts::{Counts, FusionModel};
pub use device::{Device, DeviceKind};
pub use dtype::Dtype;
pub use element::Element;
pub use implementation::Implementation;
pub use name::Name;
pub use nearest::{UnknownName, hint, nearest};
pub use regime::{Regime, buffer_sets};
pub use registry::{NameTaken, Registry};

/// What the macros of this crate expand to.
#[doc(hidden)]
pub mod __private {
    #[cfg(feature = "schema")]
    pub use schemars;
    pub use serde;
}
