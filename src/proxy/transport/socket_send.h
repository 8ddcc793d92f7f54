/* SPDX-License-Identifier: Apache-2.0 */
/* What socket.c (receiving, life) needs of socket_send.c (sending). */
#ifndef VETHGUARD_SRC_PROXY_TRANSPORT_SOCKET_SEND_H
#define VETHGUARD_SRC_PROXY_TRANSPORT_SOCKET_SEND_H

#include "proxy/transport/socket.h"

/* Sending or receiving has failed: the socket is not read either from now on. */
void socket_break(struct socket *socket);
/* Makes the socket the owner of the shared buffer for bytes to send. Call this before its TLS may
 * write. */
void socket_claim_tx(struct socket *socket);
/* Sends the end of the outer TLS, if there is one, at once. */
void socket_end_outer(struct socket *socket);
/* The socket takes bytes again. */
void socket_drain(struct socket *socket);
/* The task at the end of a loop's turn: sends what all sockets have queued. */
void socket_on_flush(struct loop_task *flush);
/* Lets go of every shared buffer without sending. */
void socket_disown(struct socket *socket);

#endif
