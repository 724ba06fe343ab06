//! Which model answers: the one that was named, one that is configured, one found on this machine, or a
//! recording.

use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use convoke::model::{ListedModel, Model, Recording, Replay, list_models, model_to_chat_with};
use convoke::models::ModelChoiceError;
use convoke::{ModelSetupError, Runtime};

use crate::failure::Failure;
use crate::files;
use crate::output::{Output, Style};

/// Servers that people run on their own machine, in the order in which they are looked for.
const LOCAL: &[&str] = &["ollama", "llamacpp", "lmstudio"];
/// How long such a server may take to say that it is there.
pub(in crate::commands) const PATIENCE: Duration = Duration::from_millis(500);

/// A model to ask.
#[derive(Debug)]
pub(in crate::commands) struct Chosen {
    pub(in crate::commands) model: Arc<dyn Model>,
    /// The recording it speaks from.
    pub(in crate::commands) replay: Option<Arc<Replay>>,
}

impl Chosen {
    fn new(model: Arc<dyn Model>) -> Self {
        Self { model, replay: None }
    }
}

/// A model on this machine.
#[derive(Debug)]
pub(in crate::commands) struct Local {
    /// Its server.
    provider: &'static str,
    listed: ListedModel,
}

impl Local {
    /// Returns its name, as people write it.
    pub(in crate::commands) fn name(&self) -> String {
        format!("{}/{}", self.provider, self.listed.name)
    }

    /// Makes it ready to be asked, with what its server says about it.
    fn connect(&self, runtime: &Runtime) -> Result<Arc<dyn Model>, ModelSetupError> {
        let mut resolved = runtime.models().resolve(Some(&self.name()))?;
        resolved.listed = self.listed.facts();
        runtime.connect(&resolved)
    }
}

/// Finds the model.
pub(in crate::commands) fn model(
    name: Option<&str>,
    runtime: &Runtime,
    threads: &tokio::runtime::Runtime,
    output: &Output,
) -> Result<Chosen, Failure> {
    let wanted = runtime.model(name);
    match wanted {
        Ok(model) => Ok(Chosen::new(model)),
        Err(ModelSetupError::Choice(ModelChoiceError::NoModel { other_server: false })) => {
            let found = threads.block_on(local(runtime)).ok_or_else(no_model)?;
            let model = found.connect(runtime).map_err(|error| failure(&error))?;
            if !output.is_quiet() {
                let shown = output.err.printable(&found.name()).to_string();
                let shown = output.err.paint(Style::Name, shown);
                output.err.line(format_args!("found {shown} on this machine"));
            }
            Ok(Chosen::new(model))
        }
        Err(error) => Err(failure(&error)),
    }
}

/// Looks for a server on this machine that has a model to talk to.
pub(in crate::commands) async fn local(runtime: &Runtime) -> Option<Local> {
    let network = runtime.models().network();
    let transport = runtime.transport(&network);
    for &name in LOCAL {
        let Ok(provider) = runtime.models().provider_named(name) else { continue };
        if let Ok(models) = list_models(provider, transport, PATIENCE).await
            && let Some(listed) = model_to_chat_with(&models).cloned()
        {
            return Some(Local { provider: name, listed });
        }
    }
    None
}

/// Says how to come by a model.
pub(in crate::commands) fn no_model() -> Failure {
    Failure::configuration("there is no model to ask")
        .hint("put a key into ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY")
        .hint("or start a local server: Ollama, llama.cpp or LM Studio")
        .hint("or name one: --model provider/model, or model.default in the configuration")
        .hint("or see it work without any of these: convoke demo")
}

/// Says why there is no model.
pub(in crate::commands) fn failure(error: &ModelSetupError) -> Failure {
    let failure = Failure::configuration(error.to_string());
    match error {
        ModelSetupError::Choice(choice) => failure.hint(choice.hint()),
        ModelSetupError::Provider(error) => failure.any_hint(error.hint.clone()),
        _ => failure,
    }
}

/// What is different each time and stands in a recording by name.
pub(in crate::commands) fn placeholders(runtime: &Runtime) -> Vec<(String, &'static str)> {
    let surroundings = runtime.surroundings();
    vec![
        (surroundings.working_directory, "${cwd}"),
        (format!("System: {}\nDate: {}", surroundings.platform, surroundings.date), "${today}"),
    ]
}

/// Takes the answers from a recording.
pub(in crate::commands) fn replay(
    path: &Path,
    placeholders: Vec<(String, &'static str)>,
) -> Result<Chosen, Failure> {
    let shown = path.display();
    let cannot = || Failure::usage(format!("the recording `{shown}` cannot be used"));
    let file = files::open(path).map_err(|error| cannot().because(&error))?;
    let replay = Replay::open(BufReader::new(file), placeholders)
        .map_err(|error| cannot().because(&error))?;
    let replay = Arc::new(replay);
    Ok(Chosen { model: replay.clone(), replay: Some(replay) })
}

/// Keeps the answers of a model.
pub(super) fn record(
    chosen: Chosen,
    path: &Path,
    placeholders: Vec<(String, &'static str)>,
) -> Result<Chosen, Failure> {
    let shown = path.display();
    let cannot = || Failure::usage(format!("the recording `{shown}` cannot be written"));
    let old = files::read_if_there(path).map_err(|error| cannot().because(&error))?;
    if old.is_some_and(|text| !text.trim().is_empty() && !text.starts_with("{\"cassette\"")) {
        return Err(cannot().hint("there is a file already, and it is no recording"));
    }
    let file = files::create_private(path).map_err(|error| cannot().because(&error))?;
    let model = Recording::new(chosen.model, file, placeholders)
        .map_err(|error| cannot().because(&error))?;
    Ok(Chosen::new(Arc::new(model)))
}
