//! What stands in the parentheses of the attribute.
//!
//! Options are read one by one; each may be given once. Whether the parameters they name exist is not
//! known here: [`Options`] keeps their names with where they were written.

use std::collections::BTreeSet;

use proc_macro2::TokenStream;
use syn::ext::IdentExt;
use syn::meta::ParseNestedMeta;
use syn::parse::{ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Error, Ident, LitInt, LitStr, Path, Result, Token, parenthesized};

use crate::words::{CATEGORY, KIND, REPEAT, did_you_mean};

/// Every option there is, as it is listed in messages.
const KNOWN: [&str; 15] = [
    "name",
    "display_name",
    "version",
    "kind",
    "category",
    "repeat",
    "exclusive",
    "timeout_ms",
    "reads",
    "writes",
    "fetches",
    "alias",
    "streaming",
    "markdown",
    "crate",
];

/// What the attribute says.
#[derive(Default)]
pub(crate) struct Options {
    /// Where `__private` is found, if not in the facade.
    pub(crate) library: Option<Path>,
    /// What the model calls the tool.
    pub(crate) name: Option<LitStr>,
    /// What people call it.
    pub(crate) display_name: Option<LitStr>,
    /// Its version.
    pub(crate) version: Option<LitStr>,
    /// `Kind::…`.
    pub(crate) kind: Option<Path>,
    /// `Category::…`.
    pub(crate) category: Option<Path>,
    /// `Repeat::…`.
    pub(crate) repeat: Option<Path>,
    /// How long a call may take.
    pub(crate) timeout_ms: Option<u64>,
    /// Parameters that are paths it reads.
    pub(crate) reads: Vec<Ident>,
    /// Parameters that are paths it writes.
    pub(crate) writes: Vec<Ident>,
    /// Parameters that are URLs it fetches.
    pub(crate) fetches: Vec<Ident>,
    /// Other spellings of parameters.
    pub(crate) aliases: Vec<Alias>,
    /// No other call runs beside it.
    pub(crate) exclusive: bool,
    /// It tells what it does while it runs.
    pub(crate) streaming: bool,
    /// Its text is Markdown.
    pub(crate) markdown: bool,
}

/// Another spelling of a parameter.
pub(crate) struct Alias {
    /// The other spelling.
    pub(crate) other: Ident,
    /// The parameter.
    pub(crate) parameter: Ident,
}

impl Options {
    /// Reads the tokens between the parentheses.
    pub(crate) fn parse(attribute: TokenStream) -> Result<Self> {
        let mut options = Self::default();
        let mut seen = BTreeSet::new();
        let parser = syn::meta::parser(|meta| {
            let key = meta.path.get_ident().map(ToString::to_string).unwrap_or_default();
            let known = options.read(&key, &meta)?;
            match (known, seen.insert(key.clone())) {
                (Known::No, _) => Err(meta.error(unknown_option(&key))),
                (Known::Yes, true) => Ok(()),
                (Known::Yes, false) => Err(meta.error(format!("`{key}` is given twice"))),
            }
        });
        parser.parse2(attribute)?;
        Ok(options)
    }

    fn read(&mut self, key: &str, meta: &ParseNestedMeta<'_>) -> Result<Known> {
        match key {
            "crate" => self.library = Some(meta.value()?.call(Path::parse_mod_style)?),
            "name" => self.name = Some(tool_name(meta.value()?)?),
            "display_name" => self.display_name = Some(meta.value()?.parse()?),
            "version" => self.version = Some(meta.value()?.parse()?),
            "kind" => self.kind = Some(KIND.parse(meta.value()?)?),
            "category" => self.category = Some(CATEGORY.parse(meta.value()?)?),
            "repeat" => self.repeat = Some(REPEAT.parse(meta.value()?)?),
            "timeout_ms" => self.timeout_ms = Some(milliseconds(meta.value()?)?),
            "reads" => self.reads = names(meta.input)?,
            "writes" => self.writes = names(meta.input)?,
            "fetches" => self.fetches = names(meta.input)?,
            "alias" => self.aliases = aliases(meta.input)?,
            "exclusive" => self.exclusive = true,
            "streaming" => self.streaming = true,
            "markdown" => self.markdown = true,
            _ => return Ok(Known::No),
        }
        Ok(Known::Yes)
    }
}

/// Whether there is an option of that name.
enum Known {
    Yes,
    No,
}

fn unknown_option(key: &str) -> String {
    let close = did_you_mean(key, KNOWN);
    format!("`{key}` is not an option of `#[tool]`{close} (there are: {})", KNOWN.join(", "))
}

fn tool_name(input: ParseStream<'_>) -> Result<LitStr> {
    let literal: LitStr = input.parse()?;
    check_name(&literal.value()).map_err(|message| Error::new(literal.span(), message))?;
    Ok(literal)
}

/// Applies the rule for names that every registry applies.
pub(crate) fn check_name(name: &str) -> std::result::Result<(), String> {
    let starts_well = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
    if starts_well && name.len() <= 64 && name.chars().all(allowed) {
        return Ok(());
    }
    Err(format!(
        "`{name}` is not a tool name: it takes 1 to 64 letters, digits, `_` or `-`, and starts with a letter or `_`"
    ))
}

fn milliseconds(input: ParseStream<'_>) -> Result<u64> {
    let literal: LitInt = input.parse()?;
    match literal.base10_parse()? {
        0 => Err(Error::new(literal.span(), "a call needs at least 1 millisecond")),
        millis => Ok(millis),
    }
}

fn names(input: ParseStream<'_>) -> Result<Vec<Ident>> {
    let content;
    parenthesized!(content in input);
    let names = Punctuated::<Ident, Token![,]>::parse_terminated_with(&content, Ident::parse_any)?;
    Ok(names.into_iter().collect())
}

fn aliases(input: ParseStream<'_>) -> Result<Vec<Alias>> {
    let content;
    parenthesized!(content in input);
    let pairs = Punctuated::<Alias, Token![,]>::parse_terminated_with(&content, |input| {
        let other = input.call(Ident::parse_any)?;
        input.parse::<Token![=]>()?;
        Ok(Alias { other, parameter: input.call(Ident::parse_any)? })
    })?;
    Ok(pairs.into_iter().collect())
}
