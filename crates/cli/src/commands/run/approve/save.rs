//! Keeps a rule for all runs to come.
//!
//! Saved rules have a file of their own beside the user's configuration, so that nothing a person wrote is
//! ever changed. It is a configuration file like any other: `policy check` names its lines, and a rule that
//! is not wanted any more is a line to delete.

use std::io::{self, Write};
use std::path::Path;

use convoke_core::policy::RuleSpec;

use crate::files;

const HEAD: &str =
    "# Rules that were saved when somebody was asked. Delete a line to be asked again.
policy:
  rules:
";

/// Adds rules to the file.
pub(crate) fn save(path: &Path, rules: &[RuleSpec]) -> io::Result<()> {
    let mut text = String::new();
    if files::read_if_there(path)?.is_none_or(|text| text.trim().is_empty()) {
        text.push_str(HEAD);
    }
    for rule in rules {
        // JSON is YAML, and leaves nothing open.
        text.push_str(&format!("    - {}\n", serde_json::to_string(rule)?));
    }
    files::append_private(path)?.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use convoke::config::{Sources, load};
    use convoke_core::Permission;

    use super::*;

    #[test]
    fn saved_rules_come_after_those_of_the_user() {
        let directory = tempfile::tempdir().unwrap();
        let (own, saved) =
            (directory.path().join("convoke.yml"), directory.path().join("d/rules.yml"));
        let rule = |pattern: &str| RuleSpec::command(Permission::Allow, pattern);
        save(&saved, &[rule("cargo test *")]).unwrap();
        save(&saved, &[rule("say \"hi\": #no *"), RuleSpec::tool(Permission::Allow, "t")]).unwrap();
        let mut sources = Sources::new(directory.path());
        sources.project_directory = None;
        sources.user_file = Some(own.clone());
        sources.rules_file = Some(saved.clone());
        let expected = [
            rule("cargo test *"),
            rule("say \"hi\": #no *"),
            RuleSpec::tool(Permission::Allow, "t"),
        ];
        assert_eq!(load(&sources).unwrap().config.policy.rules, expected);

        files::write(&own, "policy:\n  rules:\n    - {effect: deny, command: rm *}\n").unwrap();
        let rules = load(&sources).unwrap().config.policy.rules;
        assert_eq!(rules[0], RuleSpec::command(Permission::Deny, "rm *"));
        assert_eq!(rules[1..], expected);
        files::write(&own, "tools:\n  timeout: 5s\n").unwrap();
        assert_eq!(load(&sources).unwrap().config.policy.rules, expected);
    }
}
