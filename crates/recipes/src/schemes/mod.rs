//! One file for each recipe or family of recipes.

pub mod baseline;
pub mod float8dq;
pub mod float8wo;
pub mod fp6;
pub mod gemlitewo;
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
