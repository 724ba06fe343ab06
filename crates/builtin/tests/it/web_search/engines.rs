//! What each search engine is sent, and what becomes of its answer.

use super::*;

#[tokio::test]
async fn tavily() {
    let server = Server::answering(json_answer(&json!({
        "query": "rust async", "response_time": 1.2,
        "results": [
            { "title": "One", "url": "https://a.example/1", "content": "first", "score": 0.9,
              "published_date": "Mon, 06 May 2024 10:00:00 GMT" },
            { "title": "Two", "url": "https://a.example/2", "content": "second", "raw_content": null },
        ],
    })))
    .await;
    let arguments = json!({ "query": "rust async", "limit": 2 });
    let result = search(settings(SearchEngine::Tavily, &server), arguments).await;
    assert_eq!(
        *results(&result),
        json!([
            { "title": "One", "url": "https://a.example/1", "snippet": "first",
              "published": "Mon, 06 May 2024 10:00:00 GMT", "source": "tavily" },
            { "title": "Two", "url": "https://a.example/2", "snippet": "second", "source": "tavily" },
        ])
    );
    let request = server.only_request();
    assert_eq!((request.method.as_str(), request.target.as_str()), ("POST", "/search"));
    assert_eq!(request.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    assert_eq!(request.header("content-type"), Some("application/json"));
    let body: Value = serde_json::from_str(&request.body).unwrap();
    assert_eq!(body, json!({ "query": "rust async", "max_results": 2 }));
}

#[tokio::test]
async fn bing() {
    let server = Server::answering(json_answer(&json!({
        "_type": "SearchResponse",
        "webPages": { "totalEstimatedMatches": 2, "value": [
            { "id": "x", "name": "One", "url": "https://a.example/1", "snippet": "first",
              "datePublished": "2024-05-06T00:00:00.0000000" },
            { "name": "Two", "url": "https://a.example/2", "snippet": "second",
              "dateLastCrawled": "2024-05-07T00:00:00Z" },
        ] },
    })))
    .await;
    let arguments = json!({ "query": "a&b ü", "limit": 7 });
    let result = search(settings(SearchEngine::Bing, &server), arguments).await;
    assert_eq!(
        *results(&result),
        json!([
            { "title": "One", "url": "https://a.example/1", "snippet": "first",
              "published": "2024-05-06T00:00:00.0000000", "source": "bing" },
            { "title": "Two", "url": "https://a.example/2", "snippet": "second", "source": "bing" },
        ])
    );
    let request = server.only_request();
    assert_eq!(request.method, "GET");
    assert_eq!(request.target, "/v7.0/search?q=a%26b+%C3%BC&count=7");
    assert_eq!(request.header("ocp-apim-subscription-key"), Some(KEY));
}

#[tokio::test]
async fn bing_without_pages_finds_nothing() {
    let server = Server::answering(json_answer(&json!({ "_type": "SearchResponse" }))).await;
    let result = search(settings(SearchEngine::Bing, &server), json!({ "query": "x" })).await;
    assert_eq!(*results(&result), json!([]));
    assert_eq!(result.text(), "No results for \"x\".");
}

/// Answers like Google when there are `total` results.
async fn google_with(total: usize) -> Server {
    Server::start(move |request| {
        let url = url::Url::parse(&format!("http://a.example{}", request.target)).unwrap();
        let number = |name: &str| -> usize {
            let (_, value) = url.query_pairs().find(|(known, _)| known == name).unwrap();
            value.parse().unwrap()
        };
        let (start, count) = (number("start"), number("num"));
        assert!(count <= 10 && start + count <= 101, "{}", request.target);
        let items: Vec<Value> = (start..start + count)
            .filter(|index| *index <= total)
            .map(|index| {
                json!({
                    "title": format!("Title {index}"), "link": format!("https://a.example/{index}"),
                    "snippet": "text",
                    "pagemap": { "metatags": [{ "article:published_time": "2024-05-06" }] },
                })
            })
            .collect();
        let document = if items.is_empty() { json!({}) } else { json!({ "items": items }) };
        vec![Step::Send(json_answer(&document))]
    })
    .await
}

#[tokio::test]
async fn google() {
    let server = google_with(1).await;
    let arguments = json!({ "query": "a b", "limit": 5 });
    let result = search(settings(SearchEngine::Google, &server), arguments).await;
    assert_eq!(
        *results(&result),
        json!([{
            "title": "Title 1", "url": "https://a.example/1", "snippet": "text",
            "published": "2024-05-06", "source": "google",
        }])
    );
    let request = server.only_request();
    assert_eq!(request.method, "GET");
    assert_eq!(
        request.target,
        "/customsearch/v1?key=sk%2Fsecret%2Bkey+1&cx=engine%3A1&q=a+b&num=5&start=1"
    );
}

#[tokio::test]
async fn google_is_asked_page_by_page() {
    for (total, wanted, found, pages) in
        [(100, 25, 25, 3), (13, 25, 13, 2), (20, 25, 20, 3), (500, 500, 100, 10), (0, 25, 0, 1)]
    {
        let server = google_with(total).await;
        let settings =
            WebSearchSettings { max_results: 500, ..settings(SearchEngine::Google, &server) };
        let result = search(settings, json!({ "query": "x", "limit": wanted })).await;
        let urls: Vec<&str> = results(&result)
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|each| each["url"].as_str())
            .collect();
        let expected: Vec<String> =
            (1..=found).map(|index| format!("https://a.example/{index}")).collect();
        assert_eq!(urls, expected);
        assert_eq!(server.received().len(), pages, "{total} {wanted}");
    }
}

