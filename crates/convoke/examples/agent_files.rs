//! Agents that were written for other tools: the files of Claude Code, Gemini CLI and `OpenCode` are read as they
//! are, and can do no more than they say.
#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "an example writes its files")]

use convoke::agent::files::{ProjectTrust, usual_directories};
use convoke::agent::outline::describe;
use convoke::prelude::*;

const FILES: [(&str, &str); 3] = [
    (
        ".claude/agents/reviewer.md",
        "---\nname: reviewer\ndescription: Reviews a change.\ntools: Read, Grep, Glob, \
         Bash(git diff:*)\n---\nYou review changes. Be brief.\n",
    ),
    (
        ".gemini/agents/explorer.md",
        "---\nname: explorer\ndescription: Finds things out.\ntools: [read_file, \
         search_file_content]\nmax_turns: 10\n---\nYou explore a codebase.\n",
    ),
    (
        ".opencode/agent/writer.md",
        "---\ndescription: Writes documentation.\nmode: subagent\ntools:\n  bash: false\n---\nYou write \
         documentation.\n",
    ),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let project = tempfile::tempdir()?;
    let root = project.path().canonicalize()?;
    for (name, text) in FILES {
        let path = root.join(name);
        std::fs::create_dir_all(path.parent().ok_or("it has no directory")?)?;
        std::fs::write(path, text)?;
    }
    // Who wrote the program trusts the folder; the command asks for `convoke config trust`.
    let directories = usual_directories(Some(&root), None, None);
    let runtime =
        Runtime::builder(&root).agent_directories(directories, ProjectTrust::Trusted).build()?;
    for loaded in &runtime.agent_files().loaded {
        let agent = runtime.find_agent(&loaded.definition.name)?;
        let tools = runtime.tools_of(&agent)?;
        let names: Vec<String> = tools.list().iter().map(|tool| tool.spec().name.clone()).collect();
        println!("{} ({})", loaded.source.place, loaded.source.format.as_str());
        println!("{}has: {}\n", describe(agent.definition()), names.join(", "));
        loaded.warnings.iter().for_each(|warning| println!("warning: {warning}"));
    }
    assert_eq!(runtime.agent_files().loaded.len(), FILES.len());
    assert_eq!(runtime.agent_warnings(), Vec::<String>::new());
    Ok(())
}
