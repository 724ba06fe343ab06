//! What was written into what is meant: sections with nothing in them go, keys without a value are refused, `${…}`
//! is replaced.

use std::collections::BTreeMap;

use serde_json::Value;

use super::check::shortened;
use super::coerce::{coerce, with_unit};
use super::interpolate::{Replaced, replace};
use super::key::Key;
use super::node::Node;
use super::problem::Problem;
use super::schema::{Child, Schema, Shape};
use super::walk::{Verdict, Visit, walk};

/// Lists that only add something: one without items takes nothing away and leaves nothing open.
const ADDING: &[&str] = &["tools.commands", "tools.mcpFiles", "tools.mcpServers"];

/// Takes out sections without anything in them. `tools:` with every line below it commented out is then the
/// same as no `tools` at all.
pub(crate) fn drop_empty(root: &mut Node, schema: Schema<'_>) {
    walk(root, schema, &mut |visit| match visit.schema {
        Child::Known(schema) if is_empty(&visit) && is_section(visit.key, schema) => Verdict::Drop,
        Child::Known(_) => Verdict::Descend,
        Child::Unknown | Child::Free => Verdict::Keep,
    });
}

/// Takes out other keys without a value, and says so: who began to write down a limit is not taken to want none.
pub(crate) fn refuse_empty(root: &mut Node, schema: Schema<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    walk(root, schema, &mut |visit| match visit.schema {
        Child::Known(_) if is_empty(&visit) => {
            let message = "nothing stands behind it; write what is meant (`[]` for none of a list), or leave the \
                           key out";
            problems.push(Problem::new(visit.place, visit.key, message));
            Verdict::Drop
        }
        Child::Known(_) => Verdict::Descend,
        Child::Unknown | Child::Free => Verdict::Keep,
    });
    problems
}

/// Tells whether it is a key without a value. An item of a list that is nothing is a mistake of another kind.
fn is_empty(visit: &Visit<'_, '_>) -> bool {
    visit.node.is_null() && visit.key.last_name().is_some()
}

fn is_section(key: &Key, schema: Schema<'_>) -> bool {
    let is_first = key.segments().len() == 1;
    is_first || schema.shape() == Shape::Map || ADDING.contains(&key.to_string().as_str())
}

/// Replaces `${…}` in every value and gives the result the type its key has. What cannot be
/// replaced is reported and taken out, so that it is not reported twice.
pub(crate) fn replace_variables(
    root: &mut Node,
    schema: Schema<'_>,
    environment: &BTreeMap<String, String>,
) -> Vec<Problem> {
    let mut problems = Vec::new();
    walk(root, schema, &mut |visit| match replace_one(visit, environment) {
        Ok(()) => Verdict::Descend,
        Err(problem) => {
            problems.push(problem);
            Verdict::Drop
        }
    });
    problems
}

