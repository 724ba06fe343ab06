//! The code that is written: a function of the same name that makes the tool.
//!
//! It holds three things: a struct of the arguments, the function as it was written, and the call that
//! joins them. Being inside one function, none of it can clash with what stands around it.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Error, FnArg, LitStr, Path, Result, ReturnType, Signature, parse_quote};

use crate::function::Function;
use crate::options::{Alias, Options, check_name};
use crate::parameter::{Parameter, Passing};
use crate::words::did_you_mean;

/// Writes the tool that the attribute and the function describe.
pub(crate) fn expand(attribute: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let options = Options::parse(attribute)?;
    let function = Function::parse(item)?;
    let private = private_of(options.library.as_ref());
    let arguments = argument_struct(&function, &private);
    let body = body(&function);
    let make = make(&function, &private, &options)?;
    let settings = settings(&function, &private, &options)?;

    let attributes = &function.outer_attributes;
    let must_use = must_use(&function);
    let (visibility, ident) = (&function.item.vis, function.ident());
    Ok(quote! {
        #(#attributes)*
        #must_use
        #visibility fn #ident() -> impl #private::Tool {
            #arguments
            #body
            #make #settings
        }
    })
}

fn private_of(library: Option<&Path>) -> Path {
    let mut private = library.cloned().unwrap_or_else(|| parse_quote!(::convoke));
    private.segments.push(Ident::new("__private", Span::call_site()).into());
    private
}

