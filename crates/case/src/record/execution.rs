//! Execution of a case: kernels, stopwatch, autotuning and buffer sets.

use super::column::{Column, Field, columns, fields, join_nonempty};
use super::number::is_not_finite;
use crate::TuningLevel;
use serde::{Deserialize, Serialize};

/// Kernels that ran and the stopwatch that timed them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Execution {
    /// Stopwatch that the times were read from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopwatch: Option<String>,
    /// Kernel that ran, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Kernels per pass, if the stopwatch reports them.
    #[serde(default, skip_serializing_if = "is_not_finite")]
    pub kernel_launches: Option<f64>,
    /// True if f32 operands were rounded to TF32 for tensor cores.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tf32: bool,
    /// Result of a fusion pattern.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fusion_state: Option<FusionState>,
    /// Autotune decisions of the case: the problem and its fastest candidate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub autotune: Vec<String>,
    /// Autotune level, if sizes were not tuned separately.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub autotune_level: Option<TuningLevel>,
    /// Buffer sets that launches rotate through.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotation: Option<Rotation>,
}

/// Result of a fusion pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum FusionState {
    /// Fewer kernels ran than the pattern has operators.
    Fused,
    /// At least as many kernels ran as the pattern has operators.
    NotFused,
}

impl FusionState {
    /// Name in the JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fused => "fused",
            Self::NotFused => "not-fused",
        }
    }
}

/// Buffer sets of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rotation {
    /// Number of sets.
    pub sets: u32,
    /// Minimum bytes touched per pass.
    pub bytes: u64,
    /// Cache size that the total of all sets should exceed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_bytes: Option<u64>,
}

impl Execution {
    /// Columns in tables, in order.
    pub const COLUMNS: &'static [Column<Self>] = columns! { |execution|
        "stopwatch": Text(execution.stopwatch.as_deref()),
            "`cupti`, `cuda-events`, `cuda-graph`, `timestamps`, `slope`, `wall`, `wall-e2e`, `wall-enqueue`, `mock`: see [Method](method.md#clocks)";
        "kernel": Text(execution.kernel.as_deref()),
            "on `cupti` all kernels of one pass, longest first, joined by ` + `, with the names of the compiler; on other clocks, for `native`, kernels with their tile configuration and cuBLASLt's algorithm";
        "kernel_launches": Number(execution.kernel_launches), "kernels per pass, if the clock or a trace reports them";
        "fusion_state": Text(execution.fusion_state.map(FusionState::as_str)),
            "for a fusion pattern: `fused` if fewer kernels ran than it has operators, else `not-fused`";
        "autotune": Written(join_nonempty(&execution.autotune)),
            "for each matmul that CubeCL has tuned: size, dtype and fastest candidate; for other kernels also the numbers of the tuner's key, if they were tuned for this case, now or in an earlier run. A list in the record, joined by `; ` in the column";
        "autotune_level": Text(execution.autotune_level.map(TuningLevel::name)),
            "`quick` if sizes within a factor of 2.5 shared the choice that CubeCL tuned for the first of them, and `autotune` names that key; empty if each size is tuned separately: see [tuning](commands.md#autotuning)";
        "rotation_sets" from "rotation.sets": Count(execution.rotation.map(|rotation| rotation.sets.into())),
            "buffer sets that launches rotate through, in `device-cold`, `graph` and `host-e2e`";
        "rotation_bytes" from "rotation.bytes" in "bytes": Count(execution.rotation.map(|rotation| rotation.bytes)),
            "minimum bytes touched per pass";
    };

    /// Fields without a column.
    pub const JOURNAL_ONLY: &'static [Field] = fields! {
        "tf32": "true, or absent",
            "f32 operands of matmuls were rounded to TF32 for tensor cores; also reported in `warnings`";
        "rotation.cache_bytes": "whole number, bytes", "cache size that the total of all buffer sets should exceed";
    };
}
