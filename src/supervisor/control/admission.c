/* SPDX-License-Identifier: Apache-2.0 */
/* A peer is judged by its credentials, which the kernel gives at the connection, before any byte is
 * read. */
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "vethguard/base/log.h"
#include "supervisor/attach/process.h"
#include "supervisor/control/admission.h"

#define STATUS_FORBIDDEN 403 /* RFC 9110 section 15.5.4 */

static void tell(struct admission *a, const struct http_peer *peer, const char *detail)
{
	const struct control_record record = {.peer = *peer,
	        .operation = "connect",
	        .method = "",
	        .target = "",
	        .sandbox = "",
	        .looks = true,
	        .status = STATUS_FORBIDDEN,
	        .detail = detail};

	log_warn("uid %u (pid %d) may not use the control socket and was refused: %s",
	        (unsigned)peer->uid, (int)peer->pid, detail);
	a->owner->called(a->owner, &record);
}

static void tell_the_others(struct admission *a)
{
	char text[CONTROL_DETAIL_MAX];
	unsigned count = a->untold;

	if (count == 0)
		return;
	a->untold = 0;
	snprintf(text, sizeof(text), "%u connections; the last of them: %s", count, a->why);
	tell(a, &a->last, text);
}

static void on_time(struct loop_timer *timer)
{
	tell_the_others(container_of(timer, struct admission, timer));
}

static void refuse(struct admission *a, const struct http_peer *peer, const char *why)
{
	if (a->untold == 0 && rate_take(&a->rate, loop_now_ms(a->timer.loop))) {
		tell(a, peer, why);
		return;
	}
	if (a->untold++ == 0)
		loop_timer_set(&a->timer, ADMISSION_TELL_MS);
	a->last = *peer;
	a->last.groups = NULL;
	a->last.group_count = 0;
	a->why = why;
}

static bool has_ended(const struct http_peer *peer)
{
	struct pollfd end = {.fd = peer->pidfd, .events = POLLIN};

	return peer->pidfd == HTTP_PEER_ENDED || (peer->pidfd >= 0 && poll(&end, 1, 0) > 0);
}

static const char *objection(const struct admission *a, const struct http_peer *peer)
{
	if (peer->uid != 0 && peer->uid != geteuid() &&
	        (a->group == (gid_t)-1 || !http_peer_in_group(peer, a->group)))
		return "only root and members of the group " CONTROL_GROUP
		       " may use the control socket";
	if (peer->pidfd != HTTP_PEER_ENDED &&
	        attach_process_is_in_own_netns(peer->pid, peer->pidfd))
		return NULL;
	if (has_ended(peer)) /* most likely the adapter of an engine, which was killed */
		return "the process has ended: nobody can tell any more whether it was in a "
		       "sandbox";
	return "only processes in the daemon's own network namespace may use the control socket: "
	       "no sandbox ever is in that one";
}

const char *admission_objection(struct admission *a, const struct http_peer *peer)
{
	const char *why = objection(a, peer);

	if (why)
		refuse(a, peer, why);
	return why;
}

int admission_open(struct admission *a, struct loop *loop, struct control_owner *owner, gid_t group)
{
	*a = (struct admission){.owner = owner, .group = group};
	rate_init(&a->rate, ADMISSION_PER_S, ADMISSION_BURST_S, loop_now_ms(loop));
	return loop_timer_open(loop, &a->timer, on_time);
}

void admission_close(struct admission *a)
{
	tell_the_others(a);
	loop_timer_close(&a->timer);
}
