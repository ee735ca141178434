//! Tables that fit a terminal: long cells are wrapped, remarks are below their row.

/// The width of the terminal, which shells put in COLUMNS.
pub fn width() -> usize {
    let columns = std::env::var("COLUMNS").ok().and_then(|text| text.trim().parse::<usize>().ok());
    columns.unwrap_or(100).clamp(40, 1000)
}

/// The side of a column on which its cells are.
#[derive(Clone, Copy, PartialEq)]
pub enum ColumnAlign {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// Number of spaces between two columns.
const GAP: usize = 2;

/// Minimum width of a column of text.
const NARROWEST: usize = 10;

/// The indentation of remarks.
const INDENT: &str = "    ";

/// Rows of cells under titles.
pub struct Table {
    columns: Vec<(&'static str, ColumnAlign)>,
    rows: Vec<(Vec<String>, String)>,
    /// Columns that narrow terminals show below their row, in this order.
    giving_way: Vec<&'static str>,
}

impl Table {
    /// A table without rows.
    pub fn new(columns: &[(&'static str, ColumnAlign)]) -> Table {
        Table { columns: columns.to_vec(), rows: Vec::new(), giving_way: Vec::new() }
    }

    /// Sets the columns that narrow terminals show below their row, as many as necessary, beginning with the first.
    pub fn giving_way(mut self, titles: &[&'static str]) -> Table {
        self.giving_way = titles.to_vec();
        self
    }

    /// Adds a row, with a remark below it that may be empty.
    pub fn row(&mut self, cells: Vec<String>, remark: &str) {
        self.rows.push((cells, remark.to_string()));
    }

    /// The lines of the table, no wider than `width` if its columns can be that narrow.
    pub fn render(&self, width: usize, ascii: bool) -> String {
        match self.giving_way.split_first() {
            Some((first, rest)) if !self.fits(width) => self.without(first, rest).render(width, ascii),
            _ => self.drawn(width, ascii),
        }
    }

    /// The table with the cells of a column moved before the remarks.
    fn without(&self, title: &'static str, giving_way: &[&'static str]) -> Table {
        let at = self.columns.iter().position(|(other, _)| *other == title).unwrap_or(self.columns.len());
        let kept = |index: &usize| *index != at;
        let columns = (0..self.columns.len()).filter(kept).map(|index| self.columns[index]).collect();
        let rows = self.rows.iter().map(|(cells, remark)| {
            let moved = cells.get(at).map_or(String::new(), |cell| format!("{title} {cell}"));
            let remark = if remark.is_empty() { moved } else { format!("{moved}; {remark}") };
            ((0..cells.len()).filter(kept).map(|index| cells[index].clone()).collect(), remark)
        });
        Table { columns, rows: rows.collect(), giving_way: giving_way.to_vec() }
    }

    fn gaps(&self) -> usize {
        GAP * self.columns.len().saturating_sub(1)
    }

    fn drawn(&self, width: usize, ascii: bool) -> String {
        let widths = self.widths(width);
        let titles: Vec<String> = self.columns.iter().map(|(title, _)| title.to_string()).collect();
        let mut text = self.lines(&titles, &widths);
        let total = widths.iter().sum::<usize>() + self.gaps();
        text.push_str(&if ascii { "-" } else { "─" }.repeat(total));
        text.push('\n');
        for (cells, remark) in &self.rows {
            text.push_str(&self.lines(cells, &widths));
            if !remark.is_empty() {
                text.push_str(&indented(remark, INDENT, INDENT, width));
            }
        }
        text
    }

    /// The widths of the columns, from the widths of their cells. If they are too wide, the widest text columns shrink, and break words
    /// only as a last resort.
    fn widths(&self, width: usize) -> Vec<usize> {
        let cells = |column: usize| self.rows.iter().filter_map(move |(cells, _)| cells.get(column));
        let widest = |column: usize, measure: &dyn Fn(&str) -> usize| {
            cells(column).map(|cell| measure(cell)).chain([measure(self.columns[column].0)]).max().unwrap_or(0)
        };
        let columns = 0..self.columns.len();
        let mut widths: Vec<usize> = columns.clone().map(|column| widest(column, &length)).collect();
        let words: Vec<usize> = columns.map(|column| widest(column, &longest_word).max(NARROWEST)).collect();
        for narrowest in [words, vec![NARROWEST; widths.len()]] {
            while widths.iter().sum::<usize>() + self.gaps() > width {
                let can_give = |&at: &usize| self.columns[at].1 == ColumnAlign::Left && widths[at] > narrowest[at];
                let Some(widest) = (0..widths.len()).filter(can_give).max_by_key(|&at| widths[at]) else { break };
                widths[widest] -= 1;
            }
        }
        widths
    }

    /// Whether no word has to be broken.
    fn fits(&self, width: usize) -> bool {
        let widths = self.widths(width);
        let is_whole =
            |cells: &Vec<String>| cells.iter().zip(&widths).all(|(cell, &width)| longest_word(cell) <= width);
        widths.iter().sum::<usize>() + self.gaps() <= width && self.rows.iter().all(|(cells, _)| is_whole(cells))
    }

    fn lines(&self, cells: &[String], widths: &[usize]) -> String {
        let folded: Vec<Vec<String>> = cells.iter().zip(widths).map(|(cell, &width)| fold(cell, width)).collect();
        let height = folded.iter().map(Vec::len).max().unwrap_or(0);
        let mut text = String::new();
        for at in 0..height {
            let mut line = String::new();
            for ((lines, &width), (_, align)) in folded.iter().zip(widths).zip(&self.columns) {
                let cell = lines.get(at).map_or("", String::as_str);
                let space = " ".repeat(width.saturating_sub(length(cell)));
                let gap = if line.is_empty() { "" } else { "  " };
                line += &match align {
                    ColumnAlign::Left => format!("{gap}{cell}{space}"),
                    ColumnAlign::Right => format!("{gap}{space}{cell}"),
                };
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

fn length(text: &str) -> usize {
    text.chars().count()
}

/// The length of the longest part that `fold` breaks only as a last resort.
fn longest_word(text: &str) -> usize {
    text.split(' ').flat_map(|word| word.split_inclusive([',', '_'])).map(length).max().unwrap_or(0)
}

/// Lines of at most this width, broken at spaces, after commas, or after `_` in names, if there are any.
fn fold(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = Vec::new();
    let mut rest: Vec<char> = text.chars().collect();
    while rest.len() > width {
        let at_space = (1..=width).rev().find(|&at| rest[at] == ' ');
        let behind = |mark: char| (1..=width).rev().find(|&at| rest[at - 1] == mark);
        let at = at_space.or_else(|| behind(',')).or_else(|| behind('_')).unwrap_or(width);
        let tail = rest.split_off(at);
        lines.push(rest.iter().collect::<String>().trim_end().to_string());
        rest = tail.into_iter().skip_while(|c| *c == ' ').collect();
    }
    lines.push(rest.into_iter().collect());
    lines
}

/// The text in lines of at most this width: the first begins with one string, the others with another.
pub fn indented(text: &str, first: &str, others: &str, width: usize) -> String {
    let lines = fold(text, width.saturating_sub(length(first).max(length(others))));
    let starts = std::iter::once(first).chain(std::iter::repeat(others));
    starts.zip(lines).map(|(start, line)| format!("{start}{line}\n")).collect()
}

/// `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let mut table =
            Table::new(&[("value", ColumnAlign::Left), ("type", ColumnAlign::Left), ("bytes", ColumnAlign::Right)]);
        let remark = "the dimension is split over X, and the other operand is not";
        table.row(vec!["h".into(), "f32[64@(data,model),48@tensor,1000000]".into(), grouped(6144)], remark);
        for width in [100, 40] {
            let text = table.render(width, false);
            assert!(text.lines().all(|line| length(line) <= width), "{text}");
            let joined: String = text.split_whitespace().collect();
            let whole = remark.split_whitespace().collect::<String>();
            assert!(joined.contains("6,144") && joined.contains(&whole), "{text}");
        }
        assert!(table.render(50, true).is_ascii());
    }

    #[test]
    fn columns_give_way_on_narrow_terminals() {
        let mut table =
            Table::new(&[("bytes", ColumnAlign::Right), ("devices", ColumnAlign::Right), ("line", ColumnAlign::Left)])
                .giving_way(&["line", "devices"]);
        table.row(vec!["6,144".into(), "8".into(), "examples/a.spmd:9:15".into()], "why");
        assert!(table.render(40, true).starts_with("bytes  devices  line"));
        assert_eq!(
            table.render(20, true),
            "bytes  devices\n--------------\n6,144        8\n    line\n    examples/a.spmd:\n    9:15; why\n"
        );
        assert!(table.render(13, true).starts_with("bytes\n-----\n6,144\n    devices\n"));
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }
}
