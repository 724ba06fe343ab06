//! Doc comments as plain text.

use syn::{Attribute, Expr, ExprLit, Lit, Meta};

/// Returns what the doc comment among these attributes says, if there is one that says anything.
///
/// Lines stay lines and paragraphs stay paragraphs. The blank that everybody writes after `///` goes;
/// what is indented further stays so.
pub(crate) fn text_of(attributes: &[Attribute]) -> Option<String> {
    let lines: Vec<String> = attributes.iter().filter_map(literal).flat_map(lines_of).collect();
    let text = lines.join("\n");
    let text = text.trim_matches('\n').trim_end();
    (!text.trim().is_empty()).then(|| text.to_owned())
}

fn literal(attribute: &Attribute) -> Option<String> {
    match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    }
}

fn lines_of(text: String) -> Vec<String> {
    let stripped = |line: &str| line.strip_prefix(' ').unwrap_or(line).trim_end().to_owned();
    // An empty comment line has no lines of its own and is still one.
    if text.is_empty() { vec![text] } else { text.lines().map(stripped).collect() }
}

#[cfg(test)]
mod tests {
    use syn::{ItemFn, parse_quote};

    use super::*;

    #[test]
    fn paragraphs_and_indentation_stay() {
        let item: ItemFn = parse_quote! {
            /// Tells the weather.
            ///
            /// Further:
            ///   - indented
            #[inline]
            fn weather() {}
        };
        assert_eq!(
            text_of(&item.attrs).as_deref(),
            Some("Tells the weather.\n\nFurther:\n  - indented")
        );
    }

    #[test]
    fn a_block_comment_is_read_too() {
        let item: ItemFn = parse_quote! {
            #[doc = " One.\n\n Two.\n "]
            fn weather() {}
        };
        assert_eq!(text_of(&item.attrs).as_deref(), Some("One.\n\nTwo."));
    }

    #[test]
    fn nothing_said_is_nothing() {
        let item: ItemFn = parse_quote! {
            #[doc = "  "]
            #[doc(hidden)]
            fn weather() {}
        };
        assert_eq!(text_of(&item.attrs), None);
    }
}
