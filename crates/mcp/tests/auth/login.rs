//! Logins that work.

use std::sync::{Arc, Mutex};

use convoke_mcp::auth::{KnownClient, Secret};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use url::Url;

use crate::browser::{Copyist, log_in, visit};
use crate::support::{User, ask, token};
use crate::world::{World, metadata, reply};

#[tokio::test]
async fn a_first_refusal_leads_to_a_login_and_the_next_request_goes_through() {
    let world = World::remote();
    let user = User::new(&world);
    let oauth = user.oauth();
    assert_eq!(token(&oauth).await, None);
    assert_eq!(ask(&oauth, &world).await.unwrap(), 200);

    let registered: Value = serde_json::from_str(&world.asked("/register")[0].body).unwrap();
    assert_eq!(registered["grant_types"], json!(["authorization_code", "refresh_token"]));
    assert_eq!(registered["token_endpoint_auth_method"], "none");
    let login = &world.asked("/authorize")[0];
    let redirect = Url::parse(&login.field("redirect_uri").unwrap()).unwrap();
    assert_eq!(redirect.host_str(), Some("127.0.0.1"));
    assert_eq!(registered["redirect_uris"], json!([redirect.as_str()]));
    assert_eq!(login.field("response_type").as_deref(), Some("code"));
    assert_eq!(login.field("client_id").as_deref(), Some("client-1"));
    assert_eq!(login.field("code_challenge_method").as_deref(), Some("S256"));
    assert_eq!(login.field("resource").as_deref(), Some("https://mcp.example/mcp"));
    assert_eq!(login.field("scope").as_deref(), Some("read"));
    assert_eq!(login.field("state").unwrap().len(), 43);
    let exchange = &world.asked("/token")[0];
    assert_eq!(exchange.field("resource").as_deref(), Some("https://mcp.example/mcp"));
    assert_eq!(exchange.field("client_id").as_deref(), Some("client-1"));

    // Whoever comes later finds it, and nobody is asked again.
    assert_eq!(ask(&user.alone(), &world).await.unwrap(), 200);
    assert_eq!(user.browser.shown(), 1);
}

#[tokio::test]
async fn two_logins_have_nothing_guessable_in_common() {
    let world = World::remote();
    let user = User::new(&world);
    user.oauth().login().await.unwrap();
    user.oauth().login().await.unwrap();
    let logins = world.asked("/authorize");
    for field in ["state", "code_challenge"] {
        assert_ne!(logins[0].field(field), logins[1].field(field), "{field}");
    }
}

#[tokio::test]
async fn an_address_can_be_pasted_where_the_browser_cannot_come_back() {
    let world = World::remote();
    let (shown, mut seen) = mpsc::unbounded_channel();
    let (paste, pastes) = mpsc::unbounded_channel();
    let pastes = tokio::sync::Mutex::new(pastes);
    let person = Arc::new(Copyist { shown, pastes, told: Mutex::default() });
    let oauth = User::new(&world).with(Some(person.clone()));
    let (login, ()) = tokio::join!(oauth.login(), async {
        let url = seen.recv().await.unwrap();
        paste.send("https://elsewhere.example/?code=x&state=y".to_owned()).unwrap();
        paste.send(format!("{}\n", log_in(&world, &url))).unwrap();
    });
    login.unwrap();
    assert_eq!(*person.told.lock().unwrap(), ["it does not belong to this login"]);
    assert_eq!(ask(&oauth, &world).await.unwrap(), 200);
}

/// Lets somebody log in whose browser is played by the test.
async fn log_in_by_hand(world: &World, browser: impl AsyncFnOnce(Url)) {
    let (shown, mut seen) = mpsc::unbounded_channel();
    let (_paste, pastes) = mpsc::unbounded_channel();
    let pastes = tokio::sync::Mutex::new(pastes);
    let person = Arc::new(Copyist { shown, pastes, told: Mutex::default() });
    let oauth = User::new(world).with(Some(person));
    let (login, ()) = tokio::join!(oauth.login(), async {
        browser(log_in(world, &seen.recv().await.unwrap())).await;
    });
    login.unwrap();
    assert_eq!(world.asked("/token").len(), 1);
}

