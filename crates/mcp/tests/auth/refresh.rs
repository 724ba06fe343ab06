//! Tokens that run out.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use convoke_mcp::auth::{AuthError, Consent, FileStore};
use serde_json::json;

use crate::support::{User, ask, token};
use crate::world::World;

const LONG: Duration = Duration::from_hours(2);

/// claude-code#10250: a login goes on without anybody signing in again.
#[tokio::test]
async fn a_token_is_refreshed_before_it_runs_out_and_a_good_one_is_left_alone() {
    let world = World::remote();
    let user = User::new(&world);
    let oauth = user.oauth();
    oauth.login().await.unwrap();
    let first = token(&oauth).await;
    user.clock.advance(Duration::from_secs(3500));
    assert_eq!(token(&oauth).await, first);
    user.clock.advance(Duration::from_secs(90));
    let second = token(&oauth).await;
    assert_ne!(second, first);
    let refresh = &world.asked("/token")[1];
    assert_eq!(refresh.field("grant_type").as_deref(), Some("refresh_token"));
    assert_eq!(refresh.field("resource").as_deref(), Some("https://mcp.example/mcp"));
    assert_eq!(user.browser.shown(), 1);
}

/// claude-code#60572, #10250: a login that the server drops in the middle is renewed, and nobody has to sign in
/// again.
#[tokio::test]
async fn a_token_that_is_turned_away_early_is_refreshed_without_a_person() {
    let world = World::remote();
    let user = User::new(&world);
    user.oauth().login().await.unwrap();
    world.ways().tokens.clear();
    assert_eq!(ask(&user.alone(), &world).await.unwrap(), 200);
}

#[tokio::test]
async fn a_refresh_token_that_is_not_replaced_is_kept() {
    let world = World::remote();
    let user = User::new(&world);
    let oauth = user.oauth();
    oauth.login().await.unwrap();
    world.ways().gives_refresh = false;
    user.clock.advance(LONG);
    assert!(token(&oauth).await.is_some());
    user.clock.advance(LONG);
    let kept = world.asked("/token").len();
    // The world takes each only once; what counts is that it is tried again.
    assert_eq!(token(&oauth).await, None);
    assert_eq!(world.asked("/token").len(), kept + 1);
}

#[tokio::test]
async fn where_refreshing_is_refused_a_person_is_asked_or_told_what_to_do() {
    let world = World::remote();
    let user = User::new(&world);
    user.oauth().login().await.unwrap();
    user.clock.advance(LONG);
    world.ways().refusal = Some(json!({ "error": "invalid_grant" }));
    let error = ask(&user.alone(), &world).await.unwrap_err();
    assert!(matches!(&error, AuthError::LoginNeeded { server } if server == "files"), "{error}");
    world.ways().refusal = None;
    assert_eq!(ask(&user.oauth(), &world).await.unwrap(), 200);
    assert_eq!(user.browser.shown(), 2);
}

#[tokio::test]
async fn a_registration_that_is_gone_is_made_anew() {
    let world = World::remote();
    let user = User::new(&world);
    user.oauth().login().await.unwrap();
    user.clock.advance(LONG);
    world.ways().refusal = Some(json!({ "error": "invalid_client" }));
    assert_eq!(token(&user.oauth()).await, None);
    world.ways().refusal = None;
    assert_eq!(ask(&user.oauth(), &world).await.unwrap(), 200);
    assert_eq!(world.asked("/register").len(), 2);
}

#[tokio::test]
async fn a_registration_that_holds_is_used_again() {
    let world = World::remote();
    world.ways().gives_refresh = false;
    let user = User::new(&world);
    user.oauth().login().await.unwrap();
    user.clock.advance(LONG);
    assert_eq!(ask(&user.oauth(), &world).await.unwrap(), 200);
    let logins = world.asked("/authorize");
    assert_eq!(logins.len(), 2);
    assert_eq!(logins[0].field("redirect_uri"), logins[1].field("redirect_uri"));
    assert_eq!(world.asked("/register").len(), 1);
}

#[tokio::test]
async fn of_two_who_need_a_new_token_one_gets_it_and_the_other_finds_it() {
    let directory = tempfile::tempdir().unwrap();
    let world = World::remote();
    let mut user = User::new(&world);
    // Two stores on one directory are what two processes have.
    user.store = Arc::new(FileStore::new(directory.path().join("tokens")));
    let mut other = user.clone();
    other.store = Arc::new(FileStore::new(directory.path().join("tokens")));
    user.oauth().login().await.unwrap();
    let (one, two) = (user.alone(), other.alone());
    let before = token(&one).await;
    assert_eq!(token(&two).await, before);
    user.clock.advance(LONG);

    let (one, two) = tokio::join!(token(&one), token(&two));
    assert_eq!(one, two);
    assert_ne!(one, before);
    let refreshed = world
        .asked("/token")
        .iter()
        .filter(|asked| asked.field("grant_type").as_deref() == Some("refresh_token"))
        .count();
    assert_eq!(refreshed, 1);
}

#[tokio::test]
async fn whoever_was_turned_away_with_an_old_token_takes_the_new_one() {
    let world = World::remote();
    let user = User::new(&world);
    let oauth = user.oauth();
    oauth.login().await.unwrap();
    let old = oauth.headers().await.unwrap();
    user.clock.advance(LONG);
    let new = token(&oauth).await;
    let asked = world.ways().asked.len();
    let retry = oauth.challenged(401, "Bearer", &old).await.unwrap();
    assert_eq!(retry, convoke_mcp::auth::Retry::Again);
    assert_eq!(token(&oauth).await, new);
    assert_eq!(world.ways().asked.len(), asked, "nobody was asked for anything");
}

/// A person who takes their time.
#[derive(Debug)]
struct Slow(User);

#[async_trait]
impl Consent for Slow {
    async fn show(&self, url: &str) {
        self.0.clock.advance(Duration::from_mins(4));
        self.0.browser.show(url).await;
    }
}

#[tokio::test]
async fn a_token_lives_from_when_it_was_given_and_not_from_when_the_login_began() {
    let world = World::remote();
    world.ways().lifetime = Some(60);
    let user = User::new(&world);
    let oauth = user.with(Some(Arc::new(Slow(user.clone()))));
    oauth.login().await.unwrap();
    assert!(token(&oauth).await.is_some());
    assert_eq!(world.asked("/token").len(), 1, "there was nothing to refresh");
}
