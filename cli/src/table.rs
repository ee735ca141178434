//! Tables that fit a terminal: long cells go on in the next line, remarks stand below their row.

/// The width of the terminal, which shells say in COLUMNS.
pub fn width() -> usize {
    let columns = std::env::var("COLUMNS").ok().and_then(|text| text.trim().parse::<usize>().ok());
    columns.unwrap_or(100).clamp(40, 1000)
}

#[derive(Clone, Copy, PartialEq)]
pub enum Align {
    Left,
    Right,
}

/// Between two columns.
const GAP: usize = 2;

/// No column of text gets narrower.
const NARROWEST: usize = 10;

/// How far remarks stand in.
const INDENT: &str = "    ";

pub struct Table {
    columns: Vec<(&'static str, Align)>,
    rows: Vec<(Vec<String>, String)>,
}

impl Table {
    pub fn new(columns: &[(&'static str, Align)]) -> Table {
        Table { columns: columns.to_vec(), rows: Vec::new() }
    }

    /// A row, with a remark below it that may be empty.
    pub fn row(&mut self, cells: Vec<String>, remark: &str) {
        self.rows.push((cells, remark.to_string()));
    }

    /// The lines of the table, none of which is wider than this where its columns can be made so narrow.
    pub fn render(&self, width: usize, ascii: bool) -> String {
        let widths = self.widths(width);
        let titles: Vec<String> = self.columns.iter().map(|(title, _)| title.to_string()).collect();
        let mut text = self.lines(&titles, &widths);
        let total = widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1);
        text.push_str(&if ascii { "-" } else { "─" }.repeat(total));
        text.push('\n');
        for (cells, remark) in &self.rows {
            text.push_str(&self.lines(cells, &widths));
            let lines = if remark.is_empty() { Vec::new() } else { fold(remark, width.saturating_sub(INDENT.len())) };
            lines.iter().for_each(|line| text.push_str(&format!("{INDENT}{line}\n")));
        }
        text
    }

    /// As wide as their cells; the widest columns of text give way where that is too much.
    fn widths(&self, width: usize) -> Vec<usize> {
        let cells = |column: usize| self.rows.iter().filter_map(move |(cells, _)| cells.get(column));
        let mut widths: Vec<usize> = (0..self.columns.len())
            .map(|column| {
                cells(column).map(|cell| length(cell)).chain([self.columns[column].0.len()]).max().unwrap_or(0)
            })
            .collect();
        let gaps = GAP * widths.len().saturating_sub(1);
        while widths.iter().sum::<usize>() + gaps > width {
            let can_give = |&column: &usize| self.columns[column].1 == Align::Left && widths[column] > NARROWEST;
            let Some(widest) = (0..widths.len()).filter(can_give).max_by_key(|&column| widths[column]) else { break };
            widths[widest] -= 1;
        }
        widths
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
                    Align::Left => format!("{gap}{cell}{space}"),
                    Align::Right => format!("{gap}{space}{cell}"),
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

/// Lines of at most this width, broken at spaces and behind commas where there are any.
pub fn fold(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = Vec::new();
    let mut rest: Vec<char> = text.chars().collect();
    while rest.len() > width {
        let at_space = (1..=width).rev().find(|&at| rest[at] == ' ');
        let behind_comma = || (1..=width).rev().find(|&at| rest[at - 1] == ',');
        let at = at_space.or_else(behind_comma).unwrap_or(width);
        let tail = rest.split_off(at);
        lines.push(rest.iter().collect::<String>().trim_end().to_string());
        rest = tail.into_iter().skip_while(|c| *c == ' ').collect();
    }
    lines.push(rest.into_iter().collect());
    lines
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
        let mut table = Table::new(&[("value", Align::Left), ("type", Align::Left), ("bytes", Align::Right)]);
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
    fn numbers_are_grouped() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }
}
