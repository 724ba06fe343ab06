//! Tools that talk HTTP, and the one client they all use.
//!
//! The client keeps three promises whatever a model, a web page or a name server says: it reaches no
//! private address that was not allowed, it sends a credential to no other origin than the one it was
//! meant for, and it reads no more of an answer than its limit. Everything it touches before the first
//! request is memory; certificates are loaded when they are needed.
//!
//! It keeps no cookies, uses no proxy from the environment and never repeats a request.
//!
//! | module | owns |
//! | --- | --- |
//! | `address` | which addresses are private |
//! | `guard` | who may be reached, by URL and by resolved address |
//! | `request` | URLs, methods and headers that are fit to be sent |
//! | `redirect` | what the next request is |
//! | `client` | the exchange itself |
//! | `body`, `decode` | reading an answer, and its text |
//! | `failure` | what went wrong, in words |
//! | `tools`, `answer` | the three tools and what they give back |

mod answer;
mod body;
mod client;
mod decode;
mod failure;
mod guard;
mod redirect;
mod request;
mod settings;
mod tools;

pub use client::HttpClient;
pub use settings::HttpSettings;
pub use tools::tools;

pub(crate) use body::BodyEnd;
pub(crate) use client::HttpResponse;
pub(crate) use request::{HttpHeaders, HttpMethod, HttpRequest, HttpUrl};
