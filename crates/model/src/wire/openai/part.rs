//! Our parts in OpenAI's words.

use std::borrow::Cow;

use convoke_core::Part;

/// What goes into the content of a message. Everything else (calls, results, thoughts, opaque parts)
/// has a place of its own, or none.
pub(in crate::wire) enum Content<'a> {
    Text(Cow<'a, str>),
    /// An image, as a `data:` URL.
    Image(String),
    /// A document, as a name and a `data:` URL.
    File(&'static str, String),
}

/// Returns a part as content. Media that neither wire takes are named, rather than lost in silence.
pub(in crate::wire) fn content(part: &Part) -> Option<Content<'_>> {
    match part {
        Part::Text { text } => Some(Content::Text(text.into())),
        Part::Link { uri, title: Some(title) } => {
            Some(Content::Text(format!("{title}: {uri}").into()))
        }
        Part::Link { uri, title: None } => Some(Content::Text(uri.into())),
        Part::Media { mime, data } if mime.starts_with("image/") => {
            Some(Content::Image(data_url(mime, data)))
        }
        Part::Media { mime, data } if mime == "application/pdf" => {
            Some(Content::File("document.pdf", data_url(mime, data)))
        }
        Part::Media { mime, .. } => {
            Some(Content::Text(format!("[{mime} that cannot be shown here]").into()))
        }
        _ => None,
    }
}

/// Joins the texts of parts and leaves the rest out.
pub(in crate::wire) fn joined_text<'a>(
    parts: impl IntoIterator<Item = &'a Part>,
    separator: &str,
) -> Cow<'a, str> {
    let mut texts = parts.into_iter().filter_map(|part| match content(part) {
        Some(Content::Text(text)) if !text.is_empty() => Some(text),
        _ => None,
    });
    let Some(mut joined) = texts.next() else { return Cow::Borrowed("") };
    for text in texts {
        let joined = joined.to_mut();
        joined.push_str(separator);
        joined.push_str(&text);
    }
    joined
}

/// Tells whether a part is shown as something else than text.
pub(in crate::wire) fn is_shown(part: &Part) -> bool {
    matches!(content(part), Some(Content::Image(_) | Content::File(..)))
}

fn data_url(mime: &str, data: &str) -> String {
    format!("data:{mime};base64,{data}")
}
