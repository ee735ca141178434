//! As much of the zip format as `.npz` archives need: members stored or deflated, sizes beyond 4 GiB.
//!
//! The directory at the end of the file says where the members are. Stored members are used where they lie.

use std::io::{self, Write};

use miniz_oxide::inflate::decompress_slice_iter_to_slice;

use crate::io::Bytes;

const LOCAL_HEADER: u32 = 0x0403_4b50;
const DIRECTORY_ENTRY: u32 = 0x0201_4b50;
const DIRECTORY_END: u32 = 0x0605_4b50;
const WIDE_DIRECTORY_END: u32 = 0x0606_4b50;
const WIDE_DIRECTORY_LOCATOR: u32 = 0x0706_4b50;
/// The extra field that holds sizes and offsets of 64 bits.
const WIDE_EXTRA: u16 = 1;
/// The value of a 32-bit field whose number is in the extra field.
const IN_EXTRA: u32 = u32::MAX;

pub(crate) struct Member {
    pub name: String,
    flags: u16,
    method: u16,
    checksum: u32,
    packed: u64,
    size: u64,
    header_start: u64,
}

/// The members of an archive in the order of its directory. Errors say what is wrong with the file.
pub(crate) fn directory(content: &[u8]) -> Result<Vec<Member>, String> {
    let end = find_end(content).ok_or("it is not a zip archive, or its end is missing")?;
    let mut count = u64::from(u16_at(content, end + 10).ok_or("its end is missing")?);
    let mut start = u64::from(u32_at(content, end + 16).ok_or("its end is missing")?);
    let locator = end.checked_sub(20).filter(|&at| u32_at(content, at) == Some(WIDE_DIRECTORY_LOCATOR));
    if let Some(locator) = locator {
        let wide = u64_at(content, locator + 8).and_then(|at| usize::try_from(at).ok()).unwrap_or(usize::MAX);
        if u32_at(content, wide) != Some(WIDE_DIRECTORY_END) {
            return Err("its directory cannot be found".to_string());
        }
        count = u64_at(content, wide.saturating_add(32)).ok_or("its directory is cut off")?;
        start = u64_at(content, wide.saturating_add(48)).ok_or("its directory is cut off")?;
    }
    let mut at = usize::try_from(start).map_err(|_| "its directory cannot be found")?;
    let mut members = Vec::new();
    for _ in 0..count {
        let (member, next) = directory_entry(content, at).ok_or("its directory is cut off or damaged")?;
        members.push(member);
        at = next;
    }
    Ok(members)
}

/// The record that ends the archive; a comment may follow it.
fn find_end(content: &[u8]) -> Option<usize> {
    let last = content.len().checked_sub(22)?;
    let first = last.saturating_sub(usize::from(u16::MAX));
    (first..=last).rev().find(|&at| {
        let comment = u16_at(content, at + 20).map(usize::from);
        u32_at(content, at) == Some(DIRECTORY_END) && comment == Some(content.len() - at - 22)
    })
}

/// The entry at this place, and where the next one begins.
fn directory_entry(content: &[u8], at: usize) -> Option<(Member, usize)> {
    let entry = content.get(at..)?;
    if u32_at(entry, 0)? != DIRECTORY_ENTRY {
        return None;
    }
    let (packed, size, header_start) = (u32_at(entry, 20)?, u32_at(entry, 24)?, u32_at(entry, 42)?);
    let name_end = 46 + usize::from(u16_at(entry, 28)?);
    let extra_end = name_end + usize::from(u16_at(entry, 30)?);
    let end = extra_end + usize::from(u16_at(entry, 32)?);
    let name = String::from_utf8_lossy(entry.get(46..name_end)?).into_owned();
    let mut wide = wide_fields(entry.get(name_end..extra_end)?);
    // Only fields that do not fit are repeated in the extra field, in this order.
    let mut widen = |narrow: u32| if narrow == IN_EXTRA { wide.next() } else { Some(u64::from(narrow)) };
    let (size, packed, header_start) = (widen(size)?, widen(packed)?, widen(header_start)?);
    let (flags, method, checksum) = (u16_at(entry, 8)?, u16_at(entry, 10)?, u32_at(entry, 16)?);
    entry.get(..end)?;
    Some((Member { name, flags, method, checksum, packed, size, header_start }, at + end))
}

/// The numbers of the extra field for large sizes.
fn wide_fields(mut extra: &[u8]) -> impl Iterator<Item = u64> + use<> {
    let mut numbers = Vec::new();
    while let (Some(id), Some(len)) = (u16_at(extra, 0), u16_at(extra, 2)) {
        let Some(body) = extra.get(4..4 + usize::from(len)) else { break };
        if id == WIDE_EXTRA {
            numbers = (0..body.len() / 8).filter_map(|i| u64_at(body, 8 * i)).collect();
        }
        extra = &extra[4 + body.len()..];
    }
    numbers.into_iter()
}

impl Member {
    /// The member's content: a part of the archive where it is stored, else decoded and checked.
    pub(crate) fn read(&self, archive: &Bytes) -> Result<Bytes, String> {
        if self.flags & 1 != 0 {
            return Err("it is encrypted".to_string());
        }
        let packed = self.packed_bytes(archive).ok_or("it is cut off or damaged")?;
        match self.method {
            0 if self.size == self.packed => Ok(packed),
            0 => Err("its sizes contradict each other".to_string()),
            8 => self.inflate(packed.as_slice()).map(Bytes::owned),
            method => Err(format!("its compression (method {method}) is not supported")),
        }
    }

