//! The labels of an `einsum`.

use spmdc_einsum_ops::spec::parse;
use spmdc_grammar::codes::Code;

fn read(text: &str, ranks: &[usize]) -> String {
    match parse(text, ranks) {
        Ok(spec) => {
            let inputs: Vec<String> = spec.inputs.iter().map(|labels| labels.iter().collect()).collect();
            format!("{}->{}", inputs.join(","), spec.output.iter().collect::<String>())
        }
        Err(mismatch) => {
            assert_eq!(mismatch.code, Code::E0216);
            mismatch.message
        }
    }
}

#[test]
fn results_can_be_implied() {
    assert_eq!(read("ij, jk", &[2, 2]), "ij,jk->ik");
    assert_eq!(read("ba", &[2]), "ba->ab");
    assert_eq!(read("ii", &[2]), "ii->");
}

#[test]
fn dots_stand_for_the_leading_dimensions() {
    assert_eq!(read("...ij,jk->...ik", &[4, 2]), "ABij,jk->ABik");
    assert_eq!(read("...i,...i", &[3, 2]), "ABi,Bi->AB");
    assert_eq!(read("i...->...i", &[1]), "i->i");
    assert_eq!(read("A...,...->A...", &[2, 1]), "AB,B->AB");
}

#[test]
fn mistakes_are_named() {
    assert!(read("ij,jk", &[2]).contains("takes 2 operands, but 1 was given"));
    assert!(read("ij->i", &[3]).contains("operand 1 has 3 dimensions, but \"ij->i\" has 2 labels for it"));
    assert!(read("ij->ii", &[2]).contains("label i occurs twice"));
    assert!(read("ij->k", &[2]).contains("label k"));
    assert!(read("i$->i", &[2]).contains("invalid label `$`"));
    assert!(read("...i...", &[2]).contains("twice"));
    assert!(read("...i->i", &[2]).contains("must contain `...`"));
}
