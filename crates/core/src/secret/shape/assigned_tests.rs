//! What is a password behind its name, and what only stands there.

use super::tests::token_in;
use super::*;

#[test]
fn what_is_assigned_to_a_password_is_one() {
    for (text, kind, secret) in [
        ("password=hunter22", "password", "hunter22"),
        ("DB_PASSWORD=hunter22\nUSER=me", "password", "hunter22"),
        ("export PASSWORD=s3cr3t-x!\n", "password", "s3cr3t-x!"),
        ("mysql --password=Tr0ub4dor x", "password", "Tr0ub4dor"),
        ("host=db user=app password=q7w-X0z-z9z port=5432", "password", "q7w-X0z-z9z"),
        ("user=me&password=hunter22&next=1", "password", "hunter22"),
        ("password = \"hunter22\"", "password", "hunter22"),
        ("let password = 'Tr0ub4dor&3';", "password", "Tr0ub4dor&3"),
        ("{\"password\": \"correct!horse\"}", "password", "correct!horse"),
        ("{\"user\":\"me\",\"password\":\"hunter22\",\"a\":1}", "password", "hunter22"),
        (r#"{\"password\": \"hunter22\"}"#, "password", "hunter22"),
        ("config['password'] = 'hunter22'", "password", "hunter22"),
        ("'password' => 'hunter22',", "password", "hunter22"),
        ("password := `hunter22`", "password", "hunter22"),
        ("dbPassword: \"päss-wörd9\"", "password", "päss-wörd9"),
        ("spring.datasource.password=hunter22", "password", "hunter22"),
        ("passwd: Tr0ub4d0r3x", "password", "Tr0ub4d0r3x"),
        ("passwd: Tr0ub4dor#x.", "password", "Tr0ub4dor#x"),
        ("PASSWD=hunter22", "password", "hunter22"),
        ("<password>x</password> password=\"hunter22\"/>", "password", "hunter22"),
        ("client_secret: 9f86d081884c7d659a2f", "secret_value", "9f86d081884c7d659a2f"),
        ("CLIENT_SECRET=9f86d081884c7d659a2f", "secret_value", "9f86d081884c7d659a2f"),
        ("secret_key = 'q7wX0zz9Lm'", "secret_value", "q7wX0zz9Lm"),
        (
            "aws_secret_access_key = wJalrXUtnFEMI7K7MDENGbPxRfiCYz3x8k2LmQpA",
            "secret_value",
            "wJalrXUtnFEMI7K7MDENGbPxRfiCYz3x8k2LmQpA",
        ),
        (
            "clientSecret: '123e4567-e89b-12d3-a456-426614174000'",
            "secret_value",
            "123e4567-e89b-12d3-a456-426614174000",
        ),
        ("api_key: 4f9a8c7b6e5d4c3b2a19", "api_key", "4f9a8c7b6e5d4c3b2a19"),
        ("API_KEY=4f9a8c7b6e5d", "api_key", "4f9a8c7b6e5d"),
        ("apiKey: \"4f9a8c7b6e5d\"", "api_key", "4f9a8c7b6e5d"),
        ("x-api-key: 4f9a8c7b6e5d4c3b2a19", "api_key", "4f9a8c7b6e5d4c3b2a19"),
        ("?apikey=4f9a8c7b6e5d&q=x", "api_key", "4f9a8c7b6e5d"),
        ("the text ends: password=\"hunter22", "password", "hunter22"),
    ] {
        assert_eq!(token_in(text), Some((kind, secret)), "{text}");
    }
}

#[test]
fn what_code_and_manuals_say_about_passwords_stays() {
    for text in [
        "password=$DB_PASSWORD2",
        "password=${DB_PASSWORD2}",
        "password=\"${DB_PASSWORD2}\"",
        "password=\"{{ vault_password_1 }}\"",
        "password=\"{{vault_password_1}}\"",
        "password: \"#{ENV1}/x2\"",
        "PASSWORD=$(pass show db1)",
        "PASSWORD=`pass show db1`",
        "password=%DB_PASS1%",
        "password=<your-password-1>",
        "password=\"<password-1>\"",
        "password=********1a",
        "password: *******",
        "password=None",
        "password = null;",
        "password: true,",
        "password=pw1",
        "password: \"x1\"",
        "password = get_password1()",
        "password = getpass.getpass(\"Password1: \")",
        "let password = Argon2Password::new(&config);",
        "password: Argon2Params,",
        "secret: Ed25519PrivateKey",
        "pub secret: X25519Secret,",
        "password: &str, salt: [u8; 16]",
        "password: Option<String2>,",
        "password: string;",
        "password = os.environ[\"DB_PASSWORD1\"]",
        "password = os.environ['DB1']",
        "password=settings.password1",
        "password=self.config.password2,",
        "connect(user=user1, password=password1)",
        "password = process.env.DB_PASSWORD1",
        "secret=/run/secrets/db1",
        "secret: ./secrets/db1.yml",
        "secret: \"~/keys/db1\"",
        "secret = \"secrets/db1.pem\"",
        "ssl_key_password=key1.pem",
        "secret: registry-creds-2",
        "secret: \"my-app-secret-v2\"",
        "secret=my_app_secret_v2",
        "secret: https://vault.example.com/v1/secret/db1",
        "arn:aws:secretsmanager:us-east-1:123456789012:secret:db1-AbCdE1",
        "passwd:         files systemd",
        "passwd: x1:y2:z3",
        "if password == hunter22 {",
        "password !== other1password",
        "password => hash1(password)",
        "secret::Masker2Stream",
        "password_hash=9f86d081884c7d659a2f",
        "password_file: 9f86d081884c7d659a2f",
        "secretName: db1-9f86d081884c7d659a2f",
        "api_key_env: 4f9a8c7b6e5d4c3b2a19",
        "no password here: 9f86d081884c7d659a2f",
        "Enter password: ",
        "The password must have 8 characters, 1 digit",
        "\"password\": \"Passwort\"",
        "\"password\": \"Mot de passe 1\"",
        "\"password\": \"The password of user1\"",
        "password = \"password123\"",
        "password: \"changeme1\"",
        "API_KEY=YOUR_API_KEY_1",
        "API_KEY=\"your-key-1a2b\"",
        "api_key: \"xxxxxxxx1\"",
        "api_key = ANTHROPIC_API_KEY_2",
        "secret = \"sha256\"",
        "password = salt1+pepper",
        "password: a1b2[c3d4e5f6]",
        "assw=hunter22, ecret=hunter22, compasswd1",
        "password=[secret password 1a2b3c]",
        "password: user1@example.com",
        "password=1234567890",
        "password:hunter22x9y8z7",
    ] {
        assert_eq!(token_in(text), None, "{text}");
    }
}

#[test]
fn a_token_with_a_shape_of_its_own_keeps_its_name_behind_a_key() {
    let token = "ghp_0a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R";
    for text in [format!("SECRET={token}"), format!("api_key: \"{token}\"")] {
        assert_eq!(token_in(&text), Some(("github_token", token)), "{text}");
    }
    let address = "PASSWORD=https://me:hunter2-and-4@host/x";
    assert_eq!(token_in(address), Some(("url_password", "hunter2-and-4")));
}

#[test]
fn the_name_of_a_weak_password_says_nothing_about_it() {
    let tag = |text: &str| match next(text, 0, End::Here) {
        Step::Found(token) => token.tag,
        _ => panic!("{text}"),
    };
    assert_eq!(tag("DB_PASSWORD=hunter22"), tag("DB_PASSWORD=hunter23"));
    assert_ne!(tag("DB_PASSWORD=hunter22"), tag("WEB_PASSWORD=hunter22"));
    let long = "9f86d081884c7d659a2f";
    assert_eq!(tag(&format!("secret={long}")), tag(&format!("CLIENT_SECRET={long}")));
}

#[test]
fn the_end_of_a_text_that_goes_on_leaves_it_open() {
    for (text, at) in [
        ("the pass", 5),
        ("the password", 5),
        ("the password =", 5),
        ("the password = \"hunter22", 5),
        ("password=hunter22", 1),
        ("{\\\"api_key\\", 4),
        ("a secret_", 3),
    ] {
        assert_eq!(next(text, 0, End::Later), Step::Open(at), "{text}");
    }
    for text in
        ["the passage", "a secretary", "password, then", "secrets", "api_keys=", "a note", "data"]
    {
        assert_eq!(next(text, 0, End::Later), Step::Clear, "{text}");
    }
}

#[test]
fn many_names_without_a_value_are_passed_over_quickly() {
    // A pass that finds nothing must not be done again for each name.
    let text = "password: String, ".repeat(200_000);
    assert_eq!(next(&text, 0, End::Here), Step::Clear);
}
