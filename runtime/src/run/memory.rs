//! The memory of a program: one mapping for each instance of each arena, made before the run and kept from run to run.
//!
//! An arena has an instance for every combination of coordinates along its axes; devices that differ only along other axes
//! see the same one. Mappings are anonymous, zeroed by the system when first touched, and never move.
//!
//! A process has the instances that its own devices use, and no others: an arena that devices of several processes share exists once in
//! each of these.

use std::fs;
use std::path::{Path, PathBuf};
use std::ptr;

use crate::errors::trap::{RunCode, RunError};
use spmdc_abi::mesh::DeviceMesh;
use spmdc_abi::sorted::order;
use spmdc_abi::{Arena, AxisSet, BufferInfo, Place, Program};

/// Minimum size of mappings that are aligned to huge pages and request them, in bytes (2 MiB).
pub(crate) const HUGE_PAGE: usize = 2 << 20;
/// Minimum size of mappings that consist of huge pages only if other processes read them, in bytes (256 KiB). The system copies between
/// processes page by page, and half as fast from small pages.
const WHOLE_HUGE_PAGES: usize = 256 << 10;
/// A multiple of the page size of every system.
const LARGEST_PAGE: usize = 64 << 10;
/// The alignment of every arena, one cache line.
const LINE: usize = 64;

/// Programs that need at most this many bytes (16 MiB) are not compared with the available memory.
const LITTLE: u128 = 16 << 20;

/// Anonymous memory of a fixed size; unmapped when dropped.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: *mut u8,
    bytes: usize,
    /// Bytes including the padding of the last page.
    mapped: usize,
}

/// Whose threads use a mapping.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum MappingUse {
    OneProcess,
    /// Messages to other processes are read from it, or received in it.
    SeveralProcesses,
}

// SAFETY: a mapping is plain memory that belongs to no thread. It provides a raw pointer only; the users of that pointer decide
// which thread may write through it, and when.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    pub fn new(bytes: usize, used_by: MappingUse) -> Result<Mapping, RunError> {
        if bytes == 0 {
            return Ok(Mapping { base: ptr::without_provenance_mut(LINE), bytes, mapped: 0 });
        }
        let refused = || {
            RunError::new(
                RunCode::E0803,
                format!("out of memory: the system cannot allocate {}", ByteSize(bytes as u64)),
            )
        };
        let is_huge = used_by == MappingUse::SeveralProcesses && bytes >= WHOLE_HUGE_PAGES;
        let slack = if bytes >= HUGE_PAGE || is_huge { HUGE_PAGE } else { 0 };
        let last_page = if is_huge { HUGE_PAGE } else { LARGEST_PAGE };
        let kept = bytes.checked_next_multiple_of(last_page).ok_or_else(refused)?;
        let whole = kept.checked_add(slack).ok_or_else(refused)?;
        // SAFETY: a new private mapping at an address that the system chooses touches no existing memory.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                whole,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(refused());
        }
        let start = start.cast::<u8>();
        if slack == 0 {
            return Ok(Mapping { base: start, bytes, mapped: kept });
        }
        // Return the bytes before the first huge page, and the rest of the slack after the mapping.
        let before = start.align_offset(HUGE_PAGE);
        debug_assert!(before < slack, "the first huge page begins within the slack");
        debug_assert!(before.is_multiple_of(4096) && kept.is_multiple_of(4096), "whole pages are given back");
        // SAFETY: `before < slack`, and all sizes are multiples of the page size; so the returned bytes belong to this mapping, and
        // nothing points into them. The advice changes no contents.
        unsafe {
            let base = start.add(before);
            if before > 0 {
                libc::munmap(start.cast(), before);
            }
            libc::munmap(base.add(kept).cast(), slack - before);
            #[cfg(target_os = "linux")]
            libc::madvise(base.cast(), kept, libc::MADV_HUGEPAGE);
            Ok(Mapping { base, bytes, mapped: kept })
        }
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn base(&self) -> *mut u8 {
        self.base
    }

    /// Makes the system provide the pages now, near the calling thread, rather than during the run.
    fn touch(&self) {
        #[cfg(target_os = "linux")]
        {
            // SAFETY: the range is this mapping; populating it changes no contents.
            let done = unsafe { libc::madvise(self.base.cast(), self.mapped, libc::MADV_POPULATE_WRITE) };
            if done == 0 {
                return;
            }
        }
        for page in (0..self.bytes).step_by(4096) {
            // SAFETY: in bounds; no other code uses the memory yet, see `Memory::touch`.
            unsafe { self.base.add(page).write_volatile(0) };
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if self.mapped > 0 {
            // SAFETY: `new` made the mapping with this size, and no code uses it any more.
            unsafe { libc::munmap(self.base.cast(), self.mapped) };
        }
    }
}

