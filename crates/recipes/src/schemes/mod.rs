//! Built-in recipes: one file per recipe or family.

pub mod baseline;
pub mod baseline_tf32;
pub mod float8_training;
pub mod float8dq;
pub mod float8wo;
pub mod fp6;
pub mod gemlitewo;
pub mod ggml;
pub mod int4wo;
pub mod int8adq_int4w;
pub mod int8dq;
pub mod int8wo;
pub mod intx;
pub mod marlin;
pub mod marlin_qqq;
pub mod mxfp;
pub mod nvfp4;
pub mod uintx;

use crate::RecipeFamily;

/// Built-in families, in the order in which their parsers are tried.
pub(crate) const BUILT_IN: &[&RecipeFamily] = &[
    &baseline::FAMILY,
    &baseline_tf32::FAMILY,
    &int8wo::FAMILY,
    &int8dq::FAMILY,
    &int4wo::FAMILY,
    &int8adq_int4w::FAMILY,
    &marlin::FAMILY,
    &marlin_qqq::FAMILY,
    &fp6::FAMILY,
    &uintx::FAMILY,
    &intx::FAMILY,
    &gemlitewo::FAMILY,
    &float8wo::FAMILY,
    &float8dq::FAMILY,
    &float8_training::FAMILY,
    &mxfp::FAMILY,
    &nvfp4::FAMILY,
    &ggml::FAMILY,
];
