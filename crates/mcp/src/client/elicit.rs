//! Questions that servers put to a person in the middle of a call.
//!
//! Who answers is the caller's business: an [`Elicitor`] in the context of the call, or whoever is asked about
//! calls. To decline is a person's own choice: where there is nobody, or nobody answers, a question is cancelled. The call goes
//! on in any case. What a server gets always fits the schema it asked with; an answer that does not is asked for again, and
//! after a few times it counts as declined.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use convoke_core::AgentPath;
pub use convoke_core::event::Wanted;
use convoke_tool::{Form, floor_char_boundary};
use serde_json::{Map, Value, json};

/// How often a person is asked for an answer that fits.
const MAX_TRIES: usize = 3;
const MAX_MESSAGE_BYTES: usize = 8 * 1024;
const MAX_URL_BYTES: usize = 4 * 1024;

/// Puts questions of servers to a person.
#[async_trait]
pub trait Elicitor: Send + Sync + Debug {
    /// Asks, and returns what was answered. If nobody answers in time, that is [`Elicited::Cancel`].
    async fn elicit(&self, question: Elicitation) -> Elicited;

    /// Says who is asked, where several of these ask the same person.
    fn person(&self) -> Option<String> {
        None
    }
}

/// An [`Elicitor`] as the context of a call holds it.
///
/// ```
/// use std::sync::Arc;
///
/// use async_trait::async_trait;
/// use convoke_mcp::client::{Elicitation, Elicited, Elicitor, ElicitorHandle};
/// use convoke_tool::ToolContext;
///
/// #[derive(Debug)]
/// struct Never;
///
/// #[async_trait]
/// impl Elicitor for Never {
///     async fn elicit(&self, _: Elicitation) -> Elicited {
///         Elicited::Decline
///     }
/// }
///
/// let context = ToolContext::builder("task").extension(ElicitorHandle(Arc::new(Never))).build();
/// assert!(context.extension::<ElicitorHandle>().is_some());
/// ```
#[derive(Clone, Debug)]
pub struct ElicitorHandle(pub Arc<dyn Elicitor>);

/// A question of a server.
#[derive(Clone, Debug, PartialEq)]
pub struct Elicitation {
    /// The server that asks, as it is called here.
    pub server: String,
    /// What it says, for a person. It is the server's text: it may say anything.
    pub message: String,
    /// What it wants.
    pub wanted: Wanted,
    /// What was wrong with the last answer, if this is asked again.
    pub problem: Option<String>,
    /// The calls it may belong to. Where there are several, nobody can tell which of them wants to know.
    pub calls: Vec<ConcernedCall>,
}

/// A call that a question may belong to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConcernedCall {
    /// The tool, as the server calls it.
    pub tool: String,
    /// The agent that called it, where that is known.
    pub agent: Option<AgentPath>,
}

/// What a person answered.
#[derive(Clone, Debug, PartialEq)]
pub enum Elicited {
    /// Yes, with these fields. Fields that are left out get their defaults. For a visit there are none.
    Accept(Map<String, Value>),
    /// No.
    Decline,
    /// No answer at all.
    Cancel,
}

/// A question that cannot be put to anybody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unaskable(pub(super) String);

/// Reads a question from the parameters of the request, and has it answered.
pub(super) async fn answer(
    server: &str,
    params: &Value,
    calls: &[ConcernedCall],
    elicitor: Option<Arc<dyn Elicitor>>,
) -> Result<Value, Unaskable> {
    let wanted = wanted(params)?;
    let Some(elicitor) = elicitor else {
        return Ok(cancelled());
    };
    let form = Form::wanted(&wanted).map_err(Unaskable)?;
    let mut question = Elicitation {
        server: server.to_owned(),
        message: shorten(params.get("message").and_then(Value::as_str).unwrap_or_default()),
        wanted,
        problem: None,
        calls: calls.to_vec(),
    };
    for _ in 0..MAX_TRIES {
        let fields = match elicitor.elicit(question.clone()).await {
            Elicited::Decline => return Ok(json!({ "action": "decline" })),
            Elicited::Cancel => return Ok(cancelled()),
            Elicited::Accept(fields) => fields,
        };
        let Some(form) = &form else {
            return Ok(json!({ "action": "accept" }));
        };
        match form.filled(fields) {
            Ok(content) => return Ok(json!({ "action": "accept", "content": content })),
            Err(problem) => question.problem = Some(problem),
        }
    }
    Ok(json!({ "action": "decline" }))
}

/// What a server is told where nobody answered.
pub(super) fn cancelled() -> Value {
    json!({ "action": "cancel" })
}

