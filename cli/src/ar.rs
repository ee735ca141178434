//! Adds an object to a static library.
//!
//! The tool `ar` would rebuild the index of the whole library, and some of its versions mistake the objects of the Rust library,
//! which also contain LLVM code, for objects without symbols. This module keeps the index of the library, and adds one symbol.
//!
//! A library is `!<arch>\n`, then members, each a header of 60 bytes and its content, padded to an even length. The first one,
//! named `/`, is the index: the number of symbols, for each of them the offset of its member (big-endian, 32 bits), and their names.

use std::ops::Range;

const MAGIC: &[u8] = b"!<arch>\n";
const HEADER: usize = 60;

/// The library with one more member, which defines `symbol`. None if the library does not have the form above.
pub fn with_member(library: &[u8], name: &str, object: &[u8], symbol: &str) -> Option<Vec<u8>> {
    let header = library.strip_prefix(MAGIC)?.get(..HEADER)?;
    if !header.starts_with(b"/ ") {
        return None;
    }
    let begin = MAGIC.len() + HEADER;
    let size: usize = std::str::from_utf8(&header[48..58]).ok()?.trim_end().parse().ok()?;
    let index = library.get(begin..begin + size)?;
    let rest = library.get(begin + size.next_multiple_of(2)..)?;

    let word = |at: Range<usize>| Some(u32::from_be_bytes(index.get(at)?.try_into().ok()?));
    let count = word(0..4)? as usize;
    let names = index.get(4 + 4 * count..)?;
    let names_end = names.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 2).min(names.len());
    let names = [&names[..names_end], symbol.as_bytes(), b"\0"].concat();
    let new_size = 4 + 4 * (count + 1) + names.len();
    let moved = i64::try_from(new_size.next_multiple_of(2)).ok()? - i64::try_from(size.next_multiple_of(2)).ok()?;

    let mut out = [MAGIC, &member("/", new_size)].concat();
    out.extend(u32::try_from(count + 1).ok()?.to_be_bytes());
    for at in 0..count {
        let offset = i64::from(word(4 + 4 * at..8 + 4 * at)?) + moved;
        out.extend(u32::try_from(offset).ok()?.to_be_bytes());
    }
    let padded = |bytes: usize| bytes.next_multiple_of(2);
    let end = begin + padded(new_size) + padded(rest.len());
    out.extend(u32::try_from(end).ok()?.to_be_bytes());
    out.extend(names);
    for part in [rest, &member(&format!("{name}/"), object.len()), object] {
        out.resize(padded(out.len()), b'\n');
        out.extend(part);
    }
    out.resize(padded(out.len()), b'\n');
    Some(out)
}

/// The header of a member: name, time, owner, group, mode and size, in columns.
fn member(name: &str, size: usize) -> Vec<u8> {
    format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{size:<10}`\n", 0, 0, 0, 644).into_bytes()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// The contents of the index: for each symbol the header and content of its member.
    fn symbols(library: &[u8]) -> Vec<(String, String)> {
        let count = u32::from_be_bytes(library[68..72].try_into().unwrap()) as usize;
        let names = String::from_utf8_lossy(&library[72 + 4 * count..]).into_owned();
        let found = names.split('\0').take(count).enumerate().map(|(i, name)| {
            let offset = u32::from_be_bytes(library[72 + 4 * i..76 + 4 * i].try_into().unwrap()) as usize;
            let header = String::from_utf8_lossy(&library[offset..offset + HEADER]).into_owned();
            let size: usize = header[48..58].trim().parse().unwrap();
            let content = String::from_utf8_lossy(&library[offset + HEADER..offset + HEADER + size]).into_owned();
            (name.to_string(), format!("{} {content}", header[..16].trim()))
        });
        found.collect()
    }

    #[test]
    fn every_symbol_leads_to_its_member() {
        let mut library = [MAGIC, &member("/", 4), &[0; 4]].concat();
        let mut expected = Vec::new();
        for (symbol, content) in [("a", "odd"), ("bc", "even"), ("def", "fifth"), ("spmd", "")] {
            let name = format!("{symbol}.o");
            library = with_member(&library, &name, content.as_bytes(), symbol).unwrap();
            expected.push((symbol.to_string(), format!("{name}/ {content}")));
            assert_eq!(symbols(&library), expected);
        }
        assert_eq!(with_member(b"!<arch>\nshort", "a.o", b"", "a"), None);
        assert_eq!(with_member(&library[..90], "a.o", b"", "a"), None);
    }
}
