//! The part of the zip format that `.npz` archives need: members stored or deflated, sizes above 4 GiB.
//!
//! The directory at the end of the file lists the members. A member is decoded and its checksum verified when its content is needed; before
//! that only its beginning is read.

use std::collections::BTreeSet;
use std::io;

use miniz_oxide::inflate::stream::{InflateState, inflate};
use miniz_oxide::{DataFormat, MZError, MZFlush, MZStatus};

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

/// Maximum size of a directory, in bytes.
const MAX_DIRECTORY_BYTES: u64 = 64 << 20;

#[derive(Clone)]
pub(crate) struct Member {
    pub name: String,
    flags: u16,
    method: u16,
    checksum: u32,
    packed: u64,
    size: u64,
    header_start: u64,
}

/// The members of an archive in the order of its directory. The error describes the problem with the file.
pub(crate) fn directory(archive: &Bytes) -> Result<Vec<Member>, String> {
    // The record that ends the archive, its comment, and the optional record before it.
    let tail_len = archive.len().min(u64::from(u16::MAX) + 22 + 20);
    let tail_start = archive.len() - tail_len;
    let mut tail = vec![0; tail_len as usize];
    archive.read_at(tail_start, &mut tail)?;
    let end = find_end(&tail).ok_or("it is not a zip archive, or its end is missing")?;
    let mut count = u64::from(u16_at(&tail, end + 10).ok_or("its end is missing")?);
    let mut start = u64::from(u32_at(&tail, end + 16).ok_or("its end is missing")?);
    let mut directory_end = tail_start + end as u64;
    let locator = end.checked_sub(20).filter(|&at| u32_at(&tail, at) == Some(WIDE_DIRECTORY_LOCATOR));
    if let Some(locator) = locator {
        let wide_start = u64_at(&tail, locator + 8).ok_or("its end is missing")?;
        let mut wide = [0; 56];
        let read = archive.read_at(wide_start, &mut wide);
        if read.is_err() || u32_at(&wide, 0) != Some(WIDE_DIRECTORY_END) {
            return Err("its directory was not found".to_string());
        }
        count = u64_at(&wide, 32).ok_or("its directory is truncated")?;
        start = u64_at(&wide, 48).ok_or("its directory is truncated")?;
        directory_end = wide_start;
    }
    let len = directory_end.checked_sub(start).ok_or("its directory was not found")?;
    if len > MAX_DIRECTORY_BYTES {
        return Err(format!("its directory is larger than {} MiB", MAX_DIRECTORY_BYTES >> 20));
    }
    let mut content = vec![0; len as usize];
    archive.read_at(start, &mut content)?;
    let mut members = Vec::new();
    let mut names = BTreeSet::new();
    let mut at = 0;
    for _ in 0..count {
        let (member, next) = directory_entry(&content, at).ok_or("its directory is truncated or damaged")?;
        if !names.insert(member.name.clone()) {
            return Err(format!("it has two members called `{}`", member.name));
        }
        members.push(member);
        at = next;
    }
    Ok(members)
}

/// The record that ends the archive, in its last bytes; a comment may follow it.
fn find_end(tail: &[u8]) -> Option<usize> {
    let last = tail.len().checked_sub(22)?;
    let first = last.saturating_sub(usize::from(u16::MAX));
    (first..=last).rev().find(|&at| {
        let comment = u16_at(tail, at + 20).map(usize::from);
        u32_at(tail, at) == Some(DIRECTORY_END) && comment == Some(tail.len() - at - 22)
    })
}

/// The entry at this offset, and the offset of the next one.
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
    // The extra field repeats, in this order, only the fields that do not fit.
    let mut widen = |narrow: u32| if narrow == IN_EXTRA { wide.next() } else { Some(u64::from(narrow)) };
    let (size, packed, header_start) = (widen(size)?, widen(packed)?, widen(header_start)?);
    let (flags, method, checksum) = (u16_at(entry, 8)?, u16_at(entry, 10)?, u32_at(entry, 16)?);
    entry.get(..end)?;
    Some((Member { name, flags, method, checksum, packed, size, header_start }, at + end))
}

/// The 64-bit numbers of the extra field for large sizes.
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
    /// The member in its stored form.
    pub(crate) fn find(&self, archive: &Bytes) -> Result<Packed, String> {
        if self.flags & 1 != 0 {
            return Err("it is encrypted".to_string());
        }
        let content = self.packed_bytes(archive).ok_or("it is truncated or damaged")?;
        let is_deflated = match self.method {
            0 if self.size == self.packed => false,
            0 => return Err("its sizes contradict each other".to_string()),
            8 => true,
            method => return Err(format!("its compression (method {method}) is not supported")),
        };
        Ok(Packed { content, is_deflated, size: self.size, checksum: self.checksum })
    }

    fn packed_bytes(&self, archive: &Bytes) -> Option<Bytes> {
        let mut header = [0; 30];
        archive.read_at(self.header_start, &mut header).ok()?;
        if u32_at(&header, 0)? != LOCAL_HEADER {
            return None;
        }
        let skipped = 30 + u64::from(u16_at(&header, 26)?) + u64::from(u16_at(&header, 28)?);
        archive.part(self.header_start.checked_add(skipped)?, self.packed)
    }
}

