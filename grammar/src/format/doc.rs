//! A document with alternative layouts, and the choice among them (Wadler, "A prettier printer", 2003).
//!
//! A group is printed on one line if it fits together with the text up to the next possible line break, otherwise with a line break at each
//! of its own lines. Comments always end their line, so the groups around them are broken.

/// Spaces of one level of indentation.
const INDENT: usize = 2;

/// A text with possible line breaks.
#[derive(Debug)]
pub enum Doc<'s> {
    /// Text without line breaks.
    Text(&'s str),
    /// A space, or a line break in a broken group.
    Line,
    /// Nothing, or a line break in a broken group.
    SoftLine,
    /// A line break.
    HardLine,
    /// A line break, and an empty line before the next text.
    BlankLine,
    /// Text in a broken group only.
    IfBroken(&'s str),
    /// A comment after other text on its line.
    Trailing(&'s str),
    /// A comment on a separate line.
    Comment(&'s str),
    /// Parts in a row.
    Concat(DocRow<'s>),
    /// Parts whose line breaks are indented further.
    Nest(DocRow<'s>),
    /// Parts that are laid out on one line, or broken.
    Group(DocRow<'s>),
    /// Parts that stay on one line, even if they do not fit.
    Flat(DocRow<'s>),
    /// Numbers, each with its sign, with a comma and a space between neighbours, as many on each line as fit.
    Fill(Vec<[&'s str; 2]>),
}

/// Parts in a row.
#[derive(Debug)]
pub struct DocRow<'s> {
    parts: Vec<Doc<'s>>,
    /// Whether one of them has a line break in every layout.
    breaks: bool,
}

impl<'s> Doc<'s> {
    pub fn concat(parts: Vec<Doc<'s>>) -> Doc<'s> {
        Doc::Concat(DocRow::new(parts))
    }

    pub fn nest(parts: Vec<Doc<'s>>) -> Doc<'s> {
        Doc::Nest(DocRow::new(parts))
    }

    pub fn group(parts: Vec<Doc<'s>>) -> Doc<'s> {
        Doc::Group(DocRow::new(parts))
    }

    pub fn flat(parts: Vec<Doc<'s>>) -> Doc<'s> {
        Doc::Flat(DocRow::new(parts))
    }

    /// Whether it has a line break in every layout.
    pub fn breaks(&self) -> bool {
        match self {
            Doc::Text(_) | Doc::Line | Doc::SoftLine | Doc::IfBroken(_) | Doc::Fill(_) => false,
            Doc::HardLine | Doc::BlankLine | Doc::Trailing(_) | Doc::Comment(_) => true,
            Doc::Concat(row) | Doc::Nest(row) | Doc::Group(row) | Doc::Flat(row) => row.breaks,
        }
    }
}

impl<'s> DocRow<'s> {
    fn new(parts: Vec<Doc<'s>>) -> DocRow<'s> {
        let breaks = parts.iter().any(Doc::breaks);
        DocRow { parts, breaks }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum LineMode {
    Flat,
    Broken,
}

/// A document that is to be printed, with its indentation.
#[derive(Clone, Copy)]
struct DocTask<'d, 's> {
    indent: usize,
    mode: LineMode,
    doc: &'d Doc<'s>,
}

struct DocPrinter {
    out: String,
    /// The columns of the current line that are in use.
    column: usize,
    /// Line breaks that are printed before the next text.
    breaks: usize,
    width: usize,
}

/// The text of a document, in lines of at most `width` columns where it has enough places to break. It ends with a line break unless it is
/// empty.
pub fn print(doc: &Doc<'_>, width: usize) -> String {
    let mut printer = DocPrinter { out: String::new(), column: 0, breaks: 0, width };
    let mut tasks = vec![DocTask { indent: 0, mode: LineMode::Broken, doc }];
    while let Some(DocTask { indent, mode, doc }) = tasks.pop() {
        match doc {
            Doc::Text(text) => printer.text(indent, text),
            Doc::IfBroken(text) if mode == LineMode::Broken => printer.text(indent, text),
            Doc::IfBroken(_) => {}
            Doc::Line if mode == LineMode::Flat => printer.text(indent, " "),
            Doc::SoftLine if mode == LineMode::Flat => {}
            Doc::Line | Doc::SoftLine | Doc::HardLine => printer.breaks = printer.breaks.max(1),
            Doc::BlankLine => printer.breaks = 2,
            Doc::Trailing(text) => {
                printer.text(indent, "  ");
                printer.text(indent, text);
                printer.breaks = 1;
            }
            Doc::Comment(text) => {
                printer.breaks = printer.breaks.max(1);
                printer.text(indent, text);
                printer.breaks = 1;
            }
            Doc::Concat(row) => push(&mut tasks, indent, mode, row),
            Doc::Nest(row) => push(&mut tasks, indent + INDENT, mode, row),
            Doc::Group(row) => {
                let is_flat =
                    mode == LineMode::Flat || !row.breaks && printer.fits((indent, LineMode::Flat, doc), &tasks);
                push(&mut tasks, indent, if is_flat { LineMode::Flat } else { LineMode::Broken }, row);
            }
            Doc::Flat(row) => push(&mut tasks, indent, if row.breaks { mode } else { LineMode::Flat }, row),
            Doc::Fill(numbers) => printer.fill(indent, mode, numbers),
        }
    }
    if !printer.out.is_empty() {
        printer.out.push('\n');
    }
    printer.out
}

fn push<'d, 's>(tasks: &mut Vec<DocTask<'d, 's>>, indent: usize, mode: LineMode, row: &'d DocRow<'s>) {
    tasks.extend(row.parts.iter().rev().map(|doc| DocTask { indent, mode, doc }));
}

impl DocPrinter {
    fn text(&mut self, indent: usize, text: &str) {
        if text.is_empty() || self.breaks > 0 && text.trim().is_empty() {
            return;
        }
        if self.breaks > 0 {
            if !self.out.is_empty() {
                self.out.extend(std::iter::repeat_n('\n', self.breaks));
            }
            self.out.extend(std::iter::repeat_n(' ', indent));
            self.column = indent;
            self.breaks = 0;
        }
        self.out.push_str(text);
        self.column += text.chars().count();
    }

    /// Whether a document, and the tasks after it up to a line break, fit on the line.
    fn fits<'s>(&self, (indent, mode, doc): (usize, LineMode, &Doc<'s>), after: &[DocTask<'_, 's>]) -> bool {
        let used = if self.breaks > 0 { indent } else { self.column };
        let Some(mut left) = self.width.checked_sub(used) else { return false };
        let mut rest = after.iter().rev();
        let mut tasks: Vec<(LineMode, &Doc<'s>)> = vec![(mode, doc)];
        loop {
            let Some((mode, doc)) = tasks.pop().or_else(|| rest.next().map(|task| (task.mode, task.doc))) else {
                return true;
            };
            let width = match doc {
                Doc::Text(text) => text.chars().count(),
                Doc::IfBroken(text) if mode == LineMode::Broken => text.chars().count(),
                Doc::IfBroken(_) => 0,
                Doc::Line if mode == LineMode::Flat => 1,
                Doc::SoftLine if mode == LineMode::Flat => 0,
                // Comments do not count: they may be long.
                Doc::Line | Doc::SoftLine | Doc::HardLine | Doc::BlankLine | Doc::Trailing(_) | Doc::Comment(_) => {
                    return true;
                }
                Doc::Concat(row) | Doc::Nest(row) | Doc::Group(row) | Doc::Flat(row) => {
                    // Groups after the document may be broken.
                    tasks.extend(row.parts.iter().rev().map(|part| (mode, part)));
                    0
                }
                Doc::Fill(numbers) => {
                    let widths = numbers.iter().map(|[sign, digits]| sign.len() + digits.len() + ", ".len());
                    widths.sum::<usize>().saturating_sub(", ".len())
                }
            };
            match left.checked_sub(width) {
                Some(rest) => left = rest,
                None => return false,
            }
        }
    }

    fn fill(&mut self, indent: usize, mode: LineMode, numbers: &[[&str; 2]]) {
        for (position, [sign, digits]) in numbers.iter().enumerate() {
            let is_last = position + 1 == numbers.len();
            let width = sign.len() + digits.len() + usize::from(!is_last || mode == LineMode::Broken);
            if position > 0 && mode == LineMode::Broken && self.column + 1 + width > self.width {
                self.breaks = 1;
            } else if position > 0 {
                self.text(indent, " ");
            }
            for text in [*sign, *digits, if is_last { "" } else { "," }] {
                self.text(indent, text);
            }
        }
    }
}
