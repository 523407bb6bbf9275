//! Opening sockets: no delay for small writes, and a dead peer is noticed within about twenty seconds.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use rustix::net::sockopt;
use tokio::net::TcpStream;

/// How long sent data may stay unacknowledged (RFC 5482, `TCP_USER_TIMEOUT`), in milliseconds.
const USER_TIMEOUT_MILLISECONDS: u32 = 20_000;
/// An idle connection is asked for a sign of life after this long, then twice in [`KEEPALIVE_INTERVAL`].
const KEEPALIVE_IDLE: Duration = Duration::from_secs(10);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
const KEEPALIVE_COUNT: u32 = 2;

/// Connects to one address.
pub(super) async fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let socket = TcpStream::connect(address).await?;
    tune(&socket)?;
    Ok(socket)
}

fn tune(socket: &TcpStream) -> io::Result<()> {
    // Without it a call waits up to 40 ms for the acknowledgement of the one before.
    socket.set_nodelay(true)?;
    sockopt::set_socket_keepalive(socket, true)?;
    sockopt::set_tcp_keepidle(socket, KEEPALIVE_IDLE)?;
    sockopt::set_tcp_keepintvl(socket, KEEPALIVE_INTERVAL)?;
    sockopt::set_tcp_keepcnt(socket, KEEPALIVE_COUNT)?;
    sockopt::set_tcp_user_timeout(socket, USER_TIMEOUT_MILLISECONDS)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// T19.
    #[tokio::test]
    async fn a_socket_has_no_delay_and_finds_dead_peers() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a port");
        let socket = connect(listener.local_addr().expect("an address"))
            .await
            .expect("a connection");
        assert!(sockopt::tcp_nodelay(&socket).expect("the option"));
        assert!(sockopt::socket_keepalive(&socket).expect("the option"));
        let idle = sockopt::tcp_keepidle(&socket).expect("the option");
        let interval = sockopt::tcp_keepintvl(&socket).expect("the option");
        let count = sockopt::tcp_keepcnt(&socket).expect("the option");
        // Idle or not, a peer that is gone is noticed within the same time.
        let noticed = idle + interval * count;
        assert_eq!(noticed, Duration::from_secs(20));
        assert_eq!(
            sockopt::tcp_user_timeout(&socket).expect("the option"),
            20_000
        );
    }
}
