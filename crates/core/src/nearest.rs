//! "Did you mean": the known names closest to one that is not known.

/// Nobody misspells a name this long; comparing it would take long.
const MAX_BYTES: usize = 128;

/// Returns up to three of `known` that a person could have meant by `wanted`, closest first.
pub fn nearest<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    if wanted.len() > MAX_BYTES {
        return Vec::new();
    }
    let wanted_folded = fold(wanted);
    let mut scored: Vec<(f64, &str)> = known
        .into_iter()
        .filter(|name| *name != wanted)
        .map(|name| (closeness(&wanted_folded, &fold(name)), name))
        .filter(|(score, _)| *score >= 0.72)
        .collect();
    scored.sort_by(|left, right| right.0.total_cmp(&left.0).then(left.1.cmp(right.1)));
    scored.into_iter().take(3).map(|(_, name)| name).collect()
}

/// Tells whether a name is another one, written with a slip or two of the fingers.
pub fn is_slip(written: &str, known: &str) -> bool {
    let (written, known) = (fold(written), fold(known));
    let most = (known.len() / 4).clamp(1, 3);
    written.len() <= MAX_BYTES && strsim::damerau_levenshtein(&written, &known) <= most
}

/// Writes names as ", did you mean `a` or `b`?", or nothing.
pub fn did_you_mean(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        None => String::new(),
        Some((only, [])) => format!("; did you mean {only}?"),
        Some((last, others)) => format!("; did you mean {} or {last}?", others.join(", ")),
    }
}

fn fold(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Words in another order (`file_read`) and words left out (`read`) count as close too.
fn closeness(wanted: &str, known: &str) -> f64 {
    if wanted.len() < 3 || known.len() < 3 {
        // One or two letters are in almost anything; only a name as short is meant by them, or means them.
        let has_all = wanted.chars().all(|letter| known.contains(letter));
        let is_slip = has_all
            && wanted.len().max(known.len()) <= 3
            && strsim::damerau_levenshtein(wanted, known) == 1;
        return if is_slip { 0.96 } else { 0.0 };
    }
    let contained = known.contains(wanted) || wanted.contains(known);
    let spelled = strsim::jaro_winkler(wanted, known)
        .max(strsim::normalized_damerau_levenshtein(wanted, known));
    // In a short word one slip of the fingers is a large part of it.
    let slip = strsim::damerau_levenshtein(wanted, known) == 1;
    let reordered = strsim::sorensen_dice(wanted, known);
    let sure = match (slip, contained) {
        (true, _) => 0.96,
        (false, true) => 0.8,
        (false, false) => 0.0,
    };
    spelled.max(reordered).max(sure)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOLS: [&str; 5] = ["read_file", "write_file", "grep", "glob", "run_command"];

    #[test]
    fn misspellings_are_recognised() {
        for (wanted, expected) in [
            ("read_fil", "read_file"),
            ("readFile", "read_file"),
            ("gerp", "grep"),
            ("command", "run_command"),
            ("rnu", "run"),
        ] {
            assert_eq!(
                nearest(wanted, TOOLS.into_iter().chain(["run"])).first(),
                Some(&expected),
                "{wanted}"
            );
        }
    }

    #[test]
    fn a_slip_is_a_letter_or_two_in_a_word() {
        for (written, known) in [
            ("tool", "tools"),
            ("disalowedTool", "disallowedTools"),
            ("max-turn", "maxTurns"),
            ("permision", "permission"),
        ] {
            assert!(is_slip(written, known), "{written}");
        }
        for (written, known) in [("version", "permission"), ("title", "tools"), ("tags", "tools")] {
            assert!(!is_slip(written, known), "{written}");
        }
    }

    #[test]
    fn nothing_is_made_up() {
        assert_eq!(nearest("zzz", TOOLS), Vec::<&str>::new());
        for short in ["r", "gr", "ru", "o", ""] {
            assert_eq!(nearest(short, TOOLS), Vec::<&str>::new(), "{short}");
        }
        assert_eq!(nearest("sl", ["ls", "slow_search"]), ["ls"]);
        assert_eq!(nearest("a", ["b", "bc"]), Vec::<&str>::new());
        assert_eq!(nearest("complete_task", ["cp"]), Vec::<&str>::new());
        assert_eq!(nearest("nosuchthing", ["oc"]), Vec::<&str>::new());
        assert_eq!(did_you_mean(&[]), "");
        assert_eq!(did_you_mean(&["a"]), "; did you mean `a`?");
        assert_eq!(did_you_mean(&["a", "b", "c"]), "; did you mean `a`, `b` or `c`?");
    }
}
