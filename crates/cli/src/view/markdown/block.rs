//! Blocks: paragraphs, headings, lists, quotations, code.

use std::collections::BTreeMap;

use pulldown_cmark::{
    BrokenLink, CodeBlockKind, CowStr, Event, LinkType, Options, Parser, Tag, TagEnd,
};

use super::Page;
use super::inline::{Inline, Long};
use super::table::Table;
use crate::output::{Style, columns, harmless};
use crate::view::look::{Look, Sign};

/// Deeper blocks are not indented further.
const MAX_DEPTH: usize = 8;
/// How far code is indented, and what language it is in.
const CODE: &str = "    ";
const LANGUAGE: &str = "  ";
/// How many definitions of links are remembered.
const MAX_DEFINITIONS: usize = 256;

/// Where links lead that were defined earlier.
pub(super) type Definitions = BTreeMap<String, String>;

/// Returns the lines of a chunk, and remembers the links it defines.
pub(super) fn render(text: &str, page: Page<'_>, known: &mut Definitions) -> Vec<String> {
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let lookup = |link: BrokenLink<'_>| {
        let target = known.get(&link.reference.to_lowercase())?;
        Some((CowStr::from(target.clone()), CowStr::from("")))
    };
    let parser = Parser::new_with_broken_link_callback(text, options, Some(lookup));
    let mut defined: Vec<(usize, String, String)> = parser
        .reference_definitions()
        .iter()
        .map(|(name, link)| (link.span.start, name.to_owned(), link.dest.to_string()))
        .collect();
    defined.sort();
    let mut renderer = Renderer::new(page);
    parser.for_each(|event| renderer.event(event));
    for (_, name, target) in defined {
        renderer.definition(&name, &target);
        if known.len() < MAX_DEFINITIONS {
            known.insert(name.to_lowercase(), target);
        }
    }
    renderer.lines
}

struct Renderer<'a> {
    page: Page<'a>,
    look: Look,
    lines: Vec<String>,
    containers: Vec<Container>,
    lists: Vec<List>,
    inline: Inline,
    /// Where the open links lead.
    links: Vec<Target>,
    code: Option<String>,
    table: Option<Table>,
    /// Whether a blank line comes before the next block.
    gap: bool,
}

/// A list that is open.
struct List {
    /// The number of the next item; nothing where items have none.
    next: Option<u64>,
    /// Whether its items are set apart from each other.
    is_loose: bool,
}

/// What every line of a block begins with.
struct Container {
    first: String,
    rest: String,
    is_new: bool,
}

struct Target {
    address: String,
    kind: LinkType,
    /// What stands for it.
    text: String,
}

