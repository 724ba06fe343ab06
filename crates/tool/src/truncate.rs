//! Cuts what is too long, and says so.

use convoke_core::{Part, Truncation};

/// Returns the largest position up to `index` at which `text` may be cut.
pub fn floor_char_boundary(text: &str, index: usize) -> usize {
    let mut cut = index.min(text.len());
    while !text.is_char_boundary(cut) {
        cut -= 1;
    }
    cut
}

/// Keeps the beginning and the end of a text that is longer than `limit` bytes, with a line between
/// them that says what is missing. The beginning gets two thirds: it usually says more.
pub fn cut_middle(text: &str, limit: usize) -> Option<String> {
    if text.len() <= limit {
        return None;
    }
    let head = line_end_before(text, limit / 3 * 2);
    let tail = floor_char_boundary(text, text.len() - limit / 3);
    let (start, end) = (text.get(..head)?, text.get(tail..)?);
    Some(format!("{start}\n[… {} of {} bytes are not shown …]\n{end}", tail - head, text.len()))
}

/// A cut at a line's end reads better, if one is near.
fn line_end_before(text: &str, index: usize) -> usize {
    let cut = floor_char_boundary(text, index);
    match text.get(..cut).and_then(|start| start.rfind('\n')) {
        Some(newline) if newline >= cut / 2 => newline,
        _ => cut,
    }
}

/// Cuts the text parts so that all of them together fit `limit` bytes.
pub(crate) fn cut_parts(parts: &mut [Part], limit: usize) -> Option<Truncation> {
    let length =
        |parts: &[Part]| parts.iter().filter_map(Part::as_text).map(str::len).sum::<usize>();
    let original = length(parts);
    if original <= limit {
        return None;
    }
    let mut left = limit;
    for part in parts.iter_mut() {
        if let Part::Text { text } = part {
            if let Some(shorter) = cut_middle(text, left) {
                *text = shorter;
            }
            left = left.saturating_sub(text.len());
        }
    }
    Some(Truncation { original_bytes: original as u64, kept_bytes: length(parts) as u64 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_text_stays() {
        assert_eq!(cut_middle("hello", 5), None);
    }

    #[test]
    fn both_ends_stay_and_characters_stay_whole() {
        let text = "ä".repeat(1000);
        let cut = cut_middle(&text, 301).unwrap();
        assert!(cut.starts_with("ää") && cut.ends_with("ää"), "{cut}");
        assert!(cut.contains("of 2000 bytes are not shown"), "{cut}");
        assert!(cut.len() < 400, "{}", cut.len());
    }

    #[test]
    fn parts_share_one_limit() {
        let mut parts = vec![Part::text("a".repeat(90)), Part::text("b".repeat(90))];
        let truncation = cut_parts(&mut parts, 100).unwrap();
        assert_eq!(truncation.original_bytes, 180);
        assert_eq!(parts[0], Part::text("a".repeat(90)));
        assert!(truncation.kept_bytes < 180);
        assert_eq!(cut_parts(&mut [Part::text("x")], 100), None);
    }
}
