//! The positions of devices and their blocks: coordinates on the mesh, groups of devices, the blocks of a layout.
//!
//! On a mesh `(X = 2, Y = 4)` device 6 has the coordinates `X = 1, Y = 2`. The devices that differ from it along Y only are
//! 4, 5, 6 and 7; its linear coordinate along `(Y, X)`, major to minor, is `2 * 2 + 1 = 5`.

use std::ops::Range;

use crate::{AxisSet, KernelStep, Layout, LayoutDim, MeshAxis, Scalar};

/// Maximum number of devices: more are a mistake.
const MAX_DEVICES: usize = 1 << 16;

/// Bytes of the largest message of a reduction between processes from which it may take two rounds: processes combine a share of the elements
/// each, and then send each other the shares. Measured: up to 64 KiB, a second round between processes of one host takes longer than the
/// bytes that it saves.
pub const TWO_ROUNDS_FROM: u64 = 64 << 10;

/// The devices of a mesh, numbered row-major: the last axis varies fastest.
#[derive(Clone, Debug)]
pub struct DeviceMesh {
    sizes: Vec<usize>,
    /// For each axis, the difference in number of two devices whose coordinates along it differ by one.
    strides: Vec<usize>,
    devices: usize,
    /// The processes of the devices, if the devices are divided among several processes.
    assignment: Option<DeviceAssignment>,
}

/// The process of each device of a mesh.
#[derive(Clone, Debug)]
struct DeviceAssignment {
    processes: usize,
    of: Vec<usize>,
}

impl DeviceMesh {
    /// The mesh with these axes; an error without devices, or with more than the maximum.
    pub fn new(axes: &[MeshAxis]) -> Result<DeviceMesh, String> {
        let sizes: Vec<usize> = axes.iter().map(|axis| axis.size).collect();
        let devices = sizes.iter().try_fold(1usize, |product, &size| product.checked_mul(size));
        match devices {
            Some(devices) if axes.len() <= 32 && (1..=MAX_DEVICES).contains(&devices) => {
                let mut strides = vec![1; sizes.len()];
                for axis in (1..sizes.len()).rev() {
                    strides[axis - 1] = strides[axis] * sizes[axis];
                }
                debug_assert!(sizes.is_empty() || strides[0] * sizes[0] == devices, "devices are numbered row-major");
                Ok(DeviceMesh { sizes, strides, devices, assignment: None })
            }
            _ => Err(format!("a mesh with the sizes {sizes:?} is not supported")),
        }
    }

    /// The same mesh with its devices divided equally among this number of processes, in order; None if that is impossible.
    pub fn assigned(&self, processes: usize) -> Option<DeviceMesh> {
        let fits = processes > 0 && self.devices.is_multiple_of(processes);
        let each = self.devices / processes.max(1);
        fits.then(|| self.dealt_to(processes, (0..self.devices).map(|device| device / each).collect()))
    }

    /// The same mesh in this number of processes, each device in the given one. A process may have no devices.
    pub fn dealt_to(&self, processes: usize, of: Vec<usize>) -> DeviceMesh {
        debug_assert_eq!(of.len(), self.devices, "every device is in a process");
        debug_assert!(of.iter().all(|&process| process < processes), "there are {processes} processes");
        DeviceMesh { assignment: (processes > 1).then_some(DeviceAssignment { processes, of }), ..self.clone() }
    }

    /// The number of processes that share the devices: 1 for a mesh that is not divided.
    pub fn processes(&self) -> usize {
        self.assignment.as_ref().map_or(1, |assignment| assignment.processes)
    }

    /// The process of a device.
    pub fn process(&self, device: usize) -> usize {
        debug_assert!(device < self.devices, "there is no device {device}");
        self.assignment.as_ref().map_or(0, |assignment| assignment.of[device])
    }

    /// The devices of a process, in the order of their numbers.
    pub fn devices_of(&self, process: usize) -> Vec<usize> {
        debug_assert!(process < self.processes(), "there is no process {process}");
        (0..self.devices).filter(|&device| self.process(device) == process).collect()
    }

    /// Whether the devices of each process are a box: all with some coordinates along each axis. With any two devices a box has those
    /// with some coordinates of the one and some of the other.
    pub fn has_boxes(&self) -> bool {
        let Some(assignment) = &self.assignment else { return true };
        (0..assignment.processes).all(|process| {
            let own = self.devices_of(process);
            let spread =
                |axis: usize| crate::sorted::distinct(own.iter().map(|&device| self.coordinate(device, axis))).len();
            own.is_empty() || own.len() == (0..self.sizes.len()).map(spread).product::<usize>()
        })
    }

