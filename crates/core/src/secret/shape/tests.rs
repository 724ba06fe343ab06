//! What is a token, and what only looks like one.

use super::*;

const PKCS8: &str = "-----BEGIN PRIVATE KEY-----\n\
    MC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnF\n\
    -----END PRIVATE KEY-----";
const RSA_START: &str = "-----BEGIN RSA PRIVATE KEY-----\n\
    Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0123456789ABCDEF\n\n\
    MIIEowIBAAKCAQEAu1SU1LfVLPHCozMxH2Mo4lgOEePzNm0tRgeLezV6ffAt0gun\n\
    VTLw7onLRnrq0/IzW7yWR7QkrmBL7jTKEn5u+qKhbwKfBstIs+bMY2Zkp18gnTxK";
const JWT: &str =
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9";

pub(super) fn token_in(text: &str) -> Option<(&'static str, &str)> {
    match next(text, 0, End::Here) {
        Step::Found(token) => Some((token.kind, &text[token.span])),
        Step::Clear => None,
        Step::Open(at) => panic!("{text} is all there is, and open at {at}"),
    }
}

#[test]
fn tokens_are_found_wherever_they_stand() {
    let pypi = format!("pypi-AgEIcHlwaS5vcmc{}", "CJGEzMj9mNi0wYjc2_LTRmN".repeat(4));
    for (kind, token) in [
        ("api_key", "sk-proj-Zx81kQ0a7Bd93jfLq28vTn45"),
        ("api_key", "sk-4f9a8c7b6e5d4c3b2a190817263544aabbccddee"),
        ("anthropic_key", "sk-ant-api03-Zx81kQ0a7Bd93jfLq28vTn45_-yAA"),
        ("google_key", "AIzaSyD3k-9xQ2mZ7pL0vB4nR8tW1cY6uJ5hGfE"),
        ("github_token", "ghp_0a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R"),
        ("github_token", "gho_0a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R"),
        ("github_token", "ghs_0a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R"),
        ("github_token", "github_pat_11ABCDEFG0aZ9y8X7w6V5u_4T3s2R1q0PoNmLkJiHgFeDcBa"),
        ("gitlab_token", "glpat-Zx81kQ0a7Bd93jfLq28v"),
        ("slack_token", "xoxb-123456789012-1234567890123-AbCdEfGhIjKlMnOp"),
        ("aws_key_id", "AKIAQ2W3E4R5T6Y7U8I9"),
        ("aws_key_id", "ASIAQ2W3E4R5T6Y7U8I9"),
        ("npm_token", "npm_0a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R"),
        ("pypi_token", &pypi),
        ("huggingface_token", "hf_AbCdEfGhIjKlMnOpQrStUvWxYz01234567"),
        ("stripe_key", "sk_live_4eC39HqLyjWDarjtT1zdp7dc"),
        ("web_token", JWT),
        ("private_key", PKCS8),
        ("private_key", RSA_START),
    ] {
        for (before, after) in [
            ("", ""),
            ("the ", " is"),
            ("KEY=", "\n"),
            ("\"", "\","),
            ("(", ")"),
            ("line\\n", "\\nline"),
            ("ä", "ä"),
            ("a%20", "%20"),
            ("\\u003d", "\\u0026"),
            ("\u{1b}[1;31m", "\u{1b}[0m"),
            ("use ", "."),
        ] {
            // A key block may well be followed by more of it.
            let after = if kind == "private_key" { "" } else { after };
            let text = format!("{before}{token}{after}");
            assert_eq!(token_in(&text), Some((kind, token)), "{text}");
        }
    }
}

#[test]
fn what_stands_around_a_secret_stays() {
    for (text, kind, secret) in [
        ("Authorization: Bearer 8d3kfj20dkfj39dkfj2", "bearer_token", "8d3kfj20dkfj39dkfj2"),
        ("authorization: bearer 8d3kfj20dkfj39dkfj2\r\n", "bearer_token", "8d3kfj20dkfj39dkfj2"),
        ("Authorization: Basic dXNlcjpwYXNzd29yZDE=", "basic_password", "dXNlcjpwYXNzd29yZDE="),
        ("see https://me:hunter2-and-4@host/x", "url_password", "hunter2-and-4"),
        ("postgres://app:p%40ss-w0rd@db:5432/x", "url_password", "p%40ss-w0rd"),
        ("redis://:s3cr3t-w0rd@cache", "url_password", "s3cr3t-w0rd"),
        ("https://ab-12-cd:x-oauth-basic@host", "url_password", "x-oauth-basic"),
    ] {
        assert_eq!(token_in(text), Some((kind, secret)), "{text}");
    }
}

