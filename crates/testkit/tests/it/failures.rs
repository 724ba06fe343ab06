//! Errors in the shape of each provider.

use std::time::Duration;

use convoke_testkit::{Failure, ModelServer, Reaction, Wire};
use serde_json::Value;

use crate::client::{Answer, Client};

async fn answer(wire: Wire, reaction: Reaction) -> Answer {
    let server = ModelServer::start(reaction).await.unwrap();
    Client::connect(&server).await.ask(wire).await.unwrap()
}

#[tokio::test]
async fn every_wire_has_its_own_status_and_word() {
    let table: [(Failure, [(u16, &str); 4]); 7] = [
        (
            Failure::RateLimited,
            [
                (429, "rate_limit_exceeded"),
                (429, "rate_limit_exceeded"),
                (429, "rate_limit_error"),
                (429, "RESOURCE_EXHAUSTED"),
            ],
        ),
        (
            Failure::QuotaExhausted,
            [
                (429, "insufficient_quota"),
                (429, "insufficient_quota"),
                (400, "invalid_request_error"),
                (429, "RESOURCE_EXHAUSTED"),
            ],
        ),
        (
            Failure::WrongKey,
            [
                (401, "invalid_api_key"),
                (401, "invalid_api_key"),
                (401, "authentication_error"),
                (400, "INVALID_ARGUMENT"),
            ],
        ),
        (
            Failure::NoSuchModel,
            [
                (404, "model_not_found"),
                (404, "model_not_found"),
                (404, "not_found_error"),
                (404, "NOT_FOUND"),
            ],
        ),
        (
            Failure::ContextTooLong,
            [
                (400, "context_length_exceeded"),
                (400, "context_length_exceeded"),
                (400, "invalid_request_error"),
                (400, "INVALID_ARGUMENT"),
            ],
        ),
        (
            Failure::Overloaded,
            [
                (503, "server_error"),
                (503, "server_error"),
                (529, "overloaded_error"),
                (503, "UNAVAILABLE"),
            ],
        ),
        (
            Failure::Internal,
            [(500, "server_error"), (500, "server_error"), (500, "api_error"), (500, "INTERNAL")],
        ),
    ];
    assert_eq!(table.map(|(failure, _)| failure), Failure::ALL);
    for (failure, expected) in table {
        for (wire, expected) in Wire::ALL.into_iter().zip(expected) {
            let answer = answer(wire, Reaction::failure(failure)).await;
            let key = match wire {
                Wire::OpenAiChat | Wire::OpenAiResponses => "code",
                Wire::Anthropic => "type",
                Wire::Gemini => "status",
            };
            let word = answer.json()["error"][key].as_str().map(str::to_owned);
            assert_eq!(
                (answer.status, word.as_deref()),
                (expected.0, Some(expected.1)),
                "{wire:?}"
            );
            assert_eq!(failure.status(wire), answer.status);
            assert!(answer.json()["error"]["message"].is_string());
        }
    }
}

#[tokio::test]
async fn when_to_come_back_is_said_where_the_provider_says_it() {
    let reaction = Reaction::failure(Failure::RateLimited).retry_after(Duration::from_secs(7));
    for wire in [Wire::OpenAiChat, Wire::OpenAiResponses, Wire::Anthropic] {
        assert_eq!(answer(wire, reaction.clone()).await.header("retry-after"), Some("7"));
    }
    let gemini = answer(Wire::Gemini, reaction).await;
    assert_eq!(gemini.header("retry-after"), None);
    let body = gemini.json();
    let details = body["error"]["details"].as_array().unwrap();
    assert!(details.iter().any(|detail| detail["retryDelay"] == "7s"), "{details:?}");
}

#[tokio::test]
async fn quota_and_rate_differ_for_gemini_by_the_quota_alone() {
    let quota = async |failure| {
        let body = answer(Wire::Gemini, Reaction::failure(failure)).await.json();
        body.pointer("/error/details/0/violations/0/quotaId")
            .and_then(Value::as_str)
            .unwrap()
            .to_owned()
    };
    assert!(quota(Failure::RateLimited).await.contains("PerMinute"));
    assert!(quota(Failure::QuotaExhausted).await.contains("PerDay"));
}

#[tokio::test]
async fn a_status_and_a_page_are_sent_as_given() {
    let reaction = Reaction::status(418, "{\"tea\":true}")
        .header("x-why", "tea")
        .retry_after(Duration::from_secs(2));
    let answer_ = answer(Wire::Gemini, reaction).await;
    assert_eq!((answer_.status, answer_.body.as_str()), (418, "{\"tea\":true}"));
    assert_eq!((answer_.header("x-why"), answer_.header("retry-after")), (Some("tea"), Some("2")));

    let page = answer(Wire::Anthropic, Reaction::html_error_page(502)).await;
    assert_eq!((page.status, page.header("content-type")), (502, Some("text/html")));
    assert!(page.body.contains("<h1>502 Bad Gateway</h1>"), "{}", page.body);
}

#[tokio::test]
async fn a_request_too_many_is_told_that_the_script_is_over() {
    let server = ModelServer::start([Reaction::failure(Failure::Overloaded)]).await.unwrap();
    let mut client = Client::connect(&server).await;
    assert_eq!(client.ask(Wire::Anthropic).await.unwrap().status, 529);
    let over = client.ask(Wire::Anthropic).await.unwrap();
    assert_eq!(over.status, 500);
    assert!(over.body.contains("only 1 reactions"), "{}", over.body);
}

#[tokio::test]
async fn a_wait_shorter_than_a_second_does_not_become_none() {
    let reaction = Reaction::failure(Failure::RateLimited).retry_after(Duration::from_millis(50));
    let answer = answer(Wire::Anthropic, reaction).await;
    assert_eq!(answer.header("retry-after"), Some("1"));
}