    /// The rank of a device among the devices of its process that differ from it along these axes only, and their number.
    pub fn rank(&self, device: usize, axes: AxisSet) -> (usize, usize) {
        if self.processes() == 1 {
            return (self.linear(device, axes.iter()), self.count(axes.iter()));
        }
        let mates = self.mates(device, axes);
        let rank = mates.iter().position(|&mate| mate == device);
        debug_assert!(rank.is_some(), "a device is among its mates");
        (rank.unwrap_or(0), mates.len())
    }

    /// The devices of its process that differ from this one along these axes only, itself included, in the order of their numbers.
    pub fn mates(&self, device: usize, axes: AxisSet) -> Vec<usize> {
        let mut mates = self.group(device, axes);
        mates.retain(|&mate| self.process(mate) == self.process(device));
        mates
    }

    /// The number of devices, 1 to 65536.
    pub fn devices(&self) -> usize {
        self.devices
    }

    /// Whether the mesh has an axis with this index.
    pub fn has_axis(&self, axis: usize) -> bool {
        axis < self.sizes.len()
    }

    /// All axes along which there is more than one device.
    pub fn axes(&self) -> AxisSet {
        (0..self.sizes.len()).filter(|&axis| self.sizes[axis] > 1).collect()
    }

    /// The device's position along one axis.
    pub fn coordinate(&self, device: usize, axis: usize) -> usize {
        debug_assert!(device < self.devices, "there is no device {device}");
        device / self.strides[axis] % self.sizes[axis]
    }

    /// The number of combinations of coordinates along these axes.
    pub fn count(&self, axes: impl IntoIterator<Item = usize>) -> usize {
        axes.into_iter().map(|axis| self.sizes[axis]).product()
    }

    /// The position of the device along the axes, given major to minor.
    pub fn linear(&self, device: usize, axes: impl IntoIterator<Item = usize>) -> usize {
        axes.into_iter().fold(0, |linear, axis| linear * self.sizes[axis] + self.coordinate(device, axis))
    }

    /// The device at this position along the axes, given major to minor, with the other coordinates of `device`.
    pub fn at<I>(&self, device: usize, axes: I, mut position: usize) -> usize
    where
        I: IntoIterator<Item = usize>,
        I::IntoIter: DoubleEndedIterator,
    {
        let mut found = device;
        for axis in axes.into_iter().rev() {
            let wanted = position % self.sizes[axis];
            position /= self.sizes[axis];
            found = found + wanted * self.strides[axis] - self.coordinate(device, axis) * self.strides[axis];
        }
        debug_assert!(found < self.devices, "there is no device {found}");
        found
    }

    /// The devices that differ from this one along these axes only, itself included, in the order of their numbers.
    pub fn group(&self, device: usize, axes: AxisSet) -> Vec<usize> {
        let axes: Vec<usize> = axes.iter().collect();
        let count = self.count(axes.iter().copied());
        (0..count).map(|position| self.at(device, axes.iter().copied(), position)).collect()
    }

    /// The axes along which the two devices have different coordinates.
    pub fn difference(&self, a: usize, b: usize) -> AxisSet {
        (0..self.sizes.len()).filter(|&axis| self.coordinate(a, axis) != self.coordinate(b, axis)).collect()
    }

    /// The length of the largest block of a dimension, which is its stored length on every device.
    pub fn stored_len(&self, dim: &LayoutDim) -> usize {
        dim.size.div_ceil(self.count(dim.axes.iter().map(|&axis| axis as usize)))
    }

    /// The units in a kernel's `part` that are the device's share.
    pub fn units(&self, step: &KernelStep, device: usize) -> Range<i64> {
        let share = self.share_of((self.resolve(&step.range, device), step.grain), step.split, device);
        let Some(part) = &step.part else { return share };
        let (first, len) = (self.resolve(&part.first, device), self.resolve(&part.len, device));
        let begin = (share.start - first).max(0);
        begin..(share.end - first).min(len).max(begin)
    }

    /// Bytes of one unit of a range in the blocks of a layout, if the units of each device are consecutive from the beginning of its block,
    /// and make up the block.
    pub fn unit_bytes(&self, layout: &Layout, range: &Scalar) -> Option<u64> {
        let mut found = None;
        for device in 0..self.devices {
            let lens: Vec<usize> = self.blocks(layout, device).iter().map(Range::len).collect();
            let (elements, units) = (lens.iter().product::<usize>() as u64, self.resolve(range, device));
            let units = u64::try_from(units).ok()?;
            if elements == 0 && units == 0 {
                continue;
            }
            let mut inner = lens.iter().zip(self.stored_shape(layout)).skip_while(|(_, stored)| *stored == 1).skip(1);
            let is_dense = inner.all(|(len, stored)| *len == stored);
            if units == 0 || !is_dense || !elements.is_multiple_of(units) {
                return None;
            }
            let bytes = elements / units * layout.dtype.size() as u64;
            if *found.get_or_insert(bytes) != bytes {
                return None;
            }
        }
        found
    }

