//! The only commands that an agent may run.

use convoke_core::Permission;
use convoke_core::policy::{Rule, RuleError, RuleSpec};

/// Patterns of commands, ready to be compared with command lines.
#[derive(Clone, Debug)]
pub struct Commands {
    rules: Vec<Rule>,
}

impl Commands {
    /// Makes patterns ready.
    pub fn new<P: Into<String>>(patterns: impl IntoIterator<Item = P>) -> Result<Self, RuleError> {
        let rule = |pattern| Rule::new(RuleSpec::command(Permission::Allow, pattern), None, None);
        Ok(Self { rules: patterns.into_iter().map(rule).collect::<Result<_, _>>()? })
    }

    /// Tells whether one of the patterns covers all that a command line would run. A line that cannot be
    /// read is not covered.
    pub fn covers(&self, line: &str) -> bool {
        self.rules.iter().any(|rule| rule.holds_for(line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_patterns_name_is_covered() {
        let commands = Commands::new(["git diff *", "cargo test"]).unwrap();
        for (line, covered) in [
            ("git diff", true),
            ("git diff --stat HEAD", true),
            ("cargo test", true),
            ("cargo test --all", false),
            ("git push", false),
            ("git diff; rm -rf .", false),
            ("git diff && git diff HEAD", true),
            ("git diff $(rm x)", false),
            ("sh -c 'git diff'", true),
            ("sh -c 'git diff; rm x'", false),
            ("'unfinished", false),
            ("", false),
        ] {
            assert_eq!(commands.covers(line), covered, "{line}");
        }
        assert!(!Commands::new(Vec::<String>::new()).unwrap().covers("ls"));
        assert!(Commands::new(["a; b"]).is_err());
    }
}
