//! Why no model could be chosen, and what to do about it.

use convoke_core::nearest::did_you_mean;

/// A model that could not be chosen. No key and no address is in any message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelChoiceError {
    /// Nobody named a model, and no key is there that would suggest one.
    #[error("no model is configured")]
    NoModel {
        /// Whether `OPENAI_BASE_URL` leads to a server whose models are not known.
        other_server: bool,
    },
    /// An alias stands for itself, by way of others.
    #[error("the alias `{}` stands for itself: {}", first(.chain), .chain.join(" → "))]
    AliasCycle {
        /// The way round, from the alias back to it.
        chain: Vec<String>,
    },
    /// An alias stands for an alias for an alias, too many times.
    #[error("the alias `{}` leads through too many others: {}", first(.chain), .chain.join(" → "))]
    AliasTooDeep {
        /// The way, as far as it was followed.
        chain: Vec<String>,
    },
    /// It is not a name.
    #[error("`{name}` is not a model name")]
    NotAName {
        /// What was given.
        name: String,
    },
    /// A name without a provider that does not give its provider away.
    #[error("it is not known whose model `{name}` is{}", closest(.nearest))]
    UnknownOwner {
        /// The name.
        name: String,
        /// The aliases that come closest.
        nearest: Vec<String>,
    },
    /// Only a provider was named.
    #[error("`{provider}` is a provider, not a model")]
    OnlyProvider {
        /// The provider.
        provider: String,
        /// A model of it.
        example: Option<String>,
    },
    /// There is no such provider.
    #[error("there is no provider `{provider}`{}", closest(.nearest))]
    UnknownProvider {
        /// What was asked for.
        provider: String,
        /// What it was to be asked for.
        model: String,
        /// The names that come closest.
        nearest: Vec<String>,
        /// All names there are.
        known: Vec<String>,
        /// Whether `OPENAI_BASE_URL` leads to a server that may know the whole name.
        other_server: bool,
    },
    /// A provider of the user's own has no address.
    #[error("it is not known where the provider `{provider}` is")]
    NoAddress {
        /// The provider.
        provider: String,
    },
    /// An address is not a URL.
    #[error("`{setting}` is not the address of a server")]
    BadAddress {
        /// The setting or the variable that holds it.
        setting: String,
    },
    /// A provider needs a key and has none.
    #[error("the provider `{provider}` needs a key, and none is set")]
    MissingKey {
        /// The provider.
        provider: String,
        /// The variables that were looked at, the most usual first.
        variables: Vec<String>,
    },
}

impl ModelChoiceError {
    /// Returns what to do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::NoModel { other_server: true } => {
                "`OPENAI_BASE_URL` leads to another server: say which of its models to ask, with \
                 `model.default`"
                    .to_owned()
            }
            Self::NoModel { other_server: false } => {
                "set `model.default`, or put a key into `ANTHROPIC_API_KEY`, `OPENAI_API_KEY` or \
                 `GEMINI_API_KEY`"
                    .to_owned()
            }
            Self::AliasCycle { .. } | Self::AliasTooDeep { .. } => {
                "let the alias stand for `provider/model` (`model.aliases`)".to_owned()
            }
            Self::NotAName { .. } => "write it as `provider/model`".to_owned(),
            Self::UnknownOwner { name, .. } => {
                format!("write it as `provider/{name}`, for example `ollama/{name}`")
            }
            Self::OnlyProvider { provider, example } => {
                let model = example.as_deref().unwrap_or("MODEL");
                format!("name one of its models: `{provider}/{model}`")
            }
            Self::UnknownProvider { provider, model, known, other_server, .. } => {
                let known = in_words(known, "and");
                let server = format!(
                    "; `openai-chat/{provider}/{model}` asks the server of `OPENAI_BASE_URL`"
                );
                let server = if *other_server { server.as_str() } else { "" };
                format!("there are {known}; `model.providers` can add others{server}")
            }
            Self::NoAddress { provider } => format!("set `model.providers.{provider}.baseUrl`"),
            Self::BadAddress { .. } => {
                "write it with `http://` or `https://`, as in `http://127.0.0.1:8000/v1`".to_owned()
            }
            Self::MissingKey { provider, variables } if variables.is_empty() => {
                format!("set `model.providers.{provider}.keyVariable`")
            }
            Self::MissingKey { variables, .. } => {
                format!("put it into the environment variable {}", in_words(variables, "or"))
            }
        }
    }
}

fn first(chain: &[String]) -> &str {
    chain.first().map_or("", String::as_str)
}

fn closest(names: &[String]) -> String {
    did_you_mean(&names.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Writes names as "`a`, `b` and `c`".
fn in_words(names: &[String], conjunction: &str) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        None => String::new(),
        Some((only, [])) => only.clone(),
        Some((last, others)) => format!("{} {conjunction} {last}", others.join(", ")),
    }
}