    /// Whether the scalar is the same on all devices that differ along these axes only.
    pub fn is_equal_along(&self, scalar: &Scalar, axes: AxisSet) -> bool {
        (0..self.devices).all(|device| {
            let first = self.at(device, axes.iter().collect::<Vec<_>>(), 0);
            self.resolve(scalar, device) == self.resolve(scalar, first)
        })
    }

    /// The device's share of a range that devices along these axes divide between its grains.
    pub fn share_of(&self, (range, grain): (i64, u32), axes: AxisSet, device: usize) -> Range<i64> {
        let grain = i64::from(grain);
        let (rank, ranks) = self.rank(device, axes);
        let grains = share((range + grain - 1) / grain, rank, ranks);
        (grains.start * grain).min(range)..(grains.end * grain).min(range)
    }

    /// The part of a dimension that the device holds.
    pub fn block(&self, dim: &LayoutDim, device: usize) -> Range<usize> {
        let len = self.stored_len(dim);
        let position = self.linear(device, dim.axes.iter().map(|&axis| axis as usize));
        (position * len).min(dim.size)..((position + 1) * len).min(dim.size)
    }

    /// The shape in which every block of the layout is stored.
    pub fn stored_shape(&self, layout: &Layout) -> Vec<usize> {
        layout.dims.iter().map(|dim| self.stored_len(dim)).collect()
    }

    /// The device's block of the layout, a range per dimension.
    pub fn blocks(&self, layout: &Layout, device: usize) -> Vec<Range<usize>> {
        layout.dims.iter().map(|dim| self.block(dim, device)).collect()
    }

    /// The value of a scalar on the device; wraps like the kernels' arithmetic. Its axes must exist, and its tables must have an
    /// entry for each position.
    pub fn resolve(&self, scalar: &Scalar, device: usize) -> i64 {
        match scalar {
            Scalar::Const(value) => *value,
            Scalar::BlockLen(dim) => self.block(dim, device).len() as i64,
            Scalar::BlockStart(dim) => self.block(dim, device).start as i64,
            Scalar::Coordinate(axes) => self.linear(device, axes.iter().map(|&axis| axis as usize)) as i64,
            Scalar::Table { axes, values } => values[self.linear(device, axes.iter().map(|&axis| axis as usize))],
            Scalar::Add(a, b) => self.resolve(a, device).wrapping_add(self.resolve(b, device)),
            Scalar::Mul(a, b) => self.resolve(a, device).wrapping_mul(self.resolve(b, device)),
            Scalar::Min(a, b) => self.resolve(a, device).min(self.resolve(b, device)),
            Scalar::Max(a, b) => self.resolve(a, device).max(self.resolve(b, device)),
        }
    }
}

/// The axes that split a dimension of the layout.
pub fn split_axes(layout: &Layout) -> AxisSet {
    layout.dims.iter().flat_map(|dim| dim.axes.iter().map(|&axis| axis as usize)).collect()
}

