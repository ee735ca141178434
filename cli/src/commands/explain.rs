//! `spmdc explain E0301`: the long text of a diagnostic.

use std::fmt::Write as _;

use spmdc_grammar::codes::Code;
use spmdc_runtime::trap::RunError;

/// Every code and its page, from `docs/errors`.
static PAGES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/pages.rs"));

/// The page of a code, or the list of all codes.
pub fn explain(code: Option<&str>) -> Result<String, RunError> {
    let Some(name) = code else {
        return Ok(list());
    };
    let page = PAGES.iter().find(|(code, _)| code.eq_ignore_ascii_case(name));
    page.map(|(_, text)| text.to_string()).ok_or_else(|| {
        RunError::new("E0702", format!("there is no diagnostic `{name}`"))
            .with_help("a code is the letter E and four digits; `spmdc explain` lists all of them")
    })
}

fn list() -> String {
    let mut text = String::new();
    for code in Code::ALL {
        let _ = writeln!(text, "{}  {}", code.name(), code.title());
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_code_has_a_page_under_its_own_title() {
        for code in Code::ALL {
            let page = explain(Some(code.name())).unwrap();
            assert!(page.starts_with(&format!("# {}: {}\n", code.name(), code.title())), "{page}");
        }
        assert!(explain(Some("e0301")).is_ok());
        assert_eq!(explain(Some("E1234")).unwrap_err().code, "E0702");
        assert_eq!(explain(None).unwrap().lines().count(), Code::ALL.len());
    }
}
