//! Servers over HTTP that want to know who asks.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use convoke_core::ErrorKind;
use convoke_mcp::auth::Secret;
use convoke_mcp::client::{Authorization, Refusal, Remote, ServerConfig, Servers, Surroundings};

use crate::scripted::call;
use crate::web::{Answer, Asked, Web, basics, modern};

/// Has one token after another.
#[derive(Debug, Default)]
struct Tokens {
    number: AtomicUsize,
    challenges: Mutex<Vec<Option<String>>>,
}

#[async_trait]
impl Authorization for Tokens {
    async fn headers(&self, _: &Remote) -> Result<Vec<(String, Secret)>, String> {
        let number = self.number.load(Ordering::Acquire);
        if number == 99 {
            return Err("the tokens cannot be read".to_owned());
        }
        Ok(vec![("authorization".to_owned(), Secret::new(format!("Bearer t{number}")))])
    }

    async fn refused(&self, server: &Remote, refusal: Refusal) -> Result<(), String> {
        assert_eq!(server.name, "s");
        let sent = refusal.sent[0].1.expose();
        assert_eq!(sent, format!("Bearer t{}", self.number.load(Ordering::Acquire)));
        self.challenges.lock().unwrap().push(refusal.challenge);
        if self.number.fetch_add(1, Ordering::AcqRel) < 2 {
            Ok(())
        } else {
            Err("run `sign-in s` first".to_owned())
        }
    }
}

#[tokio::test]
async fn a_server_that_wants_to_know_who_asks_is_told_and_a_person_is_told_what_to_do() {
    let wanted = Arc::new(AtomicUsize::new(1));
    let now = Arc::clone(&wanted);
    let web = Web::start(move |asked| {
        let token = format!("Bearer t{}", now.load(Ordering::Acquire));
        if asked.header("authorization") != Some(token.as_str()) {
            return Answer::status(401).with("www-authenticate", "Bearer realm=\"x\"");
        }
        match asked.rpc() {
            "tools/call" => Answer::text(asked, "welcome"),
            _ => basics(asked, "one"),
        }
    })
    .await;
    let refused = web.servers().start("s").await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Permission);
    assert!(refused.message.contains("HTTP 401"), "{refused}");

    let tokens = Arc::new(Tokens::default());
    let servers = web.with(Surroundings::new("/").authorization(tokens.clone()));
    assert_eq!(call(&servers, "t").await.text(), "welcome");
    assert_eq!(tokens.challenges.lock().unwrap()[0].as_deref(), Some("Bearer realm=\"x\""));
    // The token runs out in the middle: the call is made once more with the next.
    wanted.store(2, Ordering::Release);
    assert_eq!(call(&servers, "t").await.text(), "welcome");
    wanted.store(9, Ordering::Release);
    let result = call(&servers, "t").await;
    let error = result.error().unwrap();
    assert_eq!(error.kind, ErrorKind::Permission);
    assert!(error.message.contains("run `sign-in s` first"), "{error}");
}

/// Always has something else to try.
#[derive(Debug)]
struct Tireless;

#[async_trait]
impl Authorization for Tireless {
    async fn headers(&self, _: &Remote) -> Result<Vec<(String, Secret)>, String> {
        Ok(Vec::new())
    }

    async fn refused(&self, _: &Remote, _: Refusal) -> Result<(), String> {
        Ok(())
    }
}

#[tokio::test]
async fn a_request_is_made_again_as_long_as_that_helps_and_never_without_end() {
    let web = Web::start(|asked| match (asked.rpc(), asked.header("authorization")) {
        ("tools/call", Some("Bearer t2")) => Answer::text(asked, "at last"),
        ("tools/call", _) => Answer::status(403).with("www-authenticate", "Bearer scope=\"more\""),
        _ => basics(asked, "one"),
    })
    .await;
    let servers = web.with(Surroundings::new("/").authorization(Arc::<Tokens>::default()));
    assert_eq!(call(&servers, "t").await.text(), "at last");
    assert_eq!(web.count("tools/call"), 3);
    let servers = web.with(Surroundings::new("/").authorization(Arc::new(Tireless)));
    let result = call(&servers, "t").await;
    assert_eq!(result.error().unwrap().kind, ErrorKind::Permission);
}

/// A person who takes minutes to log in, and then has the right token.
#[derive(Debug, Default)]
struct Slow(AtomicUsize);

