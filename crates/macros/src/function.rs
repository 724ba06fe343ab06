//! What the function says about the tool: its name, its description, its arguments.

use proc_macro2::{Ident, TokenStream};
use syn::ext::IdentExt;
use syn::{Attribute, Error, FnArg, ItemFn, Result, ReturnType, Safety, Signature};

use crate::doc_comment;
use crate::parameter::{Argument, Context, Parameter};
use crate::types::is_named;

/// Attributes that stay on the function that makes the tool. Lint levels reach the body from there.
const OUTER_ATTRIBUTES: [&str; 10] = [
    "doc",
    "cfg",
    "cfg_attr",
    "deprecated",
    "must_use",
    "allow",
    "expect",
    "warn",
    "deny",
    "forbid",
];

/// A function that is to become a tool.
pub(crate) struct Function {
    /// The function as it was written.
    pub(crate) item: ItemFn,
    /// What the model reads.
    pub(crate) description: String,
    /// The parameters, in order.
    pub(crate) parameters: Vec<Parameter>,
    /// What stays on the function that makes the tool.
    pub(crate) outer_attributes: Vec<Attribute>,
    /// What goes with the body.
    pub(crate) inner_attributes: Vec<Attribute>,
}

impl Function {
    /// Reads a function, or says everything that is wrong with it.
    pub(crate) fn parse(item: TokenStream) -> Result<Self> {
        let mut item: ItemFn = syn::parse2(item)?;
        let mut problems = Problems::default();
        problems.note(check_signature(&item.sig));
        let description = problems.note(description_of(&item)).unwrap_or_default();
        let inputs = item.sig.inputs.iter();
        let parameters: Vec<Parameter> =
            inputs.filter_map(|input: &FnArg| problems.note(Parameter::parse(input))).collect();
        problems.note(check_contexts(&parameters));
        problems.settle()?;
        let (outer_attributes, inner_attributes) = item.attrs.drain(..).partition(|attribute| {
            OUTER_ATTRIBUTES.iter().any(|name| attribute.path().is_ident(name))
        });
        Ok(Self { item, description, parameters, outer_attributes, inner_attributes })
    }

    /// Returns the function's name.
    pub(crate) const fn ident(&self) -> &Ident {
        &self.item.sig.ident
    }

    /// Returns the name a tool has that is not given another.
    pub(crate) fn default_name(&self) -> String {
        self.ident().unraw().to_string()
    }

    /// Returns the arguments, in order.
    pub(crate) fn arguments(&self) -> impl Iterator<Item = &Argument> {
        self.parameters.iter().filter_map(|parameter| match parameter {
            Parameter::Argument(argument) => Some(argument.as_ref()),
            Parameter::Context(_) => None,
        })
    }

    /// Returns the context, if the function takes it.
    pub(crate) fn context(&self) -> Option<&Context> {
        contexts(&self.parameters).next()
    }

    /// Tells whether the function gives back a `Result`.
    pub(crate) fn is_fallible(&self) -> bool {
        match &self.item.sig.output {
            ReturnType::Default => false,
            ReturnType::Type(_, ty) => is_named(ty, "Result"),
        }
    }
}

fn contexts(parameters: &[Parameter]) -> impl Iterator<Item = &Context> {
    parameters.iter().filter_map(|parameter| match parameter {
        Parameter::Context(context) => Some(context),
        Parameter::Argument(_) => None,
    })
}

fn description_of(item: &ItemFn) -> Result<String> {
    doc_comment::text_of(&item.attrs).ok_or_else(|| {
        Error::new(
            item.sig.ident.span(),
            "a tool needs a description: put a doc comment above the function; the model reads it",
        )
    })
}

fn check_signature(signature: &Signature) -> Result<()> {
    if !signature.generics.params.is_empty() {
        return Err(Error::new_spanned(
            &signature.generics,
            "a tool has no generics: its schema is made from its types",
        ));
    }
    let odd = match (&signature.constness, &signature.safety, &signature.abi) {
        (Some(token), _, _) => Some(Error::new_spanned(token, "a tool cannot be `const`")),
        (_, Safety::Unsafe(token), _) => Some(Error::new_spanned(
            token,
            "a tool cannot be `unsafe`: the model cannot keep a promise to the compiler",
        )),
        (_, _, Some(abi)) => Some(Error::new_spanned(abi, "a tool cannot be `extern`")),
        _ => None,
    };
    odd.map_or(Ok(()), Err)
}

fn check_contexts(parameters: &[Parameter]) -> Result<()> {
    match contexts(parameters).nth(1) {
        Some(second) => Err(Error::new_spanned(
            &second.in_body,
            "a tool has one context, and this is the second",
        )),
        None => Ok(()),
    }
}

/// Errors that are told together.
#[derive(Debug, Default)]
struct Problems(Option<Error>);

impl Problems {
    fn note<T>(&mut self, result: Result<T>) -> Option<T> {
        match (result, &mut self.0) {
            (Ok(value), _) => return Some(value),
            (Err(error), Some(earlier)) => earlier.combine(error),
            (Err(error), none) => *none = Some(error),
        }
        None
    }

    fn settle(self) -> Result<()> {
        self.0.map_or(Ok(()), Err)
    }
}