/// All arenas of a program.
#[derive(Debug)]
pub struct Memory {
    mesh: DeviceMesh,
    /// The process whose memory it is, and its devices.
    process: usize,
    devices: Vec<usize>,
    arenas: Vec<ArenaMemory>,
}

#[derive(Debug)]
struct ArenaMemory {
    axes: AxisSet,
    bytes: u64,
    /// None if the message is only for other processes.
    instances: Vec<Option<Mapping>>,
}

impl Memory {
    /// Maps every instance of every arena that a device of the process uses. Nothing is touched yet.
    pub fn allocate(mesh: &DeviceMesh, process: usize, arenas: &[Arena]) -> Result<Memory, RunError> {
        let devices = mesh.devices_of(process);
        let used_by = if mesh.processes() > 1 { MappingUse::SeveralProcesses } else { MappingUse::OneProcess };
        let mut mapped = Vec::with_capacity(arenas.len());
        for arena in arenas {
            let bytes = usize::try_from(arena.bytes)
                .map_err(|_| RunError::new(RunCode::E0803, format!("{} cannot be addressed", ByteSize(arena.bytes))))?;
            let mut instances: Vec<Option<Mapping>> = (0..mesh.count(arena.axes.iter())).map(|_| None).collect();
            for &device in &devices {
                let instance = &mut instances[mesh.linear(device, arena.axes.iter())];
                if instance.is_none() {
                    *instance = Some(Mapping::new(bytes, used_by)?);
                }
            }
            mapped.push(ArenaMemory { axes: arena.axes, bytes: arena.bytes, instances });
        }
        Ok(Memory { mesh: mesh.clone(), process, devices, arenas: mapped })
    }

    /// The devices of this process, in the order of their numbers.
    pub fn devices(&self) -> &[usize] {
        &self.devices
    }

    /// The process whose memory it is.
    pub fn process(&self) -> usize {
        self.process
    }

    /// The mesh of the program.
    pub fn mesh(&self) -> &DeviceMesh {
        &self.mesh
    }

    /// The address of the place on a device of this process. The arena must exist and contain the offset.
    pub fn address(&self, place: Place, device: usize) -> *mut u8 {
        let arena = &self.arenas[place.arena as usize];
        let instance = arena.instances[self.instance(place.arena, device)].as_ref();
        assert!(place.offset <= arena.bytes, "places are checked when a program is loaded");
        let instance = instance.expect("a process has the memory of its devices");
        instance.base.wrapping_add(place.offset as usize)
    }

    /// The number of the instance of an arena that a device uses, of this process or another.
    pub fn instance(&self, arena: u16, device: usize) -> usize {
        debug_assert!(device < self.mesh.devices(), "there is no device {device}");
        self.mesh.linear(device, self.arenas[arena as usize].axes.iter())
    }

    /// The axes along which devices have their own instance of the arena.
    pub fn axes(&self, arena: u16) -> AxisSet {
        self.arenas[arena as usize].axes
    }

    /// First-touches the large arenas of this device: the arenas for which it is the first of the sharing devices. Called before any write.
    pub fn touch(&self, device: usize) {
        for arena in &self.arenas {
            let others = self.mesh.axes().minus(arena.axes);
            if arena.bytes >= 1 << 20
                && self.mesh.rank(device, others).0 == 0
                && let Some(instance) = &arena.instances[self.mesh.linear(device, arena.axes.iter())]
            {
                instance.touch();
            }
        }
    }
}

