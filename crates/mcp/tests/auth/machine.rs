//! Programs that are trusted by themselves: nobody is asked.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use convoke_mcp::auth::{AuthError, Grant, KnownClient, Secret, SigningKey};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};

use crate::support::{User, ask};
use crate::world::World;

fn known(secret: Option<&str>) -> KnownClient {
    KnownClient { id: "robot".into(), secret: secret.map(Secret::new), issuer: None }
}

#[tokio::test]
async fn a_secret_is_enough() {
    let world = World::remote();
    let mut user = User::new(&world);
    user.settings.grant = Grant::ClientSecret;
    user.settings.client = Some(known(Some("hush-hush")));
    assert_eq!(ask(&user.alone(), &world).await.unwrap(), 200);
    let request = &world.asked("/token")[0];
    assert_eq!(request.field("grant_type").as_deref(), Some("client_credentials"));
    assert_eq!(request.field("resource").as_deref(), Some("https://mcp.example/mcp"));
    assert_eq!(request.field("scope").as_deref(), Some("read"));
    assert!(request.header("Authorization").starts_with("Basic "));
    assert!(world.asked("/authorize").is_empty());
}

#[tokio::test]
async fn a_key_is_enough() {
    let random = SystemRandom::new();
    let der = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
    let text = STANDARD.encode(der.as_ref());
    let pem = format!("-----BEGIN PRIVATE KEY-----\n{text}\n-----END PRIVATE KEY-----\n");
    let world = World::remote();
    let mut user = User::new(&world);
    user.settings.grant = Grant::ClientKey(SigningKey::from_pem(&Secret::new(pem)).unwrap());
    user.settings.client = Some(known(None));
    assert_eq!(ask(&user.alone(), &world).await.unwrap(), 200);
    let request = &world.asked("/token")[0];
    assert_eq!(
        request.field("client_assertion_type").as_deref(),
        Some("urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
    );
    assert_eq!(request.field("client_assertion").unwrap().split('.').count(), 3);
    assert_eq!(request.header("Authorization"), "");
}

#[tokio::test]
async fn what_the_configuration_lacks_is_said() {
    let world = World::remote();
    let mut user = User::new(&world);
    user.settings.grant = Grant::ClientSecret;
    for (client, missing) in [(None, "the id"), (Some(known(None)), "the secret")] {
        user.settings.client = client;
        let error = ask(&user.alone(), &world).await.unwrap_err();
        assert!(matches!(error, AuthError::Incomplete { .. }), "{error}");
        assert!(error.to_string().contains(missing), "{error}");
    }
    assert!(world.asked("/token").is_empty());
}
