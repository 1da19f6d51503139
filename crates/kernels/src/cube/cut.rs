//! How rows are dealt to units.

use super::matrix::{Access, Matrix};
use cubecl::ir::features::Plane;
use cubecl::prelude::*;

/// What of a device decides how rows are cut.
#[derive(Debug, Clone, Copy)]
struct Device {
    /// Units that add up without shared memory; `None` where they cannot, or their number is not known.
    plane: Option<usize>,
    /// Units in a cube, at most.
    most_units: usize,
}

/// How the elements of a row are dealt to units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Cut {
    /// Elements of a row.
    pub(super) cols: usize,
    /// Accesses that a row takes.
    pub(super) pieces: usize,
    /// Units for one row: whole planes.
    pub(super) units: usize,
    /// Rows in one cube.
    pub(super) rows: usize,
    /// Whether each unit keeps its part of a row in registers; otherwise memory is read again for each step.
    pub(super) held: bool,
    /// Units of a plane, where planes can be used.
    pub(super) plane: Option<usize>,
}

impl Cut {
    /// Four of the widest loads, all in flight at once; what is done once per unit then weighs little.
    const BYTES_PER_UNIT: usize = 64;
    /// More would not fit the 64 registers that a unit of a full cube has.
    const MOST_ELEMENTS_PER_UNIT: usize = 32;
    const MOST_UNITS: usize = 1024;
    /// Units are a multiple of this where the device has no plane of its own.
    const WARP: usize = 32;
    /// Short rows share a cube of so many units.
    const SMALL_CUBE: usize = 128;

    pub(super) fn of<R: Runtime>(client: &ComputeClient<R>, size: &Matrix, access: &Access) -> Self {
        let properties = client.properties();
        let (hardware, planes) = (&properties.hardware, &properties.features.plane);
        let known = hardware.plane_size_min == hardware.plane_size_max && planes.contains(Plane::Ops);
        let plane = known.then_some(hardware.plane_size_max as usize);
        let most_units = hardware.max_units_per_cube as usize;
        Self::on(Device { plane, most_units }, size.cols, size.kind.width(), access.width)
    }

    fn on(device: Device, cols: usize, bytes: usize, width: usize) -> Self {
        let plane = device.plane.unwrap_or(Self::WARP);
        let most = device.most_units.min(Self::MOST_UNITS) / plane * plane;
        // One plane needs no barrier.
        let enough = if cols <= plane * Self::MOST_ELEMENTS_PER_UNIT {
            1
        } else {
            (cols * bytes).div_ceil(Self::BYTES_PER_UNIT)
        };
        let units = enough.next_multiple_of(plane).min(most);
        let pieces = cols / width;
        Self {
            cols,
            pieces,
            units,
            rows: (Self::SMALL_CUBE.min(most) / units).max(1),
            held: pieces.div_ceil(units) * width <= Self::MOST_ELEMENTS_PER_UNIT,
            plane: device.plane,
        }
    }

    /// Accesses of the unit that has most of them.
    pub(super) fn turns(&self) -> usize {
        self.pieces.div_ceil(self.units)
    }

    /// Accesses that a unit keeps in registers.
    pub(super) fn kept(&self) -> usize {
        if self.held { self.turns() } else { 1 }
    }

    /// The shape of a cube.
    pub(super) fn cube(&self) -> CubeDim {
        CubeDim::new_2d(self.units as u32, self.rows as u32)
    }
}

/// Where a unit is: its row, and the position of its first access in it.
#[derive(CubeType, Clone, Copy)]
pub(super) struct Place {
    pub(super) lane: usize,
    pub(super) first: usize,
    /// Units beyond the last row work on that one, so that barriers are met by all, and write nothing.
    pub(super) writes: bool,
}

#[cube]
pub(super) fn place(rows: usize, #[comptime] cut: Cut) -> Place {
    let lane = UNIT_POS_X as usize;
    let row = CUBE_POS * comptime!(cut.rows) + UNIT_POS_Y as usize;
    let first = min(row, rows - 1) * comptime!(cut.pieces) + lane;
    Place { lane, first, writes: row < rows }
}

/// Whether the unit has an access in this turn: all have, before the last.
#[cube]
pub(super) fn has(place: &Place, turn: usize, #[comptime] cut: Cut) -> bool {
    turn < comptime!(cut.pieces / cut.units) || place.lane < comptime!(cut.pieces % cut.units)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEVICES: [Device; 4] = [
        Device { plane: Some(32), most_units: 1024 },
        Device { plane: Some(64), most_units: 1024 },
        Device { plane: None, most_units: 1024 },
        Device { plane: None, most_units: 256 },
    ];

    #[test]
    fn every_row_is_covered_by_whole_accesses_of_whole_planes() {
        for device in DEVICES {
            for cols in (1..5000_usize).chain([8191, 8192, 16384, 32767, 32768, 32769, 65536, 70001]) {
                for width in [1, 2, 4, 8].into_iter().filter(|&width| cols.is_multiple_of(width)) {
                    let cut = Cut::on(device, cols, 16 / width.max(4), width);
                    assert_eq!(cut.units % device.plane.unwrap_or(32), 0, "{cut:?}");
                    assert!(cut.units * cut.rows <= device.most_units, "{cut:?}");
                    assert!(cut.turns() * cut.units >= cut.pieces && cut.pieces * width == cols, "{cut:?}");
                    assert!(!cut.held || cut.turns() * width <= 32, "{cut:?}");
                }
            }
        }
    }

    #[test]
    fn usual_rows_are_read_once() {
        for cols in [768, 1024, 4096, 8192, 32768] {
            assert!(Cut::on(DEVICES[0], cols, 2, 8).held, "{cols}");
        }
        assert!(!Cut::on(DEVICES[0], 65536, 2, 8).held);
    }
}
