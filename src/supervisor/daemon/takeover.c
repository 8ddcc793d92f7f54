/* SPDX-License-Identifier: Apache-2.0 */
/* The new daemon's side of an upgrade (upgrade.h). Any error here ends this process, and the old
 * daemon goes on. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "vethguard/base/log.h"
#include "vethguard/ipc/service.h"
#include "supervisor/daemon/daemon_state.h"
#include "supervisor/events/generations.h"
#include "supervisor/recover/recover.h"

#define ANSWER_MS 10000
#define FDS_GIVEN 2 /* descriptors that precede the gateway's listeners */

static uint8_t buffer[MESSAGE_BYTES_MAX];

static const char *const state_names[] = {
        [TAKEOVER_NONE] = "NONE",
        [TAKEOVER_STARTING] = "STARTING",
        [TAKEOVER_ASKED] = "ASKED",
        [TAKEOVER_SERVING] = "SERVING",
        [TAKEOVER_SERVED] = "SERVED",
        [TAKEOVER_DRAINING] = "DRAINING",
        [TAKEOVER_COMPLETED] = "COMPLETED",
};
_Static_assert(
        sizeof(state_names) / sizeof(state_names[0]) == TAKEOVER_STATE_COUNT, "a name per state");

/* Sets the state; nothing else does. */
static void enter(struct takeover *t, enum takeover_state state)
{
	log_debug("takeover: %s -> %s", state_names[t->state], state_names[state]);
	t->state = state;
}

static size_t encode(enum message_upgrade_step step, uint64_t id, const char *text)
{
	const struct message_upgrade m = {(uint8_t)step, slice_from_string(text)};

	return message_upgrade_encode(buffer, sizeof(buffer), MESSAGE_UPGRADE, id, &m);
}

static void say(struct takeover *t, enum message_upgrade_step step, uint64_t id, const char *text)
{
	ipc_send(&t->peer, buffer, encode(step, id, text), NULL, 0);
}

void takeover_open(struct daemon *d, const char *arg)
{
	struct takeover *t = &d->takeover;
	uint64_t epoch;

	if (sscanf(arg, "%" SCNu64 ".%" SCNu64, &epoch, &t->former) != 2 || epoch > UINT32_MAX - 1)
		die(STATUS_FAILED, "--take-over is for a vethguardd that starts another one");
	recording_begin_after(&d->supervisor.recording, (uint32_t)epoch);
	enter(t, TAKEOVER_STARTING);
}

/* Reports the result of each sandbox once. Returns false if some results are not known yet. */
static bool tell_all(struct daemon *d)
{
	struct attachment *a, *next;
	bool all = true;

	HASH_ITER(hh, d->attachments.by_name, a, next)
	{
		const struct sandbox *s = a->sandbox;

		if (a->told || a->detaching)
			continue;
		if (!attachment_report(a))
			all = false;
		else if (s && (s->state == SANDBOX_SERVING || s->state == SANDBOX_ASLEEP))
			say(&d->takeover, MESSAGE_UPGRADE_SERVES, a->record.id, "");
		else
			say(&d->takeover, MESSAGE_UPGRADE_FAILS, a->record.id,
			        s ? s->failure : a->trouble);
	}
	return all;
}

static void on_changed(struct attachments *all)
{
	struct daemon *d = container_of(all, struct daemon, attachments);

	if (d->takeover.state != TAKEOVER_SERVING || !tell_all(d) || all->recovering)
		return;
	enter(&d->takeover, TAKEOVER_SERVED);
	say(&d->takeover, MESSAGE_UPGRADE_DONE, 0, "");
}

/* Blocks until the answer: nothing else is to be done, and the old daemon sends nothing else. */
static void take(struct attachments *all, uint64_t id, int *packets)
{
	struct daemon *d = container_of(all, struct daemon, attachments);
	int fd = d->takeover.peer.io.fd;
	static uint8_t received[MESSAGE_BYTES_MAX];
	struct ipc_message message;
	struct message_upgrade m;
	int rc = ipc_send_blocking(fd, buffer, encode(MESSAGE_UPGRADE_WANT, id, ""), NULL, 0);

	if (!rc)
		rc = ipc_receive_blocking(fd, ANSWER_MS, received, &message);
	if (!rc && (message.head.type != MESSAGE_UPGRADE || message.head.id != id ||
	                   message_upgrade_decode(&message.body, &m) != 0 ||
	                   m.step != MESSAGE_UPGRADE_SANDBOX || message.fd_count > 2))
		rc = -EBADMSG;
	if (rc)
		die(STATUS_FAILED,
		        "the daemon that is to be replaced does not hand over a sandbox: %s",
		        strerror(-rc));
	*packets = message.fd_count > 0 ? message.fds[0] : -1;
	/* Names from an earlier version's daemon: this one has them in a file. */
	if (message.fd_count > 1)
		close(message.fds[1]);
}

