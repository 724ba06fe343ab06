//! The names under which models know the tools of servers.
//!
//! A name depends on the server and the tool alone, so it stays the same from run to run and whatever
//! other servers there are. It is `mcp__SERVER__TOOL` where that can be read in one way only; otherwise
//! odd characters are replaced, what is too long is cut, and a hash of both names is put at the end.

use sha2::{Digest, Sha256};

/// What providers take.
const MAX_BYTES: usize = 64;
const PREFIX: &str = "mcp__";
/// Hexadecimal digits of the hash: forty bits.
const HASH_DIGITS: usize = 10;
/// An odd server name is cut to leave room for the tool's.
const MAX_SERVER_BYTES: usize = 24;
/// A usual one is kept up to here, with at least one letter of the tool's: what is said of all tools of the server
/// has to hold for each of them, whatever it is called.
const MAX_USUAL_SERVER_BYTES: usize = MAX_BYTES - PREFIX.len() - 2 - 1 - 2 - HASH_DIGITS;

/// Returns the name of a tool for models.
pub(super) fn model_name(server: &str, tool: &str) -> String {
    let plain = format!("{PREFIX}{server}__{tool}");
    if plain.len() <= MAX_BYTES && reads_one_way(server, tool) {
        return plain;
    }
    let hash = short_hash(&[server, tool]);
    let kept = server.len() <= MAX_USUAL_SERVER_BYTES && reads_one_way(server, "tool");
    let server = if kept { server.to_owned() } else { replaced(server, MAX_SERVER_BYTES) };
    let room = MAX_BYTES - PREFIX.len() - server.len() - 2 - 2 - HASH_DIGITS;
    format!("{PREFIX}{server}__{}__{hash}", replaced(tool, room))
}

/// Tells whether a name of a tool, or a pattern for such names, is about this server.
pub(super) fn is_about(pattern: &str, server: &str) -> bool {
    let Some(rest) = pattern.strip_prefix(PREFIX) else { return false };
    let names = |server: &str| rest.strip_prefix(server).is_some_and(|rest| rest.starts_with("__"));
    names(server) || names(&replaced(server, MAX_SERVER_BYTES))
}

/// Returns how the names of a server's tools begin. Two servers with odd names may share that, and then what is
/// said of one's tools is said of the other's.
pub(super) fn names_begin(server: &str) -> String {
    let plain = format!("{PREFIX}{server}__");
    if plain.len() < MAX_BYTES && reads_one_way(server, "tool") {
        return plain;
    }
    format!("{PREFIX}{}__", replaced(server, MAX_SERVER_BYTES))
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

/// Tells whether both names can be told from the whole, and the whole from one with a hash.
fn reads_one_way(server: &str, tool: &str) -> bool {
    let usual = |name: &str| !name.is_empty() && name.chars().all(is_usual);
    usual(server)
        && usual(tool)
        && !server.contains("__")
        && !server.ends_with('_')
        && !tool.starts_with('_')
        && !ends_like_a_hash(tool)
}

fn ends_like_a_hash(name: &str) -> bool {
    name.rsplit_once("__").is_some_and(|(_, end)| {
        end.len() == HASH_DIGITS && end.bytes().all(|digit| digit.is_ascii_hexdigit())
    })
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
        let odd = model_name("my db", "run.query");
        assert!(odd.starts_with("mcp__my_db__run_query__"), "{odd}");
        assert_ne!(odd, model_name("my db", "run/query"));
    }

    #[test]
    fn a_name_or_pattern_is_about_the_servers_it_names_in_full() {
        for (pattern, server, expected) in [
            ("mcp__files__*", "files", true),
            ("mcp__files__read_file", "files", true),
            ("mcp__my_db__*", "my db", true),
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
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
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
