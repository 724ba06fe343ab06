//! Where `tools.mcpServers` stands in a file, line by line.
//!
//! Only what people usually write is understood: keys and lists in blocks, one item a dash. Whatever looks
//! otherwise is not touched.

/// The list of servers in the text of a file.
#[derive(Debug)]
pub(super) struct ServerList<'a> {
    lines: Vec<&'a str>,
    place: Place,
}

/// Where servers are, or would be.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    /// There are no tools: they come at the end.
    NoTools,
    /// There are tools and no list: it comes after this line, so far from the left.
    NoList { after: usize, indent: usize },
    /// The list is empty, on this line.
    Empty { key: usize, indent: usize },
    /// The list, so far from the left, with the lines of each item.
    Items { key: usize, indent: usize, items: Vec<Item> },
}

/// The lines of an item, from the first up to and without the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Item {
    from: usize,
    to: usize,
}

impl<'a> ServerList<'a> {
    /// Finds the list; nothing, where it is written in another way.
    pub(super) fn of(text: &'a str) -> Option<Self> {
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let place = find(&lines)?;
        Some(Self { lines, place })
    }

    /// Returns the text with one more item, whose keys these are.
    pub(super) fn with(&self, keys: &[String]) -> String {
        let step = |indent: usize| indent + 2;
        match &self.place {
            Place::NoTools => {
                let mut text = self.lines.concat();
                if !text.trim().is_empty() {
                    text = format!("{}\n\n", text.trim_end());
                }
                text + &written(keys)
            }
            Place::NoList { after, indent } => {
                let list = format!("{:indent$}mcpServers:\n", "");
                self.insert(*after, &(list + &item(keys, step(*indent))))
            }
            Place::Empty { key, indent } => {
                let opened = self.lines.get(*key).map(|line| line.replacen("[]", "", 1));
                let opened = opened.unwrap_or_default();
                let (head, comment) = match opened.split_once('#') {
                    Some((head, comment)) => (head, format!(" #{}", comment.trim_end())),
                    None => (opened.as_str(), String::new()),
                };
                let opened = format!("{}{comment}\n", head.trim_end());
                self.replace(*key, &(opened + &item(keys, step(*indent))))
            }
            Place::Items { indent, items, .. } => {
                let last = items.last().map_or(0, |item| item.to.saturating_sub(1));
                self.insert(last, &item(keys, *indent))
            }
        }
    }

    /// Returns the text without one of so many items, and without the comment right above it, which is about it.
    pub(super) fn without(&self, place: usize, count: usize) -> Option<String> {
        let Place::Items { key, items, .. } = &self.place else { return None };
        let item = items.get(place).filter(|_| items.len() == count)?;
        let mut lines: Vec<String> = self.lines.iter().map(|line| (*line).to_owned()).collect();
        let from = self.comment_above(item.from, key + 1);
        let is_blank = |line: Option<&&str>| line.is_some_and(|line| line.trim().is_empty());
        let begins = from == key + 1 || is_blank(self.lines.get(from - 1));
        let gap = usize::from(begins && is_blank(self.lines.get(item.to)));
        lines.drain(from..item.to + gap);
        if count == 1 {
            let key = lines.get_mut(*key)?;
            *key = key.replacen("mcpServers:", "mcpServers: []", 1);
        }
        Some(lines.concat())
    }

    /// Returns where the comment begins that stands right above a line, no further up than this.
    fn comment_above(&self, line: usize, first: usize) -> usize {
        let indent = |line: &str| line.len() - line.trim_start().len();
        let own = self.lines.get(line).map(|line| indent(line));
        let mut from = line;
        while from > first
            && let Some(above) = self.lines.get(from - 1)
            && above.trim_start().starts_with('#')
            && Some(indent(above)) == own
        {
            from -= 1;
        }
        from
    }

    /// Returns the text with one key of one of so many items written as this; without it, the key is taken out.
    pub(super) fn with_key(
        &self,
        place: usize,
        count: usize,
        name: &str,
        written: Option<&str>,
    ) -> Option<String> {
        let Place::Items { indent, items, .. } = &self.place else { return None };
        let item = items.get(place).filter(|_| items.len() == count)?;
        let first = self.lines.get(item.from)?;
        let after = first.get(indent + 1..)?;
        let inside = indent + 1 + (after.len() - after.trim_start().len());
        let new = written.map(|text| format!("{:inside$}{text}\n", "")).unwrap_or_default();
        let own = (item.from..item.to).find(|number| {
            self.lines.get(*number).is_some_and(|line| key(line, inside, name).is_some())
        });
        match own {
            Some(number) => Some(self.replace(number, &new)),
            None if written.is_none() => Some(self.lines.concat()),
            None => Some(self.insert(item.to - 1, &new)),
        }
    }

