//! What a model's name tells about the requests it takes.
//!
//! A wire does not know whom it talks to, and servers that speak OpenAI's wires disagree about three
//! things. Only the name is left to decide by; it is read here and never changed:
//!
//! - **The longest answer** of a chat completion is `max_completion_tokens` at OpenAI, whose reasoning
//!   models refuse `max_tokens`. Others know `max_tokens`: Ollama ignores the new word silently,
//!   Mistral refuses it. Sending both is refused by OpenAI.
//! - **Encrypted reasoning** may be asked for only where there is some: OpenAI refuses a request that
//!   asks, say, gpt-4.1 for it.
//! - **Thoughts** go back to nobody, except that the makers of `deepseek` and `kimi` models refuse a
//!   conversation in which an answer with calls has lost its thoughts.

/// Tells whether OpenAI itself has a model of this name.
pub(in crate::wire) fn is_openai(model: &str) -> bool {
    let name = base_name(model);
    let hosted_gpt = name.starts_with("gpt-") && !name.starts_with("gpt-oss");
    hosted_gpt || name.starts_with("chatgpt-") || name.starts_with("codex-") || is_o_series(&name)
}

/// Tells whether a model of OpenAI reasons, and can hand out its reasoning encrypted.
pub(in crate::wire) fn reasons(model: &str) -> bool {
    let name = base_name(model);
    if name.starts_with("gpt-5-chat") {
        return false;
    }
    is_o_series(&name) || name.starts_with("codex-") || gpt_generation(&name) >= 5
}

/// Tells whether a model's provider insists on getting the thoughts of earlier calls back.
pub(in crate::wire) fn wants_thoughts_back(model: &str) -> bool {
    let name = base_name(model);
    name.contains("deepseek") || name.contains("kimi")
}

/// Takes off whose it is (`openai/gpt-5`) and that it was tuned (`ft:gpt-4o:…`).
fn base_name(model: &str) -> String {
    let name = model.rsplit('/').next().unwrap_or(model).to_ascii_lowercase();
    name.strip_prefix("ft:").map(str::to_owned).unwrap_or(name)
}

fn is_o_series(name: &str) -> bool {
    name.strip_prefix('o').is_some_and(|rest| rest.starts_with(|next: char| next.is_ascii_digit()))
}

/// Returns the number after `gpt-`; zero if there is none.
fn gpt_generation(name: &str) -> u32 {
    let digits = name.strip_prefix("gpt-").unwrap_or_default();
    let digits = digits.split(|next: char| !next.is_ascii_digit()).next().unwrap_or_default();
    match digits.parse() {
        // Azure's way to write 3.5.
        Ok(35) | Err(_) => 0,
        Ok(generation) => generation,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_whose_model_it_is_and_whether_it_reasons() {
        let table = [
            ("gpt-4o", true, false),
            ("gpt-4.1-mini", true, false),
            ("gpt-3.5-turbo", true, false),
            ("gpt-35-turbo", true, false),
            ("gpt-5", true, true),
            ("gpt-5.1-codex-max", true, true),
            ("openai/gpt-5.4", true, true),
            ("gpt-5-chat-latest", true, false),
            ("gpt-10", true, true),
            ("o3-mini", true, true),
            ("codex-mini-latest", true, true),
            ("chatgpt-4o-latest", true, false),
            ("ft:gpt-4o-mini:us::x", true, false),
            ("gpt-oss:20b", false, false),
            ("openai/gpt-oss-120b", false, false),
            ("qwen-max", false, false),
            ("mistral-medium", false, false),
            ("olmo-2", false, false),
            ("llama-3.3", false, false),
            ("", false, false),
        ];
        for (name, openai, thinks) in table {
            assert_eq!((is_openai(name), reasons(name)), (openai, thinks), "{name}");
        }
        assert!(wants_thoughts_back("deepseek-chat"));
        assert!(wants_thoughts_back("moonshotai/Kimi-K2.5"));
        assert!(!wants_thoughts_back("qwen-max"));
    }
}
