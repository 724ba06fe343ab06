//! One way through a tree of settings, with what the schema says about each value on the way.

use super::key::Key;
use super::node::{Body, Field, Node};
use super::origin::Place;
use super::schema::{Child, Schema};

/// One value on the way, and what is known about it.
#[derive(Debug)]
pub(crate) struct Visit<'a, 'schema> {
    /// The value.
    pub(crate) node: &'a mut Node,
    /// What the schema says about it.
    pub(crate) schema: Child<'schema>,
    /// Its full key.
    pub(crate) key: &'a Key,
    /// Where its key was written; an item of a list has the place of its value.
    pub(crate) place: &'a Place,
}

/// What happens with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It stays, and so do the values below it, if they may.
    Descend,
    /// It stays as it is.
    Keep,
    /// It is taken out.
    Drop,
}

/// Visits every value below the root, parents first, and takes out what the visitor drops.
pub(crate) fn walk<'schema>(
    root: &mut Node,
    schema: Schema<'schema>,
    visitor: &mut dyn FnMut(Visit<'_, 'schema>) -> Verdict,
) {
    below(root, Child::Known(schema), &Key::default(), visitor);
}

fn below<'schema>(
    node: &mut Node,
    schema: Child<'schema>,
    key: &Key,
    visitor: &mut dyn FnMut(Visit<'_, 'schema>) -> Verdict,
) {
    match &mut node.body {
        Body::Scalar(_) => {}
        Body::Map(fields) => fields.retain(|name, Field { key_place, node }| {
            visit(node, schema.named(name), &key.name(name), Some(key_place), visitor)
        }),
        Body::List(items) => {
            let mut index = 0;
            items.retain_mut(|node| {
                let key = key.index(index);
                index += 1;
                visit(node, schema.item(), &key, None, visitor)
            });
        }
    }
}

fn visit<'schema>(
    node: &mut Node,
    schema: Child<'schema>,
    key: &Key,
    place: Option<&Place>,
    visitor: &mut dyn FnMut(Visit<'_, 'schema>) -> Verdict,
) -> bool {
    let own = node.origin.place.clone();
    let verdict = visitor(Visit { node: &mut *node, schema, key, place: place.unwrap_or(&own) });
    if verdict == Verdict::Descend {
        below(node, schema, key, visitor);
    }
    verdict != Verdict::Drop
}
