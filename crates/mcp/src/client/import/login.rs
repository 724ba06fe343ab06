//! What other programs say about logging in to a server.

use serde_json::{Map, Value};

use super::Imported;

/// What is known about logging in to a server before it is asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImportedLogin {
    /// The id of the client that was registered for it by hand.
    pub client_id: Option<String>,
    /// The port of this machine to which a browser comes back.
    pub redirect_port: Option<u16>,
}

impl Imported {
    /// Reads `oauth` of a server at an address. What is not known here is said.
    pub(super) fn login(&mut self, name: &str, key: &str, entry: &Map<String, Value>) {
        let Some(oauth) = entry.get("oauth").filter(|value| !value.is_null()) else { return };
        let key = format!("{key}.oauth");
        let Some(fields) = oauth.as_object() else {
            return self.warning(&key, "this has to be an object; it was left out".to_owned());
        };
        let mut login = ImportedLogin::default();
        for (own, value) in fields {
            let is_taken = match own.as_str() {
                "clientId" => {
                    login.client_id = value.as_str().map(str::to_owned);
                    login.client_id.is_some()
                }
                "callbackPort" => {
                    let port = value.as_u64().and_then(|port| u16::try_from(port).ok());
                    login.redirect_port = port.filter(|port| *port > 0);
                    login.redirect_port.is_some()
                }
                // The server says itself whether it wants a login.
                "enabled" => true,
                _ => false,
            };
            if !is_taken {
                let message = "this is not understood and was left out".to_owned();
                self.warning(&format!("{key}.{own}"), message);
            }
        }
        if login != ImportedLogin::default() {
            self.logins.insert(name.to_owned(), login);
        }
    }
}
