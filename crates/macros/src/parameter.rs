//! What the function says about its parameters: the arguments of the tool, and the context.

use syn::ext::IdentExt;
use syn::punctuated::Punctuated;
use syn::{
    Attribute, Error, Expr, ExprLit, FnArg, Ident, Lit, Meta, Pat, PatType, Result, Token, Type,
};

use crate::doc_comment;
use crate::types::{is_named, reference_in};

/// Attributes that go with the field of the argument struct.
const FIELD_ATTRIBUTES: [&str; 5] = ["doc", "serde", "schemars", "validate", "garde"];
/// Attributes that stay on the parameter.
const LINT_LEVELS: [&str; 4] = ["allow", "expect", "warn", "deny"];

/// One parameter of the function.
pub(crate) enum Parameter {
    /// Part of the schema; the caller gives it.
    Argument(Box<Argument>),
    /// The context; the pipeline gives it.
    Context(Context),
}

/// A parameter that is an argument of the tool.
pub(crate) struct Argument {
    /// Its name in Rust.
    pub(crate) ident: Ident,
    /// Its type.
    pub(crate) ty: Type,
    /// Its name in JSON.
    pub(crate) json_name: String,
    /// What goes with the field: description, schema, reading.
    pub(crate) field_attributes: Vec<Attribute>,
    /// The parameter as the body has it.
    pub(crate) in_body: PatType,
}

/// The parameter that is the context.
pub(crate) struct Context {
    /// Whether the body owns the context or looks at it.
    pub(crate) by: Passing,
    /// The parameter as the body has it.
    pub(crate) in_body: PatType,
}

/// How a value is passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passing {
    Value,
    Reference,
}

impl Parameter {
    /// Reads one parameter.
    pub(crate) fn parse(input: &FnArg) -> Result<Self> {
        match input {
            FnArg::Receiver(receiver) => Err(Error::new_spanned(
                receiver,
                "a tool is a free function: what `self` would hold comes through the context or a closure",
            )),
            FnArg::Typed(typed) => match passing_of_context(&typed.ty) {
                Some(by) => {
                    let (field_attributes, in_body) = sort_attributes(typed)?;
                    match field_attributes.iter().find(|one| !one.path().is_ident("doc")) {
                        Some(attribute) => {
                            Err(Error::new_spanned(attribute, "the context is not in the schema"))
                        }
                        None => Ok(Self::Context(Context { by, in_body })),
                    }
                }
                None => Argument::parse(typed).map(Box::new).map(Self::Argument),
            },
        }
    }
}

/// Tells how a parameter takes the context, if it is one.
fn passing_of_context(ty: &Type) -> Option<Passing> {
    match ty {
        Type::Reference(reference) if reference.mutability.is_none() => {
            is_named(&reference.elem, "ToolContext").then_some(Passing::Reference)
        }
        ty => is_named(ty, "ToolContext").then_some(Passing::Value),
    }
}

impl Argument {
    fn parse(typed: &PatType) -> Result<Self> {
        let ident = plain_name(&typed.pat)?;
        check_type(&typed.ty)?;
        let (field_attributes, in_body) = sort_attributes(typed)?;
        let json_name = json_name(&ident, &field_attributes)?;
        if doc_comment::text_of(&field_attributes).is_none() && !describes(&field_attributes) {
            return Err(Error::new(
                ident.span(),
                format!(
                    "parameter `{ident}` needs a description: put a doc comment above it; the model reads it"
                ),
            ));
        }
        Ok(Self { ident, ty: (*typed.ty).clone(), json_name, field_attributes, in_body })
    }
}

fn plain_name(pattern: &Pat) -> Result<Ident> {
    match pattern {
        Pat::Ident(name) if name.by_ref.is_none() && name.subpat.is_none() => {
            Ok(name.ident.clone())
        }
        other => Err(Error::new_spanned(
            other,
            "a parameter of a tool needs a plain name: the model calls it by that",
        )),
    }
}

fn check_type(ty: &Type) -> Result<()> {
    if let Some(reference) = reference_in(ty) {
        return Err(Error::new_spanned(
            reference,
            "a parameter of a tool owns its value (`String`, not `&str`); only the context may be a reference",
        ));
    }
    match ty {
        Type::ImplTrait(_) => Err(Error::new_spanned(
            ty,
            "a parameter of a tool needs one type: its schema is made from it",
        )),
        _ => Ok(()),
    }
}

/// Sorts a parameter's attributes: those of the field, and the parameter with the others.
fn sort_attributes(typed: &PatType) -> Result<(Vec<Attribute>, PatType)> {
    let mut in_body = typed.clone();
    let is_one_of = |attribute: &Attribute, names: &[&str]| {
        names.iter().any(|name| attribute.path().is_ident(name))
    };
    let (field, rest): (Vec<_>, Vec<_>) =
        in_body.attrs.drain(..).partition(|one| is_one_of(one, &FIELD_ATTRIBUTES));
    if let Some(attribute) = rest.iter().find(|one| !is_one_of(one, &LINT_LEVELS)) {
        let known = [&FIELD_ATTRIBUTES[..], &LINT_LEVELS[..]].concat().join(", ");
        return Err(Error::new_spanned(
            attribute,
            format!("this attribute does not work on a parameter of a tool; these do: {known}"),
        ));
    }
    in_body.attrs = rest;
    Ok((field, in_body))
}

/// Returns the name the caller uses. Refuses what would make the schema and the reading disagree.
fn json_name(ident: &Ident, attributes: &[Attribute]) -> Result<String> {
    let mut name = ident.unraw().to_string();
    for meta in serde_metas(attributes)? {
        if meta.path().is_ident("rename") {
            name = renamed(&meta)?.unwrap_or(name);
        } else if meta.path().is_ident("alias") {
            return Err(Error::new_spanned(
                meta,
                format!("the schema would refuse it; write `alias(other = {ident})` in `#[tool]`"),
            ));
        } else if meta.path().is_ident("flatten") {
            return Err(Error::new_spanned(
                meta,
                "a tool refuses arguments it does not know, and so cannot flatten one",
            ));
        }
    }
    Ok(name)
}

fn serde_metas(attributes: &[Attribute]) -> Result<Vec<Meta>> {
    let mut metas = Vec::new();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("serde")) {
        metas.extend(attribute.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)?);
    }
    Ok(metas)
}

/// Reads `rename = "…"` and `rename(deserialize = "…")`.
fn renamed(meta: &Meta) -> Result<Option<String>> {
    let Meta::List(list) = meta else { return Ok(text_value(meta)) };
    let inner = list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)?;
    Ok(inner.iter().find(|one| one.path().is_ident("deserialize")).and_then(text_value))
}

fn text_value(meta: &Meta) -> Option<String> {
    match meta {
        Meta::NameValue(pair) => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    }
}

/// Tells whether `#[schemars(description = …)]` is among the attributes.
fn describes(attributes: &[Attribute]) -> bool {
    let schemars = attributes.iter().filter(|attribute| attribute.path().is_ident("schemars"));
    schemars
        // What is not a list of plain options is left to `schemars` to judge.
        .filter_map(|one| one.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated).ok())
        .flatten()
        .any(|meta| meta.path().is_ident("description"))
}
