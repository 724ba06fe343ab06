//! Tokens are shown by nothing.

use std::fmt::Debug;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use convoke_mcp::auth::{
    AuthError, FileStore, Grant, HttpResponse, KnownClient, MemoryStore, Secret, SigningKey,
    TokenStore,
};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use serde_json::{Value, json};

use crate::support::{User, ask};
use crate::world::{World, reply};

/// Everything that is secret in these tests begins with one of these.
const SECRETS: [&str; 5] = ["hush-hush", "access-", "refresh-", "code-", "given-secret"];

fn holds_no_secret(text: &str) {
    for secret in SECRETS {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
}

fn shows_no_secret(value: &impl Debug) {
    holds_no_secret(&format!("{value:?} {value:#?}"));
}

fn error_shows_no_secret(error: &AuthError) {
    let mut text = format!("{error} {error:?} {error:#?}");
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    holds_no_secret(&text);
}

#[tokio::test]
async fn nothing_that_can_be_printed_shows_a_secret() {
    let directory = tempfile::tempdir().unwrap();
    let files: Arc<dyn TokenStore> = Arc::new(FileStore::new(directory.path().join("tokens")));
    let memory: Arc<dyn TokenStore> = Arc::new(MemoryStore::default());
    for store in [files, memory] {
        let world = World::remote();
        world.ways().registration = json!({ "client_secret": "given-secret" });
        let mut user = User::new(&world);
        user.store = store;
        let oauth = user.oauth();
        assert_eq!(ask(&oauth, &world).await.unwrap(), 200);
        shows_no_secret(&oauth);
        shows_no_secret(&user.store);
        shows_no_secret(&oauth.headers().await.unwrap());
        let record = user.store.load("files", "https://mcp.example/mcp").await.unwrap().unwrap();
        assert!(record.tokens.is_some() && record.client.secret.is_some());
        shows_no_secret(&record);
        shows_no_secret(&record.to_json());
        assert!(record.to_json().expose().contains("access-"), "it is there all the same");
    }
}

#[test]
fn settings_show_no_secret() {
    let world = World::remote();
    let mut user = User::new(&world);
    let secret = Some(Secret::new("hush-hush"));
    user.settings.client = Some(KnownClient { id: "me".into(), secret, issuer: None });
    let random = SystemRandom::new();
    let der = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
    let text = STANDARD.encode(der.as_ref());
    let pem = format!("-----BEGIN PRIVATE KEY-----\n{text}\n-----END PRIVATE KEY-----\n");
    user.settings.grant = Grant::ClientKey(SigningKey::from_pem(&Secret::new(pem)).unwrap());
    shows_no_secret(&user.settings);
    let shown = format!("{:?}", user.settings);
    assert!(!shown.contains(&text[40..80]), "{shown}");
}

#[tokio::test]
async fn an_authorization_server_that_repeats_secrets_does_not_get_them_shown() {
    for status in [200, 400, 401, 500] {
        let world = World::remote();
        let mut user = User::new(&world);
        let secret = Some(Secret::new("hush-hush"));
        user.settings.client = Some(KnownClient { id: "me".into(), secret, issuer: None });
        // The first code of the world is `code-1`.
        let said = json!({
            "error": "bad code-1 hush-hush",
            "error_description": "got code-1 from me:hush-hush",
            "access_token": 5,
            "token": "access-1",
        });
        world.ways().fixed.insert("https://login.example/token".into(), reply(status, &said));
        let error = ask(&user.oauth(), &world).await.unwrap_err();
        error_shows_no_secret(&error);
    }
}

#[tokio::test]
async fn a_refresh_that_fails_shows_no_token() {
    let world = World::remote();
    let user = User::new(&world);
    let oauth = user.oauth();
    oauth.login().await.unwrap();
    user.clock.advance(std::time::Duration::from_hours(2));
    let token = user.store.load("files", "https://mcp.example/mcp").await.unwrap().unwrap();
    let token = token.tokens.unwrap().refresh.unwrap();
    let said = json!({ "error": "temporary", "error_description": token.expose() });
    world.ways().refusal = Some(said);
    let error = oauth.headers().await.unwrap_err();
    assert!(error.to_string().contains("temporary"), "{error}");
    error_shows_no_secret(&error);
}

#[test]
fn an_answer_shows_how_long_it_is_and_not_what_it_says() {
    let body = b"{\"access_token\":\"access-1\"}".to_vec();
    let headers = vec![("Set-Cookie".to_owned(), "access-1".to_owned())];
    let answer = HttpResponse { status: 200, headers, body };
    shows_no_secret(&answer);
    assert!(format!("{answer:?}").contains("200"));
}

#[tokio::test]
async fn a_key_in_the_address_of_a_server_is_shown_to_nobody_else() {
    let world = World::new("https://mcp.example/mcp?key=hush-hush", "https://mcp.example");
    {
        let mut ways = world.ways();
        ways.challenge = "Bearer".into();
        ways.resource = Value::Null;
    }
    let user = User::new(&world);
    let oauth = user.oauth();
    assert_eq!(ask(&oauth, &world).await.unwrap(), 200);
    shows_no_secret(&oauth);
    for asked in world.ways().asked.iter().filter(|asked| asked.url.path() != "/mcp") {
        assert!(!format!("{asked:?}").contains("hush-hush"), "{asked:?}");
    }
    let other = json!({ "resource": "https://bank.example" });
    {
        let mut ways = world.ways();
        ways.resource = other;
        ways.tokens.clear();
    }
    error_shows_no_secret(&ask(&user.oauth(), &world).await.unwrap_err());
}
