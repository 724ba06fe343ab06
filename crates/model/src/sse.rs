//! Server-sent events, from bytes as they come.
//!
//! The parser does no I/O: bytes go in, in pieces of any size, and events come out. It is as forgiving
//! as the standard (all three line endings, comments, unknown fields) and in one point more: an event
//! that the end of the stream cuts short of its blank line counts, since several servers leave that
//! line out.

/// The longest event that is taken: far more than any answer, far less than the memory.
pub(crate) const LONGEST_EVENT: usize = 32 * 1024 * 1024;

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SseEvent {
    /// Its `event:` name, if it has one.
    pub(crate) name: Option<String>,
    /// Its data; several `data:` lines are joined by line feeds.
    pub(crate) data: String,
}

/// An event that is longer than allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("one event is longer than {0} bytes")]
pub(crate) struct EventTooLong(pub(crate) usize);

/// Turns bytes into events.
#[derive(Debug)]
pub(crate) struct SseParser {
    longest: usize,
    /// The line that is still open.
    line: Vec<u8>,
    /// A carriage return ended the last line; a line feed right after it belongs to it.
    after_return: bool,
    /// Whether a line has ended already: a byte order mark can only come before that.
    begun: bool,
    name: Option<String>,
    data: Option<String>,
}

impl SseParser {
    pub(crate) fn new() -> Self {
        Self::with_longest(LONGEST_EVENT)
    }

    fn with_longest(longest: usize) -> Self {
        Self {
            longest,
            line: Vec::new(),
            after_return: false,
            begun: false,
            name: None,
            data: None,
        }
    }

    /// Takes more bytes and adds the events they complete.
    pub(crate) fn feed(
        &mut self,
        mut bytes: &[u8],
        events: &mut Vec<SseEvent>,
    ) -> Result<(), EventTooLong> {
        if self.after_return
            && let Some((first, rest)) = bytes.split_first()
        {
            self.after_return = false;
            if *first == b'\n' {
                bytes = rest;
            }
        }
        while let Some(end) = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            let (head, tail) = bytes.split_at(end);
            self.end_line(head, events)?;
            bytes = match tail {
                [b'\r', b'\n', rest @ ..] | [_, rest @ ..] => rest,
                [] => &[],
            };
            self.after_return = tail == b"\r";
        }
        self.line.extend_from_slice(bytes);
        self.check_length(self.line.len())
    }

    /// Takes the end of the stream and returns the event that had no blank line, if there is one.
    pub(crate) fn finish(&mut self) -> Option<SseEvent> {
        let mut events = Vec::new();
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.read_line(&line, &mut events);
        }
        self.read_line(b"", &mut events);
        events.pop()
    }

    fn end_line(&mut self, head: &[u8], events: &mut Vec<SseEvent>) -> Result<(), EventTooLong> {
        self.check_length(self.line.len() + head.len())?;
        if self.line.is_empty() {
            self.read_line(head, events);
        } else {
            let mut line = std::mem::take(&mut self.line);
            line.extend_from_slice(head);
            self.read_line(&line, events);
            line.clear();
            self.line = line;
        }
        Ok(())
    }

    fn check_length(&self, line: usize) -> Result<(), EventTooLong> {
        let length = line + self.data.as_ref().map_or(0, String::len);
        if length > self.longest { Err(EventTooLong(self.longest)) } else { Ok(()) }
    }

    fn read_line(&mut self, mut line: &[u8], events: &mut Vec<SseEvent>) {
        if !std::mem::replace(&mut self.begun, true) {
            line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
        }
        if line.is_empty() {
            let name = self.name.take().filter(|name| !name.is_empty());
            events.extend(self.data.take().map(|data| SseEvent { name, data }));
            return;
        }
        let (field, value) = match line.iter().position(|byte| *byte == b':') {
            Some(colon) => {
                let (field, value) = line.split_at(colon);
                let value = value.strip_prefix(b":").unwrap_or(value);
                (field, value.strip_prefix(b" ").unwrap_or(value))
            }
            None => (line, &b""[..]),
        };
        match field {
            b"data" => {
                let text = String::from_utf8_lossy(value);
                match &mut self.data {
                    Some(data) => {
                        data.push('\n');
                        data.push_str(&text);
                    }
                    None => self.data = Some(text.into_owned()),
                }
            }
            b"event" => self.name = Some(String::from_utf8_lossy(value).into_owned()),
            // A comment has an empty field; `id` and `retry` are for streams that resume.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<SseEvent> {
        let (mut parser, mut events) = (SseParser::new(), Vec::new());
        for piece in pieces {
            parser.feed(piece, &mut events).unwrap();
        }
        events.extend(parser.finish());
        events
    }

    fn event(name: Option<&str>, data: &str) -> SseEvent {
        SseEvent { name: name.map(str::to_owned), data: data.to_owned() }
    }

    #[test]
    fn names_data_comments_and_unknown_fields() {
        let text =
            ": ping\nid: 7\nevent: delta\ndata: one\ndata:  two\ndata\n\nretry: 9\n\ndata: x\n\n";
        assert_eq!(
            parse([text.as_bytes()]),
            [event(Some("delta"), "one\n two\n"), event(None, "x")]
        );
    }

    #[test]
    fn all_line_endings_are_the_same() {
        let expected = [event(None, "a"), event(Some("n"), "b")];
        for ending in ["\n", "\r", "\r\n"] {
            let text = "data: a\n\nevent: n\ndata: b\n\n".replace('\n', ending);
            assert_eq!(parse([text.as_bytes()]), expected, "{ending:?}");
        }
    }

    #[test]
    fn a_byte_order_mark_is_skipped_and_a_last_event_needs_no_blank_line() {
        assert_eq!(parse([&b"\xEF\xBB\xBFdata: a"[..]]), [event(None, "a")]);
        assert_eq!(parse([&b"data: a\n"[..]]), [event(None, "a")]);
        assert_eq!(parse([&b"event: only\n"[..]]), []);
    }

    #[test]
    fn a_name_without_data_is_forgotten() {
        assert_eq!(parse([&b"event: a\n\ndata: b\n\n"[..]]), [event(None, "b")]);
    }

    #[test]
    fn an_event_has_a_longest_length_however_it_comes() {
        let mut parser = SseParser::with_longest(10);
        let mut events = Vec::new();
        assert_eq!(parser.feed(b"data: 0123456789", &mut events), Err(EventTooLong(10)));

        let mut parser = SseParser::with_longest(10);
        assert_eq!(parser.feed(b"data: 012\n", &mut events), Ok(()));
        assert_eq!(parser.feed(b"data: 345\n", &mut events), Err(EventTooLong(10)));
        assert_eq!(events, []);
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_events(
            lines in proptest::collection::vec(
                ("(data|event|id|)(: ?)?[aé€🙂: ]{0,6}", "(\n|\r|\r\n)"),
                0..20,
            ),
            marked in any::<bool>(),
            cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..8),
        ) {
            let mut text = if marked { "\u{feff}".to_owned() } else { String::new() };
            for (line, ending) in &lines {
                text.push_str(line);
                text.push_str(ending);
            }
            let bytes = text.as_bytes();
            let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            at.extend([0, bytes.len()]);
            at.sort_unstable();
            let pieces = at.windows(2).map(|pair| &bytes[pair[0]..pair[1]]);
            prop_assert_eq!(parse(pieces), parse([bytes]));
            prop_assert_eq!(parse(bytes.chunks(1)), parse([bytes]));
        }
    }
}
