//! Parsing and encoding.

use std::sync::Arc;

use base64::Engine;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use base64::engine::{DecodePaddingMode, general_purpose};
use convoke_core::{Category, Kind, ToolError};
use convoke_tool::{FunctionTool, Rendered, Tool, ToolContext};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Returns the tools of this family.
pub fn tools() -> Vec<Arc<dyn Tool>> {
    fn data<A>(tool: FunctionTool<A>) -> Arc<dyn Tool>
    where
        A: serde::de::DeserializeOwned + JsonSchema + Send + 'static,
    {
        Arc::new(tool.category(Category::Data).kind(Kind::Think))
    }
    vec![
        data(FunctionTool::new("json_parse", "Parses a JSON text.", json_parse)),
        data(FunctionTool::new("json_stringify", "Writes a value as JSON text.", json_stringify)),
        data(FunctionTool::new("base64_encode", "Encodes a text as base64.", base64_encode)),
        data(FunctionTool::new("base64_decode", "Decodes base64 into text.", base64_decode)),
    ]
}

#[derive(Deserialize, JsonSchema)]
struct JsonText {
    /// The JSON text.
    text: String,
}

#[derive(Serialize, JsonSchema)]
struct Parsed {
    /// What it means.
    data: Value,
}

async fn json_parse(json: JsonText, _: ToolContext) -> Result<Parsed, ToolError> {
    let data = serde_json::from_str(&json.text)
        .map_err(|error| ToolError::failed(format!("the text is not JSON: {error}")))?;
    Ok(Parsed { data })
}

#[derive(Deserialize, JsonSchema)]
struct Stringify {
    /// The value.
    data: Value,
    /// Whether to spread it over lines.
    pretty: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
struct Text {
    /// The JSON text.
    text: String,
}

async fn json_stringify(value: Stringify, _: ToolContext) -> Result<Rendered<Text>, ToolError> {
    let text = if value.pretty == Some(true) {
        serde_json::to_string_pretty(&value.data)
    } else {
        serde_json::to_string(&value.data)
    };
    let text =
        text.map_err(|error| ToolError::failed("the value cannot be written").caused_by(&error))?;
    Ok(Rendered::new(Text { text: text.clone() }, text))
}

#[derive(Deserialize, JsonSchema)]
struct PlainText {
    /// The text.
    text: String,
}

#[derive(Serialize, JsonSchema)]
struct Encoded {
    /// The text in base64.
    encoded: String,
}

async fn base64_encode(plain: PlainText, _: ToolContext) -> Result<Rendered<Encoded>, ToolError> {
    let encoded = general_purpose::STANDARD.encode(plain.text);
    Ok(Rendered::new(Encoded { encoded: encoded.clone() }, encoded))
}

#[derive(Deserialize, JsonSchema)]
struct EncodedText {
    /// The base64; both alphabets are understood, with or without padding, across lines.
    encoded: String,
}

#[derive(Serialize, JsonSchema)]
struct Decoded {
    /// The text.
    decoded: String,
}

async fn base64_decode(
    encoded: EncodedText,
    _: ToolContext,
) -> Result<Rendered<Decoded>, ToolError> {
    let bytes = decode_base64(&encoded.encoded)?;
    let decoded = String::from_utf8(bytes).map_err(|error| {
        let length = error.as_bytes().len();
        ToolError::failed(format!("the base64 holds {length} bytes that are not UTF-8 text"))
    })?;
    Ok(Rendered::new(Decoded { decoded: decoded.clone() }, decoded))
}

/// Decodes either alphabet, with or without padding, white space ignored.
pub(crate) fn decode_base64(text: &str) -> Result<Vec<u8>, ToolError> {
    let compact: String = text.chars().filter(|letter| !letter.is_ascii_whitespace()).collect();
    let alphabet = if compact.contains(['-', '_']) { &URL_SAFE } else { &STANDARD };
    let lenient =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    GeneralPurpose::new(alphabet, lenient)
        .decode(compact)
        .map_err(|error| ToolError::failed(format!("the text is not base64: {error}")))
}
