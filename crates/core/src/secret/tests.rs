//! Hiding and giving back.

mod any;
mod encoded;

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::*;
use crate::message::{Part, Role};
use crate::time::Millis;
use crate::usage::Usage;

const TOKEN: &str = "ghp_0a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R";

fn secrets() -> Secrets {
    Secrets::new([
        ("KEY", "sk-0123456789"),
        ("LONGER", "sk-0123456789-and-more"),
        ("QUOTED", "pass\"word\\1"),
        ("PIN", "9017263544"),
        ("SHORT", "abc"),
    ])
}

fn completed(result: Value) -> EventBody {
    EventBody::ToolCallCompleted {
        tool_name: "t".into(),
        result: Arc::new(result),
        content: vec![],
        display: None,
        duration_ms: Millis::default(),
        files: Vec::new(),
    }
}

/// Returns the name of a token, as it is hidden.
fn name_of(secrets: &Secrets, token: &str) -> String {
    secrets.hide(token).into_owned()
}

#[test]
fn the_longest_secret_is_hidden_and_short_ones_are_none() {
    let hide = |text: &'static str| secrets().hide(text).into_owned();
    assert_eq!(hide("a sk-0123456789 b"), "a [secret KEY] b");
    assert_eq!(hide("sk-0123456789-and-more"), "[secret LONGER]");
    assert_eq!(hide("abc sk-01234"), "abc sk-01234");
    assert!(!format!("{:?}", secrets()).contains("0123456789"));
}

