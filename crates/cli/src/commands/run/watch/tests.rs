use convoke::Runtime;
use convoke_core::ToolCall;
use serde_json::json;

use super::*;
use crate::environment::Environment;

struct Deaf;

impl Listener for Deaf {
    fn hear(&mut self, _: String, _: &RunHandle) {}

    fn notice(&mut self, _: &Event) -> Option<String> {
        None
    }

    fn waiting(&self) -> Vec<String> {
        Vec::new()
    }
}

/// The rest of a line was once the answer to a question that appeared in the middle of it.
#[tokio::test]
async fn a_question_is_put_when_nobody_types_any_more() {
    let directory = tempfile::tempdir().unwrap();
    let runtime = Runtime::builder(directory.path()).build().unwrap();
    let mut approvals = Approvals::of(true, &Environment::of(&[]), None);
    let executor = runtime.executor().approver(approvals.approver()).build();
    let arguments = json!({ "path": "a.txt", "content": "x" });
    let call = executor.execute(ToolCall::new("c", "write_file", arguments));
    tokio::pin!(call);
    let question = tokio::select! {
        _ = &mut call => panic!("it asks first"),
        question = approvals.next() => question,
    };
    tokio::time::pause();
    let output = Output::in_memory();
    let (mut typing, mut listener, start) = (Typing::begun("and say ye"), Deaf, Instant::now());
    let person = Person { typing: &mut typing, listener: &mut listener };
    let question = Some((question, None));
    let mut open =
        Open { question, quiet: None, is_put: false, leaving: None, person: Some(person) };
    open.begin_to_settle(start);
    let waited = || start.elapsed().as_millis();
    let shown = || output.err.contents();
    assert!(matches!(open.next().await, Heard::Quiet));
    assert!((1_000..1_100).contains(&waited()), "{}", waited());
    assert_eq!(shown(), "");
    assert!(open.go_on(&approvals, &output).is_empty());
    let asked = shown();
    assert!(asked.ends_with("or say what to do instead: "), "{asked}");
    let is_awaited = open.question.as_ref().is_some_and(|(_, line)| line.is_some());
    assert!(!is_awaited, "nobody can have read it");
    assert!(matches!(open.next().await, Heard::Quiet));
    assert!((1_500..1_600).contains(&waited()), "{}", waited());
    assert!(open.go_on(&approvals, &output).is_empty());
    assert!(open.quiet.is_none(), "from now on, what is typed is the answer");
    assert_eq!(shown(), asked, "it was put before");

    let draft = open.person.as_mut().map(|person| {
        assert!(person.typing.press("s\n").is_empty(), "nobody saw it, so it is not sent");
        person.typing.take_draft()
    });
    assert_eq!(draft.as_deref(), Some("and say yes\n"));
    open.is_put = false;
    open.go_on(&approvals, &output);
    assert!(open.quiet.is_none(), "who only looks on can answer at once");
}
