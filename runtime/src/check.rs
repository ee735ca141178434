//! Checks a program before it is loaded: every index, place and range, on every device.
//!
//! Programs come from the compiler, yet a damaged program, or a mistake in the compiler, must end in an error and not in an access
//! to foreign memory. Two things cannot be checked here: the code of kernels, and that steps which touch the same memory are
//! ordered by barriers.

mod tiles;

use crate::components::ProgramCode;
use crate::errors::trap::RunError;
use crate::library::gemm;
use crate::library::{self, LibraryCheck};
use spmdc_abi::mesh::{DeviceMesh, split_axes};
use spmdc_abi::sorted::distinct;
use spmdc_abi::{
    ABI_VERSION, AxisSet, Binding, Bound, DType, ExchangeStep, FetchBoxes, FetchDim, FetchRun, FetchStep, GemmDim,
    GemmStep, GroupPanels, KernelStep, Layout, LayoutDim, LibraryArray, LibraryFunction, LibraryStep, MergeLines,
    Message, PermuteStep, Place, PrintValue, Program, ReduceOp, ReduceStep, SavedArray, Scalar, SelectLines, Shards,
    Site, Step, StreamRows, TakenPlaces, TextPurpose, TileStep, places, product_elements,
};

/// Checks a step of a component.
pub(crate) type CheckFn<S> = fn(&ProgramChecker<'_>, &S) -> Result<(), RunError>;

/// The checks of steps with products.
#[derive(Clone, Copy)]
pub(crate) struct ProductChecks {
    pub product: CheckFn<GemmStep>,
    pub tiles: CheckFn<TileStep>,
    /// A reduction with its product.
    pub sum: CheckFn<ReduceStep>,
}

/// Upper bound of sizes, ranges and strides, far above the sizes of any real program.
const HUGE: u64 = 1 << 48;

/// Checks the program and returns its mesh, or those of its parts.
pub(crate) fn check(program: &Program, code: &ProgramCode) -> Result<Vec<DeviceMesh>, RunError> {
    if program.mesh_programs.is_empty() {
        ensure(program.channels.is_empty(), || "transfers without meshes".into())?;
        return Ok(vec![check_mesh(program, code, None)?]);
    }
    ensure(program.devices.is_sorted_by(|a, b| a < b), || "devices in another order".into())?;
    let mut meshes = Vec::new();
    (0..program.channels.len()).try_for_each(|channel| check_channel(program, channel))?;
    for (number, part) in program.mesh_programs.iter().enumerate() {
        ensure(part.program.mesh_programs.is_empty(), || "a part has parts".into())?;
        let mesh = check_mesh(&part.program, code, Some((program, number as u32)))?;
        let devices = distinct(part.devices.iter().map(|&device| device as usize));
        let known = part.devices.iter().all(|device| program.devices.binary_search(device).is_ok());
        ensure(known && devices.len() == mesh.devices() && part.devices.len() == mesh.devices(), || {
            "a mesh has other devices than it lists".into()
        })?;
        for (own, wholes, all) in [
            (&part.program.params, &part.params, &program.params),
            (&part.program.results, &part.results, &program.results),
        ] {
            let same = |(own, whole): (&Binding, &u32)| {
                let sizes = |binding: &Binding| binding.layout.dims.iter().map(|dim| dim.size).collect::<Vec<_>>();
                all.get(*whole as usize).is_some_and(|whole| {
                    whole.layout.dtype == own.layout.dtype
                        && sizes(whole) == sizes(own)
                        && whole.place.is_some() == own.place.is_some()
                })
            };
            ensure(own.len() == wholes.len() && own.iter().zip(wholes).all(same), || {
                "a part takes or gives other arrays than the program".into()
            })?;
        }
        meshes.push(mesh);
    }
    Ok(meshes)
}

/// Checks that a transfer is of one array, and that two parts have its ends, all in one layout. A part that works ahead in a loop has an
/// end in several loops.
fn check_channel(program: &Program, number: usize) -> Result<(), RunError> {
    let channel = &program.channels[number];
    let part = |number: u32| program.mesh_programs.get(number as usize);
    let (Some(from), Some(to), true) = (part(channel.from), part(channel.to), channel.from != channel.to) else {
        return ensure(false, || "a transfer between other meshes than there are".into());
    };
    let sizes = |layout: &Layout| layout.dims.iter().map(|dim| dim.size).collect::<Vec<_>>();
    let is_same = sizes(&channel.sent) == sizes(&channel.received) && channel.sent.dtype == channel.received.dtype;
    ensure(is_same, || "the ends of a transfer are different arrays".into())?;
    let elements = sizes(&channel.sent).iter().try_fold(1usize, |all, &size| all.checked_mul(size));
    ensure(elements.is_some_and(|all| (all as u64) < HUGE), || "a transfer of too many elements".into())?;
    for (end, layout) in [(from, &channel.sent), (to, &channel.received)] {
        let messages = end.program.messages();
        let mut own = messages.iter().filter(|message| message.channel as usize == number).peekable();
        ensure(own.peek().is_some(), || "a transfer with one end".into())?;
        ensure(own.all(|message| message.layout == *layout), || "an end of a transfer in another layout".into())?;
    }
    Ok(())
}

/// Checks a program without parts, which may be a part of another one.
fn check_mesh(program: &Program, code: &ProgramCode, part_of: Option<(&Program, u32)>) -> Result<DeviceMesh, RunError> {
    if program.abi_version != ABI_VERSION {
        let message =
            format!("the program is of version {}, this runtime of version {ABI_VERSION}", program.abi_version);
        return Err(RunError::internal(message));
    }
    let mesh = DeviceMesh::new(&program.mesh).map_err(RunError::internal)?;
    let checker = ProgramChecker { program, mesh, code, part_of };
    for arena in &program.arenas {
        checker.axis_set(arena.axes)?;
        ensure(arena.bytes < HUGE, || format!("an arena of {} bytes", arena.bytes))?;
    }
    for (number, binding) in program.params.iter().chain(&program.results).enumerate() {
        let Binding { place, layout, .. } = binding;
        let stored = match place {
            Some(place) => checker.stored(*place, layout),
            None => ensure(number < program.params.len(), || "a result is in no memory".into())
                .and_then(|()| layout.dims.iter().try_for_each(|dim| checker.layout_dim(dim))),
        };
        stored.map_err(|error| RunError { message: format!("`{}`: {}", binding.name, error.message), ..error })?;
    }
    for constant in &program.constants {
        checker.place(constant.place, constant.bytes.len() as u64, 1)?;
    }
    checker.steps(&program.body)?;
    Ok(checker.mesh)
}

/// The place of an operand of a product, the index of its first element, and the stride of a dimension in elements.
type Operand = (Place, i64, fn(&GemmDim) -> i64);

fn ensure(holds: bool, message: impl FnOnce() -> String) -> Result<(), RunError> {
    if holds { Ok(()) } else { Err(RunError::internal(format!("malformed program: {}", message()))) }
}

/// Checks the program of one mesh.
pub(crate) struct ProgramChecker<'a> {
    program: &'a Program,
    mesh: DeviceMesh,
    code: &'a ProgramCode,
    /// The program of which it is a part, and the number of the part.
    part_of: Option<(&'a Program, u32)>,
}

impl ProgramChecker<'_> {
    fn steps(&self, steps: &[Step]) -> Result<(), RunError> {
        // The groups of posted barriers that have not been awaited yet.
        let mut open: Vec<AxisSet> = Vec::new();
        for step in steps {
            self.step(step).and_then(|()| self.pairs(step, &mut open)).map_err(|error| located(error, step.site()))?;
        }
        ensure(open.is_empty(), || "a barrier is posted and never awaited".into())
    }

    /// Checks that a device has posted at most one barrier of a group at a time.
    fn pairs(&self, step: &Step, open: &mut Vec<AxisSet>) -> Result<(), RunError> {
        let several = self.mesh.axes();
        let found = |open: &[AxisSet], group: &AxisSet| open.iter().position(|&open| open == group.intersect(several));
        match step {
            Step::Post { group, .. } => {
                ensure(found(open, group).is_none(), || "a barrier is posted twice".into())?;
                open.push(group.intersect(several));
            }
            Step::Await { group, .. } => match found(open, group) {
                Some(at) => drop(open.remove(at)),
                None => return ensure(false, || "a barrier is awaited that was not posted".into()),
            },
            Step::Sync { group, .. } => {
                ensure(found(open, group).is_none(), || "devices wait at a barrier that they have posted".into())?;
            }
            Step::For { .. } | Step::While { .. } | Step::If { .. } | Step::Print { .. } => {
                ensure(open.is_empty(), || {
                    "a barrier is posted in front of a loop or branch, and awaited behind".into()
                })?;
            }
            Step::Reduce(reduce) => {
                let is_product = reduce.product.is_some();
                ensure(!is_product || open.is_empty(), || "a barrier is posted before a sum of products".into())?;
            }
            Step::Kernel(_)
            | Step::Panels { .. }
            | Step::GroupPanels(_)
            | Step::Tiles(_)
            | Step::Gemm(_)
            | Step::Library(_)
            | Step::Exchange(_)
            | Step::Permute(_)
            | Step::Fetch(_)
            | Step::Copy { .. }
            | Step::CheckIndex { .. } => {}
        }
        Ok(())
    }

    fn step(&self, step: &Step) -> Result<(), RunError> {
        match step {
            Step::Kernel(kernel) => self.kernel(kernel),
            Step::Panels { kernels, lags, panel } => {
                ensure((1..HUGE).contains(panel), || format!("panels of {panel}"))?;
                ensure(lags.len() == kernels.len(), || format!("{} lags of {} kernels", lags.len(), kernels.len()))?;
                ensure(lags.iter().all(|lag| *lag < HUGE), || "a kernel that stays far behind".into())?;
                let has_lag = lags.iter().any(|lag| *lag > 0);
                let is_divided = kernels.iter().any(|kernel| self.mesh.count(kernel.split.iter()) > 1);
                ensure(!has_lag || !is_divided, || "lags in a range that devices divide".into())?;
                let range = |step: &KernelStep| (step.range.clone(), step.part.clone(), step.split, step.grain);
                let alike = |a: &KernelStep, b: &KernelStep| range(a) == range(b);
                let is_one = kernels.windows(2).all(|pair| alike(&pair[0], &pair[1]));
                let is_whole = kernels.iter().all(|kernel| kernel.part.is_none());
                ensure(is_one || has_lag && is_whole, || "panels of two ranges".into())?;
                ensure(!kernels.is_empty(), || "panels of nothing".into())?;
                kernels.iter().try_for_each(|kernel| self.kernel(kernel))
            }
            Step::GroupPanels(panels) => self.group_panels(panels),
            Step::Gemm(step) => (self.code.components.check::<ProductChecks>(step.component())?.product)(self, step),
            Step::Tiles(step) => (self.code.components.check::<ProductChecks>(step.component())?.tiles)(self, step),
            Step::Library(step) => self.code.components.check::<CheckFn<LibraryStep>>(step.component())?(self, step),
            Step::Exchange(exchange) => self.exchange(exchange),
            Step::Reduce(reduce) => self.reduce(reduce),
            Step::Permute(permute) => self.permute(permute),
            Step::Fetch(fetch) => self.fetch(fetch),
            Step::Sync { group, .. } | Step::Post { group, .. } | Step::Await { group, .. } => self.axis_set(*group),
            Step::Copy { from, to, bytes, split } => {
                self.axis_set(*split)?;
                self.place(*from, *bytes, 1)?;
                self.place(*to, *bytes, 1)?;
                let parted = self.mesh.count(split.iter()) > 1;
                ensure(!parted || from == to || !overlap(*from, *to, *bytes, *bytes), || {
                    "a copy that devices share overlaps itself".into()
                })
            }
            Step::CheckIndex { index, dtype, extent, len, to, .. } => {
                ensure(*extent >= 0, || format!("a dimension of {extent}"))?;
                ensure(*len >= 1, || format!("{len} places of a dimension"))?;
                self.scalar_in_memory(*index, *dtype)?;
                self.place(*to, 8, 8)
            }
            Step::For { counter, start, end, body, .. } => {
                self.place(*counter, 4, 4)?;
                // Without a barrier between trips, one device may begin its next trip while another still reads the counter.
                let own = self.arena_axes(*counter);
                ensure(self.mesh.axes().is_subset_of(own), || "devices share a loop counter".into())?;
                self.bound(start)?;
                self.bound(end)?;
                self.steps(body)
            }
            Step::While { cond, flag, body, .. } => {
                self.place(*flag, 1, 1)?;
                self.steps(cond)?;
                self.steps(body)
            }
            Step::If { flag, then, otherwise, .. } => {
                self.place(*flag, 1, 1)?;
                self.steps(then)?;
                self.steps(otherwise)
            }
            Step::Print { text, values, purpose, .. } => {
                let is_bool = |value: &PrintValue| value.layout.dtype == DType::Bool && value.layout.dims.is_empty();
                match purpose {
                    TextPurpose::Line => {}
                    TextPurpose::Error => {
                        ensure(values.first().is_some_and(is_bool), || "an assertion of no bool".into())?;
                    }
                    TextPurpose::FileName(arrays) => {
                        let saved: usize = arrays.iter().map(SavedArray::values).sum();
                        ensure(places(text) + saved == values.len(), || "a file without its arrays".into())?;
                    }
                }
                values.iter().try_for_each(|value| self.print_value(value))
            }
        }
    }

    fn group_panels(&self, panels: &GroupPanels) -> Result<(), RunError> {
        let GroupPanels { group, split, steps, panel, grain } = panels;
        ensure((1..HUGE).contains(panel) && *grain > 0, || format!("panels of {panel} by {grain}"))?;
        self.axis_set(*group)?;
        self.axis_set(*split)?;
        self.steps(steps)?;
        let several = self.mesh.axes();
        let (group, split) = (group.intersect(several), split.intersect(several));
        ensure(group.intersect(split).is_empty(), || "a group that shares all its memory".into())?;
        for step in steps {
            let is_part = match step {
                Step::Panels { lags, .. } => lags.iter().all(|lag| *lag == 0),
                Step::Kernel(_) | Step::Reduce(_) | Step::Sync { .. } | Step::Post { .. } | Step::Await { .. } => true,
                Step::GroupPanels(_)
                | Step::Tiles(_)
                | Step::Gemm(_)
                | Step::Library(_)
                | Step::Exchange(_)
                | Step::Permute(_)
                | Step::Fetch(_)
                | Step::Copy { .. }
                | Step::CheckIndex { .. }
                | Step::For { .. }
                | Step::While { .. }
                | Step::If { .. }
                | Step::Print { .. } => false,
            };
            ensure(is_part, || "a step that cannot run by panels".into())?;
        }
        let shares = |axes: AxisSet| axes.intersect(several).minus(group) == split;
        let Some(range) = panels.kernels().next().map(|first| &first.range) else {
            return ensure(false, || "panels of nothing".into());
        };
        ensure(self.mesh.is_equal_along(range, group.union(split)), || "a group with several ranges".into())?;
        for kernel in panels.kernels() {
            let fits = kernel.range == *range && kernel.part.is_none() && kernel.checks.is_empty();
            ensure(fits && shares(kernel.split), || "a kernel that does not fit into panels".into())?;
        }
        for reduction in panels.reductions() {
            let ReduceStep { from, to, reduce, .. } = reduction;
            let is_whole = reduce.intersect(several) == group && reduction.group.intersect(several) == group;
            let is_same = from.layout == to.layout && self.mesh.unit_bytes(&from.layout, range).is_some();
            let sharing = several.minus(self.arena_axes(to.place));
            ensure(is_whole && is_same && shares(sharing), || "a reduction that does not fit into panels".into())?;
        }
        Ok(())
    }

    fn kernel(&self, step: &KernelStep) -> Result<(), RunError> {
        let kernels = self.code.kernels.functions().len();
        ensure((step.kernel as usize) < kernels, || format!("kernel {} of {kernels}", step.kernel))?;
        step.buffers.iter().try_for_each(|&place| self.place(place, 0, 1))?;
        step.scalars.iter().try_for_each(|scalar| self.scalar(scalar))?;
        self.axis_set(step.split)?;
        ensure(step.grain > 0, || "a kernel whose range is divided at every 0 units".into())?;
        self.scalar(&step.range)?;
        if let Some(part) = &step.part {
            self.scalar(&part.first)?;
            self.scalar(&part.len)?;
        }
        for device in 0..self.mesh.devices() {
            let range = self.mesh.resolve(&step.range, device);
            ensure((0..HUGE as i64).contains(&range), || format!("a kernel's range of {range}"))?;
            if let Some(part) = &step.part {
                let (first, len) = (self.mesh.resolve(&part.first, device), self.mesh.resolve(&part.len, device));
                let fits = first >= 0 && len >= 0 && first.checked_add(len).is_some_and(|end| end <= range);
                ensure(fits, || format!("{len} units from {first} of a kernel's range of {range}"))?;
            }
            let sharers = self.mesh.group(device, step.split);
            let equal = sharers.iter().all(|&other| self.mesh.resolve(&step.range, other) == range);
            ensure(equal, || "devices that share a buffer divide different ranges".into())?;
        }
        Ok(())
    }

    pub(crate) fn product(&self, step: &GemmStep) -> Result<(), RunError> {
        let [of_a, of_b] = step.operands;
        ensure(product_elements(step.dtype, step.operands).is_some(), || {
            format!("a product of {} and {} in {}", of_a.name(), of_b.name(), step.dtype.name())
        })?;
        self.axis_set(step.split)?;
        for (place, dtype) in [(step.a, of_a), (step.b, of_b), (step.c, step.dtype)] {
            self.place(place, 0, dtype.size() as u64)?;
        }
        let dims = || [&step.m, &step.n, &step.k].into_iter().chain(&step.loops).chain(&step.contracted);
        for dim in dims() {
            self.scalar(&dim.extent)?;
            let strides = [dim.a, dim.b, dim.c];
            ensure(strides.iter().all(|stride| stride.unsigned_abs() < HUGE), || format!("strides of {strides:?}"))?;
        }
        ensure(step.m.b == 0 && step.n.a == 0, || "a free dimension of a product occurs on both sides".into())?;
        let summed = || step.contracted.iter().chain([&step.k]);
        ensure(summed().all(|dim| dim.c == 0), || "a contracted dimension occurs in the product".into())?;
        if let Some(ring) = &step.ring {
            self.axes(&ring.axes)?;
            self.scalar(&ring.start)?;
            let owners: AxisSet = ring.axes.iter().map(|&axis| axis as usize).collect();
            let strides = [ring.other, ring.c];
            ensure(strides.iter().all(|stride| stride.unsigned_abs() < HUGE), || format!("strides of {strides:?}"))?;
            let place = if ring.is_b { step.b } else { step.a };
            let own = self.arena_axes(place);
            ensure(owners.intersect(self.mesh.axes()).is_subset_of(own), || {
                "devices share the memory of different blocks".into()
            })?;
        }
        for device in 0..self.mesh.devices() {
            for (owner, _) in gemm::owners(&self.mesh, step, device) {
                self.gemm_block(step, device, owner)?;
            }
        }
        Ok(())
    }

    /// Checks that the product of a device with the block of an owner stays within its arenas.
    fn gemm_block(&self, step: &GemmStep, device: usize, owner: usize) -> Result<(), RunError> {
        let dims = || [&step.m, &step.n, &step.k].into_iter().chain(&step.loops).chain(&step.contracted);
        let extent = |dim: &GemmDim| gemm::extent(&self.mesh, step, dim, (device, owner));
        for dim in dims() {
            let len = extent(dim);
            ensure((0..HUGE as i64).contains(&len), || format!("an extent of {len}"))?;
        }
        let mut written = step.loops.iter().chain([&step.m, &step.n]);
        if written.clone().any(|dim| extent(dim) == 0) {
            return Ok(());
        }
        ensure(written.all(|dim| dim.c != 0 || extent(dim) <= 1), || "a product overwrites itself".into())?;
        let empty = step.contracted.iter().chain([&step.k]).any(|dim| extent(dim) == 0);
        let [a, b, c] = gemm::offsets(&self.mesh, step, owner);
        let [of_a, of_b] = step.operands;
        let operands: [(Operand, DType); 3] = [
            ((step.c, c, |dim| dim.c), step.dtype),
            ((step.a, a, |dim| dim.a), of_a),
            ((step.b, b, |dim| dim.b), of_b),
        ];
        // An empty contraction only writes zeros.
        for ((place, offset, stride), dtype) in operands.into_iter().take(if empty { 1 } else { 3 }) {
            let size = dtype.size() as i128;
            let (mut least, mut last) = (offset as i128, offset as i128);
            for dim in dims() {
                let reach = (extent(dim).max(1) - 1) as i128 * stride(dim) as i128;
                if reach < 0 { least += reach } else { last += reach }
            }
            let begin = place.offset as i128 + least * size;
            let end = place.offset as i128 + (last + 1) * size;
            let bytes = self.program.arenas[place.arena as usize].bytes as i128;
            ensure(begin >= 0 && end <= bytes, || "a product leaves its arena".into())?;
        }
        Ok(())
    }

    /// Checks a step of a function that expects these arrays.
    pub(crate) fn library(&self, step: &LibraryStep, code: &dyn LibraryCheck) -> Result<(), RunError> {
        self.axis_set(step.split)?;
        step.batch.iter().try_for_each(|extent| self.scalar(extent))?;
        if let LibraryFunction::Merge(MergeLines { taken: TakenPlaces::From(first), .. }) = &step.function {
            self.scalar(first)?;
        }
        if let LibraryFunction::Select(SelectLines { first: Some(first), .. }) = &step.function {
            self.scalar(first)?;
        }
        if let LibraryFunction::Scatter(scatter) = &step.function {
            scatter.first.iter().try_for_each(|first| self.scalar(first))?;
        }
        if let LibraryFunction::Rows(rows) = &step.function {
            self.rows(step, rows)?;
        }
        if let LibraryFunction::Send(message) | LibraryFunction::Receive(message) = &step.function {
            self.message(step, message)?;
        }
        if let LibraryFunction::Matrix(function) = &step.function {
            function.first().map_or(Ok(()), |first| self.scalar(first))?;
        }
        for array in step.operands.iter().chain(&step.results) {
            self.place(array.place, 0, array.dtype.size().min(8) as u64)?;
            array.dims.iter().try_for_each(|dim| self.scalar(&dim.extent))?;
            let strides = array.dims.iter().map(|dim| dim.stride).chain(array.batch.iter().copied());
            ensure(strides.clone().all(|stride| (0..HUGE as i64).contains(&stride)), || "strides out of range".into())?;
            ensure(array.batch.len() == step.batch.len(), || "an array of another batch".into())?;
        }
        if let Some(owners) = &step.owners {
            self.axes(&owners.axes)?;
            let axes: AxisSet = owners.axes.iter().map(|&axis| axis as usize).collect();
            for operand in &step.operands {
                let own = self.arena_axes(operand.place);
                ensure(axes.intersect(self.mesh.axes()).is_subset_of(own), || {
                    "devices share the memory of different blocks".into()
                })?;
            }
        }
        for device in 0..self.mesh.devices() {
            let batch: Vec<i64> = step.batch.iter().map(|extent| self.mesh.resolve(extent, device)).collect();
            let mut calls = batch.iter().try_fold(1i64, |all, &len| if len < 0 { None } else { all.checked_mul(len) });
            calls = calls.filter(|&all| (0..HUGE as i64).contains(&all));
            let calls = calls.ok_or_else(|| RunError::internal(format!("malformed program: a batch of {batch:?}")))?;
            for owner in library::owners(&self.mesh, step, device) {
                step.operands.iter().try_for_each(|array| self.library_array(array, &batch, owner, calls == 0))?;
            }
            let slots = library::slots(step);
            for (at, array) in step.results.iter().enumerate() {
                let mut written = array.batch.iter().zip(&batch);
                let is_shared = slots == Some(at);
                let own = self.arena_axes(array.place);
                ensure(!is_shared || self.mesh.axes().is_subset_of(own), || "devices share scratch memory".into())?;
                let is_empty = array.dims.iter().any(|dim| self.mesh.resolve(&dim.extent, device) == 0);
                let free = is_shared || is_empty || calls == 0;
                ensure(free || written.all(|(&stride, &len)| stride != 0 || len <= 1), || {
                    "a call overwrites another".into()
                })?;
                self.library_array(array, &batch, device, calls == 0)?;
            }
            let sharers = self.mesh.group(device, step.split);
            let parts = |device| step.parts(|scalar| self.mesh.resolve(scalar, device));
            let alike = |&other: &usize| {
                parts(other) == parts(device)
                    && step.batch.iter().zip(&batch).all(|(len, own)| self.mesh.resolve(len, other) == *own)
            };
            ensure(sharers.iter().all(alike), || "devices that share a buffer divide different batches".into())?;
            library::check(&self.mesh, step, device, code).or_else(|message| ensure(false, || message))?;
        }
        Ok(())
    }

    /// Checks that an end of a transfer is of one that leaves or enters this part.
    fn message(&self, step: &LibraryStep, message: &Message) -> Result<(), RunError> {
        let known =
            self.part_of.and_then(|(program, part)| Some((program.channels.get(message.channel as usize)?, part)));
        let Some((channel, part)) = known else { return ensure(false, || "a transfer that does not exist".into()) };
        message.layout.dims.iter().try_for_each(|dim| self.layout_dim(dim))?;
        let sends = matches!(step.function, LibraryFunction::Send(_));
        ensure(part == if sends { channel.from } else { channel.to }, || "a transfer of other meshes".into())?;
        let layout = if sends { &channel.sent } else { &channel.received };
        ensure(message.layout == *layout, || "an end of a transfer in another layout".into())
    }

    /// Checks that rows belong to a stream, and that each device reads a part of them.
    fn rows(&self, step: &LibraryStep, rows: &StreamRows) -> Result<(), RunError> {
        let stream = self.program.params.get(rows.param as usize).filter(|param| param.place.is_none());
        let Some(Binding { layout, .. }) = stream else {
            return ensure(false, || "rows of a parameter that is no stream".into());
        };
        rows.first.iter().try_for_each(|first| self.scalar(first))?;
        let dtypes: Vec<DType> = step.results.iter().map(|result| result.dtype).collect();
        ensure(rows.first.len() == layout.dims.len() && !rows.first.is_empty(), || "rows of another rank".into())?;
        ensure(dtypes == [layout.dtype], || "rows of another type".into())?;
        let part = |device: usize| {
            let own = step.results[0].dims.iter().rev().map(|dim| self.mesh.resolve(&dim.extent, device));
            let columns = rows.first[1..].iter().zip(&layout.dims[1..]).rev().zip(own);
            let mut columns = columns.map(|((first, dim), len)| (self.mesh.resolve(first, device), len, dim.size));
            columns.all(|(first, len, size)| first >= 0 && len >= 0 && first.saturating_add(len) <= size as i64)
        };
        let inside = (0..self.mesh.devices()).all(|device| {
            let first = self.mesh.resolve(&rows.first[0], device);
            (0..HUGE as i64).contains(&first) && part(device)
        });
        ensure(inside, || "a part of rows beyond their end".into())
    }

    /// Checks that an array of calls stays within its arena on a device.
    fn library_array(&self, array: &LibraryArray, batch: &[i64], device: usize, unused: bool) -> Result<(), RunError> {
        let mut last = 0i128;
        let mut is_empty = unused;
        let dims = array.dims.iter().map(|dim| (self.mesh.resolve(&dim.extent, device), dim.stride));
        let batch = batch.iter().copied().zip(array.batch.iter().copied());
        for (len, stride) in dims.clone().chain(batch) {
            ensure((0..HUGE as i64).contains(&len), || format!("an extent of {len}"))?;
            is_empty |= len == 0;
            last += (len.max(1) - 1) as i128 * stride as i128;
        }
        let end = array.place.offset as i128 + (last + 1) * array.dtype.size() as i128;
        let bytes = self.program.arenas[array.place.arena as usize].bytes as i128;
        ensure(is_empty || end <= bytes, || "a library function leaves its arena".into())
    }

    fn exchange(&self, step: &ExchangeStep) -> Result<(), RunError> {
        self.axis_set(step.group)?;
        self.sides(&step.from, &step.to)
    }

    /// A reduction with its product, whose result is written where either of them writes.
    pub(crate) fn sum(&self, step: &ReduceStep) -> Result<(), RunError> {
        let Some(product) = step.product.as_deref() else { return Ok(()) };
        let has_parts = product.ring.is_some() || !product.contracted.is_empty();
        ensure(!has_parts, || "a sum of products with several parts".into())?;
        ensure(product.dtype == step.to.layout.dtype && step.op == ReduceOp::Sum, || "a sum of another type".into())?;
        ensure(product.c == step.from.place && step.from.layout == step.to.layout, || "a sum elsewhere".into())?;
        ensure(step.reduce.intersect(self.mesh.axes()) == step.group.intersect(self.mesh.axes()), || {
            "a sum of some devices of a group".into()
        })?;
        self.product(product)?;
        self.product(&GemmStep { c: step.to.place, ..product.clone() })
    }

    fn reduce(&self, step: &ReduceStep) -> Result<(), RunError> {
        if let Some(product) = &step.product {
            (self.code.components.check::<ProductChecks>(product.component())?.sum)(self, step)?;
        }
        self.axis_set(step.group)?;
        self.axis_set(step.reduce)?;
        self.sides(&step.from, &step.to)?;
        let reduced = step.reduce.intersect(self.mesh.axes());
        ensure(reduced.is_subset_of(step.group), || "a reduction goes beyond its group".into())?;
        let split = split_axes(&step.from.layout);
        ensure(reduced.intersect(split).is_empty(), || "a reduction over an axis that splits the value".into())?;
        let own = self.arena_axes(step.from.place);
        ensure(reduced.is_subset_of(own), || "devices share the memory of their partial values".into())?;
        let (from, to) = (self.stored_bytes(&step.from.layout)?, self.stored_bytes(&step.to.layout)?);
        ensure(!overlap(step.from.place, step.to.place, from, to), || "a reduction overwrites its operand".into())
    }

    fn permute(&self, step: &PermuteStep) -> Result<(), RunError> {
        self.axes(&step.axes)?;
        let count = self.mesh.count(step.axes.iter().map(|&axis| axis as usize));
        ensure(step.source.len() == count, || format!("a permutation of {} in a group of {count}", step.source.len()))?;
        let mut positions = step.source.iter().flatten();
        ensure(positions.all(|&position| (position as usize) < count), || "a position outside the group".into())?;
        self.place(step.from, step.bytes, 1)?;
        self.place(step.to, step.bytes, 1)?;
        let disjoint = !overlap(step.from, step.to, step.bytes, step.bytes);
        ensure(disjoint, || "a permutation overwrites its operand".into())
    }

    fn fetch(&self, step: &FetchStep) -> Result<(), RunError> {
        self.axis_set(step.group)?;
        let bytes = |part: &FetchBoxes, len: fn(&FetchDim) -> usize| {
            let all = part.dims.iter().try_fold(part.dtype.size() as u64, |all, dim| all.checked_mul(len(dim) as u64));
            all.filter(|&all| all < HUGE)
                .ok_or_else(|| RunError::internal("malformed program: a block has no fixed size"))
        };
        for part in &step.parts {
            let align = part.dtype.size().min(8) as u64;
            self.place(part.from, bytes(part, |dim| dim.from_len)?, align)?;
            self.place(part.to, bytes(part, |dim| dim.to_len)?, align)?;
            part.dims.iter().try_for_each(|dim| self.fetch_dim(dim))?;
            let owners: Vec<u8> = part.dims.iter().flat_map(|dim| dim.owners.iter().copied()).collect();
            self.axes(&owners)?;
            let set = |axes: &[u8]| axes.iter().map(|&axis| axis as usize).collect::<AxisSet>();
            let several = self.mesh.axes();
            let split = set(&owners).intersect(several);
            ensure(split.is_subset_of(self.arena_axes(part.from)), || {
                "devices share the memory of different blocks".into()
            })?;
            let own = part.dims.iter().fold(AxisSet::EMPTY, |own, dim| own.union(set(&dim.axes))).intersect(several);
            ensure(own.is_subset_of(self.arena_axes(part.to)), || {
                "devices share the memory of what they fetch".into()
            })?;
            for other in &step.parts {
                let (from, to) = (bytes(part, |dim| dim.from_len)?, bytes(other, |dim| dim.to_len)?);
                ensure(!overlap(part.from, other.to, from, to), || "a fetch overwrites its operand".into())?;
            }
        }
        Ok(())
    }

    fn fetch_dim(&self, dim: &FetchDim) -> Result<(), RunError> {
        self.axes(&dim.axes)?;
        self.axes(&dim.owners)?;
        self.entries(&dim.axes, dim.runs.len())?;
        let owners = self.mesh.count(dim.owners.iter().map(|&axis| axis as usize));
        let inside = |run: &FetchRun| {
            let last = run.from as i128 + run.step as i128 * (run.len as i128 - 1);
            (run.owner as usize) < owners
                && run.len <= dim.to_len
                && run.to <= dim.to_len - run.len
                && (run.len == 0 || run.from < dim.from_len && (0..dim.from_len as i128).contains(&last))
        };
        ensure(dim.runs.iter().flatten().all(inside), || "a fetch leaves its blocks".into())
    }

    /// Checks that a table has an entry for each position along the axes.
    fn entries(&self, axes: &[u8], len: usize) -> Result<(), RunError> {
        let count = self.mesh.count(axes.iter().map(|&axis| axis as usize));
        ensure(len == count, || format!("a table of {len} for {count} positions"))
    }

    fn print_value(&self, value: &PrintValue) -> Result<(), RunError> {
        self.axis_set(value.varying)?;
        self.stored(value.place, &value.layout)
    }

    /// Checks two layouts of the same array. Overlaps are checked when the moves are planned.
    fn sides(&self, from: &Shards, to: &Shards) -> Result<(), RunError> {
        self.stored(from.place, &from.layout)?;
        self.stored(to.place, &to.layout)?;
        let sizes = |layout: &Layout| layout.dims.iter().map(|dim| dim.size).collect::<Vec<_>>();
        ensure(from.layout.dtype == to.layout.dtype && sizes(&from.layout) == sizes(&to.layout), || {
            "the sides of a collective are different arrays".into()
        })
    }

    /// Checks an array with this layout at this place.
    fn stored(&self, place: Place, layout: &Layout) -> Result<(), RunError> {
        layout.dims.iter().try_for_each(|dim| self.layout_dim(dim))?;
        let all: Vec<u8> = layout.dims.iter().flat_map(|dim| dim.axes.iter().copied()).collect();
        self.axes(&all)?;
        self.place(place, self.stored_bytes(layout)?, layout.dtype.size().min(8) as u64)?;
        let split = split_axes(layout).intersect(self.mesh.axes());
        ensure(split.is_subset_of(self.arena_axes(place)), || "devices share the memory of different blocks".into())
    }

    fn stored_bytes(&self, layout: &Layout) -> Result<u64, RunError> {
        let bytes = self
            .mesh
            .stored_shape(layout)
            .into_iter()
            .try_fold(layout.dtype.size() as u64, |product, len| product.checked_mul(len as u64));
        let whole = layout.dims.iter().try_fold(8u64, |product, dim| product.checked_mul(dim.size as u64));
        match (bytes, whole) {
            (Some(bytes), Some(_)) => Ok(bytes),
            _ => Err(RunError::internal("malformed program: an array larger than any memory")),
        }
    }

    fn place(&self, place: Place, bytes: u64, align: u64) -> Result<(), RunError> {
        let arena = self.program.arenas.get(place.arena as usize);
        let fits = arena.is_some_and(|arena| {
            place.offset.is_multiple_of(align) && place.offset.checked_add(bytes).is_some_and(|end| end <= arena.bytes)
        });
        ensure(fits, || format!("{bytes} bytes at offset {} of arena {}", place.offset, place.arena))
    }

    /// The axes of the arena of a place that has been checked.
    fn arena_axes(&self, place: Place) -> AxisSet {
        self.program.arenas[place.arena as usize].axes
    }

    fn bound(&self, bound: &Bound) -> Result<(), RunError> {
        match bound {
            Bound::Const(_) => Ok(()),
            Bound::Memory(place, dtype) => self.scalar_in_memory(*place, *dtype),
        }
    }

    fn scalar_in_memory(&self, place: Place, dtype: DType) -> Result<(), RunError> {
        ensure(dtype.is_integer(), || format!("an index of type {}", dtype.name()))?;
        self.place(place, dtype.size() as u64, dtype.size() as u64)
    }

    fn scalar(&self, scalar: &Scalar) -> Result<(), RunError> {
        match scalar {
            Scalar::Const(_) => Ok(()),
            Scalar::BlockLen(dim) | Scalar::BlockStart(dim) => self.layout_dim(dim),
            Scalar::Coordinate(axes) => self.axes(axes),
            Scalar::Table { axes, values } => {
                self.axes(axes)?;
                self.entries(axes, values.len())
            }
            Scalar::Add(a, b) | Scalar::Mul(a, b) | Scalar::Min(a, b) | Scalar::Max(a, b) => {
                self.scalar(a).and_then(|()| self.scalar(b))
            }
        }
    }

    fn layout_dim(&self, dim: &LayoutDim) -> Result<(), RunError> {
        ensure((dim.size as u64) < HUGE, || format!("a dimension of {}", dim.size))?;
        self.axes(&dim.axes)
    }

    /// Checks that these are axes of the mesh, each at most once.
    fn axes(&self, axes: &[u8]) -> Result<(), RunError> {
        let known = axes.iter().all(|&axis| self.mesh.has_axis(axis as usize));
        let once = (1..axes.len()).all(|i| !axes[..i].contains(&axes[i]));
        ensure(known && once, || format!("the axes {axes:?}"))
    }

    fn axis_set(&self, axes: AxisSet) -> Result<(), RunError> {
        ensure(axes.iter().all(|axis| self.mesh.has_axis(axis)), || format!("the axes {:#b}", axes.0))
    }
}

/// Whether two ranges of bytes may have a byte in common on some devices.
pub(crate) fn overlap(a: Place, b: Place, a_bytes: u64, b_bytes: u64) -> bool {
    a.arena == b.arena && a.offset < b.offset + b_bytes && b.offset < a.offset + a_bytes
}

fn located(error: RunError, site: Site) -> RunError {
    if error.site.is_some() { error } else { error.at(site) }
}
