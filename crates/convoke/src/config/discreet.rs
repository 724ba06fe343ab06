//! What is shown of settings that are not secret as such, and in which people put keys all the same: the words of a
//! command line, and addresses.

use convoke_core::Secrets;
use convoke_tool::looks_like_credential;

use super::secret::MASK;

/// Flags that name where a key is, and not the key.
const NAMES_A_PLACE: [&str; 6] = ["env", "file", "path", "dir", "name", "id"];

/// Returns an address without what stands behind its path or before its host, which may be a key.
pub fn address_without_keys(url: &str) -> String {
    let (path, more) = match url.find(['?', '#']) {
        Some(at) => (url.get(..at).unwrap_or_default(), "?…"),
        None => (url, ""),
    };
    let path = match path.split_once("://") {
        Some((scheme, rest)) => {
            let (host, below) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
            format!("{scheme}://{host}{below}")
        }
        None => path.to_owned(),
    };
    path + more
}

/// Returns the words of a command line without what stands behind a flag for a key, as `--api-key KEY` or
/// `--api-key=KEY`, and with addresses as [`address_without_keys`] has them. `${NAME}` stays.
pub fn words_without_keys<'a>(words: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut before: Option<&'a str> = None;
    let shown = |word: &'a str| {
        if let Some(flag) = before.take().filter(|_| !word.starts_with('-')) {
            return hidden(flag, word).to_owned();
        }
        match word.split_once('=') {
            Some((flag, value)) if is_for_key(flag) => format!("{flag}={}", hidden(flag, value)),
            Some(_) => plain(word),
            None => {
                before = Some(word).filter(|word| is_for_key(word));
                plain(word)
            }
        }
    };
    words.into_iter().map(shown).collect()
}

/// Returns a text without keys that are known by their shape; an address without what may be one.
pub(super) fn text_without_keys(text: &str) -> String {
    Secrets::default().hide(&plain(text)).into_owned()
}

fn plain(text: &str) -> String {
    let scheme = text.split_once("://").map_or("", |(scheme, _)| scheme);
    let is_address = ["http", "https"].iter().any(|known| known.eq_ignore_ascii_case(scheme));
    if is_address { address_without_keys(text) } else { text.to_owned() }
}

/// A variable is not what stands for it, unless there is a default or other text, which may be a key; and how many tokens there may be is no key.
fn hidden<'a>(flag: &str, value: &'a str) -> &'a str {
    let name = value.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
    let name = name.map(|name| name.strip_suffix(":-").unwrap_or(name));
    let is_variable = name.is_some_and(|name| {
        name.chars().all(|letter| letter == '_' || letter.is_ascii_alphanumeric())
    });
    let is_count = flag.to_ascii_lowercase().ends_with("tokens") && value.parse::<u32>().is_ok();
    if is_variable || is_count { value } else { MASK }
}

fn is_for_key(flag: &str) -> bool {
    let last = flag.rsplit(['-', '_']).next().unwrap_or_default().to_ascii_lowercase();
    flag.starts_with('-') && looks_like_credential(flag) && !NAMES_A_PLACE.contains(&last.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_keys() {
        for (url, shown) in [
            ("https://x.example/mcp", "https://x.example/mcp"),
            ("https://me:pass@x.example/mcp?key=abc#d", "https://x.example/mcp?…"),
            ("http://127.0.0.1:80", "http://127.0.0.1:80"),
            ("https://x.example/a@b", "https://x.example/a@b"),
        ] {
            assert_eq!(address_without_keys(url), shown);
        }
    }

    #[test]
    fn words_are_shown_without_keys() {
        let token = concat!("ghp_", "0123456789abcdefghijABCDEFGHIJ012345");
        let token = text_without_keys(token);
        assert!(token.starts_with("[secret ") && !token.contains("abcdef"), "{token}");
        for (words, shown) in [
            (&["-y", "--api-key", "hunter22", "x"][..], "-y --api-key *** x"),
            (&["--password=hunter22", "--depth=3"], "--password=*** --depth=3"),
            (&["--token", "${TOKEN}", "--token=${TOKEN}"], "--token ${TOKEN} --token=${TOKEN}"),
            (
                &["--token", "${TOKEN:-}", "--token=${TOKEN:-}"],
                "--token ${TOKEN:-} --token=${TOKEN:-}",
            ),
            (&["--token", "${TOKEN:-hunter22}", "--key=${A}hunter22${B}"], "--token *** --key=***"),
            (&["--token-env", "TOKEN", "--key-file", "/a"], "--token-env TOKEN --key-file /a"),
            (&["--key", "--verbose", "keys"], "--key --verbose keys"),
            (&["--max-tokens", "4096", "--max-tokens=1"], "--max-tokens 4096 --max-tokens=1"),
            (&["--password", "12345678", "--token=7"], "--password *** --token=***"),
            (&["https://me:pw@x.example/?k=1"], "https://x.example/?…"),
            (&["HTTP://me:pw@x.example/?k=1"], "HTTP://x.example/?…"),
        ] {
            assert_eq!(words_without_keys(words.iter().copied()).join(" "), shown);
        }
    }
}
