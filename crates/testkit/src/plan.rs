//! Turns a reaction into what is done on the connection, without doing it.

use std::sync::Arc;
use std::time::Duration;

use crate::event::{Event, Piece};
use crate::gzip;
use crate::reaction::{Answer, Point, Reaction, Trouble};
use crate::render::{Context, render};
use crate::response::{LAST_CHUNK, push_chunk, stream_head, whole};
use crate::wire::Wire;

/// Something to do on a connection.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Writes these bytes.
    Send(Arc<[u8]>),
    /// Lets time pass.
    Wait(Duration),
    /// Does nothing, forever.
    Hang,
    /// Closes the connection.
    Cut,
}

/// Plans the answer to a request.
pub(crate) fn plan(reaction: &Reaction, wire: Wire, context: Context<'_>) -> Vec<Step> {
    let mut steps = Vec::new();
    if !reaction.delay.is_zero() {
        steps.push(Step::Wait(reaction.delay));
    }
    match &reaction.answer {
        Answer::Reply(reply) => {
            stream(&mut steps, reaction, wire, render(wire, reply, context), context);
        }
        Answer::Prepared(prepared) => steps.push(Step::Send(prepared.bytes(wire))),
        Answer::Failure(failure) => {
            let body = failure.body(wire, context.model, reaction.retry_after).to_string();
            let headers = headers(reaction, wire == Wire::Gemini);
            let status = failure.status(wire);
            let body = encoded(reaction, body.into_bytes());
            let bytes = whole(status, "application/json", &headers, &body);
            steps.push(Step::Send(bytes.into()));
        }
        Answer::Whole { status, content_type, body } => {
            let body = encoded(reaction, body.clone());
            let bytes = whole(*status, content_type, &headers(reaction, false), &body);
            steps.push(Step::Send(bytes.into()));
        }
        Answer::Raw(bytes) => steps.extend([Step::Send(Arc::clone(bytes)), Step::Cut]),
        Answer::Silent => steps.push(Step::Hang),
        Answer::HangUp => steps.push(Step::Cut),
    }
    steps
}

/// Writes a whole answer in one piece.
pub(crate) fn stream_bytes(events: &[Event]) -> Vec<u8> {
    let mut bytes = stream_head(&[]);
    for event in events {
        push_chunk(&mut bytes, &event.to_bytes());
    }
    bytes.extend(LAST_CHUNK);
    bytes
}

fn headers(reaction: &Reaction, wait_is_in_body: bool) -> Vec<(String, String)> {
    let mut headers = reaction.headers.clone();
    if let (Some(pause), false) = (reaction.retry_after, wait_is_in_body) {
        // Whole seconds are all it can say; a shorter pause must not become none.
        let seconds = pause.as_secs() + u64::from(pause.subsec_nanos() > 0);
        headers.push(("retry-after".to_owned(), seconds.to_string()));
    }
    if reaction.is_gzip {
        headers.push(("content-encoding".to_owned(), "gzip".to_owned()));
    }
    headers
}

fn encoded(reaction: &Reaction, body: Vec<u8>) -> Vec<u8> {
    if reaction.is_gzip { gzip::encode(&[body]).concat() } else { body }
}

fn stream(
    steps: &mut Vec<Step>,
    reaction: &Reaction,
    wire: Wire,
    mut events: Vec<Event>,
    context: Context<'_>,
) {
    let mut end = None;
    match reaction.trouble {
        None => {}
        Some((point, Trouble::Cut)) => end = Some((offset(&events, point), Step::Cut)),
        Some((point, Trouble::Hang)) => end = Some((offset(&events, point), Step::Hang)),
        Some((point, Trouble::Garble)) => {
            let at = index(&events, point);
            events = events
                .into_iter()
                .enumerate()
                .map(|(nth, event)| if nth == at { event.garbled() } else { event })
                .collect();
        }
        Some((point, Trouble::Fail(failure))) => {
            events.truncate(index(&events, point));
            let sent = events.len();
            events.extend(failure.events(wire, context, sent));
        }
    }
    let mut chunks: Vec<Vec<u8>> = events.iter().map(Event::to_bytes).collect();
    if let Some((length, _)) = end {
        truncate(&mut chunks, length);
    }
    if let Some(size) = reaction.chunk {
        chunks = chunks.concat().chunks(size.max(1)).map(<[u8]>::to_vec).collect();
    }
    if reaction.is_gzip {
        chunks = gzip::encode(&chunks);
        if end.is_some() {
            // What ends the encoding is not sent by whom is cut off.
            chunks.pop();
        }
    }
    let last = end.map(|(_, step)| step);
    send_chunks(steps, stream_head(&headers(reaction, false)), &chunks, reaction.pause, last);
}

/// Sends chunks: in one write if there is no pause between them.
fn send_chunks(
    steps: &mut Vec<Step>,
    head: Vec<u8>,
    chunks: &[Vec<u8>],
    pause: Duration,
    end: Option<Step>,
) {
    let mut bytes = head;
    for (nth, chunk) in chunks.iter().enumerate() {
        if nth > 0 && !pause.is_zero() {
            steps.extend([Step::Send(bytes.into()), Step::Wait(pause)]);
            bytes = Vec::new();
        }
        push_chunk(&mut bytes, chunk);
    }
    if end.is_none() {
        bytes.extend(LAST_CHUNK);
    }
    steps.push(Step::Send(bytes.into()));
    steps.extend(end);
}

/// Returns which event a point is in, or comes before.
fn index(events: &[Event], point: Point) -> usize {
    let first = |piece| events.iter().position(|event| event.piece == piece);
    match point {
        Point::Event(count) => count.min(events.len()),
        Point::Byte(bytes) => {
            let mut end = 0;
            let after = events.iter().position(|event| {
                end += event.to_bytes().len();
                end > bytes
            });
            after.unwrap_or(events.len())
        }
        Point::InThought => first(Piece::Thought).unwrap_or(events.len()),
        Point::InText => first(Piece::Text).unwrap_or(events.len()),
        Point::InCall => first(Piece::Call).unwrap_or(events.len()),
    }
}

/// Returns how many bytes of the stream come before a point.
fn offset(events: &[Event], point: Point) -> usize {
    if let Point::Byte(bytes) = point {
        return bytes;
    }
    let index = index(events, point);
    let before: usize = events.iter().take(index).map(|event| event.to_bytes().len()).sum();
    match point {
        Point::Event(_) => before,
        _ => before + events.get(index).map_or(0, |event| event.to_bytes().len() / 2),
    }
}

fn truncate(chunks: &mut Vec<Vec<u8>>, length: usize) {
    let mut left = length;
    for chunk in chunks.iter_mut() {
        chunk.truncate(left);
        left -= chunk.len();
    }
    chunks.retain(|chunk| !chunk.is_empty());
}