fn replace_one(
    visit: Visit<'_, '_>,
    environment: &BTreeMap<String, String>,
) -> Result<(), Problem> {
    let Visit { node, schema, key, .. } = visit;
    let Some(written) = node.text().map(str::to_owned) else { return Ok(()) };
    let place = node.origin.place.clone();
    let Replaced { text, used_variables } = replace(&written, environment).map_err(|mistake| {
        Problem::new(&place, key, mistake)
            .with_hint("`${NAME:-text}` gives a default, `$${` stands for `${` itself")
    })?;
    let has_unit = matches!(
        schema,
        Child::Known(schema) if matches!(schema.shape(), Shape::Duration | Shape::Bytes)
    );
    if !used_variables && !has_unit {
        *node = Node::from_json(text.into(), &node.origin);
        return Ok(());
    }
    let value = match schema {
        // A number in quotes is text, unless a variable made it so.
        Child::Known(schema) if !used_variables => {
            let number = with_unit(&text, schema).map(Value::Number);
            number.ok_or_else(|| {
                let expected = schema.expected();
                let found = shortened(&text);
                Problem::new(&place, key, format!("expected {expected}, found the text {found:?}"))
            })?
        }
        Child::Known(schema) if schema.shape() != Shape::Text => {
            coerce(&text, schema).ok_or_else(|| {
                let expected = schema.expected();
                Problem::new(
                    &place,
                    key,
                    format!("expected {expected}, found text from `{written}`"),
                )
            })?
        }
        _ => text.into(),
    };
    *node = Node::from_json(value, &node.origin);
    if used_variables {
        node.mark_replaced(&written.into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::config::origin::Layer;
    use crate::config::schema::config_schema;
    use crate::config::yaml;

    fn expand(text: &str) -> (Node, Vec<String>) {
        let schema = config_schema();
        let schema = Schema::new(&schema);
        let path: Arc<Path> = Path::new("convoke.yml").into();
        let mut root = yaml::parse(text, &path, Layer::User).unwrap();
        drop_empty(&mut root, schema);
        let mut problems = refuse_empty(&mut root, schema);
        let pairs = [("T", "5000"), ("LIST", "a, b"), ("KEY", "hush"), ("WORD", "soon")];
        let environment = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        problems.extend(replace_variables(&mut root, schema, &environment));
        (root, problems.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn a_replaced_value_gets_the_type_of_its_key() {
        let (root, problems) = expand(
            "tools:\n  timeout: ${T}\n  exclude: ${LIST}\n  readCache: ${NO:-false}\n  \
             enabled: ['${KEY}', '$${KEY}']\n  timeouts: {tool: {x: '${T}0'}}\n  \
             webSearch:\n    engineId: ${T}\n",
        );
        assert_eq!(problems, Vec::<String>::new());
        assert_eq!(
            root.to_json(),
            json!({ "tools": {
                "timeout": 5000, "exclude": ["a", "b"], "readCache": false,
                "enabled": ["hush", "${KEY}"], "timeouts": { "tool": { "x": 50_000 } },
                "webSearch": { "engineId": "5000" },
            }}),
        );
    }

    #[test]
    fn durations_become_milliseconds() {
        let (root, problems) = expand(
            "budget: {time: 1h30m, turnTime: 90s}\nmodel: {idleTimeout: '1.5m'}\n\
             tools:\n  timeout: soon\n  timeouts: {tool: {x: 99h, y: '5'}}\n",
        );
        assert_eq!(
            root.to_json(),
            json!({
                "budget": { "time": 5_400_000, "turnTime": 90_000 },
                "model": { "idleTimeout": 90_000 },
                "tools": { "timeouts": { "tool": {} } },
            }),
        );
        let places: Vec<_> = problems.iter().map(|text| text.split(": ").nth(1)).collect();
        let expected = ["tools.timeout", "tools.timeouts.tool.x", "tools.timeouts.tool.y"];
        assert_eq!(places, expected.map(Some), "{problems:?}");
        assert!(
            problems.iter().all(|text| text.contains("as 250ms, 90s or 1h30m")),
            "{problems:?}"
        );
    }

    #[test]
    fn what_cannot_be_replaced_is_reported_without_the_value() {
        let (root, problems) =
            expand("tools:\n  timeout: ${WORD}\n  exclude:\n  - ok\n  - ${NONE}\n");
        assert_eq!(
            problems,
            [
                "convoke.yml:5:5: tools.exclude[1]: the environment variable `NONE` is not set\n  \
                 hint: `${NAME:-text}` gives a default, `$${` stands for `${` itself",
                "convoke.yml:2:12: tools.timeout: expected a duration, as 250ms, 90s or 1h30m, or \
                 milliseconds from 1 to 86400000, found text from `${WORD}`",
            ]
        );
        assert_eq!(root.to_json(), json!({ "tools": { "exclude": ["ok"] } }));
    }

    #[test]
    fn sections_may_be_empty_and_keys_without_a_value_are_refused() {
        let (root, problems) = expand(
            "agent:\nhooks:\ntools:\n  timeout:\n  exclude: [~]\n  mcpServers:\n  timeouts:\n  commands:\n  - \
             parameters: {default: ~}\n    timeout: ~\n",
        );
        let told = "nothing stands behind it; write what is meant (`[]` for none of a list), or leave the key out";
        assert_eq!(
            problems,
            [
                format!("convoke.yml:10:5: tools.commands[0].timeout: {told}"),
                format!("convoke.yml:4:3: tools.timeout: {told}"),
            ]
        );
        assert_eq!(
            root.to_json(),
            json!({ "tools": {
                "exclude": [null],
                "commands": [{ "parameters": { "default": null } }],
            }}),
        );
    }
}