fn wanted(params: &Value) -> Result<Wanted, Unaskable> {
    let text = |name: &str| params.get(name).and_then(Value::as_str);
    if text("mode") == Some("url") {
        let url = text("url").ok_or_else(|| Unaskable("`url` is missing".to_owned()))?;
        let page = url::Url::parse(url).ok();
        let page = page.filter(|url| matches!(url.scheme(), "http" | "https"));
        // As a browser understands it, so that what is shown is where it leads.
        return match page.map(String::from) {
            Some(url) if url.len() <= MAX_URL_BYTES => Ok(Wanted::Visit { url }),
            Some(_) => Err(Unaskable(format!("`url` has more than {MAX_URL_BYTES} bytes"))),
            None => Err(Unaskable("`url` is not the address of a page".to_owned())),
        };
    }
    match params.get("requestedSchema") {
        Some(schema @ Value::Object(_)) => Ok(Wanted::Form { schema: schema.clone() }),
        _ => Err(Unaskable("`requestedSchema` is missing".to_owned())),
    }
}

fn shorten(message: &str) -> String {
    let cut = floor_char_boundary(message, MAX_MESSAGE_BYTES);
    let beginning = message.get(..cut).unwrap_or_default();
    let more = if cut < message.len() { " [… cut]" } else { "" };
    format!("{beginning}{more}")
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::Mutex;

    use super::*;

    #[derive(Debug, Default)]
    struct Says {
        answers: Mutex<VecDeque<Elicited>>,
        problems: Mutex<Vec<Option<String>>>,
    }

    #[async_trait]
    impl Elicitor for Says {
        async fn elicit(&self, question: Elicitation) -> Elicited {
            self.problems.lock().unwrap().push(question.problem);
            self.answers.lock().unwrap().pop_front().unwrap_or(Elicited::Cancel)
        }
    }

    fn fields(value: Value) -> Elicited {
        let Value::Object(map) = value else { panic!("an object") };
        Elicited::Accept(map)
    }

    fn form() -> Value {
        json!({ "message": "Who?", "requestedSchema": {
            "type": "object",
            "properties": {
                "name": { "type": "string" },
                "age": { "type": "integer", "minimum": 0, "default": 7 },
                "tags": { "type": "array", "items": { "type": "string", "enum": ["a", "b"] } },
            },
            "required": ["name"],
        } })
    }

    async fn ask(params: Value, answers: impl IntoIterator<Item = Elicited>) -> (Value, Arc<Says>) {
        let says = Arc::new(Says::default());
        says.answers.lock().unwrap().extend(answers);
        let answer = answer("s", &params, &[], Some(says.clone())).await.unwrap();
        (answer, says)
    }

    #[tokio::test]
    async fn what_is_left_out_gets_its_default() {
        let (answer, _) = ask(form(), [fields(json!({ "name": "Ada", "age": null }))]).await;
        let content = json!({ "name": "Ada", "age": 7 });
        assert_eq!(answer, json!({ "action": "accept", "content": content }));
    }

    #[tokio::test]
    async fn an_answer_that_does_not_fit_is_asked_for_again_and_then_declined() {
        let wrong = fields(json!({ "age": -1 }));
        let right = fields(json!({ "name": "Ada" }));
        let (answer, says) = ask(form(), [wrong.clone(), right]).await;
        assert_eq!(answer["action"], "accept");
        let problems = says.problems.lock().unwrap().clone();
        assert_eq!(problems[0], None);
        assert!(problems[1].as_ref().unwrap().contains("name"), "{problems:?}");

        let (answer, says) = ask(form(), vec![wrong; 9]).await;
        assert_eq!(answer, json!({ "action": "decline" }));
        assert_eq!(says.problems.lock().unwrap().len(), MAX_TRIES);
    }

    #[tokio::test]
    async fn only_a_person_declines_and_where_nobody_answers_it_is_cancelled() {
        let cancelled = json!({ "action": "cancel" });
        assert_eq!(answer("s", &form(), &[], None).await, Ok(cancelled.clone()));
        assert_eq!(ask(form(), []).await.0, cancelled);
        assert_eq!(ask(form(), [Elicited::Decline]).await.0, json!({ "action": "decline" }));
    }

    #[tokio::test]
    async fn a_page_has_no_fields_and_must_be_a_page() {
        let visit = json!({ "mode": "url", "url": "https://a.example/x", "message": "Sign in" });
        let (answer_to_visit, _) = ask(visit, [fields(json!({ "ignored": 1 }))]).await;
        assert_eq!(answer_to_visit, json!({ "action": "accept" }));
        let odd = json!({ "mode": "url", "url": "file:///etc/passwd", "message": "" });
        assert!(answer("s", &odd, &[], None).await.is_err());
    }

    #[tokio::test]
    async fn a_form_inside_a_form_is_refused() {
        let nested = json!({ "message": "", "requestedSchema": { "type": "object",
            "properties": { "inner": { "type": "object" } } } });
        let nobody: Arc<dyn Elicitor> = Arc::new(Says::default());
        let refused = answer("s", &nested, &[], Some(nobody)).await.unwrap_err();
        assert!(refused.0.contains("`inner`"), "{refused:?}");
    }
}
