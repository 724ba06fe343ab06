//! The names under which models know the tools of servers.
//!
//! A name depends on the server and the tool alone, so it stays the same from run to run and whatever
//! other servers there are. It is `mcp__SERVER__TOOL` where that can be read in one way only; otherwise
//! odd characters are replaced, what is too long is cut, and a hash is put at the end of what was changed.
//!
//! What is said of all tools of a server is said of how their names begin, so no server's names begin like those of
//! another: the server's part of a name never holds `__`, and neither begins nor ends with `_`.

use convoke_core::SERVER_TOOL_PREFIX as PREFIX;
use sha2::{Digest, Sha256};

/// What providers take.
const MAX_BYTES: usize = 64;
/// Hexadecimal digits of the hash: forty bits.
const HASH_DIGITS: usize = 10;
/// An odd server name is cut to leave room for the tool's.
const MAX_SERVER_BYTES: usize = 24;
/// A usual one is kept up to here, with at least one letter of the tool's: what is said of all tools of the server
/// has to hold for each of them, whatever it is called.
const MAX_USUAL_SERVER_BYTES: usize = MAX_BYTES - PREFIX.len() - 2 - 1 - 2 - HASH_DIGITS;
/// What stands for a server whose name has no letter that can be kept.
const NAMELESS: &str = "server";

/// Returns the name of a tool for models.
pub(super) fn model_name(server: &str, tool: &str) -> String {
    let begin = names_begin(server);
    if begin.len() + tool.len() <= MAX_BYTES && is_usual_tool(tool) {
        return format!("{begin}{tool}");
    }
    let room = MAX_BYTES - begin.len() - 2 - HASH_DIGITS;
    format!("{begin}{}__{}", replaced(tool, room), short_hash(&[server, tool]))
}

/// Tells whether a name of a tool, or a pattern for such names, is about this server.
pub(super) fn is_about(pattern: &str, server: &str) -> bool {
    pattern.starts_with(&names_begin(server))
}

/// Returns how the names of a server's tools begin, and those of no other server.
pub fn names_begin(server: &str) -> String {
    if is_usual_server(server) {
        return format!("{PREFIX}{server}__");
    }
    let all = replaced(server, server.len());
    let words: Vec<&str> = all.split('_').filter(|word| !word.is_empty()).collect();
    let words: String = words.join("_").chars().take(MAX_SERVER_BYTES).collect();
    let words = match words.trim_end_matches('_') {
        "" => NAMELESS,
        words => words,
    };
    format!("{PREFIX}{words}_{}__", short_hash(&[server]))
}

/// Returns a file name for a server: its own where that is harmless.
pub(super) fn file_name(server: &str) -> String {
    let harmless = !server.is_empty()
        && server.len() <= MAX_BYTES
        && server.chars().all(is_usual)
        && !ends_like_a_hash(server);
    if harmless {
        return server.to_owned();
    }
    format!("{}__{}", replaced(server, MAX_SERVER_BYTES), short_hash(&[server]))
}

/// Tells whether a server's name can be told from the whole, and from one with a hash.
fn is_usual_server(server: &str) -> bool {
    is_usual_name(server)
        && server.len() <= MAX_USUAL_SERVER_BYTES
        && !server.contains("__")
        && !server.starts_with('_')
        && !server.ends_with('_')
        && !server.rsplit_once('_').is_some_and(|(_, end)| is_hash(end))
}

/// Tells whether a tool's name can be told from the whole, and from one with a hash.
fn is_usual_tool(tool: &str) -> bool {
    is_usual_name(tool) && !tool.starts_with('_') && !ends_like_a_hash(tool)
}

fn is_usual_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(is_usual)
}

fn ends_like_a_hash(name: &str) -> bool {
    name.rsplit_once("__").is_some_and(|(_, end)| is_hash(end))
}

fn is_hash(text: &str) -> bool {
    text.len() == HASH_DIGITS && text.bytes().all(|digit| digit.is_ascii_hexdigit())
}

const fn is_usual(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-')
}

fn replaced(name: &str, limit: usize) -> String {
    name.chars().take(limit).map(|letter| if is_usual(letter) { letter } else { '_' }).collect()
}

fn short_hash(names: &[&str]) -> String {
    let mut hash = Sha256::new();
    for name in names {
        hash.update((name.len() as u64).to_le_bytes());
        hash.update(name.as_bytes());
    }
    hex(&hash.finalize()).chars().take(HASH_DIGITS).collect()
}

