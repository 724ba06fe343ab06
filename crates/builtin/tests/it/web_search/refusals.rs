//! Missing settings, refused keys and broken answers; and that no error ever shows the key.

use super::*;

const WITH_KEY: [SearchEngine; 3] =
    [SearchEngine::Tavily, SearchEngine::Google, SearchEngine::Bing];

/// Searches and returns the error, which must not contain the key in any form.
async fn error_of(settings: WebSearchSettings) -> ToolError {
    let result = search(settings, json!({ "query": "x" })).await;
    let everything = format!("{} {}", serde_json::to_string(&result).unwrap(), result.text());
    for form in [KEY, "sk%2Fsecret%2Bkey+1", "secret"] {
        assert!(!everything.contains(form), "{everything}");
    }
    result.error().unwrap_or_else(|| panic!("it worked: {result:?}")).clone()
}

#[tokio::test]
async fn a_missing_setting_is_named() {
    let key = || Some(KEY.to_owned());
    for (provider, api_key, engine_id, says) in [
        (None, key(), None, "set tools.webSearch.provider (tavily, google, bing, duckduckgo)"),
        (Some(SearchEngine::Tavily), None, None, "set tools.webSearch.apiKey"),
        (Some(SearchEngine::Bing), Some(" ".into()), None, "set tools.webSearch.apiKey"),
        (Some(SearchEngine::Google), None, None, "set tools.webSearch.apiKey"),
        (Some(SearchEngine::Google), key(), None, "set tools.webSearch.engineId"),
    ] {
        let settings =
            WebSearchSettings { provider, api_key, engine_id, ..WebSearchSettings::default() };
        let error = error_of(settings).await;
        assert_eq!(error.kind, ErrorKind::Unavailable);
        assert!(error.message.contains(says), "{error}");
    }
}

#[tokio::test]
async fn a_base_url_that_is_none_is_named() {
    for base_url in ["nowhere", "file:///tmp", "http://u:p@a.example/"] {
        let settings = WebSearchSettings {
            provider: Some(SearchEngine::DuckDuckGo),
            base_url: Some(base_url.into()),
            ..WebSearchSettings::default()
        };
        let error = error_of(settings).await;
        assert_eq!(error.kind, ErrorKind::Unavailable);
        assert!(error.message.contains("tools.webSearch.baseUrl cannot be used"), "{error}");
    }
}

#[tokio::test]
async fn a_refused_key_is_called_that() {
    for engine in WITH_KEY {
        for status in [401, 403] {
            let body = json!({ "error": { "message": format!("no such key: {KEY}") } });
            let server = Server::answering(answer(status, &[], body.to_string())).await;
            let error = error_of(settings(engine, &server)).await;
            assert_eq!(error.kind, ErrorKind::Unavailable);
            let says = format!("{engine} refused the key; check tools.webSearch.apiKey");
            assert!(error.message.contains(&says), "{error}");
            assert!(error.message.contains("no such key: ***"), "{error}");
        }
    }
}

#[tokio::test]
async fn too_many_requests_say_when_to_try_again() {
    for engine in SearchEngine::ALL {
        for (header, says) in [
            (Some("17"), "try again in 17 seconds"),
            (Some("Wed, 21 Oct 2026 07:28:00 GMT"), "try again after Wed, 21 Oct 2026"),
            (None, "try again later"),
        ] {
            let headers: Vec<(&str, &str)> =
                header.map(|value| ("retry-after", value)).into_iter().collect();
            let server = Server::answering(answer(429, &headers, "slow down")).await;
            let error = error_of(settings(engine, &server)).await;
            assert_eq!(error.kind, ErrorKind::Unavailable);
            assert!(error.message.contains(says), "{error}");
        }
    }
}

#[tokio::test]
async fn other_refusals_are_quoted_in_short() {
    for engine in SearchEngine::ALL {
        let long = "much to say ".repeat(100);
        let server =
            Server::answering(answer(500, &[], json!({ "message": long }).to_string())).await;
        let error = error_of(settings(engine, &server)).await;
        assert_eq!(error.kind, ErrorKind::Failed);
        let start: String = long.chars().take(300).collect();
        assert!(
            error
                .message
                .ends_with(&format!("{engine} answered 500 Internal Server Error: {start}…")),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_quote_that_ends_within_the_key_shows_no_part_of_it() {
    for engine in WITH_KEY {
        let message = format!("{}{KEY}", "x".repeat(288));
        let server = Server::answering(answer(500, &[], message)).await;
        let error = error_of(settings(engine, &server)).await;
        assert!(error.message.ends_with("xxx***"), "{error}");
    }
}

#[tokio::test]
async fn an_answer_of_another_shape_is_an_error() {
    for engine in WITH_KEY {
        for body in ["", "<html>", "{", "[]", "{\"results\": 1, \"items\": 1, \"webPages\": 1}"] {
            let server = Server::answering(answer(200, &[], body)).await;
            let error = error_of(settings(engine, &server)).await;
            assert_eq!(error.kind, ErrorKind::Failed);
            let says = format!("{engine} gave an answer that cannot be read");
            assert!(error.message.contains(&says), "{body}: {error}");
        }
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_an_error() {
    for engine in SearchEngine::ALL {
        let server = Server::answering(head(200, &[("content-length", "100")])).await;
        let error = error_of(settings(engine, &server)).await;
        assert_eq!(error.kind, ErrorKind::Failed);
        assert!(error.message.contains("the answer broke off"), "{error}");
    }
}

#[tokio::test]
async fn an_endless_chain_of_redirects_does_not_show_the_key() {
    for engine in SearchEngine::ALL {
        let server = Server::start(|request| redirect(307, &request.target)).await;
        let error = error_of(settings(engine, &server)).await;
        assert!(error.message.contains("gave up after 10 redirects"), "{error}");
    }
}

#[tokio::test]
async fn only_the_configured_base_may_be_private() {
    let secret = Server::answering(answer(200, &[], "{}")).await;
    let away = secret.url("/");
    let server = Server::start(move |_| redirect(302, &away)).await;
    let error = error_of(settings(SearchEngine::Bing, &server)).await;
    assert_eq!(error.kind, ErrorKind::Permission);
    assert_eq!((server.received().len(), secret.received().len()), (1, 0));
}

#[tokio::test]
async fn a_search_ends_with_its_time_limit() {
    let server = Server::start(|_| {
        vec![Step::Send(head(200, &[("content-length", "9")])), Step::Send(b"{".into()), Step::Hang]
    })
    .await;
    let call = ToolCall::new("c", "web_search", json!({ "query": "x" }));
    let executor = executor(tool(settings(SearchEngine::Tavily, &server)));
    let options = CallOptions::timeout(Duration::from_millis(200));
    let result = executor.execute_with(call, options).await;
    fails(&result, ErrorKind::Timeout, "timed out after 200ms");
}

#[test]
fn settings_do_not_show_the_key() {
    let settings = WebSearchSettings { api_key: Some(KEY.into()), ..WebSearchSettings::default() };
    let shown = format!("{settings:?}");
    assert!(shown.contains("api_key: Some(***)") && !shown.contains("secret"), "{shown}");
}
