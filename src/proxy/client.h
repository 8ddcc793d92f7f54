/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of a client know of each other: client.c (the states), peek.c (what a connection
 * is, TLS, CONNECT, tunnels), client_http1.c (requests; client_http1_answer.c: their answers),
 * client_http2.c (a connection of many streams). */
#ifndef VETHGUARD_SRC_PROXY_CLIENT_H
#define VETHGUARD_SRC_PROXY_CLIENT_H

#include <unistd.h>

#include "proxy/private.h"

/* The next bytes to be looked at: stashed ones first. LINK_OK with them, borrowed until
 * client_used(). */
enum link_status client_input(struct client *c, struct slice *input);
/* Used of those bytes are done with; the rest is stashed. False: no memory. */
bool client_used(struct client *c, struct slice input, size_t used);
/* True where the sandbox has taken bytes since this was asked last: it is slow, not dead. */
bool client_takes_bytes(struct client *c);
/* Leaves a state from outside of a handler (a tunnel took over, a dial failed). */
void client_move(struct client *c, enum client_state state);

/* Handlers of peek.c: they return the next state. */
enum client_state client_peek(struct client *c);
enum client_state client_peek_timeout(struct client *c);
enum client_state client_shake_hands(struct client *c);
enum client_state client_tls_timeout(struct client *c);
enum client_state client_dial_timeout(struct client *c);
/* c->exchange holds a CONNECT request. */
enum client_state client_connect(struct client *c);
bool client_may_only_be_refused(const struct client *c);

/* Handlers of client_http1.c. */
enum client_state client_http1_input(struct client *c);
enum client_state client_http1_timeout(struct client *c);
enum client_state client_exchange_input(struct client *c);
enum client_state client_exchange_timeout(struct client *c);
enum client_state client_exchange_over(struct client *c);

/* Handlers of client_http2.c. */
enum client_state client_http2_input(struct client *c);
enum client_state client_http2_timeout(struct client *c);
void client_http2_drained(struct client *c);
/* Ends every stream; the memory stays until client_http2_free(). */
void client_http2_close(struct client *c);
void client_http2_free(struct client *c);

#endif
