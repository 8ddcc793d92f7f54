/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a role has two signs, in any order: its socket closes, its pidfd becomes readable. The
 * pidfd decides: only then has the process exited for certain and its status is known. A socket
 * that closes unasked means that the role can no longer be talked to: it is killed, so that the
 * pidfd follows.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vethguard/base/clock.h"
#include "vethguard/base/linux.h"
#include "vethguard/base/log.h"
#include "vethguard/jail/spawn.h"
#include "supervisor/process/role.h"

static void close_watch(struct role *role)
{
	ipc_peer_close(&role->peer);
	loop_io_close(&role->exit);
	loop_timer_close(&role->patience);
	stderr_log_close(&role->text);
	if (role->pidfd >= 0)
		close(role->pidfd);
	role->pidfd = -1;
	role->pid = 0;
}

static void send_kill(struct role *role)
{
	if (role->pidfd >= 0 && pidfd_send_signal(role->pidfd, SIGKILL, NULL, 0) < 0 &&
	        errno != ESRCH)
		log_error("cannot kill %s: %s", role->label, strerror(errno));
}

void role_kill(struct role *role, const char *why)
{
	if (!role_runs(role))
		return;
	if (!role->last_words[0])
		snprintf(role->last_words, sizeof(role->last_words), "%s", why);
	role->killed = true;
	send_kill(role);
}

void role_give_up(struct role *role, int error, const char *why)
{
	if (error == -EPIPE)
		send_kill(role);
	else
		role_kill(role, why);
}

static void describe_end(const struct role *role, const siginfo_t *end, char how[ROLE_HOW_MAX])
{
	int n;

	if (role->killed)
		n = snprintf(how, ROLE_HOW_MAX, "was killed");
	else if (end->si_code == CLD_EXITED)
		n = snprintf(how, ROLE_HOW_MAX, "exited (status %d)", end->si_status);
	else
		n = snprintf(how, ROLE_HOW_MAX, "died (signal %d)", end->si_status);
	if (role->last_words[0] && n > 0)
		snprintf(how + n, ROLE_HOW_MAX - (size_t)n, ": %.900s", role->last_words);
}

static void on_exit_ready(struct loop_io *io, unsigned events)
{
	struct role *role = container_of(io, struct role, exit);
	siginfo_t end = {0};
	char how[ROLE_HOW_MAX];

	(void)events;
	if (waitid(P_PIDFD, (id_t)role->pidfd, &end, WEXITED | WNOHANG) < 0 || end.si_pid == 0)
		return;
	ipc_peer_drain(&role->peer); /* its last words */
	describe_end(role, &end, how);
	close_watch(role);
	role->on_dead(role, how);
}

/* Text of a less privileged program; it may go to a terminal. */
static int take_last_words(struct role *role, struct ipc_message *message)
{
	struct message_text m;
	int rc = message_text_decode(&message->body, &m);

	if (rc)
		return rc;
	slice_escape(m.text, role->last_words, sizeof(role->last_words));
	if (role->on_failed)
		role->on_failed(role, message->head.id);
	return 0;
}

/* Ignores an answer to an earlier question, which nothing waits for any more. */
static int take_description(struct role *role, struct ipc_message *message)
{
	struct message_text m;

	if (role->descriptions == 0 || message->head.id > role->describe_id ||
	        message_text_decode(&message->body, &m) != 0)
		return -EBADMSG;
	role->descriptions--;
	if (message->head.id == role->describe_id)
		role->on_description(role, m.text);
	return 0;
}

void role_take_descriptors(struct role *role, enum message_type type)
{
	role->with_descriptor = type;
	ipc_peer_may_lose(&role->peer);
}

void role_bound(struct role *role, unsigned burst, unsigned per_s)
{
	role->burst = burst;
	role->per_s = per_s;
	role->credit = (int64_t)burst * 1000;
	role->credit_ms = loop_now_ms(role->exit.loop);
}

/* Returns false if the role has exceeded its message rate. */
static bool pay(struct role *role)
{
	int64_t now_ms = loop_now_ms(role->exit.loop);

	if (role->burst == 0)
		return true;
	role->credit += (now_ms - role->credit_ms) * role->per_s;
	if (role->credit > (int64_t)role->burst * 1000)
		role->credit = (int64_t)role->burst * 1000;
	role->credit_ms = now_ms;
	role->credit -= 1000;
	return role->credit >= 0;
}

/* No role may send a descriptor, unless role_take_descriptors() permits it. */
static bool may_come_with(const struct role *role, const struct ipc_message *message)
{
	if (message->lost)
		return role->with_descriptor && message->head.type == role->with_descriptor;
	return message->fd_count == 0 || (message->fd_count == 1 && role->with_descriptor &&
	                                         message->head.type == role->with_descriptor);
}

static int on_message(struct ipc_peer *peer, struct ipc_message *message)
{
	struct role *role = container_of(peer, struct role, peer);

	if (!may_come_with(role, message))
		return -EBADMSG;
	if (!pay(role))
		return -EDQUOT;
	if (message->head.type == MESSAGE_FAILED)
		return take_last_words(role, message);
	if (message->head.type == MESSAGE_DESCRIPTION)
		return take_description(role, message);
	if (message->head.type == MESSAGE_STOPPED)
		return role->stopping ? 0 : -EBADMSG;
	return role->on_message(role, message);
}

