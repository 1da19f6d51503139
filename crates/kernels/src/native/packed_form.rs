//! How a packed weight lies in memory.

use super::{Buffer, LinearShape, NativeError};
use crate::{Dtype, PackedForm, WeightCodes};

/// A packed weight on the device.
#[derive(Debug)]
pub struct PackedWeight {
    /// Its codes.
    pub codes: Buffer,
    /// Its scales.
    pub scales: Buffer,
    /// Its zeros, if it has any.
    pub zeros: Option<Buffer>,
    /// Its scales of the second level, if it has any.
    pub outer: Option<Buffer>,
}

impl WeightCodes {
    /// Their name in those of kernels.
    pub(super) fn name(self) -> String {
        match self {
            Self::Int8 => "int8".into(),
            Self::E4m3 => "e4m3".into(),
            Self::Int4 { group } => format!("int4_{group}"),
        }
    }

    /// Codes in 16 bytes.
    pub(super) fn in_sixteen_bytes(self) -> usize {
        match self {
            Self::Int8 | Self::E4m3 => 16,
            Self::Int4 { .. } => 32,
        }
    }

    fn row_bytes(self, k: usize) -> usize {
        match self {
            Self::Int8 | Self::E4m3 => k.next_multiple_of(32),
            Self::Int4 { group } => k.next_multiple_of(group) / 2,
        }
    }

    fn scales_per_row(self, k: usize) -> usize {
        match self {
            Self::Int8 | Self::E4m3 => 1,
            Self::Int4 { group } => k.div_ceil(group),
        }
    }
}

impl PackedForm {
    /// Refuses groups that kernels would read across.
    pub(super) fn checked(self) -> Result<Self, NativeError> {
        match self.codes {
            WeightCodes::Int4 { group } if group == 0 || !group.is_multiple_of(32) || group > i32::MAX as usize => {
                Err(NativeError::InvalidGroup { group })
            }
            _ => Ok(self),
        }
    }

    /// The parts of a weight with the bytes that a kernel reads of each.
    pub(super) fn reads(self, shape: LinearShape) -> Vec<(&'static str, usize)> {
        let LinearShape { k, n, .. } = shape;
        let scales = n * self.codes.scales_per_row(k) * self.scale.width();
        let mut reads = vec![("codes", n * self.codes.row_bytes(k)), ("scales", scales)];
        if matches!(self.codes, WeightCodes::Int4 { .. }) {
            reads.push(("zeros", scales));
        }
        reads
    }

    /// What `packed.cuh` needs to know.
    pub(super) fn macros(self, k: usize) -> Vec<String> {
        let scale = match self.scale {
            Dtype::F32 => "SCALE_F32",
            Dtype::F16 => "SCALE_F16",
            Dtype::Bf16 => "SCALE_BF16",
        };
        let mut macros = vec![scale.to_string(), format!("K={k}u")];
        match self.codes {
            WeightCodes::Int8 => macros.push("CODES_INT8".into()),
            WeightCodes::E4m3 => macros.push("CODES_E4M3".into()),
            WeightCodes::Int4 { group } => macros.extend(["CODES_INT4".into(), format!("GROUP={group}u")]),
        }
        macros
    }
}

impl PackedWeight {
    pub(super) fn parts(&self) -> impl Iterator<Item = &Buffer> {
        [&self.codes, &self.scales].into_iter().chain(&self.zeros).chain(&self.outer)
    }

    /// Bytes of all its parts.
    pub fn bytes(&self) -> usize {
        self.parts().map(Buffer::len).sum()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Every kind of codes, with every type of scales that recipes give them.
    pub(in crate::native) fn every_form() -> Vec<PackedForm> {
        let form = |kind, codes, scale| PackedForm { kind, codes, scale };
        let of_kind = |kind: Dtype| {
            let group = |group| WeightCodes::Int4 { group };
            let mut forms = vec![form(kind, WeightCodes::Int8, kind), form(kind, WeightCodes::E4m3, Dtype::F32)];
            forms.extend([32, 64, 128, 256].map(|size| form(kind, group(size), kind)));
            forms.push(form(kind, group(128), Dtype::Bf16));
            forms
        };
        Dtype::ALL.into_iter().flat_map(of_kind).collect()
    }

    #[test]
    fn rows_are_filled_up_to_whole_groups_and_sixteen_bytes() {
        let shape = LinearShape { m: 1, k: 129, n: 3 };
        let reads = |codes, scale| PackedForm { kind: Dtype::Bf16, codes, scale }.reads(shape);
        assert_eq!(reads(WeightCodes::Int8, Dtype::Bf16), [("codes", 3 * 160), ("scales", 6)]);
        let int4 = reads(WeightCodes::Int4 { group: 128 }, Dtype::F32);
        assert_eq!(int4, [("codes", 3 * 128), ("scales", 24), ("zeros", 24)]);
        for form in every_form() {
            for k in [1, 17, 127, 129, 1000, 4096] {
                let (_, bytes) = form.reads(LinearShape { m: 1, k, n: 1 })[0];
                assert!(
                    bytes.is_multiple_of(16) && bytes >= k.div_ceil(form.codes.in_sixteen_bytes()) * 16,
                    "{form:?}"
                );
            }
        }
    }

    #[test]
    fn groups_that_a_piece_would_cross_are_refused() {
        for group in [0, 1, 31, 48] {
            let form = PackedForm { kind: Dtype::Bf16, codes: WeightCodes::Int4 { group }, scale: Dtype::Bf16 };
            assert_eq!(form.checked(), Err(NativeError::InvalidGroup { group }));
        }
        assert!(every_form().into_iter().all(|form| form.checked().is_ok()));
    }
}
