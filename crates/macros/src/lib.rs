//! The `#[tool]` attribute of Convoke: a function becomes a tool.
//!
//! This crate owns the reading of the attribute and of the function it stands on, and the code that is
//! written from both. What it writes is a `FunctionTool`, the same that anybody could write by hand;
//! the schema of the arguments is left to `schemars`, their reading to `serde`, and everything that
//! happens to a call to the pipeline.
//!
//! | module | owns |
//! | --- | --- |
//! | `options` | what stands in the parentheses of the attribute |
//! | `words` | the words some options take, and "did you mean" |
//! | `function`, `parameter` | what the function says about the tool and its arguments |
//! | `doc_comment` | doc comments as plain text |
//! | `types` | the few questions that are asked about a type |
//! | `expand` | the code that is written |

mod doc_comment;
mod expand;
mod function;
mod options;
mod parameter;
mod types;
mod words;

use proc_macro::TokenStream;

/// Turns a function into a tool.
///
/// ```
/// use convoke_macros::tool;
/// use convoke_tool::{ToolContext, ToolError, ToolRegistry};
///
/// /// Tells how long a text is.
/// #[tool(kind = think, crate = convoke_tool)]
/// async fn measure(
///     /// The text.
///     text: String,
///     /// Leaves out blanks.
///     skip_blanks: Option<bool>,
///     context: ToolContext,
/// ) -> Result<usize, ToolError> {
///     context.progress().text("counting");
///     let skip = skip_blanks.unwrap_or(false);
///     Ok(text.chars().filter(|letter| !(skip && letter.is_whitespace())).count())
/// }
///
/// # fn main() -> Result<(), convoke_tool::RegistryError> {
/// let registry = ToolRegistry::new();
/// registry.register(measure())?;
/// assert_eq!(registry.list()[0].spec().description, "Tells how long a text is.");
/// # Ok(())
/// # }
/// ```
///
/// The function keeps its name and visibility and loses its parameters: calling it makes the tool.
///
/// # The function
///
/// - Its doc comment is what the model reads about the tool. It is needed.
/// - It is `async`, or a plain function that returns soon.
/// - It gives back a value that can be written as JSON, or a `Result` of one. Any error will do; a
///   `ToolError` keeps its kind.
/// - Lint levels, `cfg`, `cfg_attr`, `deprecated` and `must_use` stay on the function that makes the
///   tool; every other attribute goes with the body.
///
/// # The parameters
///
/// - The doc comment of a parameter is what the model reads about it. It is needed too.
/// - `Option<T>` may be left out; so may a parameter with `#[serde(default)]`.
/// - `#[serde(…)]`, `#[schemars(…)]`, `#[validate(…)]` and `#[garde(…)]` work as they do on the field
///   of a struct.
/// - One parameter may be a `ToolContext` or a `&ToolContext`. The model does not see it.
///
/// # The options
///
/// | option | meaning | without it |
/// | --- | --- | --- |
/// | `name = "…"` | what the model calls the tool | the function's name |
/// | `display_name = "…"` | what people call it | its name |
/// | `version = "…"` | its version | none |
/// | `kind = read` | what a call does to the world: `read`, `search`, `edit`, `delete`, `move`, `execute`, `fetch`, `think`, `agent`, `other` | `other` |
/// | `category = file` | its family: `system`, `file`, `network`, `data`, `code`, `mcp`, `agent`, `custom` | `custom` |
/// | `repeat = pure` | what a second call does: `pure`, `idempotent`, `unsafe` | as fits the kind |
/// | `exclusive` | no other call runs beside it | as fits the kind |
/// | `timeout_ms = 5000` | how long a call may take | the pipeline's limit |
/// | `reads(a, b)`, `writes(a)` | parameters that are paths it reads or writes | none |
/// | `fetches(a)` | parameters that are URLs it fetches | none |
/// | `alias(other = a)` | another spelling of a parameter | none |
/// | `streaming` | it tells what it does while it runs | it does not |
/// | `markdown` | its text is Markdown | it is plain |
/// | `crate = path` | where to find `__private` | `::convoke` |
#[proc_macro_attribute]
pub fn tool(attribute: TokenStream, item: TokenStream) -> TokenStream {
    expand::expand(attribute.into(), item.into())
        .unwrap_or_else(|error| error.to_compile_error())
        .into()
}