fn must_use(function: &Function) -> Option<TokenStream> {
    let said = function.outer_attributes.iter().any(|one| one.path().is_ident("must_use"));
    (!said).then(|| quote!(#[must_use]))
}

/// The name is unusual, so that no type of the user's is hidden by it.
fn struct_name() -> Ident {
    Ident::new("__Arguments", Span::call_site())
}

fn argument_struct(function: &Function, private: &Path) -> TokenStream {
    let in_attribute = |module: &str| {
        let path = private.to_token_stream().to_string().replace(' ', "");
        format!("{path}::{module}")
    };
    let (serde, schemars) = (in_attribute("serde"), in_attribute("schemars"));
    let fields = function.arguments().map(|argument| {
        let (attributes, ident, ty) = (&argument.field_attributes, &argument.ident, &argument.ty);
        quote!(#(#attributes)* #ident: #ty)
    });
    let name = struct_name();
    quote! {
        #[derive(#private::serde::Deserialize, #private::schemars::JsonSchema)]
        #[serde(crate = #serde, deny_unknown_fields)]
        #[schemars(crate = #schemars)]
        struct #name {
            #(#fields),*
        }
    }
}

/// The function as it was written, without what was meant for the schema.
fn body(function: &Function) -> TokenStream {
    let inputs = function.parameters.iter().map(|parameter| match parameter {
        Parameter::Argument(argument) => FnArg::Typed(argument.in_body.clone()),
        Parameter::Context(context) => FnArg::Typed(context.in_body.clone()),
    });
    let mut signature = Signature { inputs: inputs.collect(), ..function.item.sig.clone() };
    // What a tool takes is shaped by its schema, so it is not for lints to say that it takes things by value, or
    // waits for nothing: they leave alone what a macro wrote. One does not, and is expected; what is expected in
    // what a macro wrote and does not happen is not told.
    let written_here = |span: Span| Span::call_site().located_at(span);
    signature.fn_token.span = written_here(signature.fn_token.span);
    if let Some(asyncness) = &mut signature.asyncness {
        asyncness.span = written_here(asyncness.span);
    }
    let (attributes, block) = (&function.inner_attributes, &function.item.block);
    quote! {
        #(#attributes)*
        #[expect(clippy::too_many_arguments, reason = "what a tool takes is shaped by its schema")]
        #signature #block
    }
}

/// The tool's name: the one it is given, or the function's.
fn name(function: &Function, options: &Options) -> Result<LitStr> {
    if let Some(name) = &options.name {
        return Ok(name.clone());
    }
    let (name, span) = (function.default_name(), function.ident().span());
    check_name(&name).map_err(|message| {
        Error::new(span, format!("{message}; give it another by `name = \"…\"`"))
    })?;
    Ok(LitStr::new(&name, span))
}

/// The call of `FunctionTool::new`.
fn make(function: &Function, private: &Path, options: &Options) -> Result<TokenStream> {
    let name = name(function, options)?;
    let (description, arguments) = (&function.description, struct_name());
    let call = call(function, private);
    // What the function does not take has no name, so that nothing is unused.
    let taken = pattern(function.arguments().next(), "arguments");
    let context = pattern(function.context(), "context");
    // Complaints about the value or the future are shown where the function says what it gives back.
    let span = match &function.item.sig.output {
        ReturnType::Default => function.ident().span(),
        ReturnType::Type(_, ty) => ty.span(),
    };
    // It stays code that nobody wrote, so that lints leave it alone.
    let span = Span::call_site().located_at(span);
    let private = moved_to(span, private);
    Ok(quote_spanned! {span=>
        #private::FunctionTool::new(
            #name,
            #description,
            |#taken: #arguments, #context: #private::ToolContext| async move { #call },
        )
    })
}

/// Returns the same tokens, as if they had been written there.
fn moved_to(span: Span, path: &Path) -> TokenStream {
    let moved = path.to_token_stream().into_iter().map(|mut token| {
        token.set_span(span);
        token
    });
    moved.collect()
}

fn pattern<T>(taken: Option<T>, name: &str) -> TokenStream {
    taken.map_or_else(|| quote!(_), |_| Ident::new(name, Span::call_site()).to_token_stream())
}

/// The call of the function, made a `Result` if it is none.
fn call(function: &Function, private: &Path) -> TokenStream {
    let values = function.parameters.iter().map(|parameter| match parameter {
        Parameter::Argument(argument) => {
            let ident = &argument.ident;
            quote!(arguments.#ident)
        }
        Parameter::Context(context) => match context.by {
            Passing::Value => quote!(context),
            Passing::Reference => quote!(&context),
        },
    });
    let ident = function.ident();
    let wait = function.item.sig.asyncness.map(|_| quote!(.await));
    let call = quote!(#ident(#(#values),*) #wait);
    if function.is_fallible() {
        call
    } else {
        quote!(::core::result::Result::Ok::<_, #private::ToolError>(#call))
    }
}

/// The calls that follow: one for each option.
fn settings(function: &Function, private: &Path, options: &Options) -> Result<TokenStream> {
    // The kind comes first: it sets what others refine.
    let kind = options.kind.iter().map(|value| quote!(.kind(#private::#value)));
    let category = options.category.iter().map(|value| quote!(.category(#private::#value)));
    let repeat = options.repeat.iter().map(|value| quote!(.repeat(#private::#value)));
    let display_name = options.display_name.iter().map(|text| quote!(.display_name(#text)));
    let version = options.version.iter().map(|text| quote!(.version(#text)));
    let timeout = options
        .timeout_ms
        .iter()
        .map(|millis| quote!(.timeout(::core::time::Duration::from_millis(#millis))));
    let concurrency = quote!(.concurrency(#private::Concurrency::Exclusive));
    let concurrency = options.exclusive.then_some(concurrency);
    let streaming = options.streaming.then(|| quote!(.streaming()));
    let markdown = options.markdown.then(|| quote!(.markdown()));
    let named = settings_by_name(function, options)?;
    Ok(quote! {
        #(#kind)* #(#category)* #(#repeat)* #(#display_name)* #(#version)* #(#timeout)*
        #concurrency #streaming #markdown #named
    })
}

/// The calls for options that name parameters.
fn settings_by_name(function: &Function, options: &Options) -> Result<TokenStream> {
    let mut calls = TokenStream::new();
    for (method, names) in
        [("reads", &options.reads), ("writes", &options.writes), ("fetches", &options.fetches)]
    {
        let method = Ident::new(method, Span::call_site());
        for name in names {
            let json_name = json_name_of(function, name)?;
            calls.extend(quote!(.#method(#json_name)));
        }
    }
    for Alias { other, parameter } in &options.aliases {
        let (alias, json_name) = (other.unraw().to_string(), json_name_of(function, parameter)?);
        if function.arguments().any(|argument| argument.json_name == alias) {
            let message = format!("`{alias}` is a parameter itself and cannot stand for another");
            return Err(Error::new(other.span(), message));
        }
        calls.extend(quote!(.alias(#alias, #json_name)));
    }
    Ok(calls)
}

/// Returns what a parameter is called in JSON.
fn json_name_of<'a>(function: &'a Function, name: &Ident) -> Result<&'a str> {
    let found = function.arguments().find(|argument| argument.ident.unraw() == name.unraw());
    found.map(|argument| argument.json_name.as_str()).ok_or_else(|| {
        let known: Vec<String> =
            function.arguments().map(|argument| argument.ident.unraw().to_string()).collect();
        let close = did_you_mean(&name.to_string(), known.iter().map(String::as_str));
        let list = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        let message =
            format!("`{name}` is not a parameter of this tool{close} (there are: {list})");
        Error::new(name.span(), message)
    })
}

#[cfg(test)]
mod tests;