#[test]
fn a_known_secret_is_found_in_its_other_forms() {
    let secrets = secrets();
    for (text, hidden) in [
        (r#"{"p":"pass\"word\\1"}"#.to_owned(), r#"{"p":"[secret QUOTED in json]"}"#.to_owned()),
        ("?p=pass%22word%5C1&x".into(), "?p=[secret QUOTED in percent]&x".into()),
        ("736b2d30313233343536373839".into(), "[secret KEY in hex]".into()),
    ] {
        assert_eq!(secrets.hide(&text), hidden);
    }
    for user in ["", "u:", "me:", "you:"] {
        let encoded = STANDARD.encode(format!("{user}sk-0123456789"));
        let hidden = secrets.hide(&encoded).into_owned();
        assert!(hidden.contains("[secret KEY in base64"), "{encoded} {hidden}");
    }
}

#[test]
fn an_event_is_hidden_in_all_its_parts() {
    let body = EventBody::ToolCallCompleted {
        tool_name: "t".into(),
        result: Arc::new(json!({ "sk-0123456789": ["pass\"word\\1", 7, 9_017_263_544_u64, 1.5] })),
        content: vec![Part::text("it is sk-0123456789."), Part::text(TOKEN)],
        display: None,
        duration_ms: Millis::default(),
        files: Vec::new(),
    };
    let secrets = secrets();
    let hidden = secrets.hide_in(body).unwrap();
    let EventBody::ToolCallCompleted { result, content, .. } = &hidden else { unreachable!() };
    assert_eq!(**result, json!({ "[secret KEY]": ["[secret QUOTED]", 7, "[secret PIN]", 1.5] }));
    assert_eq!(content[0], Part::text("it is [secret KEY]."));
    assert_eq!(content[1], Part::text(name_of(&secrets, TOKEN)));
    assert_eq!(secrets.hide_in(hidden.clone()).unwrap(), hidden, "hiding twice changes nothing");
}

#[test]
fn a_number_that_has_to_be_one_stays_and_the_rest_is_hidden() {
    let usage = Usage { input_tokens: 9_017_263_544, ..Usage::default() };
    assert_eq!(secrets().hide_in(EventBody::Usage(usage)).unwrap(), EventBody::Usage(usage));
}

/// Hides what a tool said as a run does: what the tool came across is noted.
fn said(secrets: &Secrets, body: EventBody) -> EventBody {
    let hidden = secrets.hide_and_note(body).unwrap();
    secrets.note(&hidden.secrets);
    hidden.body
}

/// A file with a name in it, and a token that makes the event one with a secret, must not open the secret.
#[test]
fn a_name_in_what_a_tool_said_is_not_the_secret() {
    let secrets = secrets();
    said(&secrets, completed(json!(format!("[secret KEY] {TOKEN}"))));
    assert_eq!(secrets.seen(), BTreeSet::new());
    let kept = Withheld::Kept("[secret KEY]".into());
    assert_eq!(secrets.reveal_in_value(json!("[secret KEY]")), Err(kept.clone()));

    secrets.recall(&Message::text(Role::Tool, format!("[secret KEY]: {kept}")));
    assert_eq!(secrets.reveal_in_value(json!("[secret KEY]")), Err(kept), "a refusal, recalled");
}

#[test]
fn a_resumed_run_knows_exactly_what_its_tools_came_across() {
    let hidden =
        secrets().hide_and_note(completed(json!({ "sk-0123456789": 9_017_263_544_u64 }))).unwrap();
    let names: Vec<_> = hidden.secrets.iter().map(String::as_str).collect();
    assert_eq!(names, ["[secret KEY]", "[secret PIN]"]);
    let resumed = secrets();
    resumed.note(&hidden.secrets);
    assert_eq!(resumed.seen(), hidden.secrets);
    assert_eq!(resumed.reveal_in_value(json!("[secret KEY]")), Ok(json!("sk-0123456789")));
    assert!(resumed.reveal_in_value(json!("[secret LONGER]")).is_err());
}

#[test]
fn what_a_refused_call_says_is_said_by_no_tool() {
    let error = crate::ToolError::permission("sk-0123456789");
    let (content, duration_ms) = (vec![], Millis::default());
    let denied = EventBody::ToolCallDenied { tool_name: "t".into(), error, content, duration_ms };
    assert_eq!(secrets().hide_and_note(denied).unwrap().secrets, BTreeSet::new());
}

#[test]
fn only_what_tools_came_across_is_given_back_to_them() {
    let secrets = secrets();
    let named = json!({ "text": "[secret KEY]" });
    let kept = Withheld::Kept("[secret KEY]".into());
    assert_eq!(secrets.reveal_in_value(named.clone()), Err(kept.clone()));
    assert_eq!(secrets.named_in(&named), Some(kept));
    said(&secrets, completed(json!("sk-0123456789")));
    assert_eq!(secrets.reveal_in_value(named), Ok(json!({ "text": "sk-0123456789" })));
    let other = json!("[secret LONGER]");
    assert!(secrets.reveal_in_value(other).is_err());
    assert_eq!(secrets.reveal_in_value(json!([1, "x"])), Ok(json!([1, "x"])));
}

#[test]
fn a_form_is_given_back_as_that_form() {
    let secrets = secrets();
    let text = r#"{"password": "pass\"word\\1", "again": "pass%22word%5C1"}"#;
    let EventBody::ToolCallCompleted { result, .. } =
        said(&secrets, completed(json!({ "text": text })))
    else {
        unreachable!()
    };
    assert!(!result.to_string().contains("pass%"), "{result}");
    assert_eq!(secrets.reveal_in_value((*result).clone()), Ok(json!({ "text": text })));
}

#[test]
fn a_token_is_given_back_to_whoever_names_it() {
    let secrets = secrets();
    let line = format!("A=1\nTOKEN={TOKEN}\nURL=https://me:hunter2-and-4@host/x\n");
    let hidden = secrets.hide(&line).into_owned();
    assert!(!hidden.contains("ghp_") && !hidden.contains("hunter2"), "{hidden}");
    assert!(hidden.contains("https://me:[secret url_password "), "{hidden}");
    let edited = hidden.replace("A=1", "A=2");
    let revealed = secrets.reveal_in_value(json!({ "content": edited })).unwrap();
    assert_eq!(revealed, json!({ "content": line.replace("A=1", "A=2") }));
    let named = secrets.named_in(&json!(["x", { "y": hidden }]));
    assert!(matches!(named, Some(Withheld::Kept(_))), "{named:?}");
}

#[test]
fn tokens_of_one_shape_stay_apart() {
    let secrets = Secrets::default();
    let other = TOKEN.replace('0', "Z");
    let text = format!("{TOKEN} {other} {TOKEN}");
    let hidden = secrets.hide(&text).into_owned();
    let parts: Vec<&str> = hidden.split("] [").collect();
    assert_eq!(parts.len(), 3, "{hidden}");
    assert_ne!(parts[0].trim_start_matches('['), parts[1]);
    assert_eq!(secrets.reveal_in_value(json!(hidden)), Ok(json!(text)));
    assert_eq!(name_of(&Secrets::default(), TOKEN), name_of(&secrets, TOKEN), "in any process");
}

#[test]
fn what_was_forgotten_is_not_written_as_its_name() {
    let before = secrets();
    let name = name_of(&before, TOKEN);
    let said = |text: &str| Message::text(Role::Tool, text);

    let resumed = Secrets::new([("OTHER", "0123-4567-89ab")]);
    let arguments = json!({ "content": format!("T={name}") });
    resumed.recall(&said(&format!("T={name}\nK=[secret KEY]")));
    let withheld = resumed.reveal_in_value(arguments.clone()).unwrap_err();
    assert_eq!(withheld, Withheld::Forgotten(name));
    assert!(withheld.to_string().contains("Read again where it stands"), "{withheld}");
    assert_eq!(resumed.named_in(&arguments), Some(withheld));
    let unset = resumed.reveal_in_value(json!("[secret KEY]"));
    assert!(matches!(unset, Err(Withheld::Forgotten(_))), "the variable is not set any more");

    resumed.hide(TOKEN);
    assert!(resumed.reveal_in_value(arguments).is_ok(), "it came up again");
}

#[test]
fn what_only_looks_like_a_name_is_text() {
    let text = json!("[secret sauce] [secret github_token 123456] [secret");
    assert_eq!(secrets().reveal_in_value(text.clone()), Ok(text.clone()));
    assert_eq!(secrets().named_in(&text), None);
}

#[test]
fn a_word_of_ours_is_no_secret() {
    assert!(Secrets::new([("PASSWORD", "assistant")]).is_empty());
    assert!(Secrets::new([("A_TOKEN", "B_PASSWORD"), ("B_PASSWORD", "A_TOKEN")]).is_empty());
}

#[test]
fn a_masker_holds_back_what_may_be_a_secret_and_no_more() {
    let mut masker = secrets().masker();
    assert_eq!(masker.push("the words are: sk-01234"), "the words are: ");
    assert_eq!(masker.push("56789"), "", "the longer one may still come");
    assert_eq!(masker.push("; "), "[secret KEY]; ");
    assert_eq!(masker.push("at our risk!"), "at our risk!");
    assert_eq!(masker.push(" sk-0123456789-and-mor"), " ");
    assert_eq!(masker.push("e"), "[secret LONGER]");
    assert_eq!(masker.push(" gh"), " ");
    assert_eq!(masker.finish(), "gh");
    assert!(!format!("{masker:?}").contains("0123456789"));
}