#[test]
fn a_token_is_called_the_same_wherever_it_stands() {
    let token = "ghp_0a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R";
    for text in [
        token.to_owned(),
        format!("Authorization: Bearer {token}"),
        format!("https://x-access-token:{token}@github.com/a/b"),
        format!("https://{token}@github.com/a/b"),
    ] {
        assert_eq!(token_in(&text), Some(("github_token", token)), "{text}");
    }
    let both = format!("https://{token}:x-oauth-basic@github.com/a/b");
    assert_eq!(token_in(&both).unwrap().1, format!("{token}:x-oauth-basic"));
    assert_eq!(token_in(&format!("Bearer {JWT}")), Some(("web_token", JWT)));
}

#[test]
fn ordinary_text_stays() {
    let image = format!("data:image/png;base64,iVBORw0KGgo{}", "AKIAQ2W3E4R5T6Y7".repeat(20));
    let long_key = format!("sk-{}", "a1".repeat(200));
    for text in [
        "commit 3f2a91c0d4e5b6a7980123456789abcdef012345",
        "123e4567-e89b-12d3-a456-426614174000",
        "use sk-learn, or sk-learn-contrib-estimators-2024-edition-for-everybody",
        "a task-0123456789abcdef0123456789 on disk-0123456789abcdef0123",
        "sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx and sk-...",
        "sk-your-api-key-0123456789abcdef0123456789",
        "ghp_exampleexampleexampleexampleexample1",
        "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "ghp_tooshort, ghp_",
        "AKIA is how they begin; AKIAIOSFODNN7EXAMPLE is in the manual",
        "AKIAQ2W3E4R5T6Y7U8I9x and AKIAq2w3e4r5t6y7u8i9",
        "eyJ alone, eyJhbGciOiJIUzI1NiJ9 alone, eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0",
        "eyJhbGciOiJIUzI1NiJ9.version.2024",
        "npm_config_registry and npm_package_name",
        "hf_hub_download and hf_transfer",
        "xoxb- is how they begin",
        "glpat-xxxxxxxxxxxxxxxxxxxx",
        "-----BEGIN CERTIFICATE-----\nMIIEowIBAAKCAQEAu1SU1LfVLPHCozMxH2Mo4lgOEePzNm0tRgeLezV6ffAt0gun",
        "-----BEGIN PRIVATE KEY----- marks the beginning of a private key, as everybody knows",
        "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
        "the Bearer authentication scheme, a bearer of news, Bearer <token>, Bearer $TOKEN",
        "Authorization: Basic authentication",
        "https://example.com:8080/path@2 and http://localhost:3000",
        "https://user:password@example.com, https://user:pass@host, https://$USER:$PASSWORD@host",
        "postgres://postgres:postgres@localhost",
        "git@github.com:a/b.git, ssh://git@host:22/a",
        "see http://a:b and http://",
        &image,
        &long_key,
    ] {
        assert_eq!(token_in(text), None, "{text}");
    }
}

#[test]
fn a_key_that_was_cut_off_is_one_and_what_follows_is_not() {
    let text = format!("{RSA_START}\nthe end of it");
    assert_eq!(token_in(&text), Some(("private_key", RSA_START)));
    let in_json = format!("{{\"key\": \"{}\\n\", \"next\": 1}}", PKCS8.replace('\n', "\\n"));
    let (kind, key) = token_in(&in_json).unwrap();
    assert_eq!((kind, key), ("private_key", PKCS8.replace('\n', "\\n").as_str()));
    let indented = PKCS8.replace('\n', "\n    ");
    assert_eq!(token_in(&indented), Some(("private_key", indented.as_str())));
}

#[test]
fn a_key_without_an_end_is_looked_at_up_to_a_limit() {
    let line = "MIIEowIBAAKCAQEAu1SU1LfVLPHCozMxH2Mo4lgOEePzNm0tRgeLezV6ffAt0gun\n";
    let endless = format!("-----BEGIN RSA PRIVATE KEY-----\n{}", line.repeat(1000));
    let Step::Found(whole) = next(&endless, 0, End::Here) else { panic!() };
    assert!(whole.span.len() <= 16 * 1024 && whole.span.len() > 15 * 1024);
    assert_eq!(next(&endless, 0, End::Later), Step::Found(whole));
    assert_eq!(next(&endless[..10_000], 0, End::Later), Step::Open(0));
}

#[test]
fn the_end_of_a_text_that_goes_on_is_open() {
    for (text, at) in [
        ("it is gh", 6),
        ("it is ghp_0a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R", 6),
        ("it is ghp_0a1B2c3D4", 6),
        ("it is ----", 6),
        ("a http:/", 6),
        ("a http://me:hun", 6),
    ] {
        assert_eq!(next(text, 0, End::Later), Step::Open(at), "{text}");
    }
    for text in ["it is", "the tasks", "a word.", "say \"", "half", "12345"] {
        assert_eq!(next(text, 0, End::Later), Step::Clear, "{text}");
    }
}