/// Checks that the devices of a process need at most `limit` bytes, or without a limit at most the free memory; an error (E0803)
/// otherwise. Returns the bytes that they need.
pub fn check_fits(
    program: &Program,
    meshes: &[DeviceMesh],
    process: usize,
    limit: Option<u64>,
) -> Result<u64, RunError> {
    let needed = program.bytes_of_devices(meshes, |part| meshes[part].devices_of(process));
    // The query takes about 0.3 ms; for little memory the result of the allocation itself suffices.
    let known = u64::try_from(needed).unwrap_or(u64::MAX);
    if limit.is_none() && needed <= LITTLE {
        return Ok(known);
    }
    let Some(available) = limit.or_else(available_memory) else { return Ok(known) };
    if needed <= available as u128 {
        return Ok(known);
    }
    let mut buffers: Vec<(&BufferInfo, u64)> = Vec::new();
    for (program, mesh) in program.programs().into_iter().zip(meshes) {
        let copies = |buffer: &BufferInfo| {
            let arena = program.arenas.get(buffer.place.arena as usize)?;
            Some(mesh.count(arena.axes.iter()) as u64)
        };
        buffers.extend(program.buffers.iter().filter_map(|buffer| Some((buffer, copies(buffer)?))));
    }
    // The largest ones first.
    let sizes = buffers.iter().map(|(buffer, copies)| !buffer.bytes.saturating_mul(*copies));
    let sorted = order(&sizes.collect::<Vec<_>>()).into_iter().map(|at| &buffers[at]).take(4).collect::<Vec<_>>();
    let largest: Vec<String> = sorted
        .iter()
        .map(|(buffer, copies)| {
            let times = if *copies > 1 { format!(" times {copies}") } else { String::new() };
            let line = if buffer.site.line > 0 { format!(" (line {})", buffer.site.line) } else { String::new() };
            format!("`{}: {}`{line} {}{times}", buffer.name, buffer.ty, ByteSize(buffer.bytes))
        })
        .collect();
    let needed = ByteSize(known);
    let mut error = RunError::new(
        RunCode::E0803,
        format!("the program needs {needed} of memory, but only {} is available", ByteSize(available)),
    );
    if let Some((buffer, _)) = sorted.first() {
        error = error.at(buffer.site).with_help(format!("the largest values are {}", largest.join(", ")));
    }
    Err(error)
}

/// Bytes in a readable unit.
pub struct ByteSize(pub u64);

impl std::fmt::Display for ByteSize {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        let mut value = self.0 as f64;
        let mut unit = "bytes";
        for larger in units {
            if value < 1024.0 {
                break;
            }
            value /= 1024.0;
            unit = larger;
        }
        if unit == "bytes" { write!(f, "{} bytes", self.0) } else { write!(f, "{value:.1} {unit}") }
    }
}

/// Bytes that this process may still allocate: the minimum of the machine's free memory and the remainders of its control groups.
/// None where the system provides no figures.
pub fn available_memory() -> Option<u64> {
    let machine =
        fs::read_to_string("/proc/meminfo").ok().and_then(|text| field(&text, "MemAvailable:")).map(|kib| kib * 1024);
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    machine.into_iter().chain(group_limit(&groups, Path::new("/sys/fs/cgroup"))).min()
}

