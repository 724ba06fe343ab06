//! A small internet: one MCP server and the authorization servers it names.
//!
//! It stands in for the network, so its servers can have any address. What it is asked is kept.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use convoke_mcp::auth::{Http, HttpError, HttpRequest, HttpResponse, Method};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use url::Url;

/// Something that was asked.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) method: &'static str,
    pub(crate) url: Url,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(&name.to_ascii_lowercase()).map_or("", String::as_str)
    }

    /// Returns a field of the form, or of the query.
    pub(crate) fn field(&self, name: &str) -> Option<String> {
        let query = self.url.query().unwrap_or_default();
        let text = if self.method == "POST" { &self.body } else { query };
        let mut pairs = url::form_urlencoded::parse(text.as_bytes());
        pairs.find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
    }
}

/// How the world behaves.
#[derive(Debug)]
pub(crate) struct Ways {
    pub(crate) server: Url,
    pub(crate) issuer: String,
    /// What the server says about itself; nothing where this is null.
    pub(crate) resource: Value,
    /// What the authorization server says about itself; nothing where this is null.
    pub(crate) metadata: Value,
    /// What the server says to who shows no token.
    pub(crate) challenge: String,
    /// The scopes a token needs.
    pub(crate) needs: Vec<String>,
    /// Whether a token is taken at all.
    pub(crate) takes_tokens: bool,
    /// How long tokens live, in seconds.
    pub(crate) lifetime: Option<u64>,
    pub(crate) gives_refresh: bool,
    /// What an answer says about who gave it.
    pub(crate) iss: Option<String>,
    /// What registration gives beside an id.
    pub(crate) registration: Value,
    /// What is answered at an address, whatever else would be.
    pub(crate) fixed: BTreeMap<String, HttpResponse>,
    /// What the token endpoint answers, whatever else it would.
    pub(crate) refusal: Option<Value>,
    pub(crate) asked: Vec<Asked>,
    given: u32,
    /// Tokens that are good, and their scopes.
    pub(crate) tokens: BTreeMap<String, String>,
    refresh: BTreeSet<String>,
    codes: BTreeMap<String, Asked>,
}

/// A small internet. Cheap to clone; clones are the same.
#[derive(Clone)]
pub(crate) struct World(Arc<Mutex<Ways>>);

/// What was asked holds secrets, and tests look for those in what is shown.
impl fmt::Debug for World {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("World")
    }
}

impl World {
    /// Makes a world where everything is as it should be.
    pub(crate) fn new(server: &str, issuer: &str) -> Self {
        let server = Url::parse(server).unwrap();
        let origin = server.origin().ascii_serialization();
        let place = format!("{origin}/.well-known/oauth-protected-resource{}", server.path());
        Self(Arc::new(Mutex::new(Ways {
            resource: json!({
                "resource": server.as_str(),
                "authorization_servers": [issuer],
                "scopes_supported": ["read"],
            }),
            metadata: metadata(issuer),
            challenge: format!("Bearer resource_metadata=\"{place}\""),
            issuer: issuer.to_owned(),
            server,
            needs: Vec::new(),
            takes_tokens: true,
            lifetime: Some(3600),
            gives_refresh: true,
            iss: None,
            registration: json!({}),
            fixed: BTreeMap::new(),
            refusal: None,
            asked: Vec::new(),
            given: 0,
            tokens: BTreeMap::new(),
            refresh: BTreeSet::new(),
            codes: BTreeMap::new(),
        })))
    }

    /// A server and an authorization server somewhere on the internet.
    pub(crate) fn remote() -> Self {
        Self::new("https://mcp.example/mcp", "https://login.example")
    }

    pub(crate) fn ways(&self) -> MutexGuard<'_, Ways> {
        self.0.lock().unwrap()
    }

    /// Returns what was asked at a path.
    pub(crate) fn asked(&self, path: &str) -> Vec<Asked> {
        self.ways().asked.iter().filter(|asked| asked.url.path() == path).cloned().collect()
    }

    /// Returns the answer to a request.
    pub(crate) fn answer(&self, asked: &Asked) -> HttpResponse {
        let mut ways = self.ways();
        ways.asked.push(asked.clone());
        let mut bare = asked.url.clone();
        bare.set_query(None);
        if let Some(fixed) = ways.fixed.get(bare.as_str()) {
            return fixed.clone();
        }
        ways.answer(asked)
    }
}

/// What an authorization server says about itself.
pub(crate) fn metadata(issuer: &str) -> Value {
    json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{issuer}/authorize"),
        "token_endpoint": format!("{issuer}/token"),
        "registration_endpoint": format!("{issuer}/register"),
        "response_types_supported": ["code"],
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none", "client_secret_basic"],
    })
}

impl Ways {
    /// From now on another authorization server is the one to ask, and no token of the old one is good.
    pub(crate) fn move_to(&mut self, issuer: &str) {
        self.issuer = issuer.into();
        self.metadata = metadata(issuer);
        self.resource["authorization_servers"] = json!([issuer]);
        self.tokens.clear();
    }

