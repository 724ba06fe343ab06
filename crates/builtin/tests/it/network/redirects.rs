//! Redirects: how far, with what, and to whom.

use super::*;

#[tokio::test]
async fn redirects_are_followed_and_the_last_url_is_told() {
    let server = Server::start(|request| match request.path() {
        "/a/start" => redirect(301, "../b?x=1"),
        "/b" => redirect(308, "/end"),
        _ => vec![Step::Send(answer(200, &[], "there"))],
    })
    .await;
    let result = get(open(), server.url("/a/start")).await;
    assert_eq!(value(&result)["body"], "there");
    assert_eq!(value(&result)["url"], server.url("/end"));
    assert!(result.text().contains(&format!("\nurl: {}", server.url("/end"))));
    let targets: Vec<String> = server.received().into_iter().map(|each| each.target).collect();
    assert_eq!(targets, ["/a/start", "/b?x=1", "/end"]);
}

#[tokio::test]
async fn a_redirect_to_itself_ends_at_the_limit() {
    let server = Server::start(|_| redirect(302, "/again?n=1")).await;
    let started = Instant::now();
    let result = get(open(), server.url("/again")).await;
    let says =
        format!("gave up after 10 redirects; the last one leads to {}", server.url("/again?n=1"));
    fails(&result, ErrorKind::Failed, &says);
    assert_eq!(server.received().len(), 11);
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn without_redirects_a_redirect_is_an_answer() {
    let server = Server::start(|_| redirect(302, "/next")).await;
    let result = get(HttpSettings { max_redirects: 0, ..open() }, server.url("/")).await;
    assert_eq!(value(&result)["status"], 302);
    assert!(result.text().contains("\nlocation: /next"));
    assert_eq!(value(&result).get("url"), None);
}

#[tokio::test]
async fn a_post_becomes_a_get_or_stays_what_it_is() {
    for (status, method, body) in [
        (301, "GET", ""),
        (302, "GET", ""),
        (303, "GET", ""),
        (307, "POST", "{}"),
        (308, "POST", "{}"),
    ] {
        let server = Server::start(move |request| match request.path() {
            "/" => redirect(status, "/next"),
            _ => vec![Step::Send(answer(200, &[], "ok"))],
        })
        .await;
        let arguments = json!({ "url": server.url("/"), "body": "{}" });
        assert!(call(open(), "http_post", arguments).await.success());
        let last = server.received().pop().unwrap();
        assert_eq!((last.method.as_str(), last.body.as_str()), (method, body), "{status}");
        assert_eq!(last.header("content-type").is_some(), method == "POST", "{status}");
    }
}

#[tokio::test]
async fn credentials_are_not_sent_to_another_origin() {
    let names = ["Authorization", "Cookie", "X-Api-Key", "X-Auth-Token"];
    let mut headers: serde_json::Map<String, Value> =
        names.iter().map(|name| ((*name).to_owned(), json!("secret"))).collect();
    headers.insert("X-Plain".into(), json!("plain"));

    let elsewhere = Server::start(|request| match request.path() {
        "/first" => redirect(302, "/second"),
        _ => vec![Step::Send(answer(200, &[], "ok"))],
    })
    .await;
    let away = elsewhere.url("/first");
    let server = Server::start(move |request| match request.path() {
        "/" => redirect(302, "/same"),
        _ => redirect(302, &away),
    })
    .await;
    let arguments = json!({ "url": server.url("/"), "headers": headers });
    assert!(call(open(), "http_get", arguments).await.success());

    let own = server.received();
    assert_eq!(own.len(), 2);
    assert!(own.iter().all(|request| names.iter().all(|name| request.header(name).is_some())));
    let foreign = elsewhere.received();
    assert_eq!(foreign.len(), 2);
    for request in foreign {
        assert_eq!(request.header("x-plain"), Some("plain"));
        assert!(names.iter().all(|name| request.header(name).is_none()), "{request:?}");
    }
}

#[tokio::test]
async fn a_redirect_to_something_that_is_no_web_address_fails() {
    for location in ["file:///etc/passwd", "ftp://a.example/", "http://u:p@a.example/"] {
        let server = Server::start(move |_| redirect(302, location)).await;
        let result = get(open(), server.url("/")).await;
        fails(&result, ErrorKind::Failed, "redirects to where it cannot be followed");
    }
}

/// Allows every host but two: one is denied, one is asked about.
#[derive(Debug)]
struct ByHost {
    denied: String,
    asked: String,
}

impl Authorizer for ByHost {
    fn decide(&self, request: &Request<'_>) -> Decision {
        let reaches = |host: &str| request.effects.reads.contains(&Resource::Host(host.to_owned()));
        let rule = "by host".to_owned();
        if reaches(&self.denied) {
            return Decision::Deny { rule, reason: "a rule denies it".to_owned() };
        }
        if reaches(&self.asked) {
            let reason = "a rule asks about it".to_owned();
            return Decision::Ask { rule, reason, proposal: Vec::new() };
        }
        Decision::Allow { rule }
    }
}

fn host_of(server: &Server) -> String {
    server.url("").trim_start_matches("http://").trim_end_matches('/').to_owned()
}

/// Follows a redirect from one server to another, which is denied or asked about.
async fn redirected(denied: bool, answer_is: Option<bool>) -> (ToolResult, usize, String) {
    let other = Server::start(|_| vec![Step::Send(answer(200, &[], "other"))]).await;
    let away = other.url("/end");
    let first = Server::start(move |_| redirect(302, &away)).await;
    let host = host_of(&other);
    let nowhere = || "nowhere".to_owned();
    let by_host = if denied {
        ByHost { denied: host.clone(), asked: nowhere() }
    } else {
        ByHost { denied: nowhere(), asked: host.clone() }
    };
    let mut builder = builder(open(), ToolContext::builder("task").build()).authorizer(by_host);
    if let Some(yes) = answer_is {
        builder = builder.approver(ask_with(move |question| async move {
            assert!(question.inquiry.is_some(), "{question:?}");
            if yes { Answer::yes() } else { Answer::no() }
        }));
    }
    let call = ToolCall::new("c1", "http_get", json!({ "url": first.url("/") }));
    let result = builder.build().execute_with(call, CallOptions::timeout(PATIENCE)).await;
    (result, other.received().len(), host)
}

#[tokio::test]
async fn a_redirect_to_a_denied_host_is_not_followed() {
    let (result, reached, host) = redirected(true, Some(true)).await;
    fails(&result, ErrorKind::Permission, &format!("redirected to `{host}`: a rule denies it"));
    assert_eq!(reached, 0);
}

#[tokio::test]
async fn a_redirect_to_another_host_is_a_question_where_the_policy_asks() {
    let (result, reached, _) = redirected(false, Some(true)).await;
    assert!(result.success(), "{result:?}");
    assert_eq!(reached, 1);
    let (result, reached, host) = redirected(false, Some(false)).await;
    fails(&result, ErrorKind::Permission, &format!("redirected to `{host}`: the user said no"));
    assert_eq!(reached, 0);
}

#[tokio::test]
async fn a_redirect_is_refused_with_its_host_where_nobody_can_be_asked() {
    let (result, reached, host) = redirected(false, None).await;
    let says = format!("redirected to `{host}`: a rule asks about it, and nobody can be asked");
    fails(&result, ErrorKind::Permission, &says);
    assert_eq!(reached, 0);
}
