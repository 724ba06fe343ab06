//! What is refused, and that nothing was given away by then.

use std::sync::Arc;

use convoke_mcp::auth::{AuthError, HttpResponse, KnownClient, Pkce, Secret};
use serde_json::{Value, json};

use crate::browser::Sleeper;
use crate::support::{User, ask};
use crate::world::{World, reply};

/// Asks, expects a refusal, and checks that no code and no token was asked for.
async fn refused(world: &World) -> AuthError {
    let error = ask(&User::new(world).oauth(), world).await.unwrap_err();
    assert!(world.asked("/token").is_empty(), "{error}");
    error
}

#[tokio::test]
async fn nobody_to_ask_is_said_at_once_with_what_to_do() {
    let world = World::remote();
    let user = User::new(&world);
    let error = ask(&user.alone(), &world).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "nobody is logged in to it, and nobody can be asked here; run `convoke mcp login files` in a \
         terminal, then try again"
    );
    assert!(user.alone().login().await.is_err());
    assert_eq!(world.ways().asked.len(), 1, "only the server itself was asked");
}

#[tokio::test(start_paused = true)]
async fn a_person_who_does_nothing_is_not_waited_for_forever() {
    let world = World::remote();
    let oauth = User::new(&world).with(Some(Arc::new(Sleeper)));
    let before = tokio::time::Instant::now();
    let error = oauth.login().await.unwrap_err();
    assert!(matches!(error, AuthError::NotInTime { .. }), "{error}");
    assert_eq!(before.elapsed().as_secs(), 300);
}

#[tokio::test]
async fn a_server_that_says_it_is_another_one_gets_no_login() {
    let world = World::remote();
    world.ways().resource["resource"] = json!("https://bank.example/mcp");
    let error = refused(&world).await;
    assert!(matches!(error, AuthError::ResourceMismatch { .. }), "{error}");
    assert!(world.asked("/authorize").is_empty());
}

#[tokio::test]
async fn an_authorization_server_that_says_it_is_another_one_is_not_used() {
    let world = World::remote();
    world.ways().metadata["issuer"] = json!("https://bank.example");
    let error = refused(&world).await;
    assert!(matches!(error, AuthError::IssuerMismatch { .. }), "{error}");
    assert!(world.asked("/authorize").is_empty());
}

#[tokio::test]
async fn an_answer_from_another_authorization_server_is_not_exchanged() {
    for (advertised, iss, works) in [
        (true, Some("https://login.example"), true),
        (true, None, false),
        (true, Some("https://bank.example"), false),
        (false, None, true),
        (false, Some("https://bank.example"), false),
        (false, Some("https://login.example/"), false),
        (false, Some("https://LOGIN.example"), false),
    ] {
        let world = World::remote();
        world.ways().metadata["authorization_response_iss_parameter_supported"] = json!(advertised);
        world.ways().iss = iss.map(str::to_owned);
        if works {
            assert_eq!(ask(&User::new(&world).oauth(), &world).await.unwrap(), 200);
        } else {
            let error = refused(&world).await;
            let named = matches!(error, AuthError::IssuerMismatch { .. });
            let unnamed = matches!(error, AuthError::IssuerUnnamed { .. });
            assert_eq!((named, unnamed), (iss.is_some(), iss.is_none()), "{iss:?}: {error}");
        }
    }
}

#[tokio::test]
async fn a_server_elsewhere_cannot_send_us_into_this_machine_or_its_network() {
    for bad in [
        "http://127.0.0.1:8080/x",
        "https://127.0.0.1/x",
        "https://localhost/x",
        "https://10.0.0.1/x",
        "https://169.254.169.254/x",
        "https://[::ffff:10.0.0.1]/x",
        "http://login.example/x",
        "file:///etc/passwd",
    ] {
        for place in ["token_endpoint", "registration_endpoint", "authorization_endpoint"] {
            let world = World::remote();
            world.ways().metadata[place] = json!(bad);
            let error = refused(&world).await;
            assert!(matches!(error, AuthError::UnsafeAddress { .. }), "{place} {bad}: {error}");
        }
        let world = World::remote();
        world.ways().resource["authorization_servers"] = json!([bad]);
        let error = refused(&world).await;
        assert!(matches!(error, AuthError::UnsafeAddress { .. }), "{bad}: {error}");

        let world = World::remote();
        world.ways().challenge = format!("Bearer resource_metadata=\"{bad}\"");
        let error = refused(&world).await;
        assert!(matches!(error, AuthError::UnsafeAddress { .. }), "{bad}: {error}");
        let there = world.ways().asked.iter().any(|asked| asked.url.path() == "/x");
        assert!(!there, "{bad}");
    }
}

#[tokio::test]
async fn descriptions_are_not_fetched_through_redirects_to_elsewhere() {
    let place = "https://mcp.example/.well-known/oauth-protected-resource/mcp";
    for (location, works) in [
        ("https://evil.example/.well-known/oauth-protected-resource", false),
        ("http://127.0.0.1:9/", false),
        ("/again", false),
        ("/elsewhere", true),
    ] {
        let world = World::remote();
        let redirect = |to: &str| HttpResponse {
            status: 302,
            headers: vec![("Location".to_owned(), to.to_owned())],
            body: Vec::new(),
        };
        {
            let mut ways = world.ways();
            let described = reply(200, &ways.resource);
            ways.fixed.insert(place.to_owned(), redirect(location));
            ways.fixed.insert("https://mcp.example/again".to_owned(), redirect("/again"));
            ways.fixed.insert("https://mcp.example/elsewhere".to_owned(), described);
        }
        let asked = ask(&User::new(&world).oauth(), &world).await;
        assert_eq!(asked.is_ok(), works, "{location}: {asked:?}");
        let hosts = world
            .ways()
            .asked
            .iter()
            .all(|asked| matches!(asked.url.host_str(), Some("mcp.example" | "login.example")));
        assert!(hosts, "{location}");
        assert!(world.asked("/again").len() <= 4);
    }
}

