//! How much of an answer is taken: pictures and sounds are part of every later request to a model, so one that
//! no provider takes, or that is too large, would spoil the whole conversation.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use convoke_core::Part;

/// How large all pictures and sounds of an answer may be together, as they are sent.
const MAX_MEDIA_BYTES: usize = 6 * 1024 * 1024;
const MAX_MEDIA: usize = 20;
const MAX_PARTS: usize = 2_000;
const MAX_TYPE_BYTES: usize = 100;
/// How much of a type that is none is shown.
const SHOWN_BYTES: usize = 40;

/// Returns the parts of an answer that can be used; what cannot is told in words in its place.
pub(super) fn bounded(parts: Vec<Part>) -> Vec<Part> {
    let all = parts.len();
    let (mut count, mut bytes) = (0, 0);
    let mut taken: Vec<Part> = parts
        .into_iter()
        .take(MAX_PARTS)
        .map(|part| match part {
            Part::Media { mime, data } => {
                let problem = problem_with(&mime, &data).or_else(|| {
                    let fits = count < MAX_MEDIA && bytes + data.len() <= MAX_MEDIA_BYTES;
                    (!fits).then_some("there is too much of that in one answer")
                });
                if let Some(problem) = problem {
                    let end = convoke_tool::floor_char_boundary(&mime, SHOWN_BYTES);
                    let shown = mime.get(..end).unwrap_or_default();
                    return Part::text(format!(
                        "[{shown}, {} bytes as it was sent, left out: {problem}]",
                        data.len()
                    ));
                }
                count += 1;
                bytes += data.len();
                Part::Media { mime, data }
            }
            other => other,
        })
        .collect();
    if all > MAX_PARTS {
        taken.push(Part::text(format!("[{} more parts were left out]", all - MAX_PARTS)));
    }
    taken
}

fn problem_with(mime: &str, data: &str) -> Option<&'static str> {
    let word = |text: &str| {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte);
        !text.is_empty() && text.bytes().all(fits)
    };
    let kind = mime.split(';').next().unwrap_or_default().trim();
    let is_type = mime.len() <= MAX_TYPE_BYTES
        && kind.split_once('/').is_some_and(|(family, name)| word(family) && word(name));
    if !is_type {
        return Some("that is no media type");
    }
    if data.len() > MAX_MEDIA_BYTES {
        return Some("that is too large");
    }
    if data.is_empty() || BASE64_STANDARD.decode(data).is_err() {
        return Some("what was sent is not base64");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn media(mime: &str, data: impl Into<String>) -> Part {
        Part::Media { mime: mime.to_owned(), data: data.into() }
    }

    fn said(part: Part) -> String {
        bounded(vec![part])[0].as_text().unwrap_or("taken").to_owned()
    }

    #[test]
    fn what_no_provider_takes_becomes_words() {
        assert_eq!(said(media("image/png", "AAAA")), "taken");
        assert_eq!(said(media("audio/wav; rate=8000", "AAAA")), "taken");
        assert!(said(media("image/png", "!!!")).contains("not base64"));
        assert!(said(media("image/png", "")).contains("not base64"));
        assert!(said(media("picture", "AAAA")).contains("no media type"));
        let long = said(media(&"x/".repeat(5_000), "AAAA"));
        assert!(long.contains("no media type") && long.len() < 200, "{long}");
        assert!(said(media("image/png", "A".repeat(30 << 20))).contains("too large"));
    }

    #[test]
    fn an_answer_has_only_so_many_pictures_and_parts() {
        let many = bounded(vec![media("image/png", "AAAA"); 200]);
        let taken = many.iter().filter(|part| part.as_text().is_none()).count();
        assert_eq!((taken, many.len()), (MAX_MEDIA, 200));
        let large = bounded(vec![media("image/png", "A".repeat(2 << 20)); 4]);
        assert_eq!(large.iter().filter(|part| part.as_text().is_none()).count(), 3);
        let texts = bounded(vec![Part::text("x"); 100_000]);
        assert_eq!(texts.len(), MAX_PARTS + 1);
        assert!(texts.last().unwrap().as_text().unwrap().contains("98000 more"));
    }
}
