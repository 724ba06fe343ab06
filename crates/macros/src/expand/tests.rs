use quote::quote;
use syn::ItemFn;

use super::*;

/// Expands and returns everything that is wrong, as the compiler would list it.
fn complaints(attribute: TokenStream, item: TokenStream) -> Vec<String> {
    match expand(attribute, item) {
        Ok(written) => panic!("no complaint about {written}"),
        Err(error) => error.into_iter().map(|one| one.to_string()).collect(),
    }
}

#[track_caller]
fn assert_refused(attribute: TokenStream, item: TokenStream, says: &str) {
    let complaints = complaints(attribute, item);
    assert!(
        matches!(complaints.as_slice(), [only] if only.contains(says)),
        "wanted only {says:?}, got {complaints:#?}"
    );
}

fn weather() -> TokenStream {
    quote! {
        /// Tells the weather.
        async fn weather(
            /// The city.
            city: String,
        ) -> String {
            city
        }
    }
}

#[test]
fn a_function_becomes_a_function_without_parameters() {
    let item = quote! {
        /// Tells the weather.
        #[cfg(unix)]
        #[inline]
        pub(crate) async fn weather(
            /// The city.
            #[schemars(length(min = 1))]
            mut city: String,
            _: &ToolContext,
        ) -> Result<String, E> {
            city
        }
    };
    let written: ItemFn = syn::parse2(expand(quote!(), item).unwrap()).unwrap();
    assert_eq!(written.sig.ident, "weather");
    assert!(written.sig.inputs.is_empty() && written.sig.asyncness.is_none());
    let outer: Vec<String> = written
        .attrs
        .iter()
        .map(|attribute| attribute.path().to_token_stream().to_string())
        .collect();
    assert_eq!(outer, ["doc", "cfg", "must_use"]);

    let text = written.to_token_stream().to_string();
    for part in [
        "impl :: convoke :: __private :: Tool",
        "crate = \"::convoke::__private::serde\"",
        "# [inline]",
        "mut city : String , _ : & ToolContext",
        "weather (arguments . city , & context) . await",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    assert_eq!(text.matches("length").count(), 1, "the body has no schema: {text}");
}

#[test]
fn the_library_can_be_named() {
    let text = expand(quote!(crate = convoke_tool), weather()).unwrap().to_string();
    assert!(text.contains("crate = \"convoke_tool::__private::schemars\""), "{text}");
    assert!(!text.contains(":: convoke ::"), "{text}");
}

#[test]
fn every_listed_option_is_known() {
    let all = quote!(
        name = "a", display_name = "b", version = "c", kind = move, category = mcp, repeat = unsafe,
        exclusive, timeout_ms = 1, reads(city), writes(city), fetches(city), alias(town = city),
        streaming, markdown, crate = crate,
    );
    let text = expand(all, weather()).unwrap().to_string();
    for call in [
        "\"a\" , \"Tells the weather.\"",
        ". kind (crate :: __private :: Kind :: Move)",
        ". category (crate :: __private :: Category :: Mcp)",
        ". repeat (crate :: __private :: Repeat :: Unsafe)",
        ". display_name (\"b\")",
        ". version (\"c\")",
        ". concurrency (crate :: __private :: Concurrency :: Exclusive)",
        ". streaming ()",
        ". markdown ()",
        "from_millis (1u64)",
        ". reads (\"city\")",
        ". writes (\"city\")",
        ". fetches (\"city\")",
        ". alias (\"town\" , \"city\")",
    ] {
        assert!(text.contains(call), "{call} is not in {text}");
    }
}

#[test]
fn options_name_json_names() {
    let item = quote! {
        /// Reads.
        fn look(
            /// One.
            #[serde(rename = "from")]
            source: String,
            /// Two.
            #[serde(default, rename(serialize = "x", deserialize = "type"))]
            kind: String,
            /// Three.
            r#ref: String,
        ) {}
    };
    let attribute = quote!(reads(source, r#ref), writes(kind), alias(src = source));
    let text = expand(attribute, item).unwrap().to_string();
    for call in ["reads (\"from\")", "reads (\"ref\")", "writes (\"type\")", "(\"src\" , \"from\")"]
    {
        assert!(text.contains(call), "{call} is not in {text}");
    }
}

#[test]
fn options_are_checked() {
    for (attribute, says) in [
        (quote!(kinds = read), "`kinds` is not an option of `#[tool]`; did you mean `kind`?"),
        (quote!(zzz), "there are: name, display_name, version, kind"),
        (
            quote!(kind = reed),
            "`reed` is not a kind; did you mean `read`? (there are: read, search",
        ),
        (quote!(kind = "read"), "written without quotes"),
        (quote!(category = files), "did you mean `file`? (there are: system, file, network"),
        (quote!(repeat = never), "there are: pure, idempotent, unsafe"),
        (quote!(kind = read, kind = edit), "`kind` is given twice"),
        (quote!(name = "a b"), "`a b` is not a tool name"),
        (quote!(timeout_ms = 0), "at least 1 millisecond"),
        (quote!(reads(town)), "`town` is not a parameter of this tool (there are: city)"),
        (quote!(writes(citi)), "did you mean `city`?"),
        (quote!(alias(town = place)), "`place` is not a parameter"),
        (quote!(alias(city = city)), "`city` is a parameter itself"),
    ] {
        assert_refused(attribute, weather(), says);
    }
}

#[test]
fn functions_are_checked() {
    for (item, says) in [
        (
            quote!(
                async fn weather() {}
            ),
            "a tool needs a description",
        ),
        (
            quote!(
                #[doc = "W."]
                fn weather<T>() {}
            ),
            "no generics",
        ),
        (
            quote!(
                #[doc = "W."]
                fn weather<'a>() {}
            ),
            "no generics",
        ),
        (
            quote!(
                #[doc = "W."]
                const fn weather() {}
            ),
            "cannot be `const`",
        ),
        (
            quote!(
                #[doc = "W."]
                unsafe fn weather() {}
            ),
            "cannot be `unsafe`",
        ),
        (
            quote!(
                #[doc = "W."]
                extern "C" fn weather() {}
            ),
            "cannot be `extern`",
        ),
        (
            quote!(
                #[doc = "W."]
                fn wetter_für() {}
            ),
            "is not a tool name",
        ),
        (
            quote!(
                #[doc = "W."]
                struct Weather;
            ),
            "expected",
        ),
    ] {
        assert_refused(quote!(), item, says);
    }
}

#[test]
fn parameters_are_checked() {
    for (parameters, says) in [
        (quote!(city: String), "parameter `city` needs a description"),
        (quote!(&self), "a tool is a free function"),
        (quote!(self: Box<Self>), "a tool is a free function"),
        (quote!(#[doc = "C."] (a, b): (u8, u8)), "needs a plain name"),
        (quote!(#[doc = "C."] _: u8), "needs a plain name"),
        (quote!(#[doc = "C."] city: &str), "owns its value"),
        (quote!(#[doc = "C."] city: Option<&str>), "owns its value"),
        (quote!(#[doc = "C."] city: &mut ToolContext), "owns its value"),
        (quote!(#[doc = "C."] city: impl Into<String>), "needs one type"),
        (quote!(#[doc = "C."] #[cfg(unix)] city: u8), "does not work on a parameter"),
        (quote!(#[doc = "C."] #[serde(flatten)] city: City), "cannot flatten"),
        (quote!(#[doc = "C."] #[serde(alias = "town")] city: u8), "`alias(other = city)`"),
        (quote!(a: ToolContext, b: &tool::ToolContext), "this is the second"),
        (quote!(#[serde(default)] a: ToolContext), "not in the schema"),
    ] {
        assert_refused(quote!(), quote!(#[doc = "W."] fn weather(#parameters) {}), says);
    }
}

#[test]
fn a_description_may_come_from_the_schema() {
    let item = quote! {
        #[doc = "W."]
        fn weather(#[schemars(description = "The city.")] city: String) {}
    };
    assert!(expand(quote!(), item).is_ok());
}

#[test]
fn everything_wrong_is_said_at_once() {
    let item = quote!(
        fn weather<T>(city: String, days: &u8, a: ToolContext, b: ToolContext) {}
    );
    assert_eq!(complaints(quote!(), item).len(), 5);
}
