//! One client, over the two streams of a process.

use rmcp::service::{ServerInitializeError, serve_server_with_ct};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use super::handler::{Handler, Shared};
use super::lines::Lines;
use super::service::{ServeError, Service};

/// Serves the client behind two streams until it hangs up or `stop` is cancelled. Whatever it left
/// under way has stopped when this returns.
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
    let shared = Shared::new(service, stop.child_token());
    let lines = Lines::new(reader, writer, limit, max_requests);
    let started = serve_server_with_ct(Handler::new(shared.clone()), lines, stop).await;
    let served = match started {
        Ok(running) => running.waiting().await.map(drop).map_err(std::io::Error::from),
        // It went before it asked for anything, or the server stopped before it did.
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => {
            Ok(())
        }
        Err(error) => return Err(ServeError::Handshake { reason: error.to_string() }),
    };
    shared.finish().await;
    Ok(served?)
}
