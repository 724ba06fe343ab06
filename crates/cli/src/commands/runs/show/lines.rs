//! Rows as lines: the number of the event, when, a bar, what.

use convoke::journal::timeline::{Agent, Timeline};

use super::axis::Axis;
use super::row::Row;
use super::story::Order;
use crate::output::{Stream, Style, wrap};
use crate::view::amounts;
use crate::view::brief::one_line;
use crate::view::line::Line;
use crate::view::look::{Look, Sign};

/// How many columns a moment takes.
const MOMENT: usize = 9;
/// How many columns the name of an agent takes.
const LABEL: usize = 30;
/// How far what belongs to something stands to the right of it.
const STEP: usize = 2;

/// How much is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Amount {
    /// What happened.
    Usual,
    /// Also arguments, results and thoughts.
    Full,
}

/// Returns all lines.
pub(super) fn lines(
    rows: &[Row],
    timeline: &Timeline<'_>,
    order: Order,
    amount: Amount,
    stream: &Stream,
) -> Vec<String> {
    let numbers = rows.iter().filter_map(|row| row.seq).max().unwrap_or_default();
    let axis = Axis::of(timeline, bar_width(stream), stream.shows_unicode());
    let labels = match order {
        Order::ByTime => labels(timeline),
        // Where it stands says whose it is.
        Order::ByAgent => Vec::new(),
    };
    let page = Page { stream, axis, numbers: numbers.to_string().len(), labels };
    rows.iter().flat_map(|row| page.row(row, amount)).collect()
}

/// Bars give way to words.
fn bar_width(stream: &Stream) -> usize {
    match stream.width().unwrap_or(100) {
        0..60 => 0,
        60..100 => 10,
        100..120 => 16,
        _ => 24,
    }
}

/// Returns what each agent is called; the main one needs no name.
fn labels(timeline: &Timeline<'_>) -> Vec<String> {
    let agents = &timeline.agents;
    let label = |(index, agent): (usize, &Agent<'_>)| {
        let same = agents.iter().take(index + 1).filter(|other| other.name == agent.name).count();
        let name = one_line(agent.name, LABEL);
        match (agent.depth, same) {
            (0, _) if index == 0 => String::new(),
            (_, 1) => format!("[{name}] "),
            (_, same) => format!("[{name} {same}] "),
        }
    };
    agents.iter().enumerate().map(label).collect()
}

struct Page<'s> {
    stream: &'s Stream,
    axis: Axis,
    numbers: usize,
    labels: Vec<String>,
}

impl Page<'_> {
    fn row(&self, row: &Row, amount: Amount) -> Vec<String> {
        let look = Look::of(self.stream);
        let width = self.stream.width().unwrap_or(usize::MAX);
        if row.sign == Sign::Rule {
            let rule = look.sign(Sign::Rule).repeat(3);
            let line = Line::indented(self.margin());
            return vec![
                line.styled(Style::Warn, format!("{rule} {} {rule}", row.name))
                    .fit(width, self.stream),
            ];
        }
        let mut line = self.before(row).plain(" ".repeat(row.indent * STEP));
        line = styled(line, row.style, look.sign(row.sign)).plain(" ");
        if row.kind != "agent" {
            line = line.styled(Style::Dim, self.labels.get(row.agent).cloned().unwrap_or_default());
        }
        line = line.styled(Style::Name, row.name.as_str());
        if !row.about.is_empty() {
            line = line.plain(" ").flexible(None, row.about.as_str());
        }
        let facts = row.facts.join(look.between());
        if !facts.is_empty() {
            line = line.plain("  ").styled(Style::Dim, facts);
        }
        let mut lines = vec![line.fit(width, self.stream).trim_end().to_owned()];
        let left = self.margin() + row.indent * STEP + STEP;
        let said = row.said.as_ref().filter(|_| amount == Amount::Usual);
        let said = said.map(|said| format!("says: {said}"));
        lines.extend(self.notes(said.iter().chain(&row.notes), row.style, left));
        if amount == Amount::Full {
            lines.extend(self.details(row, left));
        }
        lines
    }

    /// The number, the moment and the bar.
    fn before(&self, row: &Row) -> Line {
        let number = row.seq.map(|seq| seq.to_string()).unwrap_or_default();
        let moment = amounts::time(row.span.start);
        let width = self.numbers;
        let line =
            Line::default().styled(Style::Dim, format!("{number:>width$} {moment:>MOMENT$} "));
        if self.axis.width() == 0 {
            return line;
        }
        let bar = match row.bar {
            Some(span) => self.axis.bar(span),
            None => " ".repeat(self.axis.width()),
        };
        line.styled(row.style.unwrap_or(Style::Place), bar).plain(" ")
    }

    /// Where words begin.
    fn margin(&self) -> usize {
        let bar = match self.axis.width() {
            0 => 0,
            width => width + 1,
        };
        self.numbers + 1 + MOMENT + 1 + bar
    }

    fn notes<'n>(
        &self,
        notes: impl Iterator<Item = &'n String>,
        style: Option<Style>,
        left: usize,
    ) -> Vec<String> {
        let room = self.stream.width().map(|width| width.saturating_sub(left));
        // What went wrong is not dimmed.
        let style = if style == Some(Style::Bad) { None } else { Some(Style::Dim) };
        let lines = notes.flat_map(|note| wrap(note, room));
        lines.map(|line| styled(Line::indented(left), style, &line).paint(self.stream)).collect()
    }

    fn details(&self, row: &Row, left: usize) -> Vec<String> {
        let mut lines = Vec::new();
        // Long texts need the room more than they need to stand in line.
        let left = left.min(8);
        for detail in &row.details {
            let title = format!("{}:", detail.title);
            lines.push(Line::indented(left).styled(Style::Emphasis, title).paint(self.stream));
            let indent = " ".repeat(left + STEP);
            lines.extend(detail.lines(self.stream).iter().map(|line| format!("{indent}{line}")));
        }
        lines
    }
}

fn styled(line: Line, style: Option<Style>, text: &str) -> Line {
    match style {
        Some(style) => line.styled(style, text),
        None => line.plain(text),
    }
}
