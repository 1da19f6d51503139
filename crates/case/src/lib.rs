#![doc = include_str!("../README.md")]

mod activation;
mod axes;
mod case;
mod counts;
mod device;
mod dtype;
mod element;
mod excerpt;
pub mod format;
mod fuzzy_name;
mod id;
mod implementation;
mod layer_spec;
mod mode;
mod name;
mod name_pattern;
mod nearest;
mod packed_tensor;
mod precision_hint;
pub mod record;
mod regime;
mod registry;
mod serde_names;
mod sparsity;
mod text_file;
mod tuning_level;
mod verdict;

pub use activation::Activation;
pub use axes::{Axes, DuplicateAxis};
pub use case::{Case, Export, variant};
pub use counts::{FusionModel, PublishedCounts};
pub use device::{Device, DeviceKind};
pub use dtype::Dtype;
pub use element::Element;
pub use excerpt::excerpt;
pub use format::Format;
pub use fuzzy_name::names_match;
pub use id::{CaseId, CaseIdentity};
pub use implementation::Implementation;
pub use layer_spec::{LayerSpec, MatmulMode, Prologue};
pub use mode::{Mode, Suite};
pub use name::Name;
pub use name_pattern::{expand_pattern, parse_positive};
pub use nearest::{UnknownName, hint, nearest};
pub use packed_tensor::PackedTensor;
pub use precision_hint::PrecisionHint;
pub use record::{Record, Status, Warning, WarningCode};
pub use regime::{Clock, Regime, buffer_sets, required_buffer_sets};
pub use registry::{NameTaken, Registry};
pub use sparsity::Sparsity;
pub use text_file::{read_text, too_large_error};
pub use tuning_level::TuningLevel;
pub use verdict::Verdict;

/// Dependencies of the code that the macros of this crate generate.
#[doc(hidden)]
pub mod __private {
    #[cfg(feature = "schema")]
    pub use schemars;
    pub use serde;
}
