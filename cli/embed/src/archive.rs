//! Leaves out of a static library what no executable contains: debugging information and LLVM code.
//!
//! The objects of Rust's standard library are two thirds these. Their sections keep their places in the table of sections, which
//! symbols, relocations and groups refer to by number, and become empty. Linkers give executables neither: the command links with
//! `-s`, and the LLVM code is marked as not to be loaded.
//!
//! A library is `!<arch>\n`, then members: a header of 60 bytes and a content, padded to an even length. The first one, named `/`,
//! is the index: a number of symbols, and for each the offset of its member (big-endian, 32 bits); then their names. Objects are
//! ELF files of 64 bits, little-endian, as described in the System V application binary interface. All others stay as they are.

const MAGIC: &[u8] = b"!<arch>\n";
const HEADER: usize = 60;
/// The columns of a member's header that have its size.
const SIZE: std::ops::Range<usize> = 48..58;

/// Bytes of the header of an ELF file, and of an entry of its table of sections.
const ELF_HEADER: usize = 64;
const SECTION_HEADER: usize = 64;
/// The type of sections without content in the file.
const NO_CONTENT: u32 = 8;
/// The flag of sections that are part of a running program.
const ALLOCATED: u64 = 2;

/// The library with smaller objects. None if it does not have the form above.
pub fn without_debugging(library: &[u8]) -> Option<Vec<u8>> {
    let mut out = library.get(..MAGIC.len()).filter(|magic| *magic == MAGIC)?.to_vec();
    let mut moved = Vec::new();
    let mut at = MAGIC.len();
    while at < library.len() {
        let header = library.get(at..at + HEADER)?;
        let size: usize = std::str::from_utf8(&header[SIZE]).ok()?.trim_end().parse().ok()?;
        let content = library.get(at + HEADER..at + HEADER + size)?;
        moved.push((at, out.len()));
        let smaller = smaller_object(content);
        let content = smaller.as_deref().unwrap_or(content);
        out.extend(header);
        let place = out.len() - HEADER;
        out[place..][SIZE].copy_from_slice(format!("{:<10}", content.len()).as_bytes());
        out.extend(content);
        out.resize(out.len().next_multiple_of(2), b'\n');
        at = (at + HEADER + size).next_multiple_of(2);
    }
    move_index(&mut out, &moved)?;
    Some(out)
}

/// Makes the index refer to the new offsets of the members. It is the first of them, and its own position is fixed.
fn move_index(library: &mut [u8], moved: &[(usize, usize)]) -> Option<()> {
    if !library.get(MAGIC.len()..)?.starts_with(b"/ ") {
        return None;
    }
    let index = library.get_mut(MAGIC.len() + HEADER..)?;
    let word = |index: &[u8], at: usize| Some(u32::from_be_bytes(index.get(at..at + 4)?.try_into().ok()?));
    for symbol in 1..=word(index, 0)? as usize {
        let old = word(index, 4 * symbol)? as usize;
        let place = moved.binary_search_by_key(&old, |&(from, _)| from).ok()?;
        let new = u32::try_from(moved[place].1).ok()?;
        index[4 * symbol..4 * symbol + 4].copy_from_slice(&new.to_be_bytes());
    }
    Some(())
}

/// An object without the contents of these sections. None if it is not an object of the known form.
fn smaller_object(object: &[u8]) -> Option<Vec<u8>> {
    // 64 bits, little-endian, version 1; relocatable.
    if !object.starts_with(b"\x7fELF\x02\x01\x01") || number(object, 16, 2)? != 1 {
        return None;
    }
    let table = number(object, 0x28, 8)?;
    // Large numbers are in the first entry.
    let count = match number(object, 0x3c, 2)? {
        0 => number(object, table + 0x20, 8)?,
        count => count,
    };
    let names = match number(object, 0x3e, 2)? {
        0xffff => number(object, table + 0x28, 4)?,
        names => names,
    };
    let entry = |section: usize| object.get(table + SECTION_HEADER * section..)?.get(..SECTION_HEADER);
    let names = number(entry(names)?, 0x18, 8)?;

    let mut out = object.get(..ELF_HEADER)?.to_vec();
    let mut entries = Vec::with_capacity(SECTION_HEADER * count);
    for section in 0..count {
        let mut entry = entry(section)?.to_vec();
        let name = object.get(names + number(&entry, 0, 4)?..)?.split(|&byte| byte == 0).next()?;
        let is_allocated = number(&entry, 0x08, 8)? as u64 & ALLOCATED != 0;
        let (kind, offset) = (number(&entry, 0x04, 4)? as u32, number(&entry, 0x18, 8)?);
        let mut size = number(&entry, 0x20, 8)?;
        // The first entry is no section; its fields have other meanings.
        if section > 0 {
            if !is_allocated && is_left_out(name) {
                size = 0;
                entry[0x20..0x28].fill(0);
            }
            let alignment = number(&entry, 0x30, 8)?.max(1);
            out.resize(out.len().next_multiple_of(alignment), 0);
            entry[0x18..0x20].copy_from_slice(&(out.len() as u64).to_le_bytes());
            if kind != NO_CONTENT {
                out.extend(object.get(offset..offset + size)?);
            }
        }
        entries.extend(entry);
    }
    out.resize(out.len().next_multiple_of(8), 0);
    let table = out.len() as u64;
    out[0x28..0x30].copy_from_slice(&table.to_le_bytes());
    out.extend(entries);
    Some(out)
}

