//! Signing in to a server at an address, with a browser that the test is.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use url::Url;

use crate::support::{Ran, Scene};
use crate::waiting::ended;

/// A server and its authorization server, on one port of this machine.
#[derive(Clone)]
struct Remote {
    origin: String,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// What was given so far.
    given: u32,
    /// What a login was asked with, by the code it gave.
    codes: BTreeMap<String, BTreeMap<String, String>>,
    access: BTreeSet<String>,
    refresh: BTreeSet<String>,
    /// The grants that tokens were given for.
    grants: Vec<String>,
    /// Whether the person who is asked says no.
    says_no: bool,
}

struct Asked {
    url: Url,
    token: String,
    body: String,
}

struct Answer {
    status: u16,
    header: Option<(&'static str, String)>,
    body: Value,
}

impl Answer {
    const fn new(status: u16, body: Value) -> Self {
        Self { status, header: None, body }
    }
}

impl Remote {
    fn listen() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let remote = Self { origin, state: Arc::default() };
        let served = remote.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let remote = served.clone();
                std::thread::spawn(move || remote.serve(stream));
            }
        });
        remote
    }

    /// Answers one request.
    fn serve(&self, stream: TcpStream) -> Option<()> {
        let mut stream = BufReader::new(stream);
        let mut line = String::new();
        stream.read_line(&mut line).ok()?;
        let url = Url::parse(&format!("{}{}", self.origin, line.split(' ').nth(1)?)).ok()?;
        let (mut token, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).ok()?;
            let Some((name, value)) = line.trim_end().split_once(": ") else { break };
            match name.to_ascii_lowercase().as_str() {
                "authorization" => token.push_str(value.trim_start_matches("Bearer ")),
                "content-length" => length = value.parse().ok()?,
                _ => {}
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).ok()?;
        let asked = Asked { url, token, body: String::from_utf8(body).ok()? };
        let Answer { status, header, body } = self.answer(&asked);
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let header = header.map(|(name, value)| format!("{name}: {value}\r\n")).unwrap_or_default();
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status} Answer\r\nConnection: close\r\nContent-Type: application/json\r\n\
             {header}Content-Length: {length}\r\n\r\n"
        );
        stream.get_mut().write_all((head + &body).as_bytes()).ok()
    }

    fn answer(&self, asked: &Asked) -> Answer {
        let origin = &self.origin;
        let mut state = self.state.lock().unwrap();
        match asked.url.path() {
            "/mcp" if state.access.contains(&asked.token) => served(&asked.body),
            "/mcp" => {
                let place = format!("{origin}/.well-known/oauth-protected-resource/mcp");
                let challenge = format!("Bearer resource_metadata=\"{place}\"");
                let header = Some(("WWW-Authenticate", challenge));
                Answer { status: 401, header, body: Value::Null }
            }
            "/.well-known/oauth-protected-resource/mcp" => {
                let resource = format!("{origin}/mcp");
                Answer::new(200, json!({ "resource": resource, "authorization_servers": [origin] }))
            }
            "/.well-known/oauth-authorization-server" => Answer::new(
                200,
                json!({
                    "issuer": origin,
                    "authorization_endpoint": format!("{origin}/authorize"),
                    "token_endpoint": format!("{origin}/token"),
                    "registration_endpoint": format!("{origin}/register"),
                    "response_types_supported": ["code"],
                    "code_challenge_methods_supported": ["S256"],
                    "token_endpoint_auth_methods_supported": ["none"],
                }),
            ),
            "/register" => Answer::new(201, json!({ "client_id": "the-client" })),
            "/authorize" => state.authorize(fields(asked.url.query().unwrap_or_default())),
            "/token" => state.token(&fields(&asked.body)),
            _ => Answer::new(404, Value::Null),
        }
    }
}

impl State {
    fn next(&mut self) -> u32 {
        self.given += 1;
        self.given
    }

    /// The person answers at once.
    fn authorize(&mut self, asked: BTreeMap<String, String>) -> Answer {
        let code = format!("code-{}", self.next());
        let mut back = Url::parse(&asked["redirect_uri"]).unwrap();
        let answer = if self.says_no {
            [("error", "access_denied"), ("state", asked["state"].as_str())]
        } else {
            [("code", code.as_str()), ("state", asked["state"].as_str())]
        };
        back.query_pairs_mut().extend_pairs(answer);
        self.codes.insert(code, asked);
        Answer { status: 302, header: Some(("Location", back.to_string())), body: Value::Null }
    }

    fn token(&mut self, asked: &BTreeMap<String, String>) -> Answer {
        let field = |name: &str| asked.get(name).cloned().unwrap_or_default();
        let grant = field("grant_type");
        let is_right = match grant.as_str() {
            "authorization_code" => self.codes.remove(&field("code")).is_some_and(|login| {
                let verifier = URL_SAFE_NO_PAD.encode(Sha256::digest(field("code_verifier")));
                login["code_challenge_method"] == "S256"
                    && login["code_challenge"] == verifier
                    && login["redirect_uri"] == field("redirect_uri")
                    && login["client_id"] == field("client_id")
            }),
            "refresh_token" => self.refresh.remove(&field("refresh_token")),
            _ => false,
        };
        if !is_right {
            return Answer::new(400, json!({ "error": "invalid_grant" }));
        }
        self.grants.push(grant);
        let number = self.next();
        let (access, refresh) = (format!("access-{number}"), format!("refresh-{number}"));
        self.access.insert(access.clone());
        self.refresh.insert(refresh.clone());
        let given = json!({ "access_token": access, "refresh_token": refresh, "expires_in": 3600 });
        let mut answer = Answer::new(200, given);
        answer.body["token_type"] = json!("Bearer");
        answer
    }
}

