//! The few questions that are asked about a type, answered from how it is spelled.

use syn::{GenericArgument, PathArguments, Type, TypeReference};

/// Tells whether a type is a path that ends in this name.
pub(crate) fn is_named(ty: &Type, name: &str) -> bool {
    match ty {
        Type::Path(path) => path.path.segments.last().is_some_and(|last| last.ident == name),
        Type::Group(group) => is_named(&group.elem, name),
        Type::Paren(paren) => is_named(&paren.elem, name),
        _ => false,
    }
}

/// Returns the first reference in a type, wherever it stands.
pub(crate) fn reference_in(ty: &Type) -> Option<&TypeReference> {
    match ty {
        Type::Reference(reference) => Some(reference),
        Type::Group(group) => reference_in(&group.elem),
        Type::Paren(paren) => reference_in(&paren.elem),
        Type::Array(array) => reference_in(&array.elem),
        Type::Slice(slice) => reference_in(&slice.elem),
        Type::Tuple(tuple) => tuple.elems.iter().find_map(reference_in),
        Type::Path(path) => path.path.segments.iter().find_map(|segment| {
            let PathArguments::AngleBracketed(arguments) = &segment.arguments else { return None };
            arguments.args.iter().find_map(|argument| match argument {
                GenericArgument::Type(inner) => reference_in(inner),
                _ => None,
            })
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use syn::parse_quote;

    use super::*;

    #[test]
    fn only_the_last_segment_counts() {
        for ty in [parse_quote!(Result<u8, E>), parse_quote!(std::io::Result<()>)] {
            assert!(is_named(&ty, "Result"));
        }
        assert!(!is_named(&parse_quote!(Result::Other), "Result"));
        assert!(!is_named(&parse_quote!((Result<u8, E>, u8)), "Result"));
    }

    #[test]
    fn references_are_found_at_any_depth() {
        for ty in [
            parse_quote!(&str),
            parse_quote!(Option<&'static str>),
            parse_quote!(Vec<(u8, [&str; 2])>),
        ] {
            assert!(reference_in(&ty).is_some());
        }
        assert!(reference_in(&parse_quote!(std::collections::BTreeMap<String, Vec<u8>>)).is_none());
    }
}
