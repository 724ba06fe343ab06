//! `convoke config schema`: JSON Schemas for editors and for programs that read Convoke's output.

use std::path::{Path, PathBuf};

use clap::Args;
use convoke::config::config_schema;
use convoke_core::{Event, ExitCode, ToolResult};
use schemars::schema_for;
use serde_json::Value;

use crate::failure::Failure;
use crate::files;
use crate::output::Output;
use crate::session::Session;
use crate::view::json::RunReport;

const AFTER_HELP: &str = "\
Examples:
  convoke config schema --output convoke.schema.json
  convoke config schema --all --dir schemas

The first line of a convoke.yml can then name it for editors:
  # yaml-language-server: $schema=convoke.schema.json";

/// Print the JSON Schema of the configuration
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Schema {
    /// Write it to this file
    #[arg(long, value_name = "FILE", conflicts_with = "all")]
    output: Option<PathBuf>,
    /// Write the schemas of configuration, events, reports and results
    #[arg(long, requires = "dir")]
    all: bool,
    /// The directory for all of them
    #[arg(long, value_name = "DIR", requires = "all")]
    dir: Option<PathBuf>,
}

/// The name of a file, and the schema that is in it.
type Named = (&'static str, fn() -> Value);

const ALL: [Named; 4] = [
    ("config.schema.json", config_schema),
    ("events.schema.json", || schema_for!(Event).to_value()),
    ("report.schema.json", || schema_for!(RunReport).to_value()),
    ("result.schema.json", || schema_for!(ToolResult).to_value()),
];

impl Schema {
    /// Runs the command.
    pub(super) fn run(&self, session: &Session<'_>, output: &Output) -> Result<ExitCode, Failure> {
        match (&self.dir, &self.output) {
            (Some(directory), _) => write_all(&session.absolute(directory), output)?,
            (None, Some(file)) => {
                write(&session.absolute(file), &text(&config_schema()), output)?;
            }
            (None, None) => output.out.text(text(&config_schema())),
        }
        Ok(ExitCode::Done)
    }
}

fn write_all(directory: &Path, output: &Output) -> Result<(), Failure> {
    files::make_directory(directory).map_err(|error| {
        Failure::failed(format!("`{}` cannot be made", directory.display())).because(&error)
    })?;
    for (name, schema) in ALL {
        write(&directory.join(name), &text(&schema()), output)?;
    }
    Ok(())
}

fn write(path: &Path, text: &str, output: &Output) -> Result<(), Failure> {
    files::write(path, text).map_err(|error| {
        Failure::failed(format!("`{}` cannot be written", path.display())).because(&error)
    })?;
    if !output.is_quiet() {
        output.err.line(format_args!("wrote {}", path.display()));
    }
    Ok(())
}

fn text(schema: &Value) -> String {
    format!("{schema:#}\n")
}
