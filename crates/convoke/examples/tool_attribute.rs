//! A tool from a function: its comments describe it, its types check it.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use convoke::prelude::*;

/// Counts how often each word occurs in a text.
#[tool(kind = think)]
async fn count_words(
    /// The text.
    text: String,
    /// How many words to return, the most frequent ones first.
    limit: Option<usize>,
) -> Result<Vec<(String, usize)>, String> {
    let mut counts = std::collections::BTreeMap::<String, usize>::new();
    for word in text.split_whitespace() {
        *counts.entry(word.to_lowercase()).or_default() += 1;
    }
    let mut sorted: Vec<_> = counts.into_iter().collect();
    sorted.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    sorted.truncate(limit.unwrap_or(3));
    if sorted.is_empty() { Err("there are no words".into()) } else { Ok(sorted) }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = Runtime::builder(std::env::temp_dir()).tool(count_words()).build()?;
    let executor = runtime.executor().build();
    let arguments = json!({ "text": "the cat and the hat and the mat", "limit": 1 });
    let result = executor.execute(ToolCall::new("1", "count_words", arguments)).await;
    assert_eq!(result.value(), Some(&json!([["the", 3]])));

    let wrong = executor.execute(ToolCall::new("2", "count_words", json!({ "txt": "?" }))).await;
    assert_eq!(wrong.error_kind(), Some(ErrorKind::Validation));
    println!("{}\n{}", result.text(), wrong.text());
    Ok(())
}