#[tokio::test]
async fn a_token_endpoint_that_redirects_is_not_followed() {
    let world = World::remote();
    let headers = vec![("Location".to_owned(), "https://evil.example/token".to_owned())];
    let redirect = HttpResponse { status: 307, headers, body: Vec::new() };
    world.ways().fixed.insert("https://login.example/token".to_owned(), redirect);
    let error = ask(&User::new(&world).oauth(), &world).await.unwrap_err();
    assert!(matches!(error, AuthError::Refused { .. }), "{error}");
    let evil = |asked: &crate::world::Asked| asked.url.host_str() == Some("evil.example");
    assert!(!world.ways().asked.iter().any(evil));
}

#[tokio::test]
async fn an_authorization_server_without_pkce_is_refused_unless_it_is_known_to_have_it() {
    for methods in [json!(null), json!(["plain"]), json!([])] {
        let world = World::remote();
        world.ways().metadata["code_challenge_methods_supported"] = methods;
        let error = refused(&world).await;
        assert!(matches!(error, AuthError::Unsupported { .. }), "{error}");
        assert!(world.asked("/register").is_empty());
    }
    let world = World::remote();
    world.ways().metadata["code_challenge_methods_supported"] = json!(null);
    let mut user = User::new(&world);
    user.settings.pkce = Pkce::Assumed;
    assert_eq!(ask(&user.oauth(), &world).await.unwrap(), 200);
}

#[tokio::test]
async fn where_nobody_can_register_the_configuration_has_to_name_a_client() {
    let world = World::remote();
    world.ways().metadata["registration_endpoint"] = json!(null);
    let error = refused(&world).await;
    assert!(matches!(error, AuthError::NoRegistration { .. }), "{error}");
    assert!(error.to_string().contains("put its id into the configuration of `files`"), "{error}");
}

#[tokio::test]
async fn a_client_registered_by_hand_is_shown_to_no_other_issuer() {
    let world = World::remote();
    let mut user = User::new(&world);
    let secret = Some(Secret::new("hush-hush"));
    user.settings.client = Some(KnownClient { id: "me".into(), secret, issuer: None });
    let oauth = user.oauth();
    assert_eq!(ask(&oauth, &world).await.unwrap(), 200);
    world.ways().move_to("https://new.example");
    for error in [ask(&oauth, &world).await.unwrap_err(), oauth.login().await.unwrap_err()] {
        assert!(matches!(error, AuthError::IssuerChanged { .. }), "{error}");
    }
    user.settings.client.as_mut().unwrap().issuer = Some("https://new.example".into());
    assert_eq!(ask(&user.oauth(), &world).await.unwrap(), 200);
    user.settings.client.as_mut().unwrap().issuer = Some("https://third.example".into());
    world.ways().tokens.clear();
    let error = user.oauth().login().await.unwrap_err();
    assert!(matches!(error, AuthError::IssuerChanged { .. }), "{error}");
}

#[tokio::test]
async fn a_server_that_is_not_encrypted_gets_no_token() {
    let world = World::new("http://mcp.example/mcp", "https://login.example");
    let error = ask(&User::new(&world).oauth(), &world).await.unwrap_err();
    assert!(matches!(error, AuthError::UnsafeAddress { .. }), "{error}");
}

#[tokio::test]
async fn answers_that_are_no_answers_are_named() {
    for (place, answer) in [
        ("https://mcp.example/.well-known/oauth-protected-resource/mcp", reply(500, &json!({}))),
        ("https://mcp.example/.well-known/oauth-protected-resource/mcp", reply(200, &json!([]))),
        ("https://login.example/.well-known/oauth-authorization-server", reply(503, &json!({}))),
        ("https://login.example/register", reply(201, &json!({ "id": "x" }))),
        ("https://login.example/token", reply(200, &json!({ "token": "x" }))),
        (
            "https://login.example/token",
            reply(200, &json!({ "access_token": "a", "token_type": "DPoP" })),
        ),
        ("https://login.example/token", reply(200, &json!({ "access_token": "a\r\nX: y" }))),
    ] {
        let world = World::remote();
        world.ways().fixed.insert(place.to_owned(), answer);
        let error = ask(&User::new(&world).oauth(), &world).await.unwrap_err();
        assert!(matches!(error, AuthError::BadAnswer { .. }), "{place}: {error}");
        assert!(error.to_string().contains(place), "{place}: {error}");
    }
}

#[tokio::test]
async fn an_authorization_server_that_is_named_and_does_not_describe_itself_is_not_replaced() {
    let world = World::remote();
    world.ways().metadata = Value::Null;
    let error = refused(&world).await;
    assert!(matches!(error, AuthError::BadAnswer { .. }), "{error}");
    assert!(world.asked("/authorize").is_empty());
}
