//! `http_get`, `http_post` and `http_request`.
//!
//! The three differ in their arguments only; what they give back is in `answer`. A call is checked when
//! its arguments are read, so that nobody is asked about one that cannot be made.

use std::collections::BTreeMap;
use std::sync::Arc;

use convoke_core::{Category, Effects, Kind, Repeat};
use convoke_tool::{FunctionTool, Tool, ToolContext};
use reqwest::header::{CONTENT_TYPE, HeaderValue};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};

use super::answer::{Answer, output};
use super::client::HttpClient;
use super::request::{HttpHeaders, HttpMethod, HttpRequest, HttpUrl};

/// Returns the HTTP tools.
pub fn tools(client: HttpClient) -> Vec<Arc<dyn Tool>> {
    let get = tool::<Get>(
        client.clone(),
        "http_get",
        "Fetches a URL with HTTP GET and returns status, headers and body. Follows redirects. \
         A status such as 404 is a result, not an error.",
    );
    let post = tool::<Post>(
        client.clone(),
        "http_post",
        "Sends a body to a URL with HTTP POST and returns status, headers and body of the answer. \
         Without a Content-Type header, a body that is JSON is sent as application/json and any \
         other as text/plain.",
    );
    let request = tool::<Request>(
        client,
        "http_request",
        "Sends an HTTP request with any method, such as PUT, PATCH, DELETE or HEAD, and returns \
         status, headers and body of the answer. Use http_get and http_post where they do.",
    );
    vec![Arc::new(get.repeat(Repeat::Idempotent)), Arc::new(post), Arc::new(request)]
}

/// Arguments from which a request can be made.
trait Asks: DeserializeOwned + JsonSchema + Send + 'static {
    fn method(&self) -> HttpMethod;
    fn url(&self) -> &HttpUrl;
    fn into_request(self) -> HttpRequest;
}

#[derive(Deserialize, JsonSchema)]
struct Get {
    /// The URL, starting with http:// or https://.
    #[schemars(with = "String")]
    url: HttpUrl,
    /// Headers to send.
    #[serde(default)]
    #[schemars(with = "Option<BTreeMap<String, String>>")]
    headers: HttpHeaders,
}

#[derive(Deserialize, JsonSchema)]
struct Post {
    /// The URL, starting with http:// or https://.
    #[schemars(with = "String")]
    url: HttpUrl,
    /// What to send.
    body: Option<String>,
    /// Headers to send.
    #[serde(default)]
    #[schemars(with = "Option<BTreeMap<String, String>>")]
    headers: HttpHeaders,
}

#[derive(Deserialize, JsonSchema)]
struct Request {
    /// The method, such as GET, PUT or DELETE.
    #[schemars(with = "String")]
    method: HttpMethod,
    /// The URL, starting with http:// or https://.
    #[schemars(with = "String")]
    url: HttpUrl,
    /// What to send.
    body: Option<String>,
    /// Headers to send.
    #[serde(default)]
    #[schemars(with = "Option<BTreeMap<String, String>>")]
    headers: HttpHeaders,
}

impl Asks for Get {
    fn method(&self) -> HttpMethod {
        HttpMethod::GET
    }

    fn url(&self) -> &HttpUrl {
        &self.url
    }

    fn into_request(self) -> HttpRequest {
        HttpRequest { headers: self.headers, ..HttpRequest::get(self.url) }
    }
}

impl Asks for Post {
    fn method(&self) -> HttpMethod {
        HttpMethod::POST
    }

    fn url(&self) -> &HttpUrl {
        &self.url
    }

    fn into_request(self) -> HttpRequest {
        let headers = with_content_type(self.headers, self.body.as_deref());
        HttpRequest { method: HttpMethod::POST, url: self.url, headers, body: self.body }
    }
}

impl Asks for Request {
    fn method(&self) -> HttpMethod {
        self.method.clone()
    }

    fn url(&self) -> &HttpUrl {
        &self.url
    }

    fn into_request(self) -> HttpRequest {
        let headers = with_content_type(self.headers, self.body.as_deref());
        HttpRequest { method: self.method, url: self.url, headers, body: self.body }
    }
}

fn with_content_type(mut headers: HttpHeaders, body: Option<&str>) -> HttpHeaders {
    if let Some(body) = body
        && !headers.0.contains_key(CONTENT_TYPE)
    {
        let is_json = serde_json::from_str::<IgnoredAny>(body).is_ok();
        let media_type = if is_json { "application/json" } else { "text/plain; charset=utf-8" };
        headers.0.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    }
    headers
}

fn tool<A: Asks>(client: HttpClient, name: &str, description: &str) -> FunctionTool<A> {
    FunctionTool::new(name, description, move |arguments: A, context: ToolContext| {
        let client = client.clone();
        async move { output(&client.send(arguments.into_request(), &context).await?) }
    })
    .kind(Kind::Fetch)
    .category(Category::Network)
    .streaming()
    .output::<Answer>()
    .fetches("url")
    .describe(|arguments| format!("{} {}", arguments.method(), arguments.url()))
    .effects(|arguments| Effects { reads: vec![arguments.url().resource()], writes: Vec::new() })
}
