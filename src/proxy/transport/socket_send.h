/* SPDX-License-Identifier: Apache-2.0 */
/* What socket.c (receiving, life) needs of transport/socket_send.c (sending). */
#ifndef VETHGUARD_SRC_PROXY_TRANSPORT_SOCKET_SEND_H
#define VETHGUARD_SRC_PROXY_TRANSPORT_SOCKET_SEND_H

#include "proxy/transport/socket.h"

/* Sending or receiving has failed: nothing more is read either. */
void socket_break(struct socket *socket);
/* The shared buffer for bytes to send belongs to the socket from now on: before its TLS may write.
 */
void socket_claim_tx(struct socket *socket);
/* The socket takes bytes again. */
void socket_drain(struct socket *socket);
/* Sends what all sockets have queued: the task at the end of a loop's turn. */
void socket_on_flush(struct loop_task *flush);
/* Lets go of every shared buffer, sending nothing. */
void socket_disown(struct socket *socket);

#endif
