/* SPDX-License-Identifier: Apache-2.0 */
/* peek: functions shared by the files that find out what a connection is. Each returns the client's
 * next state. */
#ifndef VETHGUARD_SRC_PROXY_CLIENT_PEEK_H
#define VETHGUARD_SRC_PROXY_CLIENT_PEEK_H

#include "proxy/client/client.h"
#include "vethguard/wire/client_hello.h"

/* tunnel_dial.c: records the connection as denied and resets it. */
enum client_state client_refuse(struct client *c, const struct policy_decision *decision,
        enum event_cause cause, const char *detail, const struct ip *upstream);
/* tunnel_dial.c: dials the destination of a tunnel that the policy allows. */
enum client_state client_dial_tunnel(struct client *c, const struct destination *d,
        const struct policy_decision *allowed, enum tunnel_content content);
/* peek_tls.c: goes on with a connection that began with this ClientHello. */
enum client_state client_tls_hello(struct client *c, const struct client_hello *hello);
/* peek_tls.c: ends a connection that began as TLS: sends a fatal alert, unencrypted, and closes
 * once the sandbox has taken it. */
enum client_state client_refuse_hello(struct client *c, const char *detail, uint8_t description);

#endif