fn is_left_out(name: &[u8]) -> bool {
    [&b".debug_"[..], b".rela.debug_", b".llvmbc", b".llvmcmd"].iter().any(|prefix| name.starts_with(prefix))
}

/// A little-endian number of some bytes.
fn number(bytes: &[u8], at: usize, size: usize) -> Option<usize> {
    let bytes = bytes.get(at..at.checked_add(size)?)?;
    usize::try_from(bytes.iter().rev().fold(0_u64, |number, &byte| number << 8 | u64::from(byte))).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// An object of sections with these names, flags and contents, after the empty one and the names.
    fn object(sections: &[(&str, u64, &[u8])]) -> Vec<u8> {
        let mut names = b"\0.shstrtab\0".to_vec();
        let mut all = vec![(1, 0, Vec::new())];
        for (name, flags, content) in sections {
            all.push((names.len(), *flags, content.to_vec()));
            names.extend([name.as_bytes(), b"\0"].concat());
        }
        all[0].2 = names;
        let mut out = [&b"\x7fELF\x02\x01\x01"[..], &[0; 9], &[1, 0], &[0; 46]].concat();
        let mut entries = vec![0; SECTION_HEADER];
        for (name, flags, content) in &all {
            let mut entry = [0; SECTION_HEADER];
            entry[..4].copy_from_slice(&(*name as u32).to_le_bytes());
            entry[0x04] = 1;
            entry[0x08..0x10].copy_from_slice(&flags.to_le_bytes());
            entry[0x18..0x20].copy_from_slice(&out.len().to_le_bytes());
            entry[0x20..0x28].copy_from_slice(&content.len().to_le_bytes());
            out.extend(content);
            entries.extend(entry);
        }
        let table = out.len().to_le_bytes();
        out[0x28..0x30].copy_from_slice(&table);
        out[0x3c..0x3e].copy_from_slice(&(all.len() as u16 + 1).to_le_bytes());
        out[0x3e] = 1;
        [out, entries].concat()
    }

    /// The contents of all sections but the first.
    fn contents(object: &[u8]) -> Vec<Vec<u8>> {
        let table = number(object, 0x28, 8).unwrap();
        let entries = object[table..].chunks(SECTION_HEADER).skip(1);
        let content = |entry: &[u8]| {
            let [offset, size] = [0x18, 0x20].map(|at| number(entry, at, 8).unwrap());
            object[offset..offset + size].to_vec()
        };
        entries.map(content).collect()
    }

    fn member(name: &str, content: &[u8]) -> Vec<u8> {
        let mut out = format!("{name:<48}{:<10}`\n", content.len()).into_bytes();
        out.extend(content);
        out.resize(out.len().next_multiple_of(2), b'\n');
        out
    }

    #[test]
    fn sections_become_empty_and_keep_their_numbers() {
        let whole =
            object(&[(".text", 6, b"code"), (".debug_info", 0, b"lines"), (".llvmbc", 0, b"bits"), (".note", 0, b"n")]);
        let small = smaller_object(&whole).unwrap();
        assert_eq!(contents(&small)[1..], [&b"code"[..], b"", b"", b"n"]);
        assert_eq!(contents(&small)[0], contents(&whole)[0]);
        let allocated = object(&[(".debug_info", ALLOCATED, b"lines")]);
        assert_eq!(contents(&smaller_object(&allocated).unwrap())[1], b"lines");
        assert_eq!(smaller_object(b"text"), None);
        assert_eq!(smaller_object(&whole[..whole.len() - 1]), None);
    }

    #[test]
    fn the_index_follows_the_members() {
        let objects = [object(&[(".debug_str", 0, b"odd")]), b"no object".to_vec(), object(&[(".text", 6, b"c")])];
        let members: Vec<Vec<u8>> = objects.iter().map(|content| member("m/", content)).collect();
        let offsets = |members: &[Vec<u8>]| {
            let first = MAGIC.len() + HEADER + 16;
            (0..3_usize).map(|at| first + members[..at].iter().map(Vec::len).sum::<usize>()).collect::<Vec<_>>()
        };
        let library = |members: &[Vec<u8>]| {
            let numbers = std::iter::once(3).chain(offsets(members));
            let index: Vec<u8> = numbers.flat_map(|number| (number as u32).to_be_bytes()).collect();
            [MAGIC, &member("/", &index), &members.concat()].concat()
        };
        let smaller: Vec<Vec<u8>> =
            objects.iter().map(|content| member("m/", &smaller_object(content).unwrap_or(content.clone()))).collect();
        assert_ne!(offsets(&members), offsets(&smaller));
        assert_eq!(without_debugging(&library(&members)).unwrap(), library(&smaller));
        assert_eq!(without_debugging(b"!<arch>\nshort"), None);
    }
}