/// The share of device number `rank` of `count` when they divide `0..range`.
pub fn share(range: i64, rank: usize, count: usize) -> Range<i64> {
    debug_assert!(rank < count && range >= 0, "part {rank} of {count} of {range}");
    let cut = |rank: usize| (range as i128 * rank as i128 / count as i128) as i64;
    cut(rank)..cut(rank + 1)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn mesh(sizes: &[usize]) -> DeviceMesh {
        let axes: Vec<MeshAxis> = sizes.iter().map(|&size| MeshAxis { name: String::new(), size }).collect();
        DeviceMesh::new(&axes).unwrap()
    }

    #[test]
    fn devices_are_numbered_row_major() {
        let mesh = mesh(&[2, 4]);
        assert_eq!((mesh.coordinate(6, 0), mesh.coordinate(6, 1)), (1, 2));
        assert_eq!(mesh.group(6, AxisSet::of(1)), [4, 5, 6, 7]);
        assert_eq!(mesh.linear(6, [1, 0]), 5);
        for device in 0..8 {
            assert_eq!(mesh.at(0, [1, 0], mesh.linear(device, [1, 0])), device);
        }
        assert_eq!(mesh.difference(1, 6), AxisSet::all(2));
    }

    #[test]
    fn blocks_are_flat_over_several_axes() {
        let mesh = mesh(&[2, 4]);
        let dim = LayoutDim { size: 10, axes: vec![0, 1] };
        let lengths: Vec<usize> = (0..8).map(|device| mesh.block(&dim, device).len()).collect();
        assert_eq!(lengths, [2, 2, 2, 2, 2, 0, 0, 0]);
        assert_eq!(mesh.block(&LayoutDim { size: 10, axes: vec![1] }, 7), 9..10);
        assert_eq!(mesh.block(&LayoutDim { size: 0, axes: vec![1] }, 7), 0..0);
    }

    #[test]
    fn numbers_follow_from_coordinates() {
        let mesh = mesh(&[2, 3]);
        let table = Scalar::Table { axes: vec![1, 0], values: vec![5, 4, 3, 2, 1, 0] };
        let values = |scalar: &Scalar| (0..6).map(|device| mesh.resolve(scalar, device)).collect::<Vec<_>>();
        assert_eq!(values(&table), [5, 3, 1, 4, 2, 0]);
        let two = || Box::new(Scalar::Const(2));
        assert_eq!(values(&Scalar::Min(Box::new(table.clone()), two())), [2, 2, 1, 2, 2, 0]);
        assert_eq!(values(&Scalar::Max(Box::new(table), two())), [5, 3, 2, 4, 2, 2]);
    }

    #[test]
    fn units_lie_one_after_another() {
        let mesh = mesh(&[2, 3]);
        let layout = |dims: &[(usize, &[u8])]| Layout {
            dtype: crate::DType::F32,
            dims: dims.iter().map(|(size, axes)| LayoutDim { size: *size, axes: axes.to_vec() }).collect(),
        };
        let rows = |size| Scalar::BlockLen(LayoutDim { size, axes: vec![0] });
        assert_eq!(mesh.unit_bytes(&layout(&[(7, &[0]), (5, &[])]), &rows(7)), Some(20));
        // Half of the devices have no row at all.
        assert_eq!(mesh.unit_bytes(&layout(&[(1, &[0]), (5, &[])]), &rows(1)), Some(20));
        // Blocks of 4 and 1 in rows of 4: there is a gap behind the last one.
        assert_eq!(mesh.unit_bytes(&layout(&[(7, &[0]), (5, &[1])]), &rows(7)), None);
        assert_eq!(mesh.unit_bytes(&layout(&[(7, &[0])]), &rows(9)), None);
        assert!(mesh.is_equal_along(&rows(7), AxisSet::of(1)) && !mesh.is_equal_along(&rows(7), AxisSet::of(0)));
    }

    #[test]
    fn nonsense_meshes_are_refused() {
        let axis = |size| MeshAxis { name: String::new(), size };
        assert!(DeviceMesh::new(&[axis(0)]).is_err());
        assert!(DeviceMesh::new(&[axis(usize::MAX), axis(3)]).is_err());
        assert!(DeviceMesh::new(&vec![axis(1); 33]).is_err());
        assert_eq!(DeviceMesh::new(&[]).unwrap().devices(), 1);
    }

    #[test]
    fn devices_are_dealt_in_order() {
        let assigned = |sizes: &[usize], processes| mesh(sizes).assigned(processes);
        let two = assigned(&[2, 4], 2).unwrap();
        assert_eq!((two.processes(), two.process(3), two.process(4), two.devices_of(1)), (2, 0, 1, vec![4, 5, 6, 7]));
        assert_eq!(two.rank(6, AxisSet::all(2)), (2, 4));
        assert_eq!(two.rank(6, AxisSet::of(0)), (0, 1));
        assert_eq!(mesh(&[2, 4]).rank(6, AxisSet::of(0)), (1, 2));
        assert!(assigned(&[2, 4], 3).is_none() && assigned(&[2, 4], 0).is_none());
        for (sizes, processes, boxes) in [
            (&[2, 4][..], 4, true),
            (&[4, 2], 2, true),
            (&[3, 4], 2, false),
            (&[6, 2], 2, true),
            (&[2, 3, 2], 4, false),
        ] {
            assert_eq!(assigned(sizes, processes).unwrap().has_boxes(), boxes, "{sizes:?} in {processes}");
        }
        let some = mesh(&[2, 2]).dealt_to(4, vec![3, 1, 3, 1]);
        assert_eq!((some.devices_of(3), some.devices_of(0), some.has_boxes()), (vec![0, 2], vec![], true));
        assert!(!mesh(&[2, 2]).dealt_to(2, vec![0, 1, 1, 0]).has_boxes());
    }

    #[test]
    fn shares_cover_the_range() {
        assert_eq!((0..3).map(|rank| share(10, rank, 3)).collect::<Vec<_>>(), [0..3, 3..6, 6..10]);
        assert_eq!(share(i64::MAX, 1, 2), i64::MAX / 2..i64::MAX);
    }
}
