use serde_json::json;

use super::*;
use crate::config::schema::config_schema;

fn environment(pairs: &[(&str, &str)]) -> (Value, Vec<String>) {
    let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let mut problems = Vec::new();
    let schema = config_schema();
    let root = from_environment(&pairs.collect(), || Schema::new(&schema), &mut problems);
    (root.to_json(), problems.iter().map(ToString::to_string).collect())
}

fn flags(pairs: &[(&str, &str)]) -> (Value, Vec<String>) {
    let pairs: Vec<(String, String)> =
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let mut problems = Vec::new();
    let schema = config_schema();
    let root = from_flags(&pairs, || Schema::new(&schema), &mut problems);
    (root.to_json(), problems.iter().map(ToString::to_string).collect())
}

#[test]
fn a_variable_names_its_key_in_any_spelling() {
    for name in [
        "CONVOKE__TOOLS__MAX_CONCURRENT",
        "CONVOKE__TOOLS__MAXCONCURRENT",
        "CONVOKE__tools__maxConcurrent",
    ] {
        assert_eq!(environment(&[(name, "7")]).0, json!({ "tools": { "maxConcurrent": 7 } }));
    }
}

#[test]
fn variables_are_coerced_by_their_key() {
    let (json, problems) = environment(&[
        ("CONVOKE__TOOLS__ALLOWED_PATHS", "a, b"),
        ("CONVOKE__TOOLS__READ_CACHE", "false"),
        ("CONVOKE__TOOLS__TIMEOUTS__CATEGORY__NETWORK", "9"),
        ("CONVOKE__TOOLS__TIMEOUTS__TOOL__READ_FILE", "8"),
        ("CONVOKE__TOOLS__TIMEOUTS__TOOL__readFile", "7"),
        ("CONVOKE__TOOLS__WEB_SEARCH", "{maxResults: 3}"),
        ("CONVOKE__TOOLS__WEB_SEARCH__API_KEY", "007"),
        ("CONVOKE_HOME", "not a setting"),
        ("PATH", "/bin"),
    ]);
    assert_eq!(problems, Vec::<String>::new());
    assert_eq!(
        json,
        json!({ "tools": {
            "allowedPaths": ["a", "b"],
            "readCache": false,
            "timeouts": {
                "category": { "network": 9 },
                "tool": { "read_file": 8, "readFile": 7 },
            },
            "webSearch": { "maxResults": 3, "apiKey": "007" },
        }}),
    );
}

#[test]
fn mistakes_in_variables_name_the_variable_and_never_its_value() {
    let (json, problems) = environment(&[
        ("CONVOKE__TOOLS__MAXCONCURRENT", "2"),
        ("CONVOKE__TOOLS__MAX_CONCURRENT", "3"),
        ("CONVOKE__TOOLS__READCACHE", "hush"),
        ("CONVOKE__TOOLS__TIMOUT", "hush"),
        ("CONVOKE__TOOLS__", "hush"),
    ]);
    assert_eq!(json, json!({ "tools": { "maxConcurrent": 2 } }));
    assert_eq!(
        problems,
        [
            "environment variable CONVOKE__TOOLS__: tools.\"\": there is no such key\n  hint: the keys of \
             `tools` are `allowedPaths`, `commands`, `enabled`, `environment`, `exclude`, `http`, \
             `maxArgumentBytes`, `maxConcurrent`, `maxListedTokens`, `maxOutputBytes`, `maxReadBytes`, \
             `mcpFiles`, `mcpServers`, `readCache`, `timeout`, `timeouts`, `webSearch`",
            "environment variable CONVOKE__TOOLS__MAX_CONCURRENT: tools.maxConcurrent: the \
             variable `CONVOKE__TOOLS__MAXCONCURRENT` sets the same key",
            "environment variable CONVOKE__TOOLS__READCACHE: tools.readCache: expected `true` or \
             `false`, found something else",
            "environment variable CONVOKE__TOOLS__TIMOUT: tools.timout: there is no such key\n  \
             hint: did you mean `CONVOKE__TOOLS__TIMEOUT`?",
        ]
    );
}

#[test]
fn the_later_flag_counts() {
    let (json, problems) = flags(&[
        ("tools.timeout", "1"),
        ("tools.http", "{maxRedirects: 1, allowPrivate: true}"),
        ("tools.http.maxRedirects", "2"),
        ("tools.timeout", "3"),
        ("tools.timeouts.tool.\"a.b\"", "4"),
    ]);
    assert_eq!(problems, Vec::<String>::new());
    assert_eq!(
        json,
        json!({ "tools": {
            "timeout": 3,
            "http": { "maxRedirects": 2, "allowPrivate": true },
            "timeouts": { "tool": { "a.b": 4 } },
        }}),
    );
}

#[test]
fn mistakes_in_flags_are_all_reported() {
    let (json, problems) = flags(&[
        ("", "1"),
        ("tools..x", "1"),
        ("timeout", "1"),
        ("tools.maxConcurent", "1"),
        ("tools.timeout", "soon"),
        ("tools.mcpServers[0].name", "x"),
    ]);
    assert_eq!(json, json!({}));
    assert_eq!(
        problems,
        [
            "--set : the key is missing",
            "--set tools..x: not a key: a name is missing",
            "--set timeout: there is no such key\n  hint: did you mean `tools.timeout`?",
            "--set tools.maxConcurent: there is no such key\n  hint: did you \
             mean `tools.maxConcurrent`?",
            "--set tools.timeout: expected a duration, as 250ms, 90s or 1h30m, or \
             milliseconds from 1 to 86400000, \
             found \"soon\"",
            "--set tools.mcpServers[0].name: one entry of a list cannot \
             be set\n  hint: set the whole list",
        ]
    );
}

#[test]
fn a_key_has_one_variable() {
    let key = Key::parse("tools.webSearch.apiKey").unwrap();
    assert_eq!(variable_name(&key), "CONVOKE__TOOLS__WEB_SEARCH__API_KEY");
}
