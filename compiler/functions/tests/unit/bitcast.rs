//! The bits of elements as other types.

use spmdc_grammar::codes::Code;
use spmdc_ir::array::Array;
use spmdc_ir::rules::{Infer, Semantics};
use spmdc_layout::mesh::Mesh;
use spmdc_layout::types::{ArrayType, DType};
use spmdc_ops::bitcast::Bitcast;

#[test]
fn every_bit_stays() {
    let signalling = 0x7fa0_0001;
    let x = Array::new(ArrayType::new(DType::U32, &[3]), vec![0x8000_0000, signalling, 1]);
    let y = Bitcast { to: DType::F32 }.eval(&[&x]).unwrap();
    assert_eq!((y[0].dtype(), &y[0].bits), (DType::F32, &x.bits));
    assert_eq!(Bitcast { to: DType::I32 }.print(&["v1".to_string()], &Mesh::default()), "bitcast(v1, i32)");
}

#[test]
fn types_are_numbers_of_one_size() {
    let infer = |from, to| Bitcast { to }.infer(&[&ArrayType::new(from, &[3])]);
    assert_eq!(infer(DType::Bf16, DType::F16).unwrap(), [ArrayType::new(DType::F16, &[3])]);
    for (from, to) in [(DType::F32, DType::F64), (DType::Bool, DType::U8), (DType::U64, DType::Key)] {
        assert_eq!(infer(from, to).unwrap_err().code, Code::E0215);
    }
}
