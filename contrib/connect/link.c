/* SPDX-License-Identifier: Apache-2.0 */
/* A link's states, and its bytes in both directions. See link.h. */
#include <event2/buffer.h>
#include <event2/bufferevent_ssl.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "link.h"
#include "vethguard/base/log.h"

#define UNSENT_MAX (256u << 10) /* unsent bytes to one side at which the other is not read */
#define UNSENT_FEW (64u << 10)  /* ... and at which it is read again */
#define LINGER_S 2

static const char *const state_names[] = {
        [LINK_FIRST] = "FIRST",
        [LINK_GREETING] = "GREETING",
        [LINK_REQUEST] = "REQUEST",
        [LINK_HEAD] = "HEAD",
        [LINK_BODY] = "BODY",
        [LINK_ASKED] = "ASKED",
        [LINK_TUNNEL] = "TUNNEL",
        [LINK_ASSOCIATING] = "ASSOCIATING",
        [LINK_ASSOCIATED] = "ASSOCIATED",
        [LINK_REFUSED] = "REFUSED",
        [LINK_CLOSED] = "CLOSED",
};
_Static_assert(
        sizeof(state_names) / sizeof(state_names[0]) == LINK_STATE_COUNT, "a name per state");

void link_enter(struct link *l, enum link_state state)
{
	log_debug("link %p: %s -> %s", (void *)l, state_names[l->state], state_names[state]);
	l->state = state;
}

void link_free(struct link *l)
{
	link_enter(l, LINK_CLOSED);
	list_remove(&l->place);
	l->connect->link_count--;
	near_udp_free(l->udp);
	if (l->again)
		event_free(l->again);
	if (l->waiting)
		evbuffer_free(l->waiting);
	if (l->far)
		bufferevent_free(l->far);
	if (l->near)
		bufferevent_free(l->near);
	free(l);
}

static void on_lingered(struct bufferevent *near, short what, void *context)
{
	(void)near, (void)what;
	link_free(context);
}

static void on_lingering(struct bufferevent *near, void *context)
{
	struct evbuffer *in = bufferevent_get_input(near);

	(void)context;
	evbuffer_drain(in, evbuffer_get_length(in));
}

/* Discards what the program still sends, so that no reset overtakes the last bytes to it. */
static void on_last_sent(struct bufferevent *near, void *context)
{
	static const struct timeval soon = {.tv_sec = LINGER_S};

	shutdown(bufferevent_getfd(near), SHUT_WR);
	bufferevent_setcb(near, on_lingering, NULL, on_lingered, context);
	bufferevent_set_timeouts(near, &soon, NULL);
	on_lingering(near, context);
	bufferevent_enable(near, EV_READ);
}

void link_finish(struct link *l)
{
	link_enter(l, LINK_REFUSED);
	if (l->again)
		event_del(l->again); /* the gateway is not tried any more */
	if (l->far)
		bufferevent_free(l->far);
	l->far = NULL;
	bufferevent_disable(l->near, EV_READ);
	bufferevent_setwatermark(l->near, EV_WRITE, 0, 0);
	bufferevent_setcb(l->near, NULL, on_last_sent, on_lingered, l);
	if (!evbuffer_get_length(bufferevent_get_output(l->near)))
		on_last_sent(l->near, l);
}

static void on_near_read(struct bufferevent *near, void *context)
{
	struct link *l = context;

	near_read(l);
	(void)near;
}

static void on_near_event(struct bufferevent *near, short what, void *context)
{
	struct link *l = context;

	(void)near;
	if (!(what & BEV_EVENT_EOF) || !l->far || l->far_over) {
		link_free(l);
		return;
	}
	l->near_over = true;
	far_put(l, NULL, 0);
}

/* The program has taken enough: reads from the gateway again. */
static void on_near_sent(struct bufferevent *near, void *context)
{
	struct link *l = context;

	(void)near;
	if (l->far && !l->waiting)
		bufferevent_enable(l->far, EV_READ);
}

/* Asks the gateway for a tunnel to where a connection went that the kernel has redirected. Returns
 * false if it was not redirected. */
static bool ask_redirected(struct link *l, int fd)
{
	char host[GATEWAY_NAME_MAX + 3], destination[sizeof(host) + sizeof(":65535")];
	struct ip address;
	uint16_t port;

	if (!redirect_destination(fd, &address, &port))
		return false;
	l->speaks = NEAR_REDIRECTED;
	if (names_of(l->connect, &address, host, sizeof(host))) {
		snprintf(destination, sizeof(destination), "%s:%u", host, port);
		far_ask(l, destination);
	} else {
		near_fail(l, "the address no longer stands for a name: look the name up again");
	}
	return true;
}

void link_open(struct connect *c, int fd)
{
	struct link *l = c->link_count < LINKS_MAX ? calloc(1, sizeof(*l)) : NULL;

	if (l)
		l->near = bufferevent_socket_new(c->base, fd, BEV_OPT_CLOSE_ON_FREE);
	if (!l || !l->near) {
		free(l);
		close(fd);
		return;
	}
	l->connect = c;
	list_append(&c->links, &l->place);
	c->link_count++;
	bufferevent_setcb(l->near, on_near_read, on_near_sent, on_near_event, l);
	bufferevent_setwatermark(l->near, EV_WRITE, UNSENT_FEW, 0);
	if (!c->arguments.redirect || !ask_redirected(l, fd))
		bufferevent_enable(l->near, EV_READ | EV_WRITE);
}

void link_pass(struct bufferevent *from, struct bufferevent *to)
{
	struct evbuffer *out = bufferevent_get_output(to);

	evbuffer_add_buffer(out, bufferevent_get_input(from));
	if (evbuffer_get_length(out) > UNSENT_MAX)
		bufferevent_disable(from, EV_READ);
}

void links_close(struct connect *c)
{
	while (!list_is_empty(&c->links))
		link_free(container_of(c->links.next, struct link, place));
}
