//! Distribution of rows over units.

use super::matrix::{MatrixLayout, VectorAccess};
use cubecl::ir::features::Plane;
use cubecl::prelude::*;

/// Device limits that determine the tile.
#[derive(Debug, Clone, Copy)]
struct CubeLimits {
    /// Plane size if plane operations are supported and the size is fixed.
    plane: Option<usize>,
    /// Maximum units per cube.
    max_units: usize,
}

/// Tile of rows over units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct CubeRowTile {
    /// Elements per row.
    pub(super) cols: usize,
    /// Vector accesses per row.
    pub(super) vectors: usize,
    /// Units per row: whole planes.
    pub(super) units: usize,
    /// Rows per cube.
    pub(super) rows: usize,
    /// True if each unit keeps its part of a row in registers; otherwise memory is read again in each pass.
    pub(super) in_registers: bool,
    /// Plane size, if plane operations are used.
    pub(super) plane: Option<usize>,
}

impl CubeRowTile {
    /// Four of the widest loads in flight per unit; the fixed cost per unit then weighs little.
    const BYTES_PER_UNIT: usize = 64;
    /// Limit from the 64 registers of a unit in a full cube.
    const MAX_ELEMENTS_PER_UNIT: usize = 32;
    const MAX_UNITS: usize = 1024;
    /// Assumed plane size of a device without a fixed one.
    const WARP: usize = 32;
    /// Units of a cube that several short rows share.
    const SMALL_CUBE: usize = 128;

    pub(super) fn for_device<R: Runtime>(
        client: &ComputeClient<R>,
        size: &MatrixLayout,
        access: &VectorAccess,
    ) -> Self {
        let properties = client.properties();
        let (hardware, planes) = (&properties.hardware, &properties.features.plane);
        let known = hardware.plane_size_min == hardware.plane_size_max && planes.contains(Plane::Ops);
        let plane = known.then_some(hardware.plane_size_max as usize);
        let most_units = hardware.max_units_per_cube as usize;
        Self::for_limits(CubeLimits { plane, max_units: most_units }, size.cols, size.kind.width(), access.width)
    }

    fn for_limits(device: CubeLimits, cols: usize, bytes: usize, width: usize) -> Self {
        let plane = device.plane.unwrap_or(Self::WARP);
        let most = device.max_units.min(Self::MAX_UNITS) / plane * plane;
        // A single plane needs no barrier.
        let enough =
            if cols <= plane * Self::MAX_ELEMENTS_PER_UNIT { 1 } else { (cols * bytes).div_ceil(Self::BYTES_PER_UNIT) };
        let units = enough.next_multiple_of(plane).min(most);
        let vectors = cols / width;
        Self {
            cols,
            vectors,
            units,
            rows: (Self::SMALL_CUBE.min(most) / units).max(1),
            in_registers: vectors.div_ceil(units) * width <= Self::MAX_ELEMENTS_PER_UNIT,
            plane: device.plane,
        }
    }

    /// Maximum vector accesses per unit.
    pub(super) fn vectors_per_unit(&self) -> usize {
        self.vectors.div_ceil(self.units)
    }

    /// Vectors that a unit keeps in registers.
    pub(super) fn register_vectors(&self) -> usize {
        if self.in_registers { self.vectors_per_unit() } else { 1 }
    }

    /// Shape of a cube.
    pub(super) fn cube(&self) -> CubeDim {
        CubeDim::new_2d(self.units as u32, self.rows as u32)
    }
}

/// Position of a unit: index within the row, and index of its first vector.
#[derive(CubeType, Clone, Copy)]
pub(super) struct UnitPosition {
    pub(super) lane: usize,
    pub(super) first: usize,
    /// False for units beyond the last row: they repeat that row without writing, so that all units reach the barriers.
    pub(super) writes: bool,
}

#[cube]
pub(super) fn unit_position(rows: usize, #[comptime] tile: CubeRowTile) -> UnitPosition {
    let lane = UNIT_POS_X as usize;
    let row = CUBE_POS * comptime!(tile.rows) + UNIT_POS_Y as usize;
    let first = min(row, rows - 1) * comptime!(tile.vectors) + lane;
    UnitPosition { lane, first, writes: row < rows }
}

/// True if the unit has a vector in iteration `turn`; only in the last iteration some units have none.
#[cube]
pub(super) fn has_vector(place: &UnitPosition, turn: usize, #[comptime] tile: CubeRowTile) -> bool {
    turn < comptime!(tile.vectors / tile.units) || place.lane < comptime!(tile.vectors % tile.units)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEVICES: [CubeLimits; 4] = [
        CubeLimits { plane: Some(32), max_units: 1024 },
        CubeLimits { plane: Some(64), max_units: 1024 },
        CubeLimits { plane: None, max_units: 1024 },
        CubeLimits { plane: None, max_units: 256 },
    ];

    #[test]
    fn full_planes_cover_every_row() {
        for device in DEVICES {
            for cols in (1..5000_usize).chain([8191, 8192, 16384, 32767, 32768, 32769, 65536, 70001]) {
                for width in [1, 2, 4, 8].into_iter().filter(|&width| cols.is_multiple_of(width)) {
                    let tile = CubeRowTile::for_limits(device, cols, 16 / width.max(4), width);
                    assert_eq!(tile.units % device.plane.unwrap_or(32), 0, "{tile:?}");
                    assert!(tile.units * tile.rows <= device.max_units, "{tile:?}");
                    assert!(
                        tile.vectors_per_unit() * tile.units >= tile.vectors && tile.vectors * width == cols,
                        "{tile:?}"
                    );
                    assert!(!tile.in_registers || tile.vectors_per_unit() * width <= 32, "{tile:?}");
                }
            }
        }
    }

    #[test]
    fn common_rows_stay_in_registers() {
        for cols in [768, 1024, 4096, 8192, 32768] {
            assert!(CubeRowTile::for_limits(DEVICES[0], cols, 2, 8).in_registers, "{cols}");
        }
        assert!(!CubeRowTile::for_limits(DEVICES[0], 65536, 2, 8).in_registers);
    }
}
