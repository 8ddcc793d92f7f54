/* SPDX-License-Identifier: Apache-2.0 */
/* The old daemon's side of an upgrade (upgrade.h). */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vethguard/base/linux.h"
#include "vethguard/base/log.h"
#include "vethguard/ipc/service.h"
#include "vethguard/jail/spawn.h"
#include "supervisor/daemon/daemon_state.h"
#include "supervisor/events/generations.h"
#include "supervisor/recover/recover.h"

#define ARGUMENTS_MAX 16
#define QUIET_LOOK_MS 20

static uint8_t buffer[MESSAGE_BYTES_MAX];

static struct daemon *daemon_of(struct upgrade *u)
{
	return container_of(u, struct daemon, upgrade);
}

static const char *const state_names[] = {
        [UPGRADE_NONE] = "NONE",
        [UPGRADE_STARTING] = "STARTING",
        [UPGRADE_QUIETING] = "QUIETING",
        [UPGRADE_HOLDING] = "HOLDING",
        [UPGRADE_GIVEN] = "GIVEN",
};
_Static_assert(
        sizeof(state_names) / sizeof(state_names[0]) == UPGRADE_STATE_COUNT, "a name per state");

/* Sets the state; nothing else does. */
static void enter(struct upgrade *u, enum upgrade_state state)
{
	if (u->state != state)
		log_debug("upgrade to process %d: %s -> %s", (int)u->pid, state_names[u->state],
		        state_names[state]);
	u->state = state;
}

static void say(struct upgrade *u, enum message_upgrade_step step, uint64_t id, const char *text,
        const int *fds, size_t fd_count)
{
	const struct message_upgrade m = {(uint8_t)step, slice_from_string(text)};
	size_t n = message_upgrade_encode(buffer, sizeof(buffer), MESSAGE_UPGRADE, id, &m);

	/* A failure ends the connection, and on_end() follows. */
	ipc_send(&u->peer, buffer, n, fds, fd_count);
}

static void answer(struct upgrade *u, const char *error)
{
	upgrade_done done = u->done;
	void *context = u->context;

	u->done = NULL;
	if (done)
		done(context, error, error ? 0 : u->pid);
}

/* Kills the new daemon; on_exit_ready() continues. */
static void fail(struct upgrade *u, const char *why)
{
	if (!u->why[0])
		snprintf(u->why, sizeof(u->why), "%s", why);
	pidfd_send_signal(u->pidfd, SIGKILL, NULL, 0);
}

/* Restores everything as it was. */
static void take_back(struct daemon *d)
{
	struct upgrade *u = &d->upgrade;
	bool held = u->state == UPGRADE_HOLDING;
	uint64_t set;
	int last = journal_generation_last(d->state_directory, &set);

	if (last >= 0)
		close(last);
	if (last >= 0 && set > d->set)
		journal_generation_adopt(&d->supervisor, d->state_directory, set);
	enter(u, UPGRADE_NONE);
	if (d->supervisor.gateway.held)
		gateway_hold(&d->supervisor, false);
	if (!held)
		return;
	attachments_release(&d->attachments);
	if (d->control && control_hold(d->control, false) != 0)
		log_error("the control socket cannot be listened on again");
}

static void close_all(struct upgrade *u)
{
	ipc_peer_close(&u->peer);
	loop_io_close(&u->exit);
	loop_timer_close(&u->patience);
	close(u->pidfd);
	u->pid = 0;
}

static void on_exit_ready(struct loop_io *io, unsigned events)
{
	struct upgrade *u = container_of(io, struct upgrade, exit);
	siginfo_t end = {0};

	(void)events;
	if (waitid(P_PIDFD, (id_t)u->pidfd, &end, WEXITED | WNOHANG) < 0 || end.si_pid == 0)
		return;
	close_all(u);
	if (u->state == UPGRADE_GIVEN) {
		log_warn("the daemon that took over has ended, so this one ends too");
		attachments_end_given(&daemon_of(u)->attachments);
		return;
	}
	if (!u->why[0])
		snprintf(u->why, sizeof(u->why), "it %s %d",
		        end.si_code == CLD_EXITED ? "exited with status" : "died by signal",
		        end.si_status);
	log_error("the new vethguardd has not taken over: %s; this one goes on", u->why);
	take_back(daemon_of(u));
	answer(u, u->why);
}

/* Holds everything, and gives the new daemon what it waits for. */
static void hold(struct daemon *d)
{
	struct upgrade *u = &d->upgrade;
	int fds[2 + CONFIG_GATEWAY_LISTENERS_MAX] = {d->lock, d->listener.fd};
	size_t count = 2;
	char service[SERVICE_DESCRIPTION_MAX], text[SERVICE_DESCRIPTION_MAX + 8];

	enter(u, UPGRADE_HOLDING);
	control_hold(d->control, true);
	attachments_hold(&d->attachments);
	count += gateway_listeners(&d->supervisor, fds + count);
	service_describe(service);
	snprintf(text, sizeof(text), "%c%s", d->listener.ours ? 'o' : '-', service);
	say(u, MESSAGE_UPGRADE_GIVE, takeover_is_open(&d->takeover) ? d->takeover.drains + 1 : 1,
	        text, fds, count);
	loop_timer_set(&u->patience, UPGRADE_START_MS);
}