impl<'a> Renderer<'a> {
    fn new(page: Page<'a>) -> Self {
        Self {
            page,
            look: Look::of(page.stream),
            lines: Vec::new(),
            containers: Vec::new(),
            lists: Vec::new(),
            inline: Inline::default(),
            links: Vec::new(),
            code: None,
            table: None,
            gap: false,
        }
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => self.text(&text),
            Event::Code(text) => self.inline_code(&text),
            Event::Html(text) | Event::InlineHtml(text) => {
                self.styled(Style::Dim, |inline| inline.text(&text));
            }
            Event::SoftBreak => self.inline.space(),
            Event::HardBreak => self.inline.line_break(),
            Event::Rule => self.rule(),
            Event::TaskListMarker(done) => {
                self.inline.text(if done { "[x] " } else { "[ ] " });
            }
            Event::FootnoteReference(name) => self.inline.text(&format!("[{name}]")),
            Event::InlineMath(text) | Event::DisplayMath(text) => self.inline.text(&text),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph => {
                self.open_block();
                if let Some(list) = self.lists.last_mut() {
                    list.is_loose = true;
                }
            }
            Tag::HtmlBlock => self.open_block(),
            Tag::Heading { level, .. } => {
                self.open_block();
                if self.coloured() {
                    self.inline.begin(Style::Heading);
                } else {
                    self.inline.text(&"#".repeat(level as usize));
                    self.inline.space();
                }
            }
            Tag::BlockQuote(_) => {
                self.open_block();
                let edge = self.page.stream.paint(Style::Dim, self.look.sign(Sign::Quote));
                let edge = format!("{edge} ");
                self.containers.push(Container { first: edge.clone(), rest: edge, is_new: true });
            }
            Tag::CodeBlock(kind) => self.open_code(&kind),
            Tag::List(first) => {
                self.flush();
                self.lists.push(List { next: first, is_loose: false });
            }
            Tag::Item => self.open_item(),
            Tag::Table(alignments) => {
                self.open_block();
                self.table = Some(Table::new(alignments));
            }
            Tag::Emphasis => self.begin(Style::Emphasis, "*"),
            Tag::Strong => self.begin(Style::Name, "**"),
            Tag::Strikethrough => self.begin(Style::Struck, "~~"),
            Tag::Link { link_type, dest_url, .. } => self.open_link(link_type, &dest_url),
            Tag::Image { link_type, dest_url, .. } => {
                self.inline.text("[image: ");
                self.open_link(link_type, &dest_url);
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.close_block(),
            TagEnd::Heading(_) => {
                if self.coloured() {
                    self.inline.end();
                }
                self.close_block();
            }
            TagEnd::BlockQuote(_) => {
                self.flush();
                self.containers.pop();
                self.gap = true;
            }
            TagEnd::CodeBlock => self.close_code(),
            TagEnd::List(_) => {
                self.lists.pop();
                self.gap |= self.lists.last().is_none_or(|outer| outer.is_loose);
            }
            TagEnd::Item => self.close_item(),
            TagEnd::TableHead | TagEnd::TableRow => {
                if let Some(table) = &mut self.table {
                    table.end_row();
                }
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.inline);
                if let Some(table) = &mut self.table {
                    table.cell(cell);
                }
            }
            TagEnd::Table => self.close_table(),
            TagEnd::Emphasis => self.finish("*"),
            TagEnd::Strong => self.finish("**"),
            TagEnd::Strikethrough => self.finish("~~"),
            TagEnd::Link => self.close_link(),
            TagEnd::Image => {
                self.close_link();
                self.inline.text("]");
            }
            _ => {}
        }
    }

    const fn coloured(&self) -> bool {
        self.page.stream.is_coloured()
    }

    fn text(&mut self, text: &str) {
        if let Some(code) = &mut self.code {
            code.push_str(text);
            return;
        }
        if let Some(link) = self.links.last_mut() {
            link.text.push_str(text);
        }
        self.inline.text(text);
    }

    fn inline_code(&mut self, text: &str) {
        if let Some(link) = self.links.last_mut() {
            link.text.push_str(text);
        }
        if self.coloured() {
            self.styled(Style::Place, |inline| inline.text(text));
        } else {
            self.inline.text(&format!("`{text}`"));
        }
    }

    fn styled(&mut self, style: Style, add: impl FnOnce(&mut Inline)) {
        self.inline.begin(style);
        add(&mut self.inline);
        self.inline.end();
    }

    fn begin(&mut self, style: Style, mark: &str) {
        if self.coloured() { self.inline.begin(style) } else { self.inline.text(mark) }
    }

    fn finish(&mut self, mark: &str) {
        if self.coloured() { self.inline.end() } else { self.inline.text(mark) }
    }

    fn open_link(&mut self, kind: LinkType, address: &str) {
        self.links.push(Target { address: address.to_owned(), kind, text: String::new() });
    }

    /// Says where a link leads, unless its text does.
    fn close_link(&mut self) {
        let Some(link) = self.links.pop() else { return };
        let says_itself = matches!(link.kind, LinkType::Autolink | LinkType::Email)
            || link.text.trim() == link.address
            || link.address.is_empty();
        if !says_itself {
            self.inline.space();
            self.styled(Style::Dim, |inline| inline.text(&format!("({})", link.address)));
        }
    }

    /// Ends what stands before a block, and leaves a blank line if there has to be one.
    fn open_block(&mut self) {
        self.flush();
        if std::mem::take(&mut self.gap) {
            let margin: String = self.containers.iter().map(|one| one.rest.as_str()).collect();
            self.lines.push(margin.trim_end().to_owned());
        }
    }

    fn close_block(&mut self) {
        self.flush();
        self.gap = true;
    }

    /// Lays out the text there is. Text without a block of its own stands in a tight list.
    fn flush(&mut self) {
        if self.inline.is_empty() {
            self.inline = Inline::default();
            return;
        }
        let inline = std::mem::take(&mut self.inline);
        let room = self.page.room(self.margin());
        for line in inline.lines(room, Long::Whole) {
            self.line(&line.paint(self.page.stream));
        }
        self.gap = false;
    }

    /// Returns how many columns the containers take.
    fn margin(&self) -> usize {
        let width =
            |one: &Container| if one.rest.trim().is_empty() { columns(&one.rest) } else { 2 };
        self.containers.iter().take(MAX_DEPTH).map(width).sum()
    }

    /// Writes a line behind what its containers begin lines with.
    fn line(&mut self, text: &str) {
        let mut line = String::new();
        for one in self.containers.iter_mut().take(MAX_DEPTH) {
            let is_new = std::mem::take(&mut one.is_new);
            line.push_str(if is_new { &one.first } else { &one.rest });
        }
        line.push_str(text);
        self.lines.push(line.trim_end().to_owned());
    }

    fn open_item(&mut self) {
        self.open_block();
        let marker = match self.lists.last_mut().and_then(|list| list.next.as_mut()) {
            Some(number) => {
                let marker = format!("{number}. ");
                *number = number.saturating_add(1);
                marker
            }
            None => format!("{} ", self.look.sign(Sign::Bullet)),
        };
        let rest = " ".repeat(columns(&marker));
        self.containers.push(Container { first: marker, rest, is_new: true });
    }

    fn close_item(&mut self) {
        self.flush();
        if self.containers.last().is_some_and(|item| item.is_new) {
            self.line("");
        }
        self.containers.pop();
    }

    fn open_code(&mut self, kind: &CodeBlockKind<'_>) {
        self.open_block();
        self.code = Some(String::new());
        if let CodeBlockKind::Fenced(info) = kind
            && let Some(language) = info.split([' ', ',']).next().filter(|word| !word.is_empty())
        {
            let language = harmless(language).replace('\t', " ");
            let label = self.page.stream.paint(Style::Dim, language);
            self.line(&format!("{LANGUAGE}{label}"));
        }
    }

    /// Code is not broken: what is too long for the terminal can be copied all the same.
    fn close_code(&mut self) {
        let code = self.code.take().unwrap_or_default();
        for line in code.lines() {
            self.line(&format!("{CODE}{}", harmless(line).replace('\t', CODE)));
        }
        self.gap = true;
    }

    fn close_table(&mut self) {
        let Some(table) = self.table.take() else { return };
        let room = self.page.width.saturating_sub(self.margin());
        for line in table.lines(room, self.page.stream, self.look) {
            self.line(&line);
        }
        self.gap = true;
    }

    fn rule(&mut self) {
        self.open_block();
        let length = self.page.room(self.margin()).min(40);
        let rule = self.look.sign(Sign::Rule).repeat(length);
        let rule = self.page.stream.paint(Style::Dim, rule).to_string();
        self.line(&rule);
        self.gap = true;
    }

    /// A definition is shown where it stands: a text before it that refers to it is out already.
    fn definition(&mut self, name: &str, target: &str) {
        self.open_block();
        let text = harmless(&format!("[{name}]: {target}")).replace('\n', " ");
        let text = self.page.stream.paint(Style::Dim, text).to_string();
        self.line(&text);
    }
}
