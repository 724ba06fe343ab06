use super::*;
use crate::config::settings::ALIASES;
use crate::config::trust::HARMLESS;

fn for_each_schema(schema: &Value, path: &str, visit: &mut dyn FnMut(&str, &Value)) {
    visit(path, schema);
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        for (name, below) in properties {
            for_each_schema(below, &format!("{path}.{name}"), visit);
        }
    }
    for (keyword, suffix) in [("items", "[]"), ("additionalProperties", ".*")] {
        if let Some(below) = schema.get(keyword).filter(|below| below.is_object()) {
            for_each_schema(below, &format!("{path}{suffix}"), visit);
        }
    }
}

#[test]
fn the_schema_says_what_it_is() {
    let schema = config_schema();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert_eq!(schema["title"], "Convoke configuration");
    assert!(schema["description"].as_str().unwrap().starts_with("Settings of the Convoke"));
    assert_eq!(schema.get("$id"), None);
    assert!(jsonschema::meta::validate(&schema).is_ok());
}

#[test]
fn every_key_is_described_and_every_mapping_is_closed() {
    for_each_schema(&config_schema(), "", &mut |path, schema| {
        let named = !path.ends_with(".*") && !path.ends_with("[]");
        assert!(!named || schema.get("description").is_some(), "{path} has no description");
        if let Some(Value::Object(_)) = schema.get("properties") {
            assert_eq!(schema["additionalProperties"], false, "{path} takes unknown keys");
        }
        for keyword in ["$ref", "anyOf", "oneOf"] {
            assert_eq!(schema.get(keyword), None, "{path} is not plain");
        }
        let has_one_type = schema.get("type").is_some_and(Value::is_string);
        let has_units = schema.get("type") == Some(&json!(["integer", "string"]));
        assert!(has_one_type || has_units, "{path} has no single type");
    });
}

#[test]
fn every_number_has_a_range() {
    for_each_schema(&config_schema(), "", &mut |path, schema| {
        let shape = Schema::new(schema).shape();
        if matches!(shape, Shape::Integer | Shape::Number | Shape::Duration | Shape::Bytes) {
            assert!(schema.get("minimum").is_some(), "{path} has no minimum");
            assert!(schema.get("maximum").is_some(), "{path} has no maximum");
        }
    });
}

#[test]
fn the_defaults_are_valid_and_read_back() {
    let defaults = serde_json::to_value(Config::default()).unwrap();
    let errors: Vec<String> = jsonschema::validator_for(&config_schema())
        .unwrap()
        .iter_errors(&defaults)
        .map(|error| error.to_string())
        .collect();
    assert_eq!(errors, Vec::<String>::new());
    assert_eq!(serde_json::from_value::<Config>(defaults).unwrap(), Config::default());
}

#[test]
fn tables_of_keys_name_keys_that_exist() {
    let schema = config_schema();
    let aliases = ALIASES.iter().flat_map(|(alias, name)| [alias, name]);
    for text in HARMLESS.iter().chain(aliases) {
        let child = Schema::new(&schema).get(&Key::parse(text).unwrap());
        assert!(matches!(child, Child::Known(_)), "{text}");
    }
}

#[test]
fn keys_lead_to_their_schema() {
    let schema = config_schema();
    let root = Schema::new(&schema);
    for (text, shape) in [
        ("", Some(Shape::Map)),
        ("tools.timeout", Some(Shape::Duration)),
        ("sandbox.limits.memory", Some(Shape::Bytes)),
        ("tools.readCache", Some(Shape::Boolean)),
        ("tools.allowedPaths", Some(Shape::List)),
        ("tools.allowedPaths[3]", Some(Shape::Text)),
        ("tools.timeouts.tool.anything", Some(Shape::Duration)),
        ("tools.timeouts.category.network", Some(Shape::Duration)),
        ("tools.timeouts.category.nets", None),
        ("tools.mcpServers[0].url", Some(Shape::Text)),
        ("tools.timeout.more", None),
        ("tools[0]", None),
        ("policy.kinds.execute", Some(Shape::Text)),
    ] {
        let found = match root.get(&Key::parse(text).unwrap()) {
            Child::Known(schema) => Some(schema.shape()),
            Child::Unknown | Child::Free => None,
        };
        assert_eq!(found, shape, "{text}");
    }
    let free = root.get(&Key::parse("tools.commands[0].parameters.properties").unwrap());
    assert!(matches!(free, Child::Free));
}

#[test]
fn expectations_are_put_into_words() {
    let schema = config_schema();
    for (text, expected) in [
        ("tools.timeout", "a duration, as 250ms, 90s or 1h30m, or milliseconds from 1 to 86400000"),
        ("tools.readCache", "`true` or `false`"),
        ("tools.exclude", "a list of text"),
        ("tools.commands", "a list of mappings"),
        ("tools.commands[0].command", "a list of text that is not empty"),
        ("tools.commands[0].name", "text that matches `^[A-Za-z0-9_-]{1,64}$`"),
        ("tools.http", "a mapping"),
        ("tools.webSearch.apiKey", "text"),
        ("tools.webSearch.provider", "one of `tavily`, `google`, `bing`, `duckduckgo`"),
        ("policy.kinds.read", "one of `allow`, `ask`, `deny`"),
    ] {
        let Child::Known(found) = Schema::new(&schema).get(&Key::parse(text).unwrap()) else {
            panic!("{text} is not known");
        };
        assert_eq!(found.expected(), expected, "{text}");
    }
}
