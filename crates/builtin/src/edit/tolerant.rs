//! Replacing whole lines that are there but for white space at their ends. Pure.
//!
//! The lines of the old text have to be the file's, all moved by the same indentation; the new ones are
//! moved like them. Where that is not possible nothing is guessed and the text counts as not found.
//! Newlines around the old and the new text that are the same stay out of it; more of them in the new
//! text are blank lines to make, more in the old one blank lines to remove.

use tokio_util::sync::CancellationToken;

use super::MAX_BYTES;
use super::line_ends;
use super::replace::{Applied, Edit, Problem};

/// Replaces the lines an edit means, if they are clear.
pub(super) fn tolerant(
    text: &str,
    edit: &Edit,
    token: &CancellationToken,
) -> Result<(String, Applied), Problem> {
    let (old, new) =
        (line_ends::without_crlf(&edit.old_string), line_ends::without_crlf(&edit.new_string));
    let change = Change::between(&old, &new);
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let hits = change.hits(&lines, token)?;
    let Some(first) = hits.first() else { return Err(Problem::NotFound) };
    if hits.len() > 1 && edit.replace_all != Some(true) {
        return Err(Problem::ambiguous(hits.len(), hits.iter().map(|hit| hit.start + 1)));
    }
    let (line, whitespace_ignored) = (first.start + 1, !first.verbatim);
    let (changed, replacements) = change.made(&lines, &hits)?;
    Ok((changed, Applied { replacements, line, whitespace_ignored }))
}

/// Lines to find, and lines to put in their place.
struct Change<'a> {
    old: Vec<&'a str>,
    new: Vec<&'a str>,
}

impl<'a> Change<'a> {
    fn between(old: &'a str, new: &'a str) -> Self {
        let (old, new, before) = without_common(old, new, |text| text.strip_prefix('\n'));
        let (old, new, after) = without_common(old, new, |text| text.strip_suffix('\n'));
        let whole = old;
        // Lines are replaced whole, so a newline that only the old text has does not join two of them.
        let old = if before { old } else { old.strip_prefix('\n').unwrap_or(old) };
        let old = if after { old } else { old.strip_suffix('\n').unwrap_or(old) };
        let removed = new.is_empty() && old.len() < whole.len();
        let new = if removed { Vec::new() } else { new.split('\n').collect() };
        Self { old: old.split('\n').collect(), new }
    }

