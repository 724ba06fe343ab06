//! What nobody set is not sent, and what somebody set is sent as the provider wants it.

use convoke_core::ModelFacts;
use convoke_model::{
    Effort, OutputSchema, ProviderModel, Request, Settings, ToolChoice, WireFormat,
};
use convoke_testkit::Reply;
use serde_json::{Value, json};

use crate::support::{Case, Heard, model, on_every_wire, quick, tools, user};

on_every_wire!(
    nothing_is_sent_that_nobody_set,
    all_that_is_set_is_sent_together,
    thinking_budgets_are_sent_where_there_are_any,
    efforts_are_words_or_numbers,
    tools_are_declared_with_their_schemas_as_they_are,
    a_choice_without_tools_is_not_sent,
    the_longest_answer_of_a_request_goes_before_the_settings,
);

/// Asks once, and returns what was sent.
async fn sent(case: Case, name: &str, request: &Request<'_>) -> Value {
    let talk = case.serve(Reply::text("x")).await;
    let provider = case.provider(&talk.server.base_url(case.wire));
    let model = model(name, provider, quick().build());
    Heard::of(&model, request).await.answer();
    talk.sent(0)
}

async fn sent_with(case: Case, settings: &Settings) -> Value {
    let messages = [user("Hello")];
    sent(case, case.model, &Request { settings, ..Request::new(&messages) }).await
}

async fn nothing_is_sent_that_nobody_set(case: Case) {
    let sent = sent(case, case.model, &Request::new(&[user("Hello")])).await;
    let expected = match case.format {
        WireFormat::Gemini => json!({
            "contents": [{ "role": "user", "parts": [{ "text": "Hello" }] }],
        }),
        WireFormat::OpenAiResponses => json!({
            "model": case.model,
            "input": [{
                "type": "message",
                "role": "user",
                "content": [{ "type": "input_text", "text": "Hello" }],
            }],
            // Without it the model forgets what it thought.
            "include": ["reasoning.encrypted_content"],
            "store": false,
            "stream": true,
        }),
        WireFormat::OpenAiChat => json!({
            "model": case.model,
            "messages": [{ "role": "user", "content": "Hello" }],
            "stream": true,
            "stream_options": { "include_usage": true },
        }),
        WireFormat::Anthropic => json!({
            "model": case.model,
            "messages": [{ "role": "user", "content": [{ "type": "text", "text": "Hello" }] }],
            // The provider insists on a number.
            "max_tokens": 8192,
            "cache_control": { "type": "ephemeral" },
            "stream": true,
        }),
    };
    assert_eq!(sent, expected);
}

async fn all_that_is_set_is_sent_together(case: Case) {
    let settings = Settings {
        temperature: Some(0.5),
        top_p: Some(0.9),
        max_output_tokens: Some(700),
        reasoning_effort: Some(Effort::Low),
        thinking_budget: None,
    };
    let schema = json!({
        "type": "object",
        "properties": { "a": { "type": "string" } },
        "required": ["a"],
        "additionalProperties": false,
    });
    let output = OutputSchema { name: "report".to_owned(), schema: schema.clone() };
    let (messages, tools) = ([user("Hello")], tools());
    let request = Request {
        system: "Be brief.",
        tools: &tools,
        tool_choice: ToolChoice::Only("grep"),
        settings: &settings,
        output: Some(&output),
        ..Request::new(&messages)
    };
    let sent = sent(case, case.model, &request).await;
    let expected: &[(&str, Value)] = match case.format {
        WireFormat::Gemini => &[
            ("/systemInstruction", json!({ "parts": [{ "text": "Be brief." }] })),
            (
                "/toolConfig/functionCallingConfig",
                json!({ "mode": "ANY", "allowedFunctionNames": ["grep"] }),
            ),
            (
                "/generationConfig",
                json!({
                    "temperature": 0.5,
                    "topP": 0.9,
                    "maxOutputTokens": 700,
                    "responseMimeType": "application/json",
                    "responseJsonSchema": schema,
                    "thinkingConfig": { "thinkingLevel": "low", "includeThoughts": true },
                }),
            ),
        ],
        WireFormat::OpenAiResponses => &[
            ("/instructions", json!("Be brief.")),
            ("/tool_choice", json!({ "type": "function", "name": "grep" })),
            ("/temperature", json!(0.5)),
            ("/top_p", json!(0.9)),
            ("/max_output_tokens", json!(700)),
            ("/reasoning", json!({ "effort": "low", "summary": "auto" })),
            (
                "/text/format",
                json!({ "type": "json_schema", "name": "report", "schema": schema, "strict": true }),
            ),
        ],
        WireFormat::OpenAiChat => &[
            ("/messages/0", json!({ "role": "system", "content": "Be brief." })),
            ("/tool_choice", json!({ "type": "function", "function": { "name": "grep" } })),
            ("/temperature", json!(0.5)),
            ("/top_p", json!(0.9)),
            ("/max_tokens", json!(700)),
            ("/reasoning_effort", json!("low")),
            (
                "/response_format",
                json!({
                    "type": "json_schema",
                    "json_schema": { "name": "report", "schema": schema, "strict": true },
                }),
            ),
        ],
        WireFormat::Anthropic => &[
            (
                "/system/0",
                json!({
                    "type": "text", "text": "Be brief.", "cache_control": { "type": "ephemeral" },
                }),
            ),
            ("/tool_choice", json!({ "type": "tool", "name": "grep" })),
            ("/temperature", json!(0.5)),
            ("/top_p", json!(0.9)),
            ("/max_tokens", json!(700)),
            (
                "/output_config",
                json!({
                    "effort": "low", "format": { "type": "json_schema", "schema": schema },
                }),
            ),
        ],
    };
    for (pointer, value) in expected {
        assert_eq!(sent.pointer(pointer), Some(value), "{pointer} in {sent}");
    }
}

