//! Images and documents, from people and from tools; calls that failed.

use convoke_core::{Message, Part, Role, ToolCall};
use convoke_model::{Request, WireFormat};
use convoke_testkit::Reply;
use serde_json::{Value, json};

use crate::support::{Case, Heard, model, on_every_wire, quick, user};

on_every_wire!(
    an_image_from_a_person_is_shown,
    an_image_from_a_tool_is_shown,
    a_call_that_failed_says_so,
    results_with_images_stay_together,
);

const PNG: &str = "iVBORw0KGgo=";
const URL: &str = "data:image/png;base64,iVBORw0KGgo=";

fn png() -> Part {
    Part::Media { mime: "image/png".to_owned(), data: PNG.to_owned() }
}

fn call(id: &str) -> Part {
    Part::ToolCall(ToolCall::new(id, "screenshot", json!({})))
}

fn result(id: &str, content: Vec<Part>, is_error: bool) -> Part {
    Part::ToolResult { call: id.into(), content, is_error }
}

async fn sent(case: Case, messages: &[Message]) -> Value {
    let talk = case.serve(Reply::text("x")).await;
    talk.answer(&Request::new(messages)).await;
    talk.sent(0)
}

async fn an_image_from_a_person_is_shown(case: Case) {
    let message = Message { role: Role::User, parts: vec![Part::text("What is this?"), png()] };
    let sent = sent(case, &[message]).await;
    let (pointer, image) = match case.format {
        WireFormat::Gemini => (
            "/contents/0/parts/1",
            json!({ "inlineData": { "mimeType": "image/png", "data": PNG } }),
        ),
        WireFormat::OpenAiResponses => {
            ("/input/0/content/1", json!({ "type": "input_image", "image_url": URL }))
        }
        WireFormat::OpenAiChat => {
            ("/messages/0/content/1", json!({ "type": "image_url", "image_url": { "url": URL } }))
        }
        WireFormat::Anthropic => (
            "/messages/0/content/1",
            json!({
                "type": "image",
                "source": { "type": "base64", "media_type": "image/png", "data": PNG },
            }),
        ),
    };
    assert_eq!(sent.pointer(pointer), Some(&image), "{sent}");
}

async fn an_image_from_a_tool_is_shown(case: Case) {
    let messages = [
        user("Show me."),
        Message { role: Role::Assistant, parts: vec![call("c1")] },
        Message {
            role: Role::Tool,
            parts: vec![result("c1", vec![Part::text("one screen"), png()], false)],
        },
    ];
    let sent = sent(case, &messages).await;
    match case.format {
        WireFormat::Gemini => {
            let response = &sent["contents"][2]["parts"][0]["functionResponse"];
            assert_eq!(response["response"], json!({ "output": "one screen" }));
            assert_eq!(response["parts"][0]["inlineData"]["data"], PNG);
        }
        WireFormat::OpenAiResponses => assert_eq!(
            sent["input"][2],
            json!({
                "type": "function_call_output",
                "call_id": "c1",
                "output": [
                    { "type": "input_text", "text": "one screen" },
                    { "type": "input_image", "image_url": URL },
                ],
            })
        ),
        WireFormat::OpenAiChat => {
            let answer = json!({ "role": "tool", "tool_call_id": "c1", "content": "one screen" });
            assert_eq!(sent["messages"][2], answer);
            assert_eq!(sent["messages"][3]["role"], "user");
            assert_eq!(sent["messages"][3]["content"][1]["image_url"]["url"], URL);
        }
        WireFormat::Anthropic => {
            let result = &sent["messages"][2]["content"][0];
            assert_eq!(result["type"], "tool_result");
            assert_eq!(result["content"][0], json!({ "type": "text", "text": "one screen" }));
            assert_eq!(result["content"][1]["source"]["data"], PNG);
        }
    }
}

/// Before Gemini 3 a result holds no images, so they follow it.
#[tokio::test]
async fn an_image_from_a_tool_follows_its_result_on_early_gemini() {
    let messages = [
        user("Show me."),
        Message { role: Role::Assistant, parts: vec![call("c1")] },
        Message { role: Role::Tool, parts: vec![result("c1", vec![png()], false)] },
    ];
    let talk = Case::GEMINI.serve(Reply::text("x")).await;
    let provider = Case::GEMINI.provider(&talk.server.url());
    let model = model("gemini-2.5-pro", provider, quick().build());
    Heard::of(&model, &Request::new(&messages)).await.answer();
    let sent = talk.sent(0);
    assert_eq!(sent["contents"][2]["parts"].as_array().unwrap().len(), 1);
    assert_eq!(sent["contents"][3]["parts"][1]["inlineData"]["data"], PNG);
}

async fn a_call_that_failed_says_so(case: Case) {
    let messages = [
        user("Show me."),
        Message { role: Role::Assistant, parts: vec![call("c1"), call("c2")] },
        Message {
            role: Role::Tool,
            parts: vec![
                result("c1", vec![Part::text("Error (failed): no screen")], true),
                result("c2", vec![Part::text("fine")], false),
            ],
        },
    ];
    let sent = sent(case, &messages).await;
    match case.format {
        WireFormat::Gemini => {
            let parts = &sent["contents"][2]["parts"];
            let response = |nth: usize| &parts[nth]["functionResponse"]["response"];
            assert_eq!(*response(0), json!({ "error": "Error (failed): no screen" }));
            assert_eq!(*response(1), json!({ "output": "fine" }));
        }
        // The wires of OpenAI have no flag; the text has to do.
        WireFormat::OpenAiResponses => {
            assert_eq!(sent["input"][3]["output"], "Error (failed): no screen");
        }
        WireFormat::OpenAiChat => {
            assert_eq!(sent["messages"][2]["content"], "Error (failed): no screen");
        }
        WireFormat::Anthropic => {
            let blocks = &sent["messages"][2]["content"];
            assert_eq!(
                (&blocks[0]["is_error"], &blocks[1]["is_error"]),
                (&json!(true), &Value::Null)
            );
        }
    }
}

/// Nothing may stand between the results of one turn, also where their images come as messages.
async fn results_with_images_stay_together(case: Case) {
    let answers = [result("c1", vec![png()], false), result("c2", vec![Part::text("b")], false)];
    let said = || Message { role: Role::Assistant, parts: vec![call("c1"), call("c2")] };
    let together = [user("Go."), said(), Message { role: Role::Tool, parts: answers.to_vec() }];
    let [one, two] = answers.map(|answer| Message { role: Role::Tool, parts: vec![answer] });
    let apart = [user("Go."), said(), one, two];
    assert_eq!(sent(case, &together).await, sent(case, &apart).await);
    if case.format == WireFormat::OpenAiChat {
        let sent = sent(case, &apart).await;
        let roles: Vec<_> = sent["messages"].as_array().unwrap().iter().collect();
        let roles: Vec<_> = roles.iter().map(|message| message["role"].as_str().unwrap()).collect();
        assert_eq!(roles, ["user", "assistant", "tool", "tool", "user"]);
    }
}
