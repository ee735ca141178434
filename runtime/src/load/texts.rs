//! Prepares texts: printed lines, errors, and names of files.

use super::{Loader, PrintedText};
use crate::errors::trap::RunError;
use crate::processes::plans::Senders;
use crate::processes::reads::DeviceReads;
use crate::run::device::Action;
use crate::run::shared::PreparedText;
use crate::text::print::PreparedPrint;
use spmdc_abi::TextPurpose;

impl Loader<'_> {
    pub(crate) fn print(&mut self, step: &PrintedText<'_>) -> Result<(), RunError> {
        let PrintedText { text, values, purpose, site } = *step;
        let print = self.out.prints.len();
        let what = match purpose {
            TextPurpose::Line | TextPurpose::Error => "print",
            TextPurpose::FileName(_) => "save",
        };
        let first = self.first();
        let mut prepared = PreparedPrint::new((text, values.to_vec()), purpose, site, self.axes, self.memory, first)?;
        // All processes come to a `save` before any goes on: see `save`.
        let senders = if prepared.saves() { Senders::AllToAll } else { Senders::AllToFirst };
        self.sync(self.mesh.axes(), site, what)?;
        let of_first = |reads: &mut DeviceReads<'_>, device: usize| {
            if device == first {
                prepared.read(reads);
            }
            Ok(())
        };
        self.planned((self.mesh.axes(), senders), (site, what), of_first)?;
        debug_assert_eq!(self.out.prints.len(), print, "no other text has this number");
        self.out.prints.push(Box::new(prepared));
        self.emit(site, what, |_, _| Action::Print { print });
        self.sync(self.mesh.axes(), site, what)
    }
}
