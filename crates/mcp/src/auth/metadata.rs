//! What servers say about themselves: the protected resource (RFC 9728) and the authorization server
//! (RFC 8414, or `OpenID` Connect's discovery, which has the same fields).

use serde::{Deserialize, Deserializer};
use url::Url;

/// What a server says about itself.
#[derive(Debug, Default, Deserialize)]
pub(super) struct ResourceMetadata {
    pub(super) resource: String,
    #[serde(default, deserialize_with = "or_nothing")]
    pub(super) authorization_servers: Vec<String>,
    #[serde(default, deserialize_with = "or_nothing")]
    pub(super) scopes_supported: Vec<String>,
}

impl ResourceMetadata {
    /// Tells whether this describes the server at an address: the same one, or one above it.
    pub(super) fn describes(&self, server: &Url) -> bool {
        let Ok(resource) = Url::parse(&self.resource) else { return false };
        if resource.fragment().is_some() || resource.origin() != server.origin() {
            return false;
        }
        let (above, path) = (resource.path().trim_end_matches('/'), server.path());
        path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

/// What an authorization server says about itself.
#[derive(Debug, Deserialize)]
pub(super) struct ServerMetadata {
    pub(super) issuer: String,
    #[serde(default)]
    pub(super) authorization_endpoint: Option<String>,
    pub(super) token_endpoint: String,
    #[serde(default)]
    pub(super) registration_endpoint: Option<String>,
    #[serde(default, deserialize_with = "or_nothing")]
    pub(super) scopes_supported: Vec<String>,
    #[serde(default)]
    pub(super) response_types_supported: Option<Vec<String>>,
    #[serde(default)]
    pub(super) grant_types_supported: Option<Vec<String>>,
    #[serde(default)]
    pub(super) code_challenge_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    pub(super) token_endpoint_auth_methods_supported: Option<Vec<String>>,
    #[serde(default, deserialize_with = "or_nothing")]
    pub(super) authorization_response_iss_parameter_supported: bool,
    #[serde(default, deserialize_with = "or_nothing")]
    pub(super) client_id_metadata_document_supported: bool,
}

/// Some write null for what they have nothing to say about.
fn or_nothing<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: Default + Deserialize<'de>,
    D: Deserializer<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

impl ServerMetadata {
    /// Returns what was common before servers described themselves: three paths at the root.
    pub(super) fn assumed(origin: &str) -> Self {
        Self {
            issuer: origin.to_owned(),
            authorization_endpoint: Some(format!("{origin}/authorize")),
            token_endpoint: format!("{origin}/token"),
            registration_endpoint: Some(format!("{origin}/register")),
            scopes_supported: Vec::new(),
            response_types_supported: None,
            grant_types_supported: None,
            // Whoever speaks the revision of MCP that allows this has to know PKCE.
            code_challenge_methods_supported: Some(vec!["S256".to_owned()]),
            token_endpoint_auth_methods_supported: None,
            authorization_response_iss_parameter_supported: false,
            client_id_metadata_document_supported: false,
        }
    }
}

/// Returns where the description of a server may stand, the most likely place first.
pub(super) fn resource_places(server: &Url) -> Vec<Url> {
    let path = server.path().trim_end_matches('/');
    let name = "/.well-known/oauth-protected-resource";
    let mut places = vec![at(server, &format!("{name}{path}"))];
    if !path.is_empty() {
        places.push(at(server, name));
    }
    places
}

/// Returns where the description of an authorization server may stand, the most likely place first.
pub(super) fn issuer_places(issuer: &Url) -> Vec<Url> {
    let path = issuer.path().trim_end_matches('/');
    let (oauth, openid) =
        ("/.well-known/oauth-authorization-server", "/.well-known/openid-configuration");
    let mut places =
        vec![at(issuer, &format!("{oauth}{path}")), at(issuer, &format!("{openid}{path}"))];
    if !path.is_empty() {
        places.push(at(issuer, &format!("{path}{openid}")));
    }
    places
}

fn at(url: &Url, path: &str) -> Url {
    let mut place = url.clone();
    place.set_path(path);
    place.set_query(None);
    place.set_fragment(None);
    place
}

/// Tells whether two names mean the same issuer: letter by letter, but for the slash of an empty path,
/// which URLs have whether it is written or not.
pub(super) fn same_issuer(one: &str, other: &str) -> bool {
    let bare = |issuer: &str| {
        let without = issuer.strip_suffix('/')?;
        let url = Url::parse(without).ok()?;
        (url.path() == "/" && url.query().is_none()).then(|| without.to_owned())
    };
    let whole = |issuer: &str| bare(issuer).unwrap_or_else(|| issuer.to_owned());
    whole(one) == whole(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn a_description_fits_the_server_and_what_lies_below() {
        for (resource, server, fits) in [
            ("https://a.example/mcp", "https://a.example/mcp", true),
            ("https://a.example", "https://a.example/mcp", true),
            ("https://a.example/", "https://a.example/mcp", true),
            ("https://a.example/mcp/", "https://a.example/mcp", true),
            ("https://A.example:443/mcp", "https://a.example/mcp?x=1", true),
            ("https://a.example/mc", "https://a.example/mcp", false),
            ("https://a.example/mcp/x", "https://a.example/mcp", false),
            ("http://a.example/mcp", "https://a.example/mcp", false),
            ("https://a.example:444/mcp", "https://a.example/mcp", false),
            ("https://evil.example/mcp", "https://a.example/mcp", false),
            ("https://a.example/mcp#x", "https://a.example/mcp", false),
            ("mcp", "https://a.example/mcp", false),
        ] {
            let metadata = ResourceMetadata { resource: resource.into(), ..Default::default() };
            assert_eq!(metadata.describes(&url(server)), fits, "{resource} {server}");
        }
    }

    #[test]
    fn descriptions_are_looked_for_in_the_places_of_the_standards() {
        let texts = |places: Vec<Url>| places.iter().map(Url::to_string).collect::<Vec<_>>();
        assert_eq!(
            texts(resource_places(&url("https://a.example/x/mcp?y=1"))),
            [
                "https://a.example/.well-known/oauth-protected-resource/x/mcp",
                "https://a.example/.well-known/oauth-protected-resource",
            ]
        );
        assert_eq!(
            texts(resource_places(&url("https://a.example"))),
            ["https://a.example/.well-known/oauth-protected-resource",]
        );
        assert_eq!(
            texts(issuer_places(&url("https://b.example/"))),
            [
                "https://b.example/.well-known/oauth-authorization-server",
                "https://b.example/.well-known/openid-configuration",
            ]
        );
        assert_eq!(
            texts(issuer_places(&url("https://b.example/t1/"))),
            [
                "https://b.example/.well-known/oauth-authorization-server/t1",
                "https://b.example/.well-known/openid-configuration/t1",
                "https://b.example/t1/.well-known/openid-configuration",
            ]
        );
    }

    #[test]
    fn issuers_are_compared_letter_by_letter() {
        for (one, other, same) in [
            ("https://b.example", "https://b.example", true),
            ("https://b.example/", "https://b.example", true),
            ("https://b.example/t", "https://b.example/t/", false),
            ("https://B.example", "https://b.example", false),
            ("https://b.example:443", "https://b.example", false),
            ("https://b.example", "http://b.example", false),
            ("", "/", false),
        ] {
            assert_eq!(same_issuer(one, other), same, "{one} {other}");
        }
    }
}
