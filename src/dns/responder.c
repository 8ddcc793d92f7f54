/* SPDX-License-Identifier: Apache-2.0 */
/* The responder as a whole: made, held, finished, freed. answer.c answers a query; responder_udp.c
 * and responder_tcp.c bring them. */
#include <stdlib.h>

#include "dns/private.h"

struct responder *responder_new(const struct responder_config *config)
{
	struct responder *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->config = *config;
	if (config->loop) {
		r->refused_timer_open = loop_timer_open(config->loop, &r->refused_timer,
		                                responder_on_refused_time) == 0;
		if (!r->refused_timer_open ||
		        loop_timer_open(config->loop, &r->pause, responder_udp_on_pause_over) < 0) {
			responder_free(r);
			return NULL;
		}
	}
	return r;
}

void responder_free(struct responder *r)
{
	if (!r)
		return;
	responder_udp_free_all(r);
	responder_tcp_free_all(r);
	if (r->refused_timer_open)
		loop_timer_close(&r->refused_timer);
	loop_timer_close(&r->pause);
	free(r);
}

void responder_hold(struct responder *r, bool hold)
{
	if (r->held == hold)
		return;
	r->held = hold;
	if (hold) /* readers check this before each query */
		return;
	responder_udp_go_on(r);
	responder_tcp_go_on(r);
}

void responder_finish(struct responder *r)
{
	if (r)
		responder_udp_serve_rest(r);
	responder_free(r);
}
