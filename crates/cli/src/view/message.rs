//! What the person said, as it stands in a conversation.

use super::line::Line;
use super::look::{Look, Sign};
use crate::output::{Stream, Style, columns, harmless, wrap};

/// Returns a message of the person as it stands in the conversation.
pub(crate) fn message(text: &str, stream: &Stream) -> Vec<String> {
    let sign = Look::of(stream).sign(Sign::Person);
    let room = stream.width_now().map(|width| width.saturating_sub(columns(sign) + 2));
    let mut lines = wrap(&harmless(text.trim()), room).into_iter();
    let first = Line::default()
        .styled(Style::Place, format!("{sign} "))
        .plain(lines.next().unwrap_or_default())
        .paint(stream);
    let margin = " ".repeat(columns(sign) + 1);
    std::iter::once(first).chain(lines.map(|line| format!("{margin}{line}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_shown_whole() {
        let stream = Stream::on_terminal(14).without_colour();
        assert_eq!(message("say it in\nfull please", &stream), ["› say it in", "  full please"]);
    }
}
