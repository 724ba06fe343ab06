//! What can be said of a server before it is tried: what cannot work at all, and what may not.

use std::net::Ipv4Addr;
use std::path::Path;

use convoke::config::words_without_keys;
use convoke::mcp::client::{self, ServerConfig, Transport};
use convoke_core::secret::holds_token;

use crate::failure::Failure;
use crate::session::Session;

use super::super::super::doctor::program_problem;

/// Reads a header, as NAME=VALUE or as it is sent, NAME: VALUE.
pub(in crate::commands::mcp) fn header(text: &str) -> Result<(String, String), String> {
    let at = text.find(['=', ':']).ok_or("write it as NAME=VALUE, or as NAME: VALUE")?;
    let (name, rest) = text.split_at(at);
    let value = rest.get(1..).unwrap_or_default();
    let value = if rest.starts_with(':') { value.trim() } else { value };
    let is_token =
        |letter: char| letter.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(letter);
    if name.is_empty() || !name.chars().all(is_token) {
        return Err(format!("`{name}` is no name of a header"));
    }
    if value.contains(char::is_control) {
        return Err("a header has one line, without control characters".to_owned());
    }
    Ok((name.to_owned(), value.to_owned()))
}

/// Reads a variable.
pub(in crate::commands::mcp) fn variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = crate::cli::key_and_value(text)?;
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    if name.starts_with(|first: char| first.is_ascii_digit()) || !name.chars().all(is_word) {
        return Err(format!("`{name}` is no name of a variable: it has letters, digits and _"));
    }
    Ok((name, value))
}

/// Tells whether a word is an address, and not a program.
pub(in crate::commands::mcp) fn is_address(word: &str) -> bool {
    let scheme = word.split_once("://").map(|(scheme, _)| scheme);
    let is = |known: &str| scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case(known));
    is("http") || is("https")
}

/// Tells whether a word begins as addresses of any kind do: no program is called `ftp://…`.
pub(in crate::commands::mcp) fn begins_as_address(word: &str) -> bool {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || "+-.".contains(letter);
    word.split_once("://").is_some_and(|(scheme, _)| {
        scheme.starts_with(|first: char| first.is_ascii_alphabetic()) && scheme.chars().all(is_part)
    })
}

/// Says what is wrong with an address.
pub(in crate::commands::mcp) fn address_problem(url: &str) -> Option<String> {
    let why = match client::address_problem(url) {
        Some(why) => why,
        None if !is_address(url) => "it has to begin with `https://` or `http://`".to_owned(),
        None if url.contains(char::is_whitespace) => {
            "there is a space in it; write %20 for one".to_owned()
        }
        None => return None,
    };
    Some(format!("`{url}` is no address of a server: {why}"))
}

/// Says no to a word that is to be a program, and is none: it is blank, or there is no such program and it looks like
/// an address without its beginning.
pub(in crate::commands::mcp) fn no_program(
    word: &str,
    start: Option<&Path>,
    session: &Session<'_>,
) -> Option<Failure> {
    if word.trim().is_empty() {
        let failure = Failure::usage("the program has no name");
        return Some(failure.hint("write a program, or an address: https://HOST/PATH"));
    }
    let address = meant_address(word)?;
    let problem = program_problem(word, start, session)?;
    let failure = Failure::usage(format!("{problem}; did you mean `{address}`?"));
    Some(failure.hint("if it is a program, `--transport stdio` says so"))
}

/// Returns the address that a word may stand for in which `https://` is missing: `localhost:3000/mcp`,
/// `example.com/mcp`, `//host/path`.
fn meant_address(word: &str) -> Option<String> {
    let (bare, begins_with_host) = match word.strip_prefix("//") {
        Some(bare) => (bare, true),
        None => (word, false),
    };
    let (place, path) = bare.split_at(bare.find('/').unwrap_or(bare.len()));
    let (host, port) = match place.rsplit_once(':').filter(|_| !place.ends_with(']')) {
        Some((host, port)) => (host, Some(port.parse::<u16>().ok()?)),
        None => (place, None),
    };
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || ".-".contains(letter);
    let is_number =
        host.parse::<Ipv4Addr>().is_ok() || (host.starts_with('[') && host.ends_with(']'));
    let is_host =
        host.starts_with(|first: char| first.is_ascii_alphanumeric()) && host.chars().all(is_part);
    if !is_number && !is_host {
        return None;
    }
    let is_local = is_number || host == "localhost";
    let ends_as_names_do = host.rsplit_once('.').is_some_and(|(_, last)| {
        last.len() > 1 && last.chars().all(|letter| letter.is_ascii_alphabetic())
    });
    let has_path = !path.is_empty() && (is_local || ends_as_names_do);
    let is_plain = port.map_or(is_local, |port| port != 443);
    let scheme = if is_plain { "http" } else { "https" };
    (begins_with_host || port.is_some() || has_path).then(|| format!("{scheme}://{bare}"))
}

/// Tells whether a key is among the words of a command line: behind a flag for one, or known by its shape.
pub(in crate::commands::mcp) fn holds_key(words: &[String]) -> bool {
    let shown = words_without_keys(words.iter().map(String::as_str));
    let is_hidden = |(word, shown): (&String, &String)| !is_address(word) && word != shown;
    words.iter().zip(&shown).any(is_hidden)
        || words.iter().any(|word| holds_token(word) || address_holds_key(word))
}