#[tokio::test]
async fn strangers_who_call_the_waiting_address_change_nothing() {
    log_in_by_hand(&World::remote(), async |back| {
        for stranger in ["/", "/callback", "/callback?code=evil&state=guess", "/favicon.ico"] {
            let page = visit(&back.join(stranger).unwrap()).await;
            assert!(page.starts_with("HTTP/1.1 40"), "{stranger}: {page}");
        }
        let page = visit(&back).await;
        assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
        // Whether the login works is not known yet.
        assert!(page.contains("You can close this window"), "{page}");
        assert!(!page.contains("logged in"), "{page}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn connections_that_are_left_idle_do_not_keep_the_browser_out() {
    log_in_by_hand(&World::remote(), async |back| {
        let place = ("127.0.0.1", back.port().unwrap());
        let mut idle = Vec::new();
        for _ in 0..20 {
            idle.push(TcpStream::connect(place).await.unwrap());
        }
        assert!(visit(&back).await.starts_with("HTTP/1.1 200 OK\r\n"));
    })
    .await;
}

#[tokio::test]
async fn a_request_without_end_is_cut_off() {
    log_in_by_hand(&World::remote(), async |back| {
        let place = ("127.0.0.1", back.port().unwrap());
        let mut stream = TcpStream::connect(place).await.unwrap();
        let line = [b'x'; 1024];
        let mut sent = 0;
        // It fails once the other side has closed the connection.
        while stream.write_all(&line).await.is_ok() {
            sent += line.len();
            assert!(sent < 16 * 1024 * 1024, "nobody stops reading");
        }
        visit(&back).await;
    })
    .await;
}

#[tokio::test]
async fn a_document_stands_for_the_client_where_it_is_read() {
    let world = World::remote();
    world.ways().metadata["client_id_metadata_document_supported"] = json!(true);
    let mut user = User::new(&world);
    let document = Url::parse("https://convoke.example/client.json").unwrap();
    user.settings.client_metadata_url = Some(document.clone());
    assert_eq!(ask(&user.oauth(), &world).await.unwrap(), 200);
    assert!(world.asked("/register").is_empty());
    let client = world.asked("/token")[0].field("client_id");
    assert_eq!(client.as_deref(), Some(document.as_str()));
}

#[tokio::test]
async fn a_client_registered_by_hand_proves_itself_as_the_server_can_take_it() {
    for (methods, header, field) in [
        (json!(["client_secret_basic"]), "Basic bWU6aHVzaC1odXNo", None),
        (json!(["client_secret_post"]), "", Some("hush-hush")),
        (json!(null), "Basic bWU6aHVzaC1odXNo", None),
    ] {
        let world = World::remote();
        world.ways().metadata["token_endpoint_auth_methods_supported"] = methods;
        let mut user = User::new(&world);
        let secret = Some(Secret::new("hush-hush"));
        user.settings.client = Some(KnownClient { id: "me".into(), secret, issuer: None });
        assert_eq!(ask(&user.oauth(), &world).await.unwrap(), 200);
        assert!(world.asked("/register").is_empty());
        let exchange = &world.asked("/token")[0];
        assert_eq!(exchange.header("Authorization"), header);
        assert_eq!(exchange.field("client_secret").as_deref(), field);
    }
}

#[tokio::test]
async fn a_secret_that_registration_gave_is_used_and_kept() {
    let world = World::remote();
    {
        let mut ways = world.ways();
        ways.metadata["token_endpoint_auth_methods_supported"] = json!(["client_secret_post"]);
        ways.registration = json!({ "client_secret": "given-secret" });
    }
    let user = User::new(&world);
    assert_eq!(ask(&user.oauth(), &world).await.unwrap(), 200);
    user.clock.advance(std::time::Duration::from_hours(2));
    assert!(token(&user.alone()).await.is_some());
    for exchange in world.asked("/token") {
        assert_eq!(exchange.field("client_secret").as_deref(), Some("given-secret"));
    }
}

#[tokio::test]
async fn servers_of_the_first_revision_are_their_own_authorization_servers() {
    for described in [true, false] {
        let world = World::new("https://mcp.example/mcp", "https://mcp.example");
        {
            let mut ways = world.ways();
            ways.resource = Value::Null;
            ways.challenge = "Bearer".into();
            ways.metadata = if described { metadata("https://mcp.example") } else { Value::Null };
        }
        assert_eq!(ask(&User::new(&world).oauth(), &world).await.unwrap(), 200);
        let login = &world.asked("/authorize")[0];
        assert_eq!(login.field("resource").as_deref(), Some("https://mcp.example/mcp"));
        assert_eq!(login.field("scope"), None);
    }
}

#[tokio::test]
async fn another_issuer_means_another_registration_and_nothing_of_the_old_one_is_shown_to_it() {
    let world = World::remote();
    world.ways().registration = json!({ "client_secret": "old-secret" });
    let user = User::new(&world);
    let oauth = user.oauth();
    assert_eq!(ask(&oauth, &world).await.unwrap(), 200);
    {
        let mut ways = world.ways();
        ways.move_to("https://new.example");
        ways.registration = json!({ "client_secret": "new-secret" });
    }
    assert_eq!(ask(&oauth, &world).await.unwrap(), 200);
    let there: Vec<_> = world
        .ways()
        .asked
        .iter()
        .filter(|asked| asked.url.host_str() == Some("new.example"))
        .map(|asked| format!("{asked:?}"))
        .collect();
    assert!(there.iter().any(|asked| asked.contains("/register")));
    for asked in there {
        for old in ["old-secret", "client-1\"", "access-3", "refresh-3"] {
            assert!(!asked.contains(old), "{old} in {asked}");
        }
    }
}

#[tokio::test]
async fn logging_out_forgets_everything() {
    let world = World::remote();
    let user = User::new(&world);
    let oauth = user.oauth();
    oauth.login().await.unwrap();
    assert!(oauth.logout().await.unwrap());
    assert!(!oauth.logout().await.unwrap());
    assert_eq!(token(&oauth).await, None);
    let error = ask(&user.alone(), &world).await.unwrap_err().to_string();
    assert!(error.contains("convoke mcp login files"), "{error}");
}

#[tokio::test]
async fn pages_for_people_and_nulls_are_no_descriptions() {
    let world = World::remote();
    {
        let mut ways = world.ways();
        // Nothing is named, so the usual places are looked at.
        ways.challenge = "Bearer".into();
        ways.metadata["scopes_supported"] = json!(null);
        ways.metadata["client_id_metadata_document_supported"] = json!(null);
        let (described, page) = (reply(200, &ways.metadata), reply(200, &json!("<html>")));
        let place = "https://login.example/.well-known/oauth-authorization-server";
        ways.fixed.insert(place.to_owned(), page);
        let place = "https://login.example/.well-known/openid-configuration";
        ways.fixed.insert(place.to_owned(), described);
    }
    assert_eq!(ask(&User::new(&world).oauth(), &world).await.unwrap(), 200);
}