    fn packed_bytes(&self, archive: &Bytes) -> Option<Bytes> {
        let header = archive.part(self.header_start, 30)?;
        let header = header.as_slice();
        if u32_at(header, 0)? != LOCAL_HEADER {
            return None;
        }
        let skipped = 30 + u64::from(u16_at(header, 26)?) + u64::from(u16_at(header, 28)?);
        archive.part(self.header_start.checked_add(skipped)?, self.packed)
    }

    fn inflate(&self, packed: &[u8]) -> Result<Vec<u8>, String> {
        let damaged = || "its compressed data is damaged".to_string();
        // No deflate stream grows by more than this, so a false size cannot make us allocate what the file does not justify.
        let most = (packed.len() as u64).saturating_mul(1040).saturating_add(64);
        let size = usize::try_from(self.size).ok().filter(|&size| size as u64 <= most).ok_or_else(damaged)?;
        let mut content = vec![0; size];
        let written = decompress_slice_iter_to_slice(&mut content, std::iter::once(packed), false, true);
        if written != Ok(size) || crc32fast::hash(&content) != self.checksum {
            return Err(damaged());
        }
        Ok(content)
    }
}

/// Writes members, stored as they are, and at the end the directory.
pub(crate) struct Writer<'a> {
    out: &'a mut dyn Write,
    position: u64,
    directory: Vec<u8>,
    count: u64,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(out: &'a mut dyn Write) -> Writer<'a> {
        Writer { out, position: 0, directory: Vec::new(), count: 0 }
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.position += bytes.len() as u64;
        self.out.write_all(bytes)
    }

    /// Adds a member whose content is the parts one after the other.
    pub(crate) fn member(&mut self, name: &str, parts: &[&[u8]]) -> io::Result<()> {
        let start = self.position;
        let size: u64 = parts.iter().map(|part| part.len() as u64).sum();
        let mut checksum = crc32fast::Hasher::new();
        parts.iter().for_each(|part| checksum.update(part));
        let wide_size = size >= u64::from(IN_EXTRA);
        let wide_start = start >= u64::from(IN_EXTRA);
        let narrow = |number: u64, wide: bool| if wide { IN_EXTRA } else { number as u32 };
        let name_len = u16::try_from(name.len()).map_err(|_| io::Error::other("the name of a result is too long"))?;

        // Version, flags (names are UTF-8), method, time and date (1 January 1980), checksum, sizes, length of the name.
        let mut common = Vec::new();
        let version: u16 = if wide_size || wide_start { 45 } else { 20 };
        for field in [version, 1 << 11, 0, 0, 0x21] {
            common.extend(field.to_le_bytes());
        }
        common.extend(checksum.finalize().to_le_bytes());
        common.extend(narrow(size, wide_size).to_le_bytes());
        common.extend(narrow(size, wide_size).to_le_bytes());
        common.extend(name_len.to_le_bytes());

        let wide_sizes = if wide_size { vec![size, size] } else { Vec::new() };
        let extra = wide_extra(&wide_sizes);
        let mut header = LOCAL_HEADER.to_le_bytes().to_vec();
        header.extend(&common);
        header.extend((extra.len() as u16).to_le_bytes());
        header.extend(name.as_bytes());
        header.extend(extra);
        self.put(&header)?;
        for part in parts {
            self.put(part)?;
        }

        let mut wide = wide_sizes;
        if wide_start {
            wide.push(start);
        }
        let extra = wide_extra(&wide);
        let entry = &mut self.directory;
        entry.extend(DIRECTORY_ENTRY.to_le_bytes());
        entry.extend(version.to_le_bytes());
        entry.extend(&common);
        entry.extend((extra.len() as u16).to_le_bytes());
        // No comment, first disk, no attributes.
        entry.extend([0; 10]);
        entry.extend(narrow(start, wide_start).to_le_bytes());
        entry.extend(name.as_bytes());
        entry.extend(extra);
        self.count += 1;
        Ok(())
    }

    pub(crate) fn finish(mut self) -> io::Result<()> {
        let (start, count) = (self.position, self.count);
        let directory = std::mem::take(&mut self.directory);
        let size = directory.len() as u64;
        self.put(&directory)?;
        let is_wide = start >= u64::from(IN_EXTRA) || size >= u64::from(IN_EXTRA) || count >= u64::from(u16::MAX);
        if is_wide {
            let at = self.position;
            let mut end = WIDE_DIRECTORY_END.to_le_bytes().to_vec();
            end.extend(44u64.to_le_bytes());
            end.extend([45, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
            for field in [count, count, size, start] {
                end.extend(field.to_le_bytes());
            }
            end.extend(WIDE_DIRECTORY_LOCATOR.to_le_bytes());
            end.extend(0u32.to_le_bytes());
            end.extend(at.to_le_bytes());
            end.extend(1u32.to_le_bytes());
            self.put(&end)?;
        }
        let mut end = DIRECTORY_END.to_le_bytes().to_vec();
        end.extend([0; 4]);
        let short_count = if is_wide { u16::MAX } else { count as u16 };
        end.extend(short_count.to_le_bytes());
        end.extend(short_count.to_le_bytes());
        for field in [size, start] {
            end.extend((if is_wide { IN_EXTRA } else { field as u32 }).to_le_bytes());
        }
        end.extend([0; 2]);
        self.put(&end)
    }
}

/// An extra field with these numbers, or nothing.
fn wide_extra(numbers: &[u64]) -> Vec<u8> {
    let mut extra = Vec::new();
    if !numbers.is_empty() {
        extra.extend(WIDE_EXTRA.to_le_bytes());
        extra.extend((8 * numbers.len() as u16).to_le_bytes());
        numbers.iter().for_each(|number| extra.extend(number.to_le_bytes()));
    }
    extra
}

fn field_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    field_at(bytes, at).map(u16::from_le_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    field_at(bytes, at).map(u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    field_at(bytes, at).map(u64::from_le_bytes)
}
