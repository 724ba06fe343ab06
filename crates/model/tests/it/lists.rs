//! Which models a provider has.

use std::time::Duration;

use convoke_model::{ModelErrorKind as Kind, Transport, WireFormat, list_models};
use convoke_testkit::{Options, Reply};

use crate::support::{Case, KEY, on_every_wire};

on_every_wire!(models_are_listed, a_list_that_does_not_come_is_an_error);

const PATIENCE: Duration = Duration::from_secs(20);

async fn models_are_listed(case: Case) {
    let options = Options::default().models(["zeta-1", "acme/alpha:7b"]);
    let server = options.start(Reply::text("x")).await.unwrap();
    for slash in ["", "/"] {
        let url = format!("{}{slash}", server.base_url(case.wire));
        let models = list_models(case.provider(&url), &Transport::default(), PATIENCE).await;
        let models = models.unwrap();
        let names: Vec<_> = models.iter().map(|model| model.name.as_str()).collect();
        assert_eq!(names, ["acme/alpha:7b", "zeta-1"]);
        let is_gemini = case.format == WireFormat::Gemini;
        assert_eq!(models[0].window, is_gemini.then_some(1_048_576));
        assert_eq!(models[0].max_output, is_gemini.then_some(65_536));
    }
    let seen = server.next_request().await;
    let has_key = seen.headers.iter().any(|(_, value)| value.ends_with(KEY));
    assert!(has_key && !seen.query.contains(KEY), "{seen:?}");
    assert_eq!(seen.method, "GET");
    assert_eq!(seen.header("accept"), Some("application/json"));
}

async fn a_list_that_does_not_come_is_an_error(case: Case) {
    let mut server = Options::default().start(Reply::text("x")).await.unwrap();
    let wrong = format!("{}/nowhere", server.url());
    let list = |url: String| {
        let provider = case.provider(&url);
        async move { list_models(provider, &Transport::default(), PATIENCE).await.unwrap_err() }
    };
    if matches!(case.format, WireFormat::OpenAiChat | WireFormat::OpenAiResponses) {
        let error = list(wrong).await;
        assert_eq!((error.kind, error.status), (Kind::NotFound, Some(404)));
    }
    server.refuse_connections().await;
    let error = list(server.base_url(case.wire)).await;
    assert_eq!(error.kind, Kind::Unreachable);
    assert_eq!(error.hint, Some(format!("is a server running at {}?", server.address())));
}