static void hold_when_quiet(struct daemon *d)
{
	struct upgrade *u = &d->upgrade;

	if (d->control && attachments_are_quiet(&d->attachments) &&
	        gateway_is_settled(&d->supervisor))
		hold(d);
	else if (loop_now_ms(d->loop) >= u->quiet_until_ms)
		fail(u, "operations on sandboxes are under way for too long");
	else
		loop_timer_set(&u->patience, QUIET_LOOK_MS);
}

static void on_patience_over(struct loop_timer *timer)
{
	struct upgrade *u = container_of(timer, struct upgrade, patience);

	if (u->state == UPGRADE_GIVEN) {
		log_warn("connections from before the upgrade are cut: their time is over");
		attachments_end_given(&daemon_of(u)->attachments);
	} else if (u->state == UPGRADE_QUIETING) {
		hold_when_quiet(daemon_of(u));
	} else {
		fail(u, "it did not serve in time");
	}
}

static void give_sandbox(struct upgrade *u, uint64_t id)
{
	const struct sandbox *s = supervisor_find(&daemon_of(u)->supervisor, id);
	const int *only = !s ? NULL : s->listen ? &s->gate.entrance : &s->gate.packets;
	bool exists = only && *only >= 0;

	say(u, MESSAGE_UPGRADE_SANDBOX, id, "", exists ? only : NULL, exists);
}

static void sandbox_is_served(struct upgrade *u, uint64_t id)
{
	struct sandbox *s = supervisor_find(&daemon_of(u)->supervisor, id);

	loop_timer_set(&u->patience, UPGRADE_START_MS); /* progress: many sandboxes take long */
	if (s)
		sandbox_event(s, SANDBOX_HAND_OFF);
}

static void note_failure(struct upgrade *u, uint64_t id, struct slice text)
{
	const struct sandbox *s = supervisor_find(&daemon_of(u)->supervisor, id);
	char shown[UPGRADE_TEXT_MAX / 2];

	if (s && s->state != SANDBOX_CLOSED && !u->why[0])
		snprintf(u->why, sizeof(u->why), "it cannot serve %s: %s", s->name,
		        slice_escape(text, shown, sizeof(shown)));
}

/* The last message. */
static void give(struct daemon *d)
{
	struct upgrade *u = &d->upgrade;

	enter(u, UPGRADE_GIVEN);
	service_main_pid(u->pid);
	service_close();
	loop_timer_cancel(&d->watchdog);
	say(u, MESSAGE_UPGRADE_YOURS, 0, "", NULL, 0);
	unix_listener_give(&d->listener);
	gateway_give_up(&d->supervisor);
	quota_stop(&d->supervisor);
	log_warn("vethguardd %d has taken over; this one finishes what is under way", (int)u->pid);
	answer(u, NULL);
	loop_timer_set(&u->patience, UPGRADE_DRAIN_MS);
	attachments_give_up(&d->attachments);
}

static bool all_served(struct upgrade *u)
{
	const struct attachment *a;

	for (a = daemon_of(u)->attachments.by_name; a; a = a->hh.next) {
		if (!a->sandbox || a->sandbox->state == SANDBOX_HANDED_OFF ||
		        a->sandbox->state == SANDBOX_CLOSED)
			continue;
		if (!u->why[0])
			snprintf(u->why, sizeof(u->why), "it does not serve %s", a->record.name);
		return false;
	}
	return true;
}

static void on_done(struct upgrade *u)
{
	if (all_served(u))
		give(daemon_of(u));
	else
		fail(u, "");
}

static void on_hello(struct upgrade *u)
{
	enter(u, UPGRADE_QUIETING);
	u->quiet_until_ms = loop_now_ms(daemon_of(u)->loop) + UPGRADE_QUIET_MS;
	gateway_hold(&daemon_of(u)->supervisor, true);
	hold_when_quiet(daemon_of(u));
}

static int after_the_last_word(struct daemon *d, const struct message_upgrade *m)
{
	if (m->step == MESSAGE_UPGRADE_END)
		attachments_end_given(&d->attachments);
	else if (m->step == MESSAGE_UPGRADE_REOPEN)
		raise(SIGHUP);
	else
		return -EBADMSG;
	return 0;
}

/* Messages between GIVE and YOURS. */
static int before_the_last_word(struct upgrade *u, uint64_t id, const struct message_upgrade *m)
{
	if (m->step == MESSAGE_UPGRADE_WANT)
		give_sandbox(u, id);
	else if (m->step == MESSAGE_UPGRADE_SERVES)
		sandbox_is_served(u, id);
	else if (m->step == MESSAGE_UPGRADE_FAILS)
		note_failure(u, id, m->text);
	else if (m->step == MESSAGE_UPGRADE_DONE)
		on_done(u);
	else
		return -EBADMSG;
	return 0;
}