/// The first number after the label.
fn field(text: &str, label: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.split_whitespace().next() == Some(label))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// Bytes that the control groups of a process still allow, given its `/proc/self/cgroup` and the mount point of the hierarchy.
fn group_limit(groups: &str, root: &Path) -> Option<u64> {
    let mut least = None;
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        // Version 2 has one hierarchy without named controllers; version 1 has one for memory.
        let (base, limit, usage) = if controllers.is_empty() {
            (root.to_path_buf(), "memory.max", "memory.current")
        } else if controllers.split(',').any(|name| name == "memory") {
            (root.join("memory"), "memory.limit_in_bytes", "memory.usage_in_bytes")
        } else {
            continue;
        };
        // A limit may be set on any group from this one up to the root. In a container the path may lie outside the mounted
        // hierarchy; then only the root is visible.
        let mut group: PathBuf = base.join(path.trim_start_matches('/'));
        loop {
            let number = |file: &str| fs::read_to_string(group.join(file)).ok()?.trim().parse::<u64>().ok();
            if let Some(limit) = number(limit) {
                let stat = fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
                // The page cache counts as usage but is reclaimable.
                let cache = field(&stat, "inactive_file").unwrap_or(0);
                let used = number(usage).unwrap_or(0).saturating_sub(cache);
                let left = limit.saturating_sub(used);
                least = Some(least.map_or(left, |least: u64| least.min(left)));
            }
            if group == base || !group.pop() {
                break;
            }
        }
    }
    least
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use spmdc_abi::{MeshAxis, Site};

    fn mesh() -> DeviceMesh {
        DeviceMesh::new(&[MeshAxis { name: "X".into(), size: 2 }, MeshAxis { name: "Y".into(), size: 3 }]).unwrap()
    }

    #[test]
    fn devices_share_what_is_not_split_between_them() {
        let arenas = [
            Arena { axes: AxisSet::of(0), bytes: 100 },
            Arena { axes: AxisSet::EMPTY, bytes: 5 << 20 },
            Arena { axes: AxisSet::all(2), bytes: 0 },
        ];
        let memory = Memory::allocate(&mesh(), 0, &arenas).unwrap();
        let at = |arena, device| memory.address(Place { arena, offset: 0 }, device);
        assert_eq!(at(0, 0), at(0, 2));
        assert_ne!(at(0, 0), at(0, 3));
        assert_eq!(at(1, 0), at(1, 5));
        assert_eq!(at(1, 0) as usize % HUGE_PAGE, 0);
        (0..6).for_each(|device| memory.touch(device));
        // SAFETY: in bounds of the second arena, and only this thread uses it.
        unsafe {
            let last = at(1, 0).add((5 << 20) - 1);
            assert_eq!(*last, 0);
            *last = 1;
        }
    }

    #[test]
    fn what_does_not_fit_is_refused_with_the_largest_named() {
        let buffer = |name: &str, arena, bytes, line| BufferInfo {
            name: name.into(),
            ty: "f32[8]".into(),
            place: Place { arena, offset: 0 },
            bytes,
            site: Site { file: 0, line, column: 1 },
        };
        let program = Program {
            abi_version: spmdc_abi::ABI_VERSION,
            entry: "main".into(),
            files: vec![],
            mesh: vec![],
            arenas: vec![Arena { axes: AxisSet::EMPTY, bytes: 3000 }, Arena { axes: AxisSet::all(2), bytes: 1000 }],
            buffers: vec![buffer("w", 0, 3000, 7), buffer("x", 1, 1000, 8)],
            params: vec![],
            results: vec![],
            constants: vec![],
            body: vec![],
            kernels: vec![],
            fingerprint: 0,
            compile_ms: 0.0,
            mesh_programs: Vec::new(),
            devices: Vec::new(),
            channels: Vec::new(),
        };
        assert_eq!(check_fits(&program, &[mesh()], 0, Some(9000)), Ok(9000));
        let error = check_fits(&program, &[mesh()], 0, Some(8999)).unwrap_err();
        assert_eq!(error.code, RunCode::E0803);
        assert_eq!(error.message, "the program needs 8.8 KiB of memory, but only 8.8 KiB is available");
        assert_eq!(error.site.unwrap().line, 8);
        assert_eq!(
            error.help.unwrap(),
            "the largest values are `x: f32[8]` (line 8) 1000 bytes times 6, `w: f32[8]` (line 7) 2.9 KiB"
        );
        assert!(available_memory().unwrap() > 1 << 20);
    }

    #[test]
    fn control_groups_of_both_versions_limit() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("a/memory.max", "1000\n");
        write("a/memory.current", "300\n");
        write("a/memory.stat", "anon 1\ninactive_file 100\n");
        write("a/b/memory.max", "max\n");
        write("memory/c/memory.limit_in_bytes", "500\n");
        assert_eq!(group_limit("0::/a/b\n", root.path()), Some(800));
        assert_eq!(group_limit("4:cpu,memory:/c\n0::/a\n", root.path()), Some(500));
        assert_eq!(group_limit("0::/elsewhere\n", root.path()), None);
    }

    #[test]
    fn a_mapping_that_cannot_be_is_an_error() {
        for used_by in [MappingUse::OneProcess, MappingUse::SeveralProcesses] {
            assert_eq!(Mapping::new(usize::MAX / 2, used_by).unwrap_err().code, RunCode::E0803);
            assert_eq!(Mapping::new(usize::MAX, used_by).unwrap_err().code, RunCode::E0803);
        }
    }

    #[test]
    fn memory_that_other_processes_read_has_huge_pages_alone() {
        let mapped = |bytes, used_by| {
            let mapping = Mapping::new(bytes, used_by).unwrap();
            assert_eq!(mapping.bytes(), bytes);
            (mapping.mapped, mapping.base.addr().is_multiple_of(HUGE_PAGE))
        };
        assert_eq!(mapped(WHOLE_HUGE_PAGES, MappingUse::SeveralProcesses), (HUGE_PAGE, true));
        assert_eq!(mapped(HUGE_PAGE + 1, MappingUse::SeveralProcesses), (2 * HUGE_PAGE, true));
        assert_eq!(mapped(WHOLE_HUGE_PAGES - 1, MappingUse::SeveralProcesses).0, WHOLE_HUGE_PAGES);
        assert_eq!(mapped(HUGE_PAGE + 1, MappingUse::OneProcess), (HUGE_PAGE + LARGEST_PAGE, true));
    }
}