    /// Returns where the old lines are. Places where only line ends differ come before all others.
    fn hits(&self, lines: &[&'a str], token: &CancellationToken) -> Result<Vec<Hit<'a>>, Problem> {
        let wanted: Vec<&str> = self.old.iter().map(|line| line.trim()).collect();
        if wanted.iter().all(|line| line.is_empty()) {
            return Ok(Vec::new());
        }
        let trimmed: Vec<&str> = lines.iter().map(|line| line.trim()).collect();
        let (mut hits, mut elsewhere) = (Vec::new(), None);
        for (start, window) in trimmed.windows(wanted.len()).enumerate() {
            if window.first() != wanted.first() {
                continue;
            }
            if token.is_cancelled() {
                return Err(Problem::Stopped);
            }
            if window == wanted {
                match self.hit(lines, start) {
                    Some(hit) => hits.push(hit),
                    None => elsewhere = elsewhere.or(Some(start + 1)),
                }
            }
        }
        if hits.iter().any(|hit| hit.verbatim) {
            hits.retain(|hit| hit.verbatim);
        }
        match elsewhere {
            Some(line) if hits.is_empty() => Err(Problem::Indentation(line)),
            _ => Ok(hits),
        }
    }

    /// Returns the place that begins at a line, if all old lines have moved there by as much.
    fn hit(&self, lines: &[&'a str], start: usize) -> Option<Hit<'a>> {
        let actual = lines.get(start..)?.get(..self.old.len())?;
        let pairs = || self.old.iter().zip(actual.iter().map(|line| line_ends::strip(line)));
        let shift = pairs()
            .filter(|(old, _)| !old.trim().is_empty())
            .map(|(old, actual)| Shift { from: indentation(old), to: indentation(actual) })
            .min_by_key(|shift| shift.from.len())?;
        let moved = |(old, actual): (&&str, &str)| {
            actual.trim().is_empty()
                || shift.moved(old).is_some_and(|(indentation, rest)| {
                    actual.strip_prefix(indentation).map(str::trim_end) == Some(rest.trim_end())
                })
        };
        let verbatim = pairs().all(|(old, actual)| *old == actual);
        pairs().all(moved).then_some(Hit { start, shift, verbatim })
    }

    /// Puts the new lines at every place that does not overlap the one before; tells how many.
    fn made(&self, lines: &[&str], hits: &[Hit<'_>]) -> Result<(String, usize), Problem> {
        let (mut text, mut next, mut count) = (Draft::default(), 0, 0);
        for hit in hits {
            if hit.start < next {
                continue;
            }
            let end = hit.start + self.old.len();
            text.push_all(lines.get(next..hit.start).unwrap_or_default())?;
            self.write(&mut text, hit, lines, end)?;
            next = end;
            count += 1;
        }
        text.push_all(lines.get(next..).unwrap_or_default())?;
        Ok((text.0, count))
    }

    /// Writes the new lines with the indentation and the line ends of those they replace.
    fn write(
        &self,
        text: &mut Draft,
        hit: &Hit<'_>,
        lines: &[&str],
        end: usize,
    ) -> Result<(), Problem> {
        let replaced = lines.get(hit.start..end).unwrap_or_default();
        let last = replaced.last().map_or("", |line| line_ends::of(line));
        let between = replaced.iter().chain(lines).map(|line| line_ends::of(line));
        let between = between.into_iter().find(|end| !end.is_empty()).unwrap_or("\n");
        for (number, line) in self.new.iter().enumerate() {
            let moved = hit.shift.moved(line).ok_or(Problem::Indentation(hit.start + 1))?;
            let ending = if number + 1 == self.new.len() { last } else { between };
            text.push_all(&[moved.0, moved.1, ending])?;
        }
        Ok(())
    }
}

/// Strips what both texts have at one end, and tells whether the new one had any of it.
fn without_common<'a>(
    mut old: &'a str,
    mut new: &'a str,
    strip: impl Fn(&'a str) -> Option<&'a str>,
) -> (&'a str, &'a str, bool) {
    let had = strip(new).is_some();
    while let (Some(shorter_old), Some(shorter_new)) = (strip(old), strip(new)) {
        (old, new) = (shorter_old, shorter_new);
    }
    (old, new, had)
}

/// A place where the old lines are.
struct Hit<'a> {
    /// The number of its first line, from 0.
    start: usize,
    shift: Shift<'a>,
    /// Whether nothing differs but line ends.
    verbatim: bool,
}

/// How lines move: the indentation of the leftmost old line, and that of the file's.
#[derive(Clone, Copy)]
struct Shift<'a> {
    from: &'a str,
    to: &'a str,
}

impl<'a> Shift<'a> {
    /// Returns the indentation to put first and the rest of a line. A line left of the leftmost cannot
    /// be moved, nor one whose own indentation would mix tabs and spaces. Blank lines stay.
    fn moved<'line>(&self, line: &'line str) -> Option<(&'a str, &'line str)> {
        if self.from == self.to || line.trim().is_empty() {
            return Some(("", line));
        }
        let rest = line.strip_prefix(self.from)?;
        let foreign = |letter| !self.to.is_empty() && !self.to.contains(letter);
        (!indentation(rest).contains(foreign)).then_some((self.to, rest))
    }
}

fn indentation(line: &str) -> &str {
    line.get(..line.len() - line.trim_start().len()).unwrap_or_default()
}

/// A text in the making that does not grow longer than a file may be.
#[derive(Default)]
struct Draft(String);

impl Draft {
    fn push_all(&mut self, parts: &[&str]) -> Result<(), Problem> {
        for part in parts {
            if self.0.len() + part.len() > MAX_BYTES {
                return Err(Problem::TooLong);
            }
            self.0.push_str(part);
        }
        Ok(())
    }
}