async fn thinking_budgets_are_sent_where_there_are_any(case: Case) {
    for budget in [-1, 0, 2048] {
        let settings = Settings { thinking_budget: Some(budget), ..Settings::UNSET };
        let sent = sent_with(case, &settings).await;
        match case.format {
            WireFormat::Gemini => {
                let config = &sent["generationConfig"]["thinkingConfig"];
                assert_eq!(config["thinkingBudget"], budget);
                let shows = if budget == 0 { Value::Null } else { json!(true) };
                assert_eq!(config["includeThoughts"], shows);
            }
            WireFormat::Anthropic => {
                let (thinking, longest) = match budget {
                    -1 => (json!({ "type": "adaptive" }), 8192),
                    0 => (json!({ "type": "disabled" }), 8192),
                    // Thoughts count as part of the answer, and come on top of the default.
                    _ => (json!({ "type": "enabled", "budget_tokens": 2048 }), 8192 + 2048),
                };
                assert_eq!((&sent["thinking"], &sent["max_tokens"]), (&thinking, &json!(longest)));
            }
            // These wires have no budget: the request is as if none had been set.
            WireFormat::OpenAiResponses | WireFormat::OpenAiChat => {
                assert_eq!(sent, sent_with(case, &Settings::UNSET).await);
            }
        }
    }
}

async fn efforts_are_words_or_numbers(case: Case) {
    let all =
        [Effort::None, Effort::Minimal, Effort::Low, Effort::Medium, Effort::High, Effort::Xhigh];
    for effort in all {
        let settings = Settings { reasoning_effort: Some(effort), ..Settings::UNSET };
        let sent = sent_with(case, &settings).await;
        let word = effort.as_str();
        match case.format {
            WireFormat::Gemini => {
                let level = match effort {
                    Effort::None => "minimal",
                    Effort::Xhigh => "high",
                    _ => word,
                };
                let config = &sent["generationConfig"]["thinkingConfig"];
                assert_eq!(config["thinkingLevel"], level);
                assert_eq!(config["thinkingBudget"], Value::Null);
            }
            WireFormat::OpenAiResponses => assert_eq!(sent["reasoning"]["effort"], word),
            WireFormat::OpenAiChat => assert_eq!(sent["reasoning_effort"], word),
            WireFormat::Anthropic if effort == Effort::None => {
                assert_eq!(sent["thinking"], json!({ "type": "disabled" }));
                assert_eq!(sent["output_config"], Value::Null);
            }
            WireFormat::Anthropic => {
                let word = if effort == Effort::Minimal { "low" } else { word };
                assert_eq!(sent["output_config"], json!({ "effort": word }));
            }
        }
    }
}