/// The content of a member, stored or deflated.
pub(crate) struct Packed {
    content: Bytes,
    is_deflated: bool,
    /// Its size in bytes, according to the directory.
    pub size: u64,
    checksum: u32,
}

impl Packed {
    /// The first bytes: `len` of them, or all if there are fewer. Their checksum is not verified yet.
    pub(crate) fn head(&self, len: usize) -> Result<Vec<u8>, String> {
        if !self.is_deflated {
            return self.content.head(len);
        }
        let mut head = vec![0; self.size.min(len as u64) as usize];
        if self.inflate(&mut head)?.0 < head.len() {
            return Err(damaged());
        }
        Ok(head)
    }

    /// The content within the archive, if it is not compressed. Its checksum is not verified.
    pub(crate) fn in_place(&self) -> Option<&Bytes> {
        (!self.is_deflated).then_some(&self.content)
    }

    /// The whole content, after its checksum has been verified: in place if it is stored, otherwise decoded.
    pub(crate) fn unpack(&self) -> Result<Bytes, String> {
        if !self.is_deflated {
            let mut checksum = crc32fast::Hasher::new();
            self.content.for_each_piece(|piece| checksum.update(piece))?;
            let is_intact = checksum.finalize() == self.checksum;
            return if is_intact { Ok(self.content.clone()) } else { Err("its checksum is wrong".to_string()) };
        }
        // Maximum growth of a deflate stream: a false size cannot cause an allocation that the file does not justify.
        let most = self.content.len().saturating_mul(1040).saturating_add(64);
        let size = usize::try_from(self.size).ok().filter(|&size| size as u64 <= most).ok_or_else(damaged)?;
        let mut content = vec![0; size];
        if self.inflate(&mut content)? != (size, true) || crc32fast::hash(&content) != self.checksum {
            return Err(damaged());
        }
        Ok(Bytes::owned(content))
    }

    /// Decodes until `out` is full: returns the number of bytes, and whether the stream has ended.
    fn inflate(&self, out: &mut [u8]) -> Result<(usize, bool), String> {
        let mut state = InflateState::new_boxed(DataFormat::Raw);
        let mut input = vec![0; self.content.len().min(1 << 16) as usize];
        let (mut at, mut unread, mut written) = (0, 0..0, 0);
        // The target when `out` is full: a byte written here shows that the stream is longer.
        let mut excess = [0];
        loop {
            if unread.is_empty() {
                let len = (self.content.len() - at).min(input.len() as u64) as usize;
                self.content.read_at(at, &mut input[..len])?;
                (at, unread) = (at + len as u64, 0..len);
            }
            let is_full = written == out.len();
            let target = if is_full { &mut excess[..] } else { &mut out[written..] };
            let done = inflate(&mut state, &input[unread.clone()], target, MZFlush::None);
            unread.start += done.bytes_consumed;
            debug_assert!(unread.start <= unread.end, "more is decoded than there is");
            match done.status {
                _ if is_full && done.bytes_written > 0 => return Ok((written, false)),
                Ok(MZStatus::StreamEnd) => return Ok((written + done.bytes_written, true)),
                Ok(MZStatus::Ok) | Err(MZError::Buf) if done.bytes_consumed + done.bytes_written > 0 => {
                    written += done.bytes_written;
                    debug_assert!(written <= out.len(), "more is written than there is room for");
                }
                // No progress although there is room: the stream is cut off.
                Ok(_) | Err(_) => return Err(damaged()),
            }
        }
    }
}

fn damaged() -> String {
    "its compressed data is damaged".to_string()
}

/// A stored member of an archive that is to be written.
pub(crate) struct StoredMember {
    pub name: String,
    pub size: u64,
    pub checksum: u32,
}

/// Parts of a file with their offsets, in order.
pub(crate) type FileTexts = Vec<(u64, Vec<u8>)>;

