//! The logins of all servers, as the client of servers uses them.

use std::sync::Arc;

use convoke_mcp::auth::{AuthSettings, Consent};
use convoke_mcp::client::{Authorization, Logins, Refusal, Remote};

use crate::support::User;
use crate::world::World;

fn logins(user: &User, consent: Option<Arc<dyn Consent>>) -> Logins {
    Logins::new(user.store.clone(), consent, user.clock.clone(), Arc::new(user.world.clone()))
}

fn files() -> Remote {
    Remote { name: "files".into(), url: "https://mcp.example/mcp".into() }
}

fn refusal(status: u16, challenge: &str) -> Refusal {
    Refusal { status, challenge: Some(challenge.to_owned()), sent: Vec::new() }
}

#[tokio::test]
async fn a_server_that_refuses_is_logged_in_to_and_its_headers_hold_the_token() {
    let world = World::remote();
    let user = User::new(&world);
    let logins = logins(&user, Some(user.browser.clone()));
    assert_eq!(logins.headers(&files()).await, Ok(Vec::new()));
    logins.refused(&files(), refusal(401, "Bearer")).await.unwrap();
    let headers = logins.headers(&files()).await.unwrap();
    assert_eq!(headers[0].0, "Authorization");
    assert!(world.ways().tokens.keys().any(|token| headers[0].1.expose().ends_with(token)));
    // Another server is another matter.
    let other = Remote { name: "other".into(), ..files() };
    assert_eq!(logins.headers(&other).await, Ok(Vec::new()));
}

#[tokio::test]
async fn requests_that_are_refused_together_lead_to_one_login() {
    let world = World::remote();
    let user = User::new(&world);
    let logins = logins(&user, Some(user.browser.clone()));
    let server = files();
    let refused = || logins.refused(&server, refusal(401, "Bearer"));
    let (first, second) = tokio::join!(refused(), refused());
    assert_eq!((first, second), (Ok(()), Ok(())));
    assert_eq!(user.browser.shown(), 1);
    // One that was under way with nothing to show comes back late.
    assert_eq!(refused().await, Ok(()));
    assert_eq!(user.browser.shown(), 1);
    // One that showed the token of now is a reason for another.
    let sent = logins.headers(&server).await.unwrap();
    world.ways().gives_refresh = false;
    logins.refused(&server, Refusal { sent, ..refusal(401, "Bearer") }).await.unwrap();
    assert_eq!(world.asked("/token").len(), 2);
}

#[tokio::test]
async fn where_nobody_can_be_asked_the_command_to_run_is_said() {
    let world = World::remote();
    let user = User::new(&world);
    let error = logins(&user, None).refused(&files(), refusal(401, "Bearer")).await.unwrap_err();
    assert!(error.contains("`convoke mcp login files`"), "{error}");
    assert!(world.ways().asked.is_empty());
}

#[tokio::test]
async fn a_refusal_that_no_login_changes_is_said() {
    let user = User::new(&World::remote());
    let logins = logins(&user, Some(user.browser.clone()));
    let challenge = "Bearer error=\"access_denied\"";
    let error = logins.refused(&files(), refusal(403, challenge)).await.unwrap_err();
    assert!(error.contains("HTTP 403") && error.contains(challenge), "{error}");
    assert_eq!(user.browser.shown(), 0);
}

#[tokio::test]
async fn settings_hold_for_their_server_and_the_address_is_the_one_that_is_asked() {
    let world = World::remote();
    let user = User::new(&world);
    let mut settings = AuthSettings::new("files", "https://elsewhere.example/".parse().unwrap());
    settings.scopes = Some(vec!["write".to_owned()]);
    let logins = logins(&user, Some(user.browser.clone())).server(settings);
    logins.refused(&files(), refusal(401, "Bearer")).await.unwrap();
    let login = &world.asked("/authorize")[0];
    assert_eq!(login.field("scope").as_deref(), Some("write"));
    assert_eq!(login.field("resource").as_deref(), Some("https://mcp.example/mcp"));
    let moved = Remote { url: "https://elsewhere.example/".into(), ..files() };
    assert_eq!(logins.headers(&moved).await, Ok(Vec::new()), "a token stays with its address");
}

#[tokio::test]
async fn one_login_is_shared_and_an_address_that_is_none_is_said() {
    let user = User::new(&World::remote());
    let logins = logins(&user, None);
    assert!(Arc::ptr_eq(&logins.of(&files()).unwrap(), &logins.of(&files()).unwrap()));
    let nowhere = Remote { url: "nowhere".into(), ..files() };
    assert!(logins.headers(&nowhere).await.unwrap_err().contains("not a URL"));
}