/// Returns bytes as hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    const DIGITS: [char; 16] =
        ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
    let digit = |half: u8| DIGITS.get(usize::from(half)).copied().unwrap_or('0');
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn usual_names_are_kept_and_odd_ones_get_a_hash() {
        assert_eq!(model_name("files", "read_file"), "mcp__files__read_file");
        assert_eq!(model_name("my-db", "q"), "mcp__my-db__q");
        assert_eq!(model_name("My_DB-2", "q"), "mcp__My_DB-2__q");
        let odd = model_name("my db", "run.query");
        assert!(odd.starts_with("mcp__my_db_") && odd.contains("__run_query__"), "{odd}");
        assert_ne!(odd, model_name("my db", "run/query"));
        assert_ne!(model_name("my db", "run"), model_name("my/db", "run"));
    }

    #[test]
    fn a_name_or_pattern_is_about_the_servers_it_names_in_full() {
        for (pattern, server, expected) in [
            ("mcp__files__*", "files", true),
            ("mcp__files__read_file", "files", true),
            ("mcp__my_db__*", "my db", false),
            ("mcp__a__evil__*", "a__evil", false),
            ("mcp__files_2__*", "files", false),
            ("mcp__*", "files", false),
            ("*", "files", false),
            ("read_file", "files", false),
        ] {
            assert_eq!(is_about(pattern, server), expected, "{pattern}, {server}");
        }
    }

    #[test]
    fn the_names_of_a_server_begin_alike() {
        for server in ["files", "my-db", "my db", "a__b", "a_", "ä", &"x".repeat(100)] {
            let name = model_name(server, "t");
            assert!(name.starts_with(&names_begin(server)), "{name}: {}", names_begin(server));
        }
        assert_eq!(names_begin("files"), "mcp__files__");
        assert!(is_about(&format!("{}*", names_begin("a__evil")), "a__evil"));
    }

    /// A rule on `mcp__a__*` is one on the server `a`, whatever a project calls its own.
    #[test]
    fn no_server_borrows_what_is_said_of_another() {
        let like_a_hash = names_begin("a__b");
        let like_a_hash = like_a_hash.trim_start_matches(PREFIX).trim_end_matches('_').to_owned();
        let names = [
            "a",
            "A",
            "a_",
            "_a",
            "a__",
            "__a",
            "a__evil",
            "a_evil",
            "a evil",
            "a.evil",
            "a___evil",
            "",
            "_",
            "__",
            "server",
            "a__b",
            &like_a_hash,
        ];
        for one in names {
            for other in names.into_iter().filter(|other| *other != one) {
                let (one, other) = (names_begin(one), names_begin(other));
                assert!(!other.starts_with(&one), "{one} {other}");
            }
        }
    }

    /// A tool does not slip out of a rule on all tools of its server by what it is called.
    #[test]
    fn an_odd_tool_of_a_server_with_a_long_name_begins_like_the_others() {
        for length in [1, 24, 25, MAX_USUAL_SERVER_BYTES] {
            let server = "s".repeat(length);
            for tool in ["t", "run.query", "_", "ä", &"x".repeat(100)] {
                let name = model_name(&server, tool);
                assert!(name.starts_with(&format!("mcp__{server}__")), "{name}");
                assert!(
                    name.starts_with(&names_begin(&server)) && name.len() <= MAX_BYTES,
                    "{name}"
                );
            }
        }
    }

    /// gemini-cli 4.20: underscores in the name of a server confuse nobody.
    #[test]
    fn names_that_could_be_read_in_two_ways_are_told_apart() {
        assert_ne!(model_name("a__b", "c"), model_name("a", "b__c"));
        assert_ne!(model_name("a_", "b"), model_name("a", "_b"));
        let hashed = model_name("a", "b!");
        let tool = hashed.strip_prefix("mcp__a__").unwrap();
        assert_ne!(model_name("a", tool), hashed);
    }

    #[test]
    fn file_names_stay_in_their_directory() {
        assert_eq!(file_name("files"), "files");
        for odd in ["../up", "", "a/b", "a\0b", ".."] {
            let name = file_name(odd);
            assert!(name.chars().all(is_usual) && !name.is_empty(), "{odd}: {name}");
        }
        assert_ne!(file_name("a/b"), file_name("a:b"));
    }

    fn names() -> impl Strategy<Value = String> {
        prop_oneof![
            "[a-c_]{0,4}",
            "[a-z_-]{1,40}",
            ".{0,80}",
            Just("x".repeat(300)),
            "[ab_]{1,3}__[0-9a-f]{10}",
            "[ab]{1,2}_[0-9a-f]{10}",
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn the_names_of_no_two_servers_begin_alike(
            servers in prop::collection::hash_set(names(), 2..40), tool in names()
        ) {
            for one in &servers {
                let begin = names_begin(one);
                prop_assert!(model_name(one, &tool).starts_with(&begin), "{}", begin);
                for other in servers.iter().filter(|other| *other != one) {
                    prop_assert!(!names_begin(other).starts_with(&begin), "{:?} {:?}", one, other);
                    prop_assert!(!model_name(other, &tool).starts_with(&begin), "{:?} {:?}", one, other);
                }
            }
        }

        #[test]
        fn names_are_valid_short_unique_and_stable(
            pairs in prop::collection::hash_set((names(), names()), 1..40)
        ) {
            let mut seen: HashMap<String, (String, String)> = HashMap::new();
            for (server, tool) in pairs {
                let name = model_name(&server, &tool);
                prop_assert_eq!(&name, &model_name(&server, &tool));
                prop_assert!(name.len() <= 64 && name.starts_with("mcp__"), "{}", name);
                prop_assert!(name.chars().all(is_usual), "{}", name);
                if let Some(other) = seen.insert(name.clone(), (server.clone(), tool.clone())) {
                    prop_assert!(false, "{} stands for {:?} and {:?}", name, other, (server, tool));
                }
            }
        }
    }
}
