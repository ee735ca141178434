//! Layouts, and the exchange between devices in `manual` functions.

use super::HloGap;
use super::builder::{HloBuilder, signature};
use super::names::{HloType, HloValue, sharding_text};
use super::reductions::HloCombination;
use spmdc_abi::{DType, ReduceOp};
use spmdc_layout::sharding::Sharding;

impl HloBuilder<'_> {
    /// The value with this dimension whole on each device; XLA lays out the others.
    pub fn whole_along(&mut self, x: &HloValue, dim: usize) -> HloValue {
        let mut sharding = Sharding::open(x.ty.rank());
        sharding.dims[dim].open = false;
        self.constrain(x, &sharding)
    }

    /// The value with this layout, as a constraint along the axes that are not manual here.
    pub fn constrain(&mut self, x: &HloValue, to: &Sharding) -> HloValue {
        if self.mesh.axes.is_empty() || self.manual == self.mesh.all() {
            return x.clone();
        }
        let sharding = sharding_text(to, self.mesh, self.manual);
        let text = format!("sdy.sharding_constraint {} {sharding} : {}", x.name, x.ty);
        self.emit(x.ty.clone(), &text)
    }

    /// The attribute of another channel.
    pub fn channel_handle(&mut self) -> String {
        format!("channel_handle = #stablehlo.channel_handle<handle = {}, type = 1>", self.channel())
    }

    /// The devices of each group along axes, as an attribute: one row for each group.
    pub fn groups(&self, axes: &[u8]) -> String {
        let mut groups: Vec<Vec<String>> = Vec::new();
        for device in 0..self.mesh.device_count() {
            let coordinates = self.mesh.coordinates(device);
            // The first device of a group names all others.
            if self.mesh.position(axes, &coordinates) == 0 {
                groups.push(self.group(axes, device).iter().map(usize::to_string).collect());
            }
        }
        let size = groups.first().map_or(0, Vec::len);
        let rows: Vec<String> = groups.iter().map(|group| format!("[{}]", group.join(", "))).collect();
        format!("dense<[{}]> : tensor<{}x{size}xi64>", rows.join(", "), groups.len())
    }

    /// The pairs of devices for pairs of positions along axes, as an attribute.
    pub fn pairs(&self, axes: &[u8], sends: &[(usize, usize)]) -> String {
        let mut pairs = Vec::new();
        for device in 0..self.mesh.device_count() {
            if self.mesh.position(axes, &self.mesh.coordinates(device)) == 0 {
                let group = self.group(axes, device);
                pairs.extend(sends.iter().map(|&(from, to)| format!("[{}, {}]", group[from], group[to])));
            }
        }
        match pairs.is_empty() {
            true => "dense<> : tensor<0x2xi64>".to_string(),
            false => format!("dense<[{}]> : tensor<{}x2xi64>", pairs.join(", "), pairs.len()),
        }
    }

    /// The devices with the coordinates of this one on all other axes, by their position along the axes.
    fn group(&self, axes: &[u8], device: usize) -> Vec<usize> {
        let own = self.mesh.coordinates(device);
        let member = |position: usize| {
            let mut coordinates = own.clone();
            self.mesh.set_position(axes, position, &mut coordinates);
            let all: Vec<u8> = (0..self.mesh.axes.len() as u8).collect();
            self.mesh.position(&all, &coordinates)
        };
        (0..self.mesh.size_of(axes)).map(member).collect()
    }

    /// A collective without a function: `all_gather`, `all_to_all`.
    pub fn exchange(&mut self, name: &str, x: &HloValue, axes: &[u8], attributes: &str, ty: HloType) -> HloValue {
        let channel = self.channel_handle();
        let groups = self.groups(axes);
        let global = if name == "all_gather" { ", use_global_device_ids" } else { "" };
        let attributes = format!("{attributes}, {channel}, replica_groups = {groups}{global}");
        let types = signature(&[x], std::slice::from_ref(&ty));
        self.emit(ty, &format!("\"stablehlo.{name}\"({}) <{{{attributes}}}> : {types}", x.name))
    }

    /// The position of a device along manual axes, as i32.
    pub fn axis_index(&mut self, axes: &[u8]) -> Result<HloValue, HloGap> {
        let mut position: Option<HloValue> = None;
        for &axis in axes {
            let size = self.mesh.axes[usize::from(axis)].size;
            let own = self.position(axis)?;
            position = Some(match position {
                None => own,
                Some(major) => {
                    let size = self.whole(DType::I32, size as i64, &[]);
                    let scaled = self.binary("stablehlo.multiply", &major, &size);
                    self.binary("stablehlo.add", &scaled, &own)
                }
            });
        }
        Ok(match position {
            Some(position) => position,
            None => self.whole(DType::I32, 0, &[]),
        })
    }

    /// The position along one axis: a digit of the device's number, which exists only where all axes are manual.
    fn position(&mut self, axis: u8) -> Result<HloValue, HloGap> {
        if let Some(known) = self.positions.get(&axis) {
            return Ok(known.clone());
        }
        if self.manual != self.mesh.all() {
            return Err(HloGap("position of a device outside of code for each device".to_string()));
        }
        let ty = HloType::new(DType::U32, &[]);
        let device = self.emit(ty.clone(), &format!("stablehlo.partition_id : {ty}"));
        let inner: usize = self.mesh.axes[usize::from(axis) + 1..].iter().map(|axis| axis.size).product();
        let size = self.mesh.axes[usize::from(axis)].size;
        let [inner, size] = [inner, size].map(|count| self.whole(DType::U32, count as i64, &[]));
        let outer = self.binary("stablehlo.divide", &device, &inner);
        let own = self.binary("stablehlo.remainder", &outer, &size);
        Ok(self.convert(&own, DType::I32))
    }

    /// The sum of the values of the devices along axes.
    pub fn all_reduce(&mut self, op: ReduceOp, x: &HloValue, axes: &[u8]) -> HloValue {
        let groups = self.groups(axes);
        let channel = self.channel_handle();
        let name = self.fresh();
        let attributes = format!("{channel}, replica_groups = {groups}, use_global_device_ids");
        self.line(&format!("{name} = \"stablehlo.all_reduce\"({}) <{{{attributes}}}> ({{", x.name));
        self.combination(HloCombination::of(op, x.ty.dtype()).name(), x.ty.dtype());
        self.line(&format!("}}) : ({}) -> {}", x.ty, x.ty));
        HloValue { name, ty: x.ty.clone() }
    }

    /// A Fourier transform of the last dimension, of `n` points, whose lines are whole on each device: XLA fails on some split lines.
    pub fn fft(&mut self, kind: &str, x: &HloValue, n: usize, ty: HloType) -> HloValue {
        let last = x.ty.rank() - 1;
        let x = self.whole_along(x, last);
        let types = signature(&[&x], std::slice::from_ref(&ty));
        let made = self.emit(ty, &format!("stablehlo.fft {}, type = {kind}, length = [{n}] : {types}", x.name));
        self.whole_along(&made, last)
    }
}
