//! Lists of models.

use convoke_testkit::{Options, Reply};
use serde_json::Value;

use crate::client::Client;

#[tokio::test]
async fn models_are_listed_as_each_provider_lists_them() {
    let options = Options::default().models(["small", "large:7b"]);
    let server = options.start(Reply::text("x")).await.unwrap();
    let mut client = Client::connect(&server).await;
    let bare = ["small", "large:7b"];
    let prefixed = ["models/small", "models/large:7b"];
    let anthropic = "anthropic-version: 2023-06-01\r\n";
    let cases = [
        ("/v1/models", "", "data", "id", bare),
        ("/v1/models?limit=9", anthropic, "data", "id", bare),
        ("/v1/models", "x-goog-api-key: k\r\n", "models", "name", prefixed),
        ("/v1beta/models?pageSize=9", "", "models", "name", prefixed),
        ("/api/tags", "", "models", "name", bare),
    ];
    for (target, headers, list, key, expected) in cases {
        let answer = client.get(target, headers).await;
        assert_eq!((answer.status, answer.is_whole), (200, true), "{target}");
        let found = answer.json();
        let names: Vec<&str> = found[list]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|model| model[key].as_str())
            .collect();
        assert_eq!(names, expected, "{target}");
        assert_eq!(found["has_more"] == Value::Bool(false), headers == anthropic);
    }
    assert!(server.requests().iter().all(|seen| seen.wire.is_none()));
}