const DUCKDUCKGO: &str = r#"<!DOCTYPE html>
<html><head><script>var a = "<a class='result__a' href='https://bad.example'>bad</a>";</script></head>
<body><div id="links" class="results">
<div class="result results_links results_links_deep result--ad ">
  <h2 class="result__title"><a class="result__a"
     href="https://duckduckgo.com/y.js?ad_domain=shop.example">Buy now</a></h2>
  <a class="result__snippet" href="x">An advertisement</a>
</div>
<div class="result result--ad"><a class="result__a" href="https://shop.example/">Buy now</a></div>
<!-- <a class="result__a" href="https://bad.example">bad</a> -->
<div class="result results_links results_links_deep web-result ">
  <div class="links_main links_deep result__body">
    <h2 class="result__title">
      <a rel="nofollow" class="result__a"
         href="//duckduckgo.com/l/?uddg=https%3A%2F%2Fa.example%2Fone%3Fx%3D1%26y%3D2&amp;rut=abc">
        Rust &amp; <b>async</b> &#x27;book&#39;
      </a>
    </h2>
    <a class="result__url" href="//duckduckgo.com/l/?uddg=https%3A%2F%2Fa.example">a.example</a>
    <a class="result__snippet" href="//duckduckgo.com/l/?uddg=x">How <b>async</b>
       works &lt;here&gt;&nbsp;&hellip;</a>
  </div>
</div>
<div class="result results_links web-result">
  <h2 class="result__title"><a class="result__a" href="https://b.example/two">Two</a></h2>
</div>
<div class="nav-link"><form action="/html/"><input type="submit" class='btn' value="Next"></form></div>
</div></body></html>"#;

#[tokio::test]
async fn duckduckgo() {
    let server =
        Server::answering(answer(200, &[("content-type", "text/html; charset=UTF-8")], DUCKDUCKGO))
            .await;
    let settings =
        WebSearchSettings { api_key: None, ..settings(SearchEngine::DuckDuckGo, &server) };
    let result = search(settings, json!({ "query": "rust async" })).await;
    assert_eq!(
        *results(&result),
        json!([
            { "title": "Rust & async 'book'", "url": "https://a.example/one?x=1&y=2",
              "snippet": "How async works <here> …", "source": "duckduckgo" },
            { "title": "Two", "url": "https://b.example/two", "snippet": "", "source": "duckduckgo" },
        ])
    );
    let request = server.only_request();
    assert_eq!((request.method.as_str(), request.target.as_str()), ("GET", "/html/?q=rust+async"));
}

#[tokio::test]
async fn duckduckgo_with_a_puzzle_is_not_an_empty_list() {
    let puzzle = r#"<div class="anomaly-modal__title">Unfortunately, bots use it too.</div>"#;
    for (status, page) in [(200, puzzle), (202, "")] {
        let server = Server::answering(answer(status, &[], page)).await;
        let result =
            search(settings(SearchEngine::DuckDuckGo, &server), json!({ "query": "x" })).await;
        fails(&result, ErrorKind::Unavailable, "wants proof that no robot is asking");
    }
    let server =
        Server::answering(answer(200, &[], "<div class='no-results'>No results.</div>")).await;
    let result = search(settings(SearchEngine::DuckDuckGo, &server), json!({ "query": "x" })).await;
    assert_eq!(*results(&result), json!([]));
}
