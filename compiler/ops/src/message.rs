//! `send(x, channel=0)` and `receive(f32[4, 8], channel=0)`: the two ends of a `transfer`, in the programs of two meshes.
//!
//! A program with several meshes is compiled as one program for each of them, and a transferred value leaves one and enters another. Both
//! ends have an effect: they stay, in their order, so that the devices of both meshes make the same moves. The layouts of the two ends are
//! chosen separately; the runtime moves boxes of elements between any two.
//!
//! In a manual function a value may vary over axes that both meshes have. Then one array is moved, with a row for each of their
//! coordinates, major to minor. Every device has one row, its own value. So blocks go to the same coordinates without another rule of the
//! runtime.

use crate::collective::axis_set;
use crate::print::any_layout;
use spmdc_abi::{Layout, LayoutDim, LibraryDim, LibraryFunction, Message, Scalar};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::array::{Array, Trap};
use spmdc_ir::call::Call;
use spmdc_ir::call::arg::as_axes;
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::signature::{Signature, signatures};
use spmdc_ir::call::term::Term;
use spmdc_ir::lower::calls::{CallArray, LibraryCalls};
use spmdc_ir::lower::work::{Lowering, layout_of};
use spmdc_ir::mismatch::Mismatch;
use spmdc_ir::program::{Stmt, Value};
use spmdc_ir::rules::batching::Batching;
use spmdc_ir::rules::derivative::Derivative;
use spmdc_ir::rules::{
    Combines, Effect, Elements, Infer, Linear, Lowered, Manual, NamedAxes, NestLowering, Placement, Properties, Reads,
    Rules, Semantics, Typing,
};
use spmdc_ir::stablehlo::Exported;
use spmdc_layout::cost;
use spmdc_layout::factors::{FactorKind, Factors};
use spmdc_layout::mesh::Mesh;
use spmdc_layout::sharding::Sharding;
use spmdc_layout::types::ArrayType;

/// The end of a transfer at which the value leaves; it has no result.
#[derive(Clone, Debug, PartialEq)]
pub struct SendMessage {
    /// The number of the transfer in the program.
    pub channel: u32,
    /// The manual axes over which the value varies, in the order of the receiver.
    pub varying: Vec<u8>,
}

/// The end of a transfer at which the value arrives; it has no operand.
#[derive(Clone, Debug, PartialEq)]
pub struct ReceiveMessage {
    /// The number of the transfer in the program.
    pub channel: u32,
    /// The element type and shape of the value.
    pub ty: ArrayType,
    /// Its layout on explicit axes.
    pub out: Option<Sharding>,
    /// The manual axes over which the value varies, in the order of the sender.
    pub varying: Vec<u8>,
}

/// The layout of the moved array, and a device's block of it.
fn moved(lowering: &Lowering<'_>, value: Value, varying: &[u8]) -> (Layout, CallArray) {
    let ty = lowering.ty(value);
    debug_assert_eq!(ty.varying, axis_set(varying), "a message has a row for each value");
    let mut layout = layout_of(ty);
    let mut array = lowering.call_array(value, &(0..ty.rank()).collect::<Vec<_>>());
    if !varying.is_empty() {
        let rows = lowering.mesh.size_of(varying);
        layout.dims.insert(0, LayoutDim { size: rows, axes: varying.to_vec() });
        let stride = (ty.block_bytes(lowering.mesh) / ty.dtype().size()) as i64;
        array.dims.insert(0, LibraryDim { extent: Scalar::Const(1), stride });
    }
    (layout, array)
}

/// The axes as an argument in a dump.
fn shown(varying: &[u8], mesh: &Mesh) -> String {
    if varying.is_empty() { String::new() } else { format!(", varying={}", mesh.display_axes(varying)) }
}

impl Semantics for SendMessage {
    fn name(&self) -> &'static str {
        "send"
    }

    fn typing(&self) -> Typing<'_> {
        Typing::ByFactors(self)
    }

    fn factors(&self, args: &[&ArrayType], _: &[&ArrayType]) -> Factors {
        any_layout(args)
    }

    fn eval(&self, _: &[&Array]) -> Result<Vec<Array>, Trap> {
        Ok(Vec::new())
    }

    fn print(&self, args: &[String], mesh: &Mesh) -> String {
        format!("send({}, channel={}{})", args[0], self.channel, shown(&self.varying, mesh))
    }

    fn flops(&self, _: &[&ArrayType], _: &[&ArrayType]) -> u64 {
        0
    }
}

impl Infer for SendMessage {
    fn infer(&self, _: &[&ArrayType]) -> Result<Vec<ArrayType>, Mismatch> {
        Ok(Vec::new())
    }
}

impl Rules for SendMessage {
    fn derivative(&self) -> Derivative<'_> {
        Derivative::Zero
    }

    fn batching(&self, _: usize) -> Batching<'_> {
        Batching::Never
    }

    fn lowered(&self) -> Lowered<'_> {
        Lowered::Nest(self)
    }

    fn properties(&self) -> Properties<'_> {
        crate::print::properties(Effect::Message)
    }

    fn stablehlo(&self) -> Exported<'_> {
        Exported::Missing("transfer between meshes")
    }

    fn named_axes(&mut self) -> Vec<NamedAxes<'_>> {
        vec![NamedAxes::List(&mut self.varying)]
    }
}