static int on_message(struct ipc_peer *peer, struct ipc_message *message)
{
	struct upgrade *u = container_of(peer, struct upgrade, peer);
	struct message_upgrade m;

	if (message->head.type != MESSAGE_UPGRADE ||
	        message_upgrade_decode(&message->body, &m) != 0)
		return -EBADMSG;
	if (u->state == UPGRADE_GIVEN)
		return after_the_last_word(daemon_of(u), &m);
	if (u->state == UPGRADE_HOLDING)
		return before_the_last_word(u, message->head.id, &m);
	if (m.step != MESSAGE_UPGRADE_HELLO || u->state != UPGRADE_STARTING)
		return -EBADMSG;
	on_hello(u);
	return 0;
}

static void on_end(struct ipc_peer *peer, int error)
{
	struct upgrade *u = container_of(peer, struct upgrade, peer);

	if (u->state == UPGRADE_GIVEN)
		attachments_end_given(&daemon_of(u)->attachments);
	else if (error)
		fail(u, "it broke the protocol between two daemons");
}

/* The same options as this daemon's. */
static void arguments(const struct daemon *d, const char *take_over, char *argv[ARGUMENTS_MAX])
{
	const struct daemon_options *o = d->options;
	const char *const pairs[][2] = {
	        {"--config", d->attachments.config_path[0] ? d->attachments.config_path : NULL},
	        {"--state", o->state}, {"--data", o->data}, {"--socket", o->socket},
	        {"--audit", o->audit}, {"--take-over", take_over}};
	size_t n = 0;

	argv[n++] = (char *)(uintptr_t) "vethguardd";
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
		if (pairs[i][1]) {
			argv[n++] = (char *)(uintptr_t)pairs[i][0];
			argv[n++] = (char *)(uintptr_t)pairs[i][1];
		}
	if (o->verbose)
		argv[n++] = (char *)(uintptr_t)(o->verbose > 1 ? "-vv" : "-v");
	argv[n] = NULL;
}

static int start(struct daemon *d)
{
	struct upgrade *u = &d->upgrade;
	char take_over[48], *argv[ARGUMENTS_MAX];
	int pair[2], error = ipc_pair(pair);
	pid_t pid;

	if (error)
		return error;
	snprintf(take_over, sizeof(take_over), "%" PRIu64 ".%" PRIu64, d->supervisor.last_id >> 32,
	        d->set);
	arguments(d, take_over, argv);
	pid = spawn_program("vethguardd", argv, pair[1], -1, -1, &u->pidfd);
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return pid;
	}
	u->pid = pid;
	enter(u, UPGRADE_STARTING);
	error = ipc_peer_open(d->loop, &u->peer, pair[0], "the new vethguardd", on_message, on_end);
	if (!error)
		error = loop_timer_open(d->loop, &u->patience, on_patience_over);
	if (!error)
		error = loop_io_open_level(d->loop, &u->exit, u->pidfd, LOOP_READ, on_exit_ready);
	if (!error) {
		loop_timer_set(&u->patience, UPGRADE_START_MS);
		return 0;
	}
	upgrade_close(d);
	return error;
}

static const char *objection(const struct daemon *d)
{
	if (d->upgrade.state == UPGRADE_GIVEN)
		return "another daemon has taken over already";
	if (d->upgrade.state != UPGRADE_NONE)
		return "an upgrade is under way";
	if (d->attachments.stopping || takeover_is_active(&d->takeover) || !d->control)
		return "this daemon does not serve";
	if (d->attachments.recovering)
		return ATTACH_RECOVERING;
	if (takeover_is_open(&d->takeover) && d->takeover.drains >= UPGRADE_DRAINING_MAX)
		return "connections from before earlier upgrades are still under way: too many";
	return NULL;
}

void upgrade_begin(struct daemon *d, upgrade_done done, void *context)
{
	struct upgrade *u = &d->upgrade;
	const char *why = objection(d);
	int rc;

	if (why) {
		log_warn("no upgrade: %s", why);
		done(context, why, 0);
		return;
	}
	*u = (struct upgrade){.done = done, .context = context, .pidfd = -1};
	rc = start(d);
	if (!rc)
		return;
	log_error("the installed vethguardd cannot be started: %s", strerror(-rc));
	answer(u, "the installed vethguardd cannot be started");
}

bool upgrade_stop(struct daemon *d)
{
	struct upgrade *u = &d->upgrade;

	if (u->state == UPGRADE_GIVEN) {
		attachments_end_given(&d->attachments);
		return true;
	}
	upgrade_close(d);
	answer(u, "this daemon was told to stop");
	return false;
}

void upgrade_close(struct daemon *d)
{
	struct upgrade *u = &d->upgrade;

	if (!u->pid)
		return;
	if (u->state != UPGRADE_GIVEN) {
		pidfd_send_signal(u->pidfd, SIGKILL, NULL, 0);
		waitid(P_PIDFD, (id_t)u->pidfd, &(siginfo_t){0}, WEXITED);
		enter(u, UPGRADE_NONE);
	}
	close_all(u);
}
