//! Recording: passes everything through and writes down how it went.

use std::fmt;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use convoke_core::ModelFacts;
use futures_util::StreamExt;
use serde_json::{Map, Value, json};

use super::messages::Messages;
use super::placeholder::Placeholders;
use super::{FIELDS, Header, KeptError, KeptRequest, VERSION};
use crate::error::{ModelError, ModelErrorKind};
use crate::model::{Answer, Chunk, Model, ModelStream};
use crate::name::ModelName;
use crate::request::Request;

/// A model whose exchanges are written down.
pub struct Recording {
    model: Arc<dyn Model>,
    placeholders: Placeholders,
    tape: Arc<Mutex<Tape>>,
}

struct Tape {
    writer: Box<dyn Write + Send>,
    messages: Messages,
    /// The fields of the last line, to leave out what stays the same.
    fields: Vec<Value>,
}

impl Recording {
    /// Starts a recording, and writes its first line. Each placeholder is a value and the name that
    /// stands for it.
    pub fn new(
        model: Arc<dyn Model>,
        writer: impl Write + Send + 'static,
        placeholders: Vec<(String, &'static str)>,
    ) -> io::Result<Self> {
        let header =
            Header { cassette: VERSION, model: model.name().to_string(), facts: *model.facts() };
        let mut tape =
            Tape { writer: Box::new(writer), messages: Messages::default(), fields: Vec::new() };
        tape.write_line(&serde_json::to_value(header)?)?;
        let placeholders = Placeholders::new(placeholders);
        Ok(Self { model, placeholders, tape: Arc::new(Mutex::new(tape)) })
    }
}

impl fmt::Debug for Recording {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Recording").field("model", &self.model).finish_non_exhaustive()
    }
}

impl Model for Recording {
    fn name(&self) -> &ModelName {
        self.model.name()
    }

    fn facts(&self) -> &ModelFacts {
        self.model.facts()
    }

    fn retries(&self) -> u32 {
        self.model.retries()
    }

    fn stream(&self, request: &Request<'_>) -> ModelStream {
        let kept = KeptRequest::of(request, &self.placeholders);
        let (tape, placeholders) = (self.tape.clone(), self.placeholders.clone());
        let provider = self.model.name().provider().to_owned();
        Box::pin(self.model.stream(request).map(move |item| {
            let outcome = match &item {
                Ok(Chunk::End(answer)) => Ok(answer),
                Err(error) => Err(error),
                Ok(_) => return item,
            };
            let mut tape = tape.lock().unwrap_or_else(PoisonError::into_inner);
            match tape.write(&kept, outcome, &placeholders) {
                Ok(()) => item,
                Err(error) => Err(ModelError::new(
                    ModelErrorKind::NotRecorded,
                    &*provider,
                    format!("the answer came but could not be recorded: {error}"),
                )),
            }
        }))
    }
}

impl Tape {
    fn write(
        &mut self,
        request: &KeptRequest,
        outcome: Result<&Answer, &ModelError>,
        placeholders: &Placeholders,
    ) -> io::Result<()> {
        let (name, mut value) = match outcome {
            Ok(answer) => ("answer", serde_json::to_value(answer)?),
            Err(error) => ("error", serde_json::to_value(KeptError::of(error))?),
        };
        placeholders.hide(&mut value);

        let mut line = Map::new();
        let pairs = FIELDS.iter().zip(&request.fields).enumerate();
        for (place, (name, value)) in pairs {
            if self.fields.get(place) != Some(value) {
                line.insert((*name).to_owned(), value.clone());
            }
        }
        let known = self.messages.walk(&request.messages);
        let mut last = known.last().copied();
        if let Some(number) = last.and_then(|last| self.messages.number(last)) {
            line.insert("follows".to_owned(), json!(number));
        }
        let new = request.messages.get(known.len()..).unwrap_or_default();
        line.insert("messages".to_owned(), Value::Array(new.to_vec()));
        self.write_line(&json!({ "request": line, name: &value }))?;

        // Only what is in the file may be referred to.
        self.fields.clone_from(&request.fields);
        for message in new {
            last = Some(self.messages.add(last, message.clone()));
        }
        if let Some(message) = value.get_mut("message").filter(|_| name == "answer") {
            self.messages.add(last, message.take());
        }
        Ok(())
    }

    fn write_line(&mut self, line: &Value) -> io::Result<()> {
        let mut text = line.to_string();
        text.push('\n');
        self.writer.write_all(text.as_bytes())?;
        self.writer.flush()
    }
}