impl NestLowering for SendMessage {
    fn lower(&self, lowering: &mut Lowering<'_>, stmt: &Stmt) -> Result<(), Diagnostic> {
        let value = stmt.args[0];
        let ty = lowering.ty(value);
        let (layout, array) = moved(lowering, value, &self.varying);
        lowering.library(LibraryCalls {
            function: LibraryFunction::Send(Message { channel: self.channel, layout }),
            operands: vec![array],
            results: Vec::new(),
            batch: Vec::new(),
            owners: None,
            cost: cost::of_reading(ty.block_bytes(lowering.mesh)),
            checks: Vec::new(),
        });
        Ok(())
    }

    fn reads(&self, _: usize, _: &[&ArrayType]) -> Reads {
        Reads::Buffer
    }
}

impl Semantics for ReceiveMessage {
    fn name(&self) -> &'static str {
        "receive"
    }

    fn typing(&self) -> Typing<'_> {
        Typing::ByFactors(self)
    }

    fn factors(&self, _: &[&ArrayType], results: &[&ArrayType]) -> Factors {
        let mut rule = Factors::new();
        let dims = results[0].shape.iter().map(|&size| vec![rule.add(size, FactorKind::Pass)]).collect();
        rule.results.push(dims);
        rule
    }

    /// This mesh alone does not know the received value: a part of a program is not evaluated separately.
    fn eval(&self, _: &[&Array]) -> Result<Vec<Array>, Trap> {
        let message = "a value arrives from another mesh".to_string();
        Err(Trap { code: Code::E0999, message })
    }

    fn print(&self, _: &[String], mesh: &Mesh) -> String {
        let out = self.out.as_ref().map_or(String::new(), |out| format!(", out={}", out.display(mesh)));
        let varying = shown(&self.varying, mesh);
        format!("receive({}, channel={}{out}{varying})", self.ty, self.channel)
    }

    fn flops(&self, _: &[&ArrayType], _: &[&ArrayType]) -> u64 {
        0
    }
}

impl Infer for ReceiveMessage {
    fn infer(&self, _: &[&ArrayType]) -> Result<Vec<ArrayType>, Mismatch> {
        Ok(vec![self.ty.clone()])
    }
}

impl Rules for ReceiveMessage {
    fn derivative(&self) -> Derivative<'_> {
        Derivative::Zero
    }

    fn batching(&self, _: usize) -> Batching<'_> {
        Batching::Never
    }

    fn lowered(&self) -> Lowered<'_> {
        Lowered::Nest(self)
    }

    fn properties(&self) -> Properties<'_> {
        Properties {
            effect: Effect::Message,
            manual: if self.varying.is_empty() { Manual::Local } else { Manual::Varies(axis_set(&self.varying)) },
            placement: Placement::Out(self.out.as_ref()),
            linear: Linear::No,
            combines: Combines::Nothing,
            elements: Elements::Other,
            keeps_alignment: false,
        }
    }

    fn stablehlo(&self) -> Exported<'_> {
        Exported::Missing("transfer between meshes")
    }

    fn named_axes(&mut self) -> Vec<NamedAxes<'_>> {
        let layout = self.out.iter_mut().map(NamedAxes::Layout);
        layout.chain([NamedAxes::List(&mut self.varying)]).collect()
    }
}

impl NestLowering for ReceiveMessage {
    fn lower(&self, lowering: &mut Lowering<'_>, stmt: &Stmt) -> Result<(), Diagnostic> {
        let value = stmt.results[0];
        let ty = lowering.ty(value);
        let (layout, array) = moved(lowering, value, &self.varying);
        lowering.library(LibraryCalls {
            function: LibraryFunction::Receive(Message { channel: self.channel, layout }),
            operands: Vec::new(),
            results: vec![array],
            batch: Vec::new(),
            owners: None,
            cost: cost::of_reading(ty.block_bytes(lowering.mesh)),
            checks: Vec::new(),
        });
        Ok(())
    }

    fn reads(&self, _: usize, _: &[&ArrayType]) -> Reads {
        Reads::Buffer
    }
}

/// The number of a transfer in a dump.
fn channel(args: &mut Args<'_>) -> Result<u32, Diagnostic> {
    let channel = args.int("channel")?;
    u32::try_from(channel)
        .map_err(|_| Diagnostic::error(Code::E0227, args.span, format!("unknown transfer number {channel}")))
}

/// The axes over which a value varies in a dump.
fn varying(args: &mut Args<'_>) -> Result<Vec<u8>, Diagnostic> {
    args.take("varying").map_or(Ok(Vec::new()), |arg| as_axes(&arg, "varying"))
}

impl Call for SendMessage {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// A value leaves for another mesh.
        send(x: Array, [named] channel: Int, [named] varying: Axes = None) in_dumps "" "write transfer(x, mesh)";
    };

    fn call(_: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let channel = channel(args)?;
        let (value, varying) = (args.array(build, "x")?, varying(args)?);
        build.emit(SendMessage { channel, varying }, &[value])?;
        Ok(Term::Tuple(Vec::new()))
    }
}

impl Call for ReceiveMessage {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// A value arrives from another mesh.
        receive(type: Type, [named] channel: Int, [named] out: Sharding = None, [named] varying: Axes = None)
        in_dumps "" "write transfer(x, mesh)";
    };

    fn call(_: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let channel = channel(args)?;
        let ty = args.ty("type")?.array;
        let out = args.optional_sharding("out")?.map(|(out, _)| out.sharding);
        let varying = varying(args)?;
        Ok(Term::Array(build.emit1(ReceiveMessage { channel, ty, out, varying }, &[])?))
    }
}