    fn insert(&self, after: usize, more: &str) -> String {
        let last = self.lines.get(after).copied().unwrap_or_default();
        let gap = if last.ends_with('\n') { "" } else { "\n" };
        self.replace(after, &format!("{last}{gap}{more}"))
    }

    fn replace(&self, line: usize, with: &str) -> String {
        let before = self.lines.iter().take(line);
        let after = self.lines.iter().skip(line + 1);
        before.copied().chain([with]).chain(after.copied()).collect()
    }
}

/// Returns a file with nothing in it but one server.
pub(super) fn written(keys: &[String]) -> String {
    format!("tools:\n  mcpServers:\n{}", item(keys, 4))
}

fn item(keys: &[String], indent: usize) -> String {
    let line = |(index, key): (usize, &String)| {
        let mark = if index == 0 { "- " } else { "  " };
        format!("{:indent$}{mark}{key}\n", "")
    };
    keys.iter().enumerate().map(line).collect()
}

fn find(lines: &[&str]) -> Option<Place> {
    let Some(tools) = lines.iter().position(|line| key(line, 0, "tools").is_some()) else {
        return Some(Place::NoTools);
    };
    if !key(lines.get(tools)?, 0, "tools")?.is_empty() {
        return None;
    }
    let mut inside = content(lines, tools + 1);
    let Some((first, indent)) = inside.next().filter(|(_, indent)| *indent > 0) else {
        return Some(Place::NoList { after: tools, indent: 2 });
    };
    let block = std::iter::once((first, indent)).chain(inside);
    let block: Vec<(usize, usize)> = block.take_while(|(_, indent)| *indent > 0).collect();
    let list = block.iter().find_map(|(number, own)| {
        let value = key(lines.get(*number)?, indent, "mcpServers")?;
        (*own == indent).then_some((*number, value))
    });
    let Some((number, value)) = list else {
        let after = block.last().map_or(tools, |(last, _)| *last);
        return Some(Place::NoList { after, indent });
    };
    match value {
        "[]" => Some(Place::Empty { key: number, indent }),
        "" => items(lines, number, indent),
        _ => None,
    }
}

/// Finds the items below the key of the list.
fn items(lines: &[&str], number: usize, indent: usize) -> Option<Place> {
    let is_dash = |line: usize| {
        lines.get(line).is_some_and(|line| {
            let rest = line.trim_start();
            rest.starts_with("- ") || rest.trim_end() == "-"
        })
    };
    let mut below = content(lines, number + 1).peekable();
    let Some((_, dash)) = below
        .peek()
        .copied()
        .filter(|(line, own)| *own > indent || (*own == indent && is_dash(*line)))
    else {
        return Some(Place::Empty { key: number, indent });
    };
    let mut items: Vec<Item> = Vec::new();
    for (line, own) in below {
        if own < dash || (own == dash && !is_dash(line)) {
            break;
        }
        if own == dash {
            items.push(Item { from: line, to: line + 1 });
        } else {
            items.last_mut()?.to = line + 1;
        }
    }
    Some(Place::Items { key: number, indent: dash, items })
}

/// Returns the lines that say something, with how far from the left they begin.
fn content<'a>(lines: &'a [&str], from: usize) -> impl Iterator<Item = (usize, usize)> + use<'a> {
    let lines = lines.iter().enumerate().skip(from);
    lines.filter_map(|(number, line)| {
        let rest = line.trim_start();
        let says = !rest.is_empty() && !rest.starts_with('#');
        says.then(|| (number, line.len() - rest.len()))
    })
}

/// Returns what stands behind a key on its line, comments aside, if the line is that of the key.
fn key<'a>(line: &'a str, indent: usize, name: &str) -> Option<&'a str> {
    let own = line.len() - line.trim_start().len();
    let value = line.trim_start().strip_prefix(name)?.strip_prefix(':')?;
    let value = match value.split_once(" #") {
        Some((value, _)) => value,
        None => value,
    };
    (own == indent).then_some(value.trim())
}
