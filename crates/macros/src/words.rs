//! The words some options take, each with the variant it stands for, and "did you mean".
//!
//! The tables repeat what the vocabulary crate defines, so that the attribute compiles without it; a
//! test compares the two.

use proc_macro2::Span;
use quote::quote;
use syn::ext::IdentExt;
use syn::parse::ParseStream;
use syn::{Ident, LitStr, Path, Result};

/// The words of one option.
#[derive(Debug)]
pub(crate) struct Vocabulary {
    /// The type the words are values of.
    pub(crate) type_name: &'static str,
    /// Each word and its variant.
    pub(crate) words: &'static [(&'static str, &'static str)],
}

/// What a call does to the world.
pub(crate) const KIND: Vocabulary = Vocabulary {
    type_name: "Kind",
    words: &[
        ("read", "Read"),
        ("search", "Search"),
        ("edit", "Edit"),
        ("delete", "Delete"),
        ("move", "Move"),
        ("execute", "Execute"),
        ("fetch", "Fetch"),
        ("think", "Think"),
        ("agent", "Agent"),
        ("other", "Other"),
    ],
};

/// The families of tools.
pub(crate) const CATEGORY: Vocabulary = Vocabulary {
    type_name: "Category",
    words: &[
        ("system", "System"),
        ("file", "File"),
        ("network", "Network"),
        ("data", "Data"),
        ("code", "Code"),
        ("mcp", "Mcp"),
        ("agent", "Agent"),
        ("custom", "Custom"),
    ],
};

/// What a second call does.
pub(crate) const REPEAT: Vocabulary = Vocabulary {
    type_name: "Repeat",
    words: &[("pure", "Pure"), ("idempotent", "Idempotent"), ("unsafe", "Unsafe")],
};

impl Vocabulary {
    /// Reads one of the words and returns the path of its variant below `__private`.
    pub(crate) fn parse(&self, input: ParseStream<'_>) -> Result<Path> {
        if input.peek(LitStr) {
            let quoted: LitStr = input.parse()?;
            let text = quoted.value();
            return Err(self.unknown(quoted.span(), &text, "; it is written without quotes"));
        }
        // Some of the words are keywords of Rust.
        let word = input.call(Ident::parse_any)?;
        let found = self.words.iter().find(|(known, _)| word == known);
        let Some((_, variant)) = found else {
            return Err(self.unknown(word.span(), &word.to_string(), ""));
        };
        let type_name = Ident::new(self.type_name, word.span());
        let variant = Ident::new(variant, word.span());
        syn::parse2(quote!(#type_name::#variant))
    }

    fn unknown(&self, span: Span, word: &str, remark: &str) -> syn::Error {
        let known = self.words.iter().map(|(known, _)| *known);
        let close = did_you_mean(word, known.clone());
        let list = known.collect::<Vec<_>>().join(", ");
        let option = self.type_name.to_lowercase();
        syn::Error::new(
            span,
            format!("`{word}` is not a {option}{close} (there are: {list}){remark}"),
        )
    }
}

/// Returns "; did you mean `…`?" if one of the known names is close, or nothing.
pub(crate) fn did_you_mean<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    const CLOSE: f64 = 0.72;
    let scored = known
        .into_iter()
        .filter(|name| *name != wanted)
        .map(|name| (strsim::jaro_winkler(wanted, name), name))
        .filter(|(score, _)| *score >= CLOSE);
    match scored.max_by(|left, right| left.0.total_cmp(&right.0)) {
        Some((_, name)) => format!("; did you mean `{name}`?"),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use convoke_core::{Category, Kind, Repeat};

    use super::*;

    fn words(vocabulary: &Vocabulary) -> Vec<&'static str> {
        vocabulary.words.iter().map(|(word, _)| *word).collect()
    }

    #[test]
    fn the_tables_are_those_of_the_vocabulary() {
        let kinds: Vec<&str> = Kind::ALL.iter().map(|value| value.as_str()).collect();
        assert_eq!(words(&KIND), kinds);
        let categories: Vec<&str> = Category::ALL.iter().map(|value| value.as_str()).collect();
        assert_eq!(words(&CATEGORY), categories);
        let repeats: Vec<&str> = Repeat::ALL.iter().map(|value| value.as_str()).collect();
        assert_eq!(words(&REPEAT), repeats);
    }

    #[test]
    fn variants_are_the_words_with_a_capital() {
        for (word, variant) in [KIND, CATEGORY, REPEAT].iter().flat_map(|one| one.words) {
            assert_eq!(variant.to_lowercase(), *word);
        }
    }

    #[test]
    fn only_close_names_are_suggested() {
        assert_eq!(did_you_mean("serch", ["read", "search"]), "; did you mean `search`?");
        assert_eq!(did_you_mean("zzz", ["read", "search"]), "");
    }
}
