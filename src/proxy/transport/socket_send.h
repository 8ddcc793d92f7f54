/* SPDX-License-Identifier: Apache-2.0 */
/* What link.c (receiving, life) needs of transport/socket_send.c (sending). */
#ifndef VETHGUARD_SRC_PROXY_TRANSPORT_SOCKET_SEND_H
#define VETHGUARD_SRC_PROXY_TRANSPORT_SOCKET_SEND_H

#include "proxy/transport/socket.h"

/* Sending or receiving has failed: nothing more is read either. */
void link_break(struct link *link);
/* The shared buffer for bytes to send belongs to the link from now on: before its TLS may write. */
void link_claim_tx(struct link *link);
/* The socket takes bytes again. */
void link_drain(struct link *link);
/* Sends what all links have queued: the task at the end of a loop's turn. */
void link_on_flush(struct loop_task *flush);
/* Lets go of every shared buffer, sending nothing. */
void link_disown(struct link *link);

#endif
