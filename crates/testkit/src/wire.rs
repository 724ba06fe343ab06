//! The wire formats, and which request speaks which.

/// How a request to a model, and its answer, are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wire {
    /// `OpenAI`'s chat completions.
    OpenAiChat,
    /// `OpenAI`'s Responses.
    OpenAiResponses,
    /// Anthropic's Messages.
    Anthropic,
    /// Google's `streamGenerateContent`.
    Gemini,
}

impl Wire {
    /// All of them.
    pub const ALL: [Self; 4] =
        [Self::OpenAiChat, Self::OpenAiResponses, Self::Anthropic, Self::Gemini];

    /// Returns what a client expects its base URL to end in.
    pub const fn base_path(self) -> &'static str {
        match self {
            Self::OpenAiChat | Self::OpenAiResponses => "/v1",
            Self::Anthropic | Self::Gemini => "",
        }
    }

    /// Returns the target of a request for a model, query included, as a client writes it.
    pub fn target(self, model: &str) -> String {
        match self {
            Self::OpenAiChat => "/v1/chat/completions".to_owned(),
            Self::OpenAiResponses => "/v1/responses".to_owned(),
            Self::Anthropic => "/v1/messages".to_owned(),
            Self::Gemini => format!("/v1beta/models/{model}:streamGenerateContent?alt=sse"),
        }
    }

    /// Tells which wire a request speaks. What precedes the known end of a path is not looked at, so
    /// that a base URL may have any path.
    pub(crate) fn of(method: &str, path: &str) -> Option<Self> {
        if method != "POST" {
            None
        } else if path.ends_with("/chat/completions") {
            Some(Self::OpenAiChat)
        } else if path.ends_with("/responses") {
            Some(Self::OpenAiResponses)
        } else if path.ends_with("/v1/messages") {
            Some(Self::Anthropic)
        } else {
            gemini_model(path).map(|_| Self::Gemini)
        }
    }
}

/// Returns the model named in the path of a Gemini request.
pub(crate) fn gemini_model(path: &str) -> Option<&str> {
    let path = path.strip_suffix(":streamGenerateContent")?;
    let (before, model) = path.rsplit_once("/models/")?;
    (before.ends_with("/v1beta") || before.ends_with("/v1")).then_some(model)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_known_by_its_path() {
        for wire in Wire::ALL {
            let target = wire.target("m");
            let path = target.split('?').next().unwrap();
            assert_eq!(Wire::of("POST", path), Some(wire));
            assert_eq!(Wire::of("POST", &format!("/proxy{path}")), Some(wire));
            assert_eq!(Wire::of("GET", path), None);
        }
        assert_eq!(gemini_model("/v1/models/gemini-x:streamGenerateContent"), Some("gemini-x"));
        assert_eq!(Wire::of("POST", "/v1beta/models/m:generateContent"), None);
        assert_eq!(Wire::of("POST", "/v1/embeddings"), None);
    }
}