/// Tells whether a key is in an address: before its host, or as one of its parameters.
pub(in crate::commands::mcp) fn address_holds_key(url: &str) -> bool {
    let Some((_, rest)) = url.split_once("://").filter(|_| is_address(url)) else { return false };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let is_written = |value: &str| !value.is_empty() && !value.contains("${");
    let has_password = host.rsplit_once('@').is_some_and(|(who, _)| is_written(who));
    let query = rest.split_once('?').map_or("", |(_, query)| query);
    let has_parameter = query
        .split('&')
        .filter_map(|one| one.split_once('='))
        .any(|(name, value)| convoke_tool::looks_like_credential(name) && is_written(value));
    has_password || has_parameter || holds_token(url)
}

/// Says what may keep a server from working, or is better done otherwise.
pub(in crate::commands::mcp) fn doubts(
    server: &ServerConfig,
    session: &Session<'_>,
) -> Vec<String> {
    match &server.transport {
        Transport::Program { command, cwd, .. } => {
            let problem = program_problem(command, cwd.as_deref(), session);
            let mut doubts: Vec<String> = problem.into_iter().collect();
            let place = cwd.as_deref().filter(|place| place.is_absolute() && !place.is_dir());
            doubts
                .extend(place.map(|place| format!("there is no directory `{}`", place.display())));
            doubts
        }
        Transport::Http { url, headers } if is_open(url) => {
            let secret = headers.iter().find(|(name, value)| {
                name.eq_ignore_ascii_case("authorization")
                    || convoke_tool::looks_like_credential(name)
                    || holds_token(value)
            });
            let doubt = secret.map(|(name, _)| {
                format!("headers.{name} can be read on its way: the address is http, not https")
            });
            doubt.into_iter().collect()
        }
        Transport::Http { .. } => Vec::new(),
    }
}

/// Tells whether what is sent to an address can be read on its way there: it is http, and of another machine.
fn is_open(url: &str) -> bool {
    let Some(rest) = url.strip_prefix("http://") else { return false };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    let name =
        host.rsplit_once(':').filter(|_| !host.ends_with(']')).map_or(host, |(name, _)| name);
    let is_here = name.parse().is_ok_and(|ip: Ipv4Addr| ip.is_loopback());
    !is_here && !["localhost", "[::1]"].contains(&name) && !host.starts_with("${")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_in_both_spellings() {
        let read = |text: &str| header(text).unwrap();
        assert_eq!(read("A: b=c"), ("A".into(), "b=c".into()));
        assert_eq!(read("A=b: c"), ("A".into(), "b: c".into()));
        assert_eq!(read("X-Key:x"), ("X-Key".into(), "x".into()));
        for bad in ["A", "=b", ": b", "A B=c", "A: b\nc", "ä=b"] {
            assert!(header(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn variables_have_names_that_a_program_can_ask_for() {
        assert_eq!(variable("_A1=x=y"), Ok(("_A1".into(), "x=y".into())));
        for bad in ["1A=x", "A-B=x", "A", "=x"] {
            assert!(variable(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_address_names_a_host() {
        for good in [
            "https://x",
            "HTTP://x",
            "http://127.0.0.1:80/mcp",
            "https://${HOST}/mcp",
            "http://[::1]/",
        ] {
            assert_eq!(address_problem(good), None, "{good}");
        }
        for bad in [
            "http://",
            "https:///mcp",
            "ftp://x",
            "x",
            "http://:80",
            "https://a b",
            "https://a/b c",
            "http://[::1",
            "http://h:99999/x",
            "http://h:0/x",
        ] {
            assert!(address_problem(bad).is_some(), "{bad}");
        }
        assert!(begins_as_address("ftp://x/y") && begins_as_address("HTTP://x"));
        assert!(!begins_as_address("./a://b") && !begins_as_address("npx"));
    }

    #[test]
    fn an_address_without_its_beginning_is_known() {
        for (word, address) in [
            ("localhost:3000/mcp", "http://localhost:3000/mcp"),
            ("localhost/mcp", "http://localhost/mcp"),
            ("example.com/mcp", "https://example.com/mcp"),
            ("example.com:443", "https://example.com:443"),
            ("127.0.0.1/mcp", "http://127.0.0.1/mcp"),
            ("[::1]:3000", "http://[::1]:3000"),
            ("//x/y", "https://x/y"),
        ] {
            assert_eq!(meant_address(word).as_deref(), Some(address), "{word}");
        }
        for word in [
            "npx",
            "server.py",
            "./example.com/mcp",
            "/usr/bin/env",
            "bin/server",
            "node_modules/.bin/x",
            "node-18.2/bin/node",
            "@scope/name",
            "image:latest",
            "C:\\tools",
            "//",
            "localhost",
            "${HOST}:80/mcp",
        ] {
            assert_eq!(meant_address(word), None, "{word}");
        }
    }

    #[test]
    fn keys_in_words_and_addresses_are_known() {
        for (word, holds) in [
            ("https://me:pw@x.example/", true),
            ("https://x.example/?a=1&api_key=sk-1", true),
            ("https://x.example/?api_key=${KEY}", false),
            ("https://${WHO}@x.example/?page=2", false),
            ("--api-key", false),
            ("--api-key=x", true),
            ("--api-key=${KEY}", false),
        ] {
            assert_eq!(holds_key(&[word.to_owned()]), holds, "{word}");
        }
        assert!(holds_key(&["--password".to_owned(), "x".to_owned()]));
    }

    #[test]
    fn what_goes_over_the_net_in_the_open_is_known() {
        for (url, open) in [
            ("http://x.example/", true),
            ("http://localhost.evil.example", true),
            ("http://localhost:80/mcp", false),
            ("http://[::1]:80/mcp", false),
            ("http://127.0.0.1:3/", false),
            ("https://x.example/", false),
        ] {
            assert_eq!(is_open(url), open, "{url}");
        }
    }
}