/// The parts of an archive of stored members apart from their contents, and the offset of each content.
pub(crate) fn archive(members: &[StoredMember]) -> io::Result<(FileTexts, Vec<u64>)> {
    let mut position = 0;
    let (mut texts, mut contents, mut directory) = (Vec::new(), Vec::new(), Vec::new());
    for StoredMember { name, size, checksum } in members {
        let start = position;
        let wide_size = *size >= u64::from(IN_EXTRA);
        let wide_start = start >= u64::from(IN_EXTRA);
        let name_len = u16::try_from(name.len()).map_err(|_| io::Error::other("the name of a result is too long"))?;

        // Version, flags (names are UTF-8), method, time and date (1 January 1980), checksum, sizes, length of the name.
        let mut common = Vec::new();
        let version: u16 = if wide_size || wide_start { 45 } else { 20 };
        for field in [version, 1 << 11, 0, 0, 0x21] {
            common.extend(field.to_le_bytes());
        }
        common.extend(checksum.to_le_bytes());
        common.extend(narrow(*size, wide_size).to_le_bytes());
        common.extend(narrow(*size, wide_size).to_le_bytes());
        common.extend(name_len.to_le_bytes());

        let wide_sizes = if wide_size { vec![*size, *size] } else { Vec::new() };
        let extra = wide_extra(&wide_sizes);
        let mut header = LOCAL_HEADER.to_le_bytes().to_vec();
        header.extend(&common);
        header.extend((extra.len() as u16).to_le_bytes());
        header.extend(name.as_bytes());
        header.extend(extra);
        contents.push(start + header.len() as u64);
        position = start + header.len() as u64 + size;
        texts.push((start, header));

        let mut wide = wide_sizes;
        if wide_start {
            wide.push(start);
        }
        let extra = wide_extra(&wide);
        directory.extend(DIRECTORY_ENTRY.to_le_bytes());
        directory.extend(version.to_le_bytes());
        directory.extend(&common);
        directory.extend((extra.len() as u16).to_le_bytes());
        // No comment, first disk, no attributes.
        directory.extend([0; 10]);
        directory.extend(narrow(start, wide_start).to_le_bytes());
        directory.extend(name.as_bytes());
        directory.extend(extra);
    }
    debug_assert!(directory.is_empty() == members.is_empty(), "every member is in the directory");
    let size = directory.len() as u64;
    directory.extend(directory_end(position, size, members.len() as u64));
    texts.push((position, directory));
    Ok((texts, contents))
}

/// A number in a field of 32 bits, or the sign that it is in the extra field.
fn narrow(number: u64, wide: bool) -> u32 {
    if wide { IN_EXTRA } else { number as u32 }
}

/// The records after a directory of this number of members, which begins at this offset and has this size.
fn directory_end(start: u64, size: u64, count: u64) -> Vec<u8> {
    debug_assert!(count == 0 || start > 0, "the directory comes behind the members");
    let mut end = Vec::new();
    let is_wide = start >= u64::from(IN_EXTRA) || size >= u64::from(IN_EXTRA) || count >= u64::from(u16::MAX);
    if is_wide {
        end.extend(WIDE_DIRECTORY_END.to_le_bytes());
        end.extend(44u64.to_le_bytes());
        end.extend([45, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        for field in [count, count, size, start] {
            end.extend(field.to_le_bytes());
        }
        end.extend(WIDE_DIRECTORY_LOCATOR.to_le_bytes());
        end.extend(0u32.to_le_bytes());
        end.extend((start + size).to_le_bytes());
        end.extend(1u32.to_le_bytes());
    }
    end.extend(DIRECTORY_END.to_le_bytes());
    end.extend([0; 4]);
    let short_count = if is_wide { u16::MAX } else { count as u16 };
    end.extend(short_count.to_le_bytes());
    end.extend(short_count.to_le_bytes());
    for field in [size, start] {
        end.extend(narrow(field, is_wide).to_le_bytes());
    }
    end.extend([0; 2]);
    end
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

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// An archive of one deflated member; its checksum is 0.
    pub(crate) fn archive_of_deflated(name: &str, packed: &[u8], size: u32) -> Vec<u8> {
        let mut common = Vec::new();
        for field in [20u16, 0, 8, 0, 0x21] {
            common.extend(field.to_le_bytes());
        }
        for field in [0, packed.len() as u32, size] {
            common.extend(field.to_le_bytes());
        }
        common.extend((name.len() as u16).to_le_bytes());
        common.extend([0, 0]);
        let mut content = [&LOCAL_HEADER.to_le_bytes(), &common[..], name.as_bytes(), packed].concat();
        let start = content.len() as u32;
        let entry = [&DIRECTORY_ENTRY.to_le_bytes()[..], &20u16.to_le_bytes(), &common[..], &[0; 14], name.as_bytes()];
        let entry = entry.concat();
        content.extend(&entry);
        content.extend(DIRECTORY_END.to_le_bytes());
        content.extend([0, 0, 0, 0, 1, 0, 1, 0]);
        content.extend((entry.len() as u32).to_le_bytes());
        content.extend(start.to_le_bytes());
        content.extend([0, 0]);
        content
    }
}
