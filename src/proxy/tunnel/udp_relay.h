/* SPDX-License-Identifier: Apache-2.0 */
/* udp_relay: datagrams of the sandbox to destinations that udp:// rules name, and back. */
#ifndef VETHGUARD_SRC_PROXY_TUNNEL_UDP_RELAY_H
#define VETHGUARD_SRC_PROXY_TUNNEL_UDP_RELAY_H

#include "vethguard/loop/loop.h"
#include "vethguard/policy/policy.h"
#include "vethguard/wire/event.h"

struct proxy;
struct udp_relay;

struct udp_relay *udp_relay_new(struct proxy *proxy);
void udp_relay_free(struct udp_relay *relay);
int udp_relay_serve(struct udp_relay *relay, int fd, uint16_t port);
void udp_flow_on_deadline(struct loop_deadline *deadline);
/* Step one of reauthorize.c for all flows. next NULL: end all. Returns how many will end. */
size_t udp_relay_reauthorize(struct udp_relay *relay, const struct policy *next,
        enum event_cause cause, const char *detail);
/* Step three. Flows that were refused end as well, so that their traffic is authorized anew. */
void udp_relay_end_reauthorized(struct udp_relay *relay);
/* Takes the datagrams that have arrived and no more; existing flows still get their answers. */
void udp_relay_retire(struct udp_relay *relay);
size_t udp_relay_count(const struct udp_relay *relay);

#endif
