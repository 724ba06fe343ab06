//! Servers that want more, and servers that are never content.

use convoke_mcp::auth::{AuthError, Retry};

use crate::support::{User, ask};
use crate::world::World;

fn scopes(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

#[tokio::test]
async fn more_scopes_are_asked_for_beside_those_there_are() {
    let world = World::remote();
    let user = User::new(&world);
    let oauth = user.oauth();
    assert_eq!(ask(&oauth, &world).await.unwrap(), 200);
    world.ways().needs = scopes("write");
    assert_eq!(ask(&oauth, &world).await.unwrap(), 200);
    let login = &world.asked("/authorize")[1];
    assert_eq!(login.field("scope").as_deref(), Some("write read"));
    // A new token is not refreshed into existence: the old grant has not got the scope.
    assert!(world.asked("/token").iter().all(|asked| asked.field("refresh_token").is_none()));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_asks_again_for_what_was_granted_is_given_up() {
    let world = World::remote();
    let user = User::new(&world);
    let oauth = user.oauth();
    assert_eq!(ask(&oauth, &world).await.unwrap(), 200);
    let header = "Bearer error=\"insufficient_scope\", scope=\"admin\"";
    let error = loop {
        let sent = oauth.headers().await.unwrap();
        match oauth.challenged(403, header, &sent).await {
            Ok(retry) => assert_eq!(retry, Retry::Again),
            Err(error) => break error,
        }
    };
    let text = error.to_string();
    assert!(matches!(error, AuthError::ScopesInVain { times: 2, .. }), "{text}");
    assert!(text.contains("`admin`"), "{text}");
    assert_eq!(user.browser.shown(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_takes_no_token_is_given_up() {
    let world = World::remote();
    world.ways().takes_tokens = false;
    let user = User::new(&world);
    let error = ask(&user.oauth(), &world).await.unwrap_err();
    assert!(matches!(error, AuthError::TokensInVain { .. }), "{error}");
    assert!(user.browser.shown() <= 4);
}

#[tokio::test]
async fn a_refusal_that_no_token_changes_is_left_to_the_caller() {
    let world = World::remote();
    let oauth = User::new(&world).oauth();
    for (status, header) in [
        (403, ""),
        (403, "Bearer error=\"access_denied\""),
        (403, "Bearer error=\"insufficient_scope\""),
        (500, "Bearer"),
    ] {
        assert_eq!(oauth.challenged(status, header, &[]).await.unwrap(), Retry::No);
    }
    assert!(world.ways().asked.is_empty());
}

#[tokio::test]
async fn without_a_person_more_scopes_are_a_matter_of_logging_in_elsewhere() {
    let world = World::remote();
    let user = User::new(&world);
    user.oauth().login().await.unwrap();
    world.ways().needs = scopes("write");
    let error = ask(&user.alone(), &world).await.unwrap_err();
    assert!(matches!(error, AuthError::LoginNeeded { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_never_says_what_it_sent_does_not_go_in_a_circle() {
    let world = World::remote();
    let user = User::new(&world);
    let oauth = user.oauth();
    oauth.login().await.unwrap();
    let mut rounds = 0;
    let error = loop {
        match oauth.challenged(401, "Bearer", &[]).await {
            Ok(_) => rounds += 1,
            Err(error) => break error,
        }
        assert!(rounds < 1000);
    };
    assert!(matches!(error, AuthError::TokensInVain { .. }), "{error}");
}