#[async_trait]
impl Authorization for Slow {
    async fn headers(&self, _: &Remote) -> Result<Vec<(String, Secret)>, String> {
        let token = format!("t{}", self.0.load(Ordering::Acquire));
        Ok(vec![("authorization".to_owned(), Secret::new(token))])
    }

    async fn refused(&self, _: &Remote, _: Refusal) -> Result<(), String> {
        tokio::time::pause();
        tokio::time::advance(Duration::from_mins(5)).await;
        tokio::time::resume();
        self.0.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }
}

#[tokio::test]
async fn neither_a_start_nor_a_call_is_late_because_a_person_takes_time_to_log_in() {
    let web = Web::start(|asked| {
        let wanted = match asked.rpc() {
            "server/discover" => "t1",
            "tools/list" => "t2",
            "tools/call" => "t3",
            _ => return Answer::status(404),
        };
        if asked.header("authorization") == Some(wanted) {
            return modern(asked);
        }
        Answer::status(401)
    })
    .await;
    let servers = web.with(Surroundings::new("/").authorization(Arc::<Slow>::default()));
    assert_eq!(call(&servers, "t").await.text(), "no session");
    assert_eq!(web.count("initialize"), 0, "it was not taken for an old one");
}

#[tokio::test]
async fn headers_that_cannot_be_had_stop_the_request_and_say_why() {
    let web = Web::start(|asked| basics(asked, "one")).await;
    let tokens = Arc::new(Tokens { number: 99.into(), ..Tokens::default() });
    let servers = web.with(Surroundings::new("/").authorization(tokens));
    let error = servers.start("s").await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Permission);
    assert!(error.message.contains("the tokens cannot be read"), "{error}");
    assert!(web.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_configured_authorization_header_is_the_only_one() {
    let web = Web::start(|asked| {
        if asked.header("authorization") == Some("Bearer own") {
            return basics(asked, "one");
        }
        Answer::status(401)
    })
    .await;
    let tokens = Arc::new(Tokens::default());
    let with = |value: &str| {
        let config = ServerConfig::http("s", &web.url).header("Authorization", value);
        let surroundings = Surroundings::new("/").authorization(tokens.clone());
        Servers::new(vec![config], surroundings)
    };
    with("Bearer own").start("s").await.unwrap();
    let error = with("Bearer old").start("s").await.unwrap_err();
    assert!(error.message.contains("HTTP 401"), "{error}");
    assert!(tokens.challenges.lock().unwrap().is_empty());
    let asked = web.asked.lock().unwrap();
    let shown = |one: &Asked| {
        one.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("authorization")).count()
    };
    assert!(asked.iter().all(|one| shown(one) == 1));
}

#[tokio::test]
async fn a_server_that_shows_its_tools_only_to_those_it_knows_need_not_rest_first() {
    let web = Web::start(|asked| match asked.rpc() {
        "tools/list" => Answer::status(401),
        _ => basics(asked, "one"),
    })
    .await;
    let servers = web.servers();
    for _ in 0..3 {
        let error = servers.start("s").await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Permission, "{error}");
        assert!(error.message.contains("HTTP 401"), "{error}");
    }
}

/// Has one token, as a login gives it.
#[derive(Debug)]
struct LoggedIn;

#[async_trait]
impl Authorization for LoggedIn {
    async fn headers(&self, _: &Remote) -> Result<Vec<(String, Secret)>, String> {
        Ok(vec![("authorization".to_owned(), Secret::new("Bearer 9c1f-0a7e"))])
    }

    async fn refused(&self, _: &Remote, refusal: Refusal) -> Result<(), String> {
        Err(refusal.challenge.unwrap_or_default())
    }
}

/// What it was shown is nobody else's business.
#[tokio::test]
async fn a_server_that_quotes_the_token_is_not_quoted_further() {
    let calls = AtomicUsize::new(0);
    let web = Web::start(move |asked| {
        let quoted = format!("you are {}", asked.header("authorization").unwrap_or_default());
        match asked.rpc() {
            "tools/call" if calls.fetch_add(1, Ordering::AcqRel) == 0 => {
                Answer::text(asked, &quoted)
            }
            "tools/call" => Answer::status(401).with("www-authenticate", &quoted),
            _ => basics(asked, "one"),
        }
    })
    .await;
    let servers = web.with(Surroundings::new("/").authorization(Arc::new(LoggedIn)));
    assert_eq!(call(&servers, "t").await.text(), "you are Bearer ***");
    let refused = call(&servers, "t").await;
    let message = &refused.error().unwrap().message;
    assert!(message.contains("you are Bearer ***") && !message.contains("9c1f"), "{message}");
}