/* What can exist only once has come: the rest is as at any start. */
static int on_give(
        struct daemon *d, struct ipc_message *message, const struct message_upgrade *given)
{
	struct takeover *t = &d->takeover;

	if (t->state != TAKEOVER_ASKED || message->fd_count < FDS_GIVEN ||
	        message->fd_count > FDS_GIVEN + CONFIG_GATEWAY_LISTENERS_MAX || given->text.n < 1 ||
	        given->text.n >= sizeof(t->service))
		return -EBADMSG;
	d->lock = message->fds[0];
	t->listener = message->fds[1];
	gateway_inherit(&d->supervisor, message->fds + FDS_GIVEN, message->fd_count - FDS_GIVEN);
	for (size_t i = 0; i < message->fd_count; i++)
		message->fds[i] = -1;
	t->drains = message->head.id;
	t->listener_ours = given->text.p[0] == 'o';
	snprintf(t->service, sizeof(t->service), "%.*s", (int)given->text.n - 1,
	        (const char *)given->text.p + 1);
	d->attachments.take = take;
	d->attachments.on_changed = on_changed;
	enter(t, TAKEOVER_SERVING);
	daemon_serve(d);
	return 0;
}

static int on_yours(struct daemon *d)
{
	struct takeover *t = &d->takeover;

	if (t->state != TAKEOVER_SERVED)
		return -EBADMSG;
	enter(t, TAKEOVER_DRAINING);
	d->attachments.take = NULL;
	d->attachments.on_changed = NULL;
	service_adopt(t->service);
	gateway_open(&d->supervisor);
	quota_open(&d->supervisor);
	bundles_poll(&d->attachments);
	daemon_answer(d);
	return 0;
}

static int on_message(struct ipc_peer *peer, struct ipc_message *message)
{
	struct daemon *d = container_of(peer, struct daemon, takeover.peer);
	struct message_upgrade m;

	if (!takeover_is_active(&d->takeover) || message->head.type != MESSAGE_UPGRADE ||
	        message_upgrade_decode(&message->body, &m) != 0)
		return -EBADMSG;
	if (m.step == MESSAGE_UPGRADE_GIVE)
		return on_give(d, message, &m);
	return m.step == MESSAGE_UPGRADE_YOURS ? on_yours(d) : -EBADMSG;
}

static void on_end(struct ipc_peer *peer, int error)
{
	struct daemon *d = container_of(peer, struct daemon, takeover.peer);

	(void)error;
	if (takeover_is_active(&d->takeover))
		die(STATUS_FAILED, "the daemon that was to be replaced is gone");
	enter(&d->takeover, TAKEOVER_COMPLETED);
	log_info("what was under way before the upgrade is over");
	journal_generation_adopt(&d->supervisor, d->state_directory, d->takeover.former);
	daemon_finish_when_alone(d);
}

void takeover_begin(struct daemon *d)
{
	struct takeover *t = &d->takeover;
	int rc;

	if (t->state != TAKEOVER_STARTING)
		return;
	rc = ipc_peer_open(
	        d->loop, &t->peer, IPC_SUPERVISOR_FD, "the vethguardd before", on_message, on_end);
	if (rc)
		die(STATUS_FAILED, "descriptor %d: %s", IPC_SUPERVISOR_FD, strerror(-rc));
	enter(t, TAKEOVER_ASKED);
	say(t, MESSAGE_UPGRADE_HELLO, d->set, "");
}

void takeover_stop(struct daemon *d)
{
	if (takeover_is_active(&d->takeover))
		die(STATUS_FAILED, "stopped before it had taken over");
	if (takeover_is_open(&d->takeover))
		say(&d->takeover, MESSAGE_UPGRADE_END, 0, "");
}

void takeover_reopen(struct daemon *d)
{
	if (takeover_is_open(&d->takeover))
		say(&d->takeover, MESSAGE_UPGRADE_REOPEN, 0, "");
}

void takeover_close(struct daemon *d)
{
	if (takeover_is_open(&d->takeover))
		ipc_peer_close(&d->takeover.peer);
	if (d->takeover.listener >= 0)
		close(d->takeover.listener);
}
