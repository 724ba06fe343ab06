//! What the server does with one request: an answer, and what goes wrong with it.

use std::sync::Arc;
use std::time::Duration;

use crate::failure::Failure;
use crate::prepared::Prepared;
use crate::reply::Reply;

/// How one request is answered.
#[derive(Clone, Debug)]
pub struct Reaction {
    pub(crate) answer: Answer,
    pub(crate) delay: Duration,
    pub(crate) pause: Duration,
    pub(crate) chunk: Option<usize>,
    pub(crate) is_gzip: bool,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) trouble: Option<(Point, Trouble)>,
}

/// What is answered.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Reply(Arc<Reply>),
    Prepared(Prepared),
    Failure(Failure),
    Whole { status: u16, content_type: &'static str, body: Vec<u8> },
    Raw(Arc<[u8]>),
    Silent,
    HangUp,
}

/// What goes wrong in the middle of a stream.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Trouble {
    Cut,
    Hang,
    Garble,
    Fail(Failure),
}

/// A place in a stream of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// After so many events.
    Event(usize),
    /// After so many bytes of events, wherever that is.
    Byte(usize),
    /// In the middle of the first event that carries some of a thought.
    InThought,
    /// In the middle of the first event that carries text.
    InText,
    /// In the middle of the first event that carries some of a call's arguments.
    InCall,
}

impl Reaction {
    fn new(answer: Answer) -> Self {
        Self {
            answer,
            delay: Duration::ZERO,
            pause: Duration::ZERO,
            chunk: None,
            is_gzip: false,
            headers: Vec::new(),
            retry_after: None,
            trouble: None,
        }
    }

    /// Answers with a reply, in the wire of the request.
    pub fn answer(reply: Reply) -> Self {
        Self::new(Answer::Reply(Arc::new(reply)))
    }

    /// Answers with an error, in the wire of the request.
    pub fn failure(failure: Failure) -> Self {
        Self::new(Answer::Failure(failure))
    }

    /// Answers with a status and a JSON body, whatever they are.
    pub fn status(status: u16, body: impl Into<Vec<u8>>) -> Self {
        let body = body.into();
        Self::new(Answer::Whole { status, content_type: "application/json", body })
    }

    /// Answers as a proxy does that cannot reach the provider: with a page for people.
    pub fn html_error_page(status: u16) -> Self {
        let body = format!(
            "<html>\n<head><title>{status} {reason}</title></head>\n<body>\n\
             <center><h1>{status} {reason}</h1></center>\n</body>\n</html>\n",
            reason = crate::response::reason(status),
        );
        let body = body.into_bytes();
        Self::new(Answer::Whole { status, content_type: "text/html", body })
    }

    /// Sends these bytes instead of an HTTP answer, and closes the connection.
    pub fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self::new(Answer::Raw(bytes.into().into()))
    }

    /// Takes the request and never answers.
    pub fn silent() -> Self {
        Self::new(Answer::Silent)
    }

    /// Takes the request and closes the connection.
    pub fn hang_up() -> Self {
        Self::new(Answer::HangUp)
    }

    /// Lets time pass before the first byte.
    #[must_use]
    pub const fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Lets time pass between one event and the next, which are then sent one by one.
    #[must_use]
    pub const fn pause(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }

    /// Sends the stream in HTTP chunks of so many bytes, without regard for events, lines or
    /// characters; otherwise each event is a chunk.
    #[must_use]
    pub const fn in_chunks_of(mut self, bytes: usize) -> Self {
        self.chunk = Some(bytes);
        self
    }

    /// Encodes the body with gzip, as some proxies do, whether the client wants it or not.
    #[must_use]
    pub const fn gzip(mut self) -> Self {
        self.is_gzip = true;
        self
    }

    /// Adds a header to the answer.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Tells the client when to come back, where its provider says that: Gemini in the body of a
    /// [`Failure`], everybody else in a header.
    #[must_use]
    pub const fn retry_after(mut self, pause: Duration) -> Self {
        self.retry_after = Some(pause);
        self
    }

    /// Closes the connection there.
    #[must_use]
    pub const fn cut(self, point: Point) -> Self {
        self.trouble(point, Trouble::Cut)
    }

    /// Sends nothing more from there on, and leaves the connection open.
    #[must_use]
    pub const fn hang(self, point: Point) -> Self {
        self.trouble(point, Trouble::Hang)
    }

    /// Breaks the JSON of the event at that place; the stream goes on.
    #[must_use]
    pub const fn malformed(self, point: Point) -> Self {
        self.trouble(point, Trouble::Garble)
    }

    /// Ends the stream there with an error, as the provider says it within a stream. Only whole events
    /// come before it.
    #[must_use]
    pub const fn fail(self, point: Point, failure: Failure) -> Self {
        self.trouble(point, Trouble::Fail(failure))
    }

    const fn trouble(mut self, point: Point, trouble: Trouble) -> Self {
        self.trouble = Some((point, trouble));
        self
    }
}

impl From<Reply> for Reaction {
    fn from(reply: Reply) -> Self {
        Self::answer(reply)
    }
}

/// Of everything that can be set on a reaction, only the delay applies: the bytes are there already.
impl From<Prepared> for Reaction {
    fn from(prepared: Prepared) -> Self {
        Self::new(Answer::Prepared(prepared))
    }
}
