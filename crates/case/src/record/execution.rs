//! What ran, and which clock saw it.

use super::column::{Column, Field, Read, joined};
use super::number::no_number;
use crate::TuningLevel;
use serde::{Deserialize, Serialize};

/// What ran, and which clock saw it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Execution {
    /// The clock that the times were read from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopwatch: Option<String>,
    /// The kernel that ran, where it can be known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Kernels that ran in one run, where the clock sees them.
    #[serde(default, skip_serializing_if = "no_number")]
    pub kernel_launches: Option<f64>,
    /// Whether f32 operands were rounded to TF32 for tensor cores.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tf32: bool,
    /// What became of a pattern that is worth fusing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fusion_state: Option<FusionState>,
    /// What the autotuner decided for the case: the problem and the candidate that was fastest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub autotune: Vec<String>,
    /// How finely the autotuner told sizes apart, where that was not each by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub autotune_level: Option<TuningLevel>,
    /// The buffer sets that the launches go through in turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotation: Option<Rotation>,
}

/// What became of a pattern that is worth fusing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum FusionState {
    /// Fewer kernels ran than unfused.
    Fused,
    /// As many ran, or more.
    NotFused,
}

impl FusionState {
    /// The word used in the JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fused => "fused",
            Self::NotFused => "not-fused",
        }
    }
}

/// The buffer sets of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rotation {
    /// How many sets there are.
    pub sets: u32,
    /// Bytes that one run touches at least.
    pub bytes: u64,
    /// The cache that the sets together should exceed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_bytes: Option<u64>,
}

impl Execution {
    /// Its columns in tables, in their order.
    pub const COLUMNS: &'static [Column<Self>] = &[
        Column {
            name: "stopwatch",
            field: "stopwatch",
            unit: "",
            doc: "`cupti`, `cuda-events`, `cuda-graph`, `timestamps`, `slope`, `wall`, `wall-e2e`, `wall-enqueue`, `mock`: see [Method](method.md#clocks)",
            read: Read::Text(|execution| execution.stopwatch.as_deref()),
        },
        Column {
            name: "kernel",
            field: "kernel",
            unit: "",
            doc: "on `cupti` every kernel of one pass, the longest first, joined by ` + `, names as compilers spell them; on another clock, for `native`, our kernels with how they are cut and cuBLASLt's algorithm",
            read: Read::Text(|execution| execution.kernel.as_deref()),
        },
        Column {
            name: "kernel_launches",
            field: "kernel_launches",
            unit: "",
            doc: "kernels that ran in one pass, where the clock or a trace sees them",
            read: Read::Number(|execution| execution.kernel_launches),
        },
        Column {
            name: "fusion_state",
            field: "fusion_state",
            unit: "",
            doc: "of a pattern of fusion: `fused` where fewer kernels ran than it has operators, else `not-fused`",
            read: Read::Text(|execution| execution.fusion_state.map(FusionState::as_str)),
        },
        Column {
            name: "autotune",
            field: "autotune",
            unit: "",
            doc: "for each matrix product that CubeCL has tuned: its size, its type, and the candidate that was fastest; for other kernels the same with the numbers of the tuner's key, if they were tuned for this case, now or in an earlier run. A list in the record, joined by `; ` in the column",
            read: Read::Written(|execution| joined(&execution.autotune)),
        },
        Column {
            name: "autotune_level",
            field: "autotune_level",
            unit: "",
            doc: "`quick` where sizes within a factor of 2.5 shared what CubeCL had tuned for the first of them, and `autotune` names that key; empty where each is tuned by itself: see [tuning](config.md#on-the-command-line-alone)",
            read: Read::Text(|execution| execution.autotune_level.map(TuningLevel::name)),
        },
        Column {
            name: "rotation_sets",
            field: "rotation.sets",
            unit: "",
            doc: "buffer sets that launches go through, in `device-cold`, `graph` and `host-e2e`",
            read: Read::Count(|execution| execution.rotation.map(|rotation| rotation.sets.into())),
        },
        Column {
            name: "rotation_bytes",
            field: "rotation.bytes",
            unit: "bytes",
            doc: "what one pass touches at least",
            read: Read::Count(|execution| execution.rotation.map(|rotation| rotation.bytes)),
        },
    ];

    /// Its fields that no column shows.
    pub const JOURNAL_ONLY: &'static [Field] = &[
        Field {
            name: "tf32",
            kind: "true, or absent",
            doc: "f32 operands of products were rounded to TF32 for tensor cores; `warnings` says so too",
        },
        Field {
            name: "rotation.cache_bytes",
            kind: "whole number, bytes",
            doc: "the cache that all buffer sets together should exceed",
        },
    ];
}