fn fields(text: &str) -> BTreeMap<String, String> {
    url::form_urlencoded::parse(text.as_bytes()).into_owned().collect()
}

/// What the server answers to somebody it knows.
fn served(body: &str) -> Answer {
    let message: Value = serde_json::from_str(body).unwrap_or_default();
    let mut result = match message["method"].as_str() {
        Some("server/discover") => {
            json!({ "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} } })
        }
        Some("tools/list") => {
            json!({ "tools": [{ "name": "greet", "inputSchema": { "type": "object" } }] })
        }
        Some("tools/call") => json!({ "content": [{ "type": "text", "text": "welcome" }] }),
        _ => json!({}),
    };
    for (name, value) in [("resultType", json!("complete")), ("ttlMs", json!(0))] {
        result[name] = value;
    }
    result["cacheScope"] = json!("private");
    Answer::new(200, json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }))
}

/// Fetches an address as a browser would, and returns what came back.
fn visit(url: &Url) -> String {
    let address = (url.host_str().unwrap(), url.port().unwrap());
    let mut stream = TcpStream::connect(address).unwrap();
    let target = &url[url::Position::BeforePath..];
    let host = &url[url::Position::BeforeHost..url::Position::AfterPort];
    write!(stream, "GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    page
}

/// Signs in: opens the address that is shown, and goes where that leads.
fn log_in(scene: &Scene) -> Ran {
    let mut command = scene.command(&["mcp", "login", "r"]).spawn().unwrap();
    let mut told = BufReader::new(command.stderr.take().unwrap());
    let mut shown = String::new();
    while !shown.starts_with("  http") {
        shown.clear();
        assert!(told.read_line(&mut shown).unwrap() > 0, "no address is shown");
    }
    let answer = visit(&Url::parse(shown.trim()).unwrap());
    let back = answer.lines().find_map(|line| line.strip_prefix("Location: ")).unwrap();
    let back = Url::parse(back).unwrap();
    assert_eq!(back.host_str(), Some("127.0.0.1"), "the browser comes back to this machine");
    let is_denied = back.query_pairs().any(|(name, _)| name == "error");
    let status = if is_denied { "HTTP/1.1 400" } else { "HTTP/1.1 200" };
    assert!(visit(&back).starts_with(status));
    let mut rest = String::new();
    told.read_to_string(&mut rest).unwrap();
    let ran = ended(scene, command);
    Ran { stderr: rest, ..ran }
}

#[test]
fn somebody_signs_in_calls_is_remembered_and_signs_out() {
    let remote = Remote::listen();
    let scene = Scene::new();
    let url = format!("{}/mcp", remote.origin);
    assert_eq!(scene.run(&["mcp", "add", "r", "--url", &url]).code, Some(0));
    let before = scene.run(&["mcp", "test", "r"]);
    assert_eq!(before.code, Some(1), "{before:?}");
    assert_eq!(before.stderr.matches("`convoke mcp login r`").count(), 1, "{before:?}");

    let login = log_in(&scene);
    assert_eq!(login.code, Some(0), "{login:?}");
    assert!(login.stderr.ends_with("signed in to r\n"), "{login:?}");
    let place = scene.root().join("home/.local/share/convoke/mcp-tokens");
    let kept = || std::fs::read_dir(&place).unwrap().map(|entry| entry.unwrap().path());
    let file = kept().find(|path| std::fs::read_to_string(path).unwrap().contains("access-"));
    let file = file.unwrap();
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);

    let call = || scene.run(&["tools", "call", "r.greet"]);
    let called = call();
    assert_eq!((called.code, called.stdout.as_str()), (Some(0), "welcome\n"), "{called:?}");
    assert_eq!(remote.state.lock().unwrap().grants, ["authorization_code"]);

    remote.state.lock().unwrap().access.clear();
    let refreshed = call();
    assert_eq!(
        (refreshed.code, refreshed.stdout.as_str()),
        (Some(0), "welcome\n"),
        "{refreshed:?}"
    );
    let grants = remote.state.lock().unwrap().grants.clone();
    assert_eq!(grants, ["authorization_code", "refresh_token"], "nobody is asked again");
    assert!(std::fs::read_to_string(&file).unwrap().contains("access-3"), "the new one is kept");
    for ran in [&before, &login, &called, &refreshed] {
        assert!(!ran.shown().contains("access-") && !ran.shown().contains("refresh-"), "{ran:?}");
    }

    remote.state.lock().unwrap().says_no = true;
    let denied = log_in(&scene);
    assert_eq!(denied.code, Some(1), "{denied:?}");
    let said = "the login to `r` did not work; the earlier one is kept";
    assert!(denied.stderr.contains(said), "{denied:?}");
    assert_eq!(call().code, Some(0), "it is");

    let out = scene.run(&["mcp", "logout", "r"]);
    assert_eq!((out.code, out.stderr.as_str()), (Some(0), "signed out of r\n"));
    let left = kept().any(|path| std::fs::read_to_string(path).unwrap().contains("access-"));
    assert!(!left, "nothing is left");
    let listed = scene.stdout(&["mcp", "list"]);
    assert!(listed.contains("wants a login"), "{listed}");
    let denied = log_in(&scene);
    assert!(denied.stderr.contains("did not work; you are not signed in"), "{denied:?}");
    let after = scene.run(&["mcp", "test", "r"]);
    assert_eq!(after.code, Some(1), "{after:?}");
}