static void on_end(struct ipc_peer *peer, int error)
{
	struct role *role = container_of(peer, struct role, peer);

	/* The real reason replaces the role's own words. */
	if (error == -EBADMSG || error == -EDQUOT)
		role->last_words[0] = '\0';
	if (error == -EBADMSG)
		role_kill(role, "it broke the protocol");
	else if (error == -EDQUOT)
		role_kill(role, "it sent too many messages");
	else if (error && error != -ECONNRESET && error != -EPIPE)
		role_kill(role, strerror(-error));
	else if (!role->stopping)
		send_kill(role); /* usually it is exiting, and its own status tells how */
}

static void on_patience_over(struct loop_timer *timer)
{
	role_kill(container_of(timer, struct role, patience), "it did not stop when asked to");
}

static int watch(struct loop *loop, struct role *role, int socket)
{
	int rc = ipc_peer_open(loop, &role->peer, socket, role->label, on_message, on_end);

	if (!rc)
		rc = loop_timer_open(loop, &role->patience, on_patience_over);
	if (!rc)
		rc = loop_io_open_level(loop, &role->exit, role->pidfd, LOOP_READ, on_exit_ready);
	return rc;
}

int role_start(struct loop *loop, struct role *role, const char *program, const char *label,
        int mounts, int (*message)(struct role *role, struct ipc_message *message),
        void (*dead)(struct role *role, const char *how))
{
	char name[64];
	char debug[] = LOG_DEBUG_ARGUMENT;
	char *argv[] = {name, log_level() >= LOG_LEVEL_DEBUG ? debug : NULL, NULL};
	int ends[2];

	memset(role, 0, sizeof(*role));
	role->pidfd = -1;
	role->text.fd = -1;
	role->on_message = message;
	role->on_dead = dead;
	snprintf(role->label, sizeof(role->label), "%s", label);
	snprintf(name, sizeof(name), "%s", program);
	int rc = ipc_pair(ends);
	if (rc)
		return rc;
	int errors = stderr_log_open(loop, &role->text, program);
	pid_t pid = errors < 0
	                    ? errors
	                    : spawn_program(program, argv, ends[1], errors, mounts, &role->pidfd);
	close(ends[1]);
	if (errors >= 0)
		close(errors);
	if (pid < 0) {
		char why[512];

		spawn_explain(program, pid, geteuid(), why, sizeof(why));
		log_error("%s", why);
		close(ends[0]);
		stderr_log_close(&role->text);
		role->pidfd = -1;
		return pid;
	}
	role->pid = pid;
	rc = watch(loop, role, ends[0]);
	if (rc)
		role_fini(role);
	return rc;
}

void role_wait_for_room(struct role *role, int room_ms, int all_ms)
{
	role->room_ms = room_ms;
	role->room_all_ms = role->room_left_ms = all_ms;
	role->room_at_ms = clock_monotonic_ms();
}

/* The queue may still be full afterwards: then ipc_send() returns the error. */
static void wait_for_room(struct role *role)
{
	const int64_t began_ms = clock_monotonic_ms();
	int64_t left_ms = role->room_left_ms + (began_ms - role->room_at_ms) / ROLE_ROOM_BACK;

	if (left_ms > role->room_all_ms)
		left_ms = role->room_all_ms;
	ipc_peer_flush(&role->peer, left_ms < role->room_ms ? (int)left_ms : role->room_ms);
	role->room_at_ms = clock_monotonic_ms();
	left_ms -= role->room_at_ms - began_ms;
	role->room_left_ms = left_ms > 0 ? left_ms : 0;
}

int role_send(
        struct role *role, const uint8_t *message, size_t size, const int *fds, size_t fd_count)
{
	if (role->room_ms && !ipc_peer_has_room(&role->peer, size, fd_count))
		wait_for_room(role);
	return ipc_send(&role->peer, message, size, fds, fd_count);
}

int role_send_secret(
        struct role *role, uint8_t *message, size_t size, const int *fds, size_t fd_count)
{
	if (role->room_ms && !ipc_peer_has_room(&role->peer, size, fd_count))
		wait_for_room(role);
	return ipc_send_secret(&role->peer, message, size, fds, fd_count);
}

void role_ask(struct role *role, uint64_t id, void (*told)(struct role *role, struct slice text))
{
	uint8_t message[32];

	role->describe_id = id;
	role->descriptions++;
	role->on_description = told;
	role_send(role, message, message_empty(message, sizeof(message), MESSAGE_DESCRIBE, id),
	        NULL, 0);
}

void role_take_last_words(struct role *role, char out[ROLE_HOW_MAX])
{
	memcpy(out, role->last_words, ROLE_HOW_MAX);
	role->last_words[0] = 0;
}

void role_expect_end(struct role *role, bool expected)
{
	role->stopping = expected;
}

void role_stop(struct role *role, uint64_t id, int64_t patience_ms)
{
	uint8_t message[32];

	if (!role_runs(role) || role->stopping)
		return;
	role->stopping = true;
	role_send(
	        role, message, message_empty(message, sizeof(message), MESSAGE_STOP, id), NULL, 0);
	loop_timer_set(&role->patience, patience_ms);
}

void role_fini(struct role *role)
{
	if (!role_runs(role))
		return;
	send_kill(role);
	waitid(P_PIDFD, (id_t)role->pidfd, &(siginfo_t){0}, WEXITED);
	close_watch(role);
}
