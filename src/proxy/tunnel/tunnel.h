/* SPDX-License-Identifier: Apache-2.0 */
/* tunnel: bytes between two sockets, unread. */
#ifndef VETHGUARD_SRC_PROXY_TUNNEL_TUNNEL_H
#define VETHGUARD_SRC_PROXY_TUNNEL_TUNNEL_H

#include "proxy/dial/dial.h"

struct client;
struct tunnel;

/* Moves bytes between the client's socket and the dialed one until both directions have ended, then
 * closes the client and records the connection. What the client has sent already (its input buffer)
 * goes first. Takes the dialed socket. Returns 0, or -errno with the dialed socket closed and the
 * client still owned by the caller. *out: the tunnel, set before the client may be closed. */
int tunnel_start(struct client *client, const struct dial_result *upstream, struct tunnel **out);
/* Records the tunnel's event, once. */
void tunnel_record(struct tunnel *tunnel, enum event_cause cause, const char *detail);
/* Ends the tunnel and records why. tunnel_free() follows with the client. */
void tunnel_close(struct tunnel *tunnel, enum event_cause cause, const char *detail);
void tunnel_free(struct tunnel *tunnel);
void tunnel_on_deadline(struct loop_deadline *deadline);
void tunnel_on_doubt(struct loop_deadline *deadline);

#endif