/// Models before Gemini 3 refuse a request with a level of thinking.
#[tokio::test]
async fn an_effort_is_a_budget_for_models_that_know_no_words() {
    let settings = Settings { reasoning_effort: Some(Effort::Medium), ..Settings::UNSET };
    let messages = [user("Hello")];
    let request = Request { settings: &settings, ..Request::new(&messages) };
    let sent = sent(Case::GEMINI, "gemini-2.5-flash", &request).await;
    assert_eq!(
        sent["generationConfig"]["thinkingConfig"],
        json!({ "thinkingBudget": 8192, "includeThoughts": true })
    );
}

#[tokio::test]
async fn the_longest_answer_of_a_chat_has_the_name_its_server_knows() {
    let messages = [user("Hello")];
    let request = Request { max_output_tokens: Some(9), ..Request::new(&messages) };
    let openai = sent(Case::CHAT, "gpt-4o", &request).await;
    assert_eq!(
        (&openai["max_completion_tokens"], &openai["max_tokens"]),
        (&json!(9), &Value::Null)
    );
    let other = sent(Case::CHAT, "qwen-max", &request).await;
    assert_eq!((&other["max_completion_tokens"], &other["max_tokens"]), (&Value::Null, &json!(9)));
}

async fn tools_are_declared_with_their_schemas_as_they_are(case: Case) {
    let (messages, tools) = ([user("Hello")], tools());
    let choices = [ToolChoice::Auto, ToolChoice::None];
    for tool_choice in choices {
        let request = Request { tools: &tools, tool_choice, ..Request::new(&messages) };
        let sent = sent(case, case.model, &request).await;
        let (declared, schema, chosen) = match case.format {
            WireFormat::Gemini => (
                &sent["tools"][0]["functionDeclarations"],
                "/parametersJsonSchema",
                &sent["toolConfig"]["functionCallingConfig"]["mode"],
            ),
            WireFormat::OpenAiResponses => (&sent["tools"], "/parameters", &sent["tool_choice"]),
            WireFormat::OpenAiChat => {
                (&sent["tools"], "/function/parameters", &sent["tool_choice"])
            }
            WireFormat::Anthropic => {
                (&sent["tools"], "/input_schema", &sent["tool_choice"]["type"])
            }
        };
        let declared = declared.as_array().unwrap();
        assert_eq!(declared.len(), tools.len(), "they stay also where none may be called");
        for (declared, tool) in declared.iter().zip(&tools) {
            assert_eq!(declared.pointer(schema), Some(&*tool.parameters));
        }
        match tool_choice {
            ToolChoice::None if case.format == WireFormat::Gemini => assert_eq!(chosen, "NONE"),
            ToolChoice::None => assert_eq!(chosen, "none"),
            _ => assert_eq!(*chosen, Value::Null),
        }
    }
}

/// `OpenAI` answers 400 where there is a choice but nothing to choose from.
async fn a_choice_without_tools_is_not_sent(case: Case) {
    let messages = [user("Hello")];
    let plain = sent(case, case.model, &Request::new(&messages)).await;
    for tool_choice in [ToolChoice::None, ToolChoice::Only("grep")] {
        let request = Request { tool_choice, ..Request::new(&messages) };
        assert_eq!(sent(case, case.model, &request).await, plain, "{tool_choice:?}");
    }
}

async fn the_longest_answer_of_a_request_goes_before_the_settings(case: Case) {
    let settings = Settings { max_output_tokens: Some(9_000), ..Settings::UNSET };
    let messages = [user("Hello")];
    let request =
        Request { settings: &settings, max_output_tokens: Some(64), ..Request::new(&messages) };
    let sent = sent(case, case.model, &request).await;
    let pointer = match case.format {
        WireFormat::Gemini => "/generationConfig/maxOutputTokens",
        WireFormat::OpenAiResponses => "/max_output_tokens",
        WireFormat::OpenAiChat | WireFormat::Anthropic => "/max_tokens",
    };
    assert_eq!(sent.pointer(pointer), Some(&json!(64)));
}

/// The provider insists on a number, and what the catalogue knows is better than a guess.
#[tokio::test]
async fn anthropic_is_told_the_longest_answer_its_model_gives() {
    let case = Case::ANTHROPIC;
    let talk = case.serve(Reply::text("x")).await;
    let facts = ModelFacts { max_output: Some(20_000), ..ModelFacts::default() };
    let provider = case.provider(&talk.server.base_url(case.wire));
    let model = ProviderModel::new(case.model, facts, provider, quick().build()).unwrap();
    Heard::of(&model, &Request::new(&[user("Hello")])).await.answer();
    assert_eq!(talk.sent(0)["max_tokens"], 20_000);
}