    fn answer(&mut self, asked: &Asked) -> HttpResponse {
        let origin = asked.url.origin().ascii_serialization();
        if asked.url == self.server {
            return self.guarded(asked);
        }
        let resource = format!("/.well-known/oauth-protected-resource{}", self.server.path());
        match asked.url.path() {
            path if path == resource => document(&self.resource),
            "/.well-known/oauth-authorization-server" if origin == self.issuer => {
                document(&self.metadata)
            }
            "/register" => {
                let mut given = json!({ "client_id": format!("client-{}", self.next()) });
                let more = self.registration.as_object().cloned().unwrap_or_default();
                given.as_object_mut().unwrap().extend(more);
                reply(201, &given)
            }
            "/authorize" => self.authorize(asked),
            "/token" => match self.refusal.clone() {
                Some(refusal) => reply(400, &refusal),
                None => self.token(asked),
            },
            _ => reply(404, &json!({})),
        }
    }

    fn next(&mut self) -> u32 {
        self.given += 1;
        self.given
    }

    /// The MCP server itself.
    fn guarded(&self, asked: &Asked) -> HttpResponse {
        let token = asked.header("Authorization").strip_prefix("Bearer ").unwrap_or_default();
        let Some(scopes) = self.tokens.get(token).filter(|_| self.takes_tokens) else {
            return refuse(401, &self.challenge);
        };
        let has = |scope: &String| scopes.split(' ').any(|known| known == scope);
        if self.needs.iter().all(has) {
            return served(&asked.body);
        }
        let needs = self.needs.join(" ");
        refuse(403, &format!("Bearer error=\"insufficient_scope\", scope=\"{needs}\""))
    }

    fn authorize(&mut self, asked: &Asked) -> HttpResponse {
        let code = format!("code-{}", self.next());
        let mut back = Url::parse(&asked.field("redirect_uri").unwrap()).unwrap();
        back.query_pairs_mut().append_pair("code", &code);
        back.query_pairs_mut().append_pair("state", &asked.field("state").unwrap());
        if let Some(iss) = &self.iss {
            back.query_pairs_mut().append_pair("iss", iss);
        }
        self.codes.insert(code, asked.clone());
        let headers = vec![("Location".to_owned(), back.to_string())];
        HttpResponse { status: 302, headers, body: Vec::new() }
    }

    fn token(&mut self, asked: &Asked) -> HttpResponse {
        let wrong = |error: &str| reply(400, &json!({ "error": error }));
        let scope = match asked.field("grant_type").as_deref() {
            Some("authorization_code") => {
                let code = asked.field("code").unwrap_or_default();
                let Some(login) = self.codes.remove(&code) else { return wrong("invalid_grant") };
                let verifier = asked.field("code_verifier").unwrap_or_default();
                let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier));
                let same = |name| login.field(name) == asked.field(name);
                if login.field("code_challenge") != Some(challenge)
                    || !same("redirect_uri")
                    || !same("resource")
                {
                    return wrong("invalid_grant");
                }
                login.field("scope").unwrap_or_default()
            }
            Some("refresh_token") => {
                let token = asked.field("refresh_token").unwrap_or_default();
                if !self.refresh.remove(&token) {
                    return wrong("invalid_grant");
                }
                String::new()
            }
            Some("client_credentials") => asked.field("scope").unwrap_or_default(),
            _ => return wrong("unsupported_grant_type"),
        };
        self.give(scope)
    }

    fn give(&mut self, scope: String) -> HttpResponse {
        let number = self.next();
        let mut given =
            json!({ "access_token": format!("access-{number}"), "token_type": "bearer" });
        self.tokens.insert(format!("access-{number}"), scope);
        if let Some(lifetime) = self.lifetime {
            given["expires_in"] = json!(lifetime);
        }
        if self.gives_refresh {
            given["refresh_token"] = json!(format!("refresh-{number}"));
            self.refresh.insert(format!("refresh-{number}"));
        }
        reply(200, &given)
    }
}

/// What the MCP server answers to somebody it knows.
fn served(body: &str) -> HttpResponse {
    let message: Value = serde_json::from_str(body).unwrap_or_default();
    let more = match message["method"].as_str() {
        Some("server/discover") => {
            json!({ "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} },
                "ttlMs": 0, "cacheScope": "private" })
        }
        Some("tools/list") => {
            let tool = json!({ "name": "t", "inputSchema": { "type": "object" } });
            json!({ "tools": [tool], "ttlMs": 0, "cacheScope": "private" })
        }
        Some("tools/call") => json!({ "content": [{ "type": "text", "text": "welcome" }] }),
        _ => json!({}),
    };
    let mut result = json!({ "resultType": "complete" });
    result.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
    let mut answer =
        reply(200, &json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }));
    answer.headers.push(("Content-Type".to_owned(), "application/json".to_owned()));
    answer
}

fn document(value: &Value) -> HttpResponse {
    if value.is_null() { reply(404, &json!({})) } else { reply(200, value) }
}

pub(crate) fn reply(status: u16, value: &Value) -> HttpResponse {
    HttpResponse { status, headers: Vec::new(), body: value.to_string().into_bytes() }
}

fn refuse(status: u16, challenge: &str) -> HttpResponse {
    let headers = vec![("WWW-Authenticate".to_owned(), challenge.to_owned())];
    HttpResponse { status, headers, body: Vec::new() }
}

#[async_trait]
impl Http for World {
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let headers = request.headers.iter();
        let headers =
            headers.map(|(name, value)| (name.to_ascii_lowercase(), value.expose().to_owned()));
        Ok(self.answer(&Asked {
            method: match request.method {
                Method::Get => "GET",
                Method::Post => "POST",
            },
            url: request.url.clone(),
            headers: headers.collect(),
            body: request.body.expose().to_owned(),
        }))
    }
}
