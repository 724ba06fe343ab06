//! One client, over the two streams of a process.

use std::io;
use std::time::Duration;

use rmcp::service::{ServerInitializeError, serve_server_with_ct};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use super::handler::{Handler, Shared};
use super::lines::{Lines, is_hang_up};
use super::service::{ServeError, Service};

/// How long what was asked for is still worked on when nothing more comes. Whoever only closed its own side, as
/// `printf … | convoke mcp serve` does, still reads; whoever hung up looks the same from here, and many end the server by
/// force two seconds later.
const ANSWERS_WITHIN: Duration = Duration::from_secs(1);

/// Serves the client behind two streams until it hangs up or `stop` is cancelled. Whatever it left
/// under way has stopped when this returns.
///
/// When nothing more comes, what is answered within a second still is, and the rest is told to stop; when nothing can be
/// written any more, all of it is told so at once.
///
/// Nothing else may be written to the stream the client reads.
pub async fn serve_stdio<R, W>(
    service: Service,
    reader: R,
    writer: W,
    stop: CancellationToken,
) -> Result<(), ServeError>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let limit = service.limits.max_message_bytes;
    // As many as there is room for, and some that have to do with them: a call may still be taken back.
    let max_requests = service.limits.max_calls.saturating_add(256);
    let ends = stop.child_token();
    let shared = Shared::new(service, ends.child_token());
    let lines = Lines::new(reader, writer, limit, max_requests);
    let (gone, unheard) = (lines.gone(), lines.unheard());
    let handler = Handler::new(shared.clone()).until(lines.gone());
    let mut serving = Box::pin(async {
        let started = serve_server_with_ct(handler, lines, ends.clone()).await;
        match started {
            Ok(running) => {
                running.waiting().await.map(drop).map_err(|error| ServeError::Io(error.into()))
            }
            Err(error) => not_begun(error),
        }
    });
    let nobody_waits = async {
        tokio::select! {
            () = unheard.cancelled() => {}
            () = long_after(&gone) => {}
        }
        ends.cancel();
    };
    let served = tokio::select! {
        biased;
        served = &mut serving => served,
        () = nobody_waits => serving.await,
    };
    shared.finish().await;
    served
}

async fn long_after(gone: &CancellationToken) {
    gone.cancelled().await;
    tokio::time::sleep(ANSWERS_WITHIN).await;
}

/// Says why nothing came of a client. One that went before it asked for anything, or before it was answered, did nothing
/// wrong; nor did a server that was stopped by then.
fn not_begun(error: ServerInitializeError) -> Result<(), ServeError> {
    let reason = match error {
        ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled => {
            return Ok(());
        }
        ServerInitializeError::TransportError { error, .. } => {
            match error.error.downcast::<io::Error>() {
                Ok(error) if is_hang_up(&error) => return Ok(()),
                Ok(error) => return Err(ServeError::Io(*error)),
                Err(other) => other.to_string(),
            }
        }
        other => other.to_string(),
    };
    Err(ServeError::Handshake { reason })
}
