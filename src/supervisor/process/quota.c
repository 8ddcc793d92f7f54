/* SPDX-License-Identifier: Apache-2.0 */
/* The life of vethguard-quota. The supervisor reads nothing of the server's: all that the process
 * tells is whether the server answers, and a sentence for people. */
#include "supervisor/process/quota.h"

#include <errno.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "supervisor/config/quota_start.h"
#include "supervisor/supervisor.h"
#include "vethguard/base/log.h"

#define PROGRAM "vethguard-quota"

static uint8_t buffer[MESSAGE_BYTES_MAX];

static struct supervisor *supervisor_of(struct role *role)
{
	return container_of(role, struct supervisor, quota.role);
}

static void start(struct supervisor *sv);

/* Notes why the server cannot be asked. The log has it once. */
static void fail(struct quota_life *life, const char *why)
{
	const bool is_new = life->answers || strcmp(life->problem, why) != 0;

	life->answers = false;
	snprintf(life->problem, sizeof(life->problem), "%.480s", why);
	if (is_new)
		log_warn("the quota server %s cannot be asked: %s", life->config.host,
		        life->problem);
}

static void try_again(struct quota_life *life)
{
	loop_timer_set(&life->again, life->pause_ms);
	life->pause_ms =
	        life->pause_ms * 2 < QUOTA_PAUSE_MOST_MS ? life->pause_ms * 2 : QUOTA_PAUSE_MOST_MS;
}

static int on_says(struct quota_life *life, struct ipc_message *message)
{
	char why[MESSAGE_WHAT_MAX];
	struct message_text m;

	if (message_text_decode(&message->body, &m) < 0)
		return -EBADMSG;
	if (m.text.n) {
		fail(life, slice_escape(m.text, why, sizeof(why)));
		return 0;
	}
	life->answers = true;
	life->problem[0] = 0;
	life->pause_ms = QUOTA_PAUSE_FIRST_MS;
	log_info("the quota server %s answers", life->config.host);
	return 0;
}

static int on_message(struct role *role, struct ipc_message *message)
{
	if (message->head.type != MESSAGE_QUOTA_SAYS)
		return -EBADMSG;
	return on_says(&supervisor_of(role)->quota, message);
}

static void on_dead(struct role *role, const char *how)
{
	struct supervisor *sv = supervisor_of(role);
	struct quota_life *life = &sv->quota;
	char text[ROLE_HOW_MAX + 128];

	if (!role->stopping) {
		snprintf(text, sizeof(text), PROGRAM " %.900s. Another one is started.", how);
		log_warn("%s", text);
		outbox_finding(sv, NULL, EVENT_FINDING_ROLE_DIED, text);
		fail(life, "its process has died");
	}
	if (life->open && role->stopping)
		start(sv);
	else if (life->open)
		try_again(life);
	supervisor_stop_when_alone(sv);
}

/* Returns 0, or -errno with why. */
static int launch(struct supervisor *sv, char why[QUOTA_WHY_MAX])
{
	struct quota_life *life = &sv->quota;
	struct quota_start s;
	int fds[3], bell = quota_bell(sv), rc;
	size_t n;

	if (bell < 0) {
		snprintf(why, QUOTA_WHY_MAX, "there is no bell for workers");
		return bell;
	}
	rc = quota_start_open(&life->config, sv->leases.config_path, &sv->trusted, &s, why);
	if (rc)
		return rc;
	fds[0] = bell;
	fds[1] = s.trusted->fd;
	fds[2] = s.password;
	rc = role_start(
	        sv->loop, &life->role, PROGRAM, "vethguard-quota", sv->mounts, on_message, on_dead);
	if (!rc) {
		role_wait_for_room(&life->role, ROLE_ROOM_MS, ROLE_ROOM_ALL_MS);
		role_bound(&life->role, QUOTA_BURST, QUOTA_PER_S);
		n = message_quota_start_encode(buffer, sizeof(buffer), MESSAGE_QUOTA_START,
		        supervisor_next_id(sv), &s.message);
		if (role_send(&life->role, buffer, n, fds, s.password >= 0 ? 3 : 2) != 0)
			role_kill(&life->role, "it cannot be told what it needs");
	} else {
		snprintf(why, QUOTA_WHY_MAX, PROGRAM " cannot be started: %s", strerror(-rc));
	}
	quota_start_close(&s);
	return rc;
}

static void start(struct supervisor *sv)
{
	struct quota_life *life = &sv->quota;
	char why[QUOTA_WHY_MAX] = "";

	if (!life->open || !quota_is_configured(life) || role_runs(&life->role))
		return;
	if (launch(sv, why) == 0) {
		life->on_start(sv);
		return;
	}
	fail(life, why);
	try_again(life);
}

static void on_again(struct loop_timer *timer)
{
	start(container_of(timer, struct supervisor, quota.again));
}

void quota_open(struct supervisor *sv)
{
	struct quota_life *life = &sv->quota;

	if (life->open || sv->finishing)
		return;
	if (!life->again.event && loop_timer_open(sv->loop, &life->again, on_again) != 0) {
		log_error(PROGRAM ": no memory");
		return;
	}
	life->open = true;
	life->pause_ms = QUOTA_PAUSE_FIRST_MS;
	start(sv);
}

static bool is_same(const struct config_quota *a, const struct config_quota *b)
{
	return strcmp(a->host, b->host) == 0 && ip_equals(&a->address, &b->address) &&
	       a->port == b->port && a->tls == b->tls && a->database == b->database &&
	       strcmp(a->user, b->user) == 0 && strcmp(a->password_file, b->password_file) == 0 &&
	       a->hosts == b->hosts;
}

void quota_configure(struct supervisor *sv, const struct config_quota *config)
{
	struct quota_life *life = &sv->quota;
	const bool same = is_same(config, &life->config);

	life->config = *config;
	/* A reload also means: a renewed password, CAs, resolvers. */
	if (same && life->answers)
		return;
	life->answers = false;
	life->problem[0] = 0;
	life->pause_ms = QUOTA_PAUSE_FIRST_MS;
	if (!life->open)
		return;
	loop_timer_cancel(&life->again);
	if (role_runs(&life->role))
		role_stop(&life->role, supervisor_next_id(sv), SUPERVISOR_STOP_MS);
	else
		start(sv);
}

int quota_bell(struct supervisor *sv)
{
	struct quota_life *life = &sv->quota;

	if (life->bell < 0)
		life->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return life->bell < 0 ? -errno : life->bell;
}

void quota_tell(struct supervisor *sv, const struct message_quota_budgets *budgets, int fd)
{
	struct quota_life *life = &sv->quota;

	if (!role_runs(&life->role))
		return;
	if (role_send(&life->role, buffer,
	            message_quota_budgets_encode(buffer, sizeof(buffer), MESSAGE_QUOTA_BUDGETS,
	                    supervisor_next_id(sv), budgets),
	            &fd, 1) != 0)
		role_kill(&life->role, "it cannot be told of a budget");
}

void quota_forget(struct supervisor *sv, uint64_t memory)
{
	const struct message_quota_end m = {memory};

	if (role_runs(&sv->quota.role))
		role_send(&sv->quota.role, buffer,
		        message_quota_end_encode(buffer, sizeof(buffer), MESSAGE_QUOTA_END,
		                supervisor_next_id(sv), &m),
		        NULL, 0);
}

void quota_stop(struct supervisor *sv)
{
	sv->quota.open = false;
	loop_timer_cancel(&sv->quota.again);
	role_stop(&sv->quota.role, supervisor_next_id(sv), SUPERVISOR_STOP_MS);
}

void quota_close(struct supervisor *sv)
{
	sv->quota.open = false;
	loop_timer_close(&sv->quota.again);
	role_fini(&sv->quota.role);
	if (sv->quota.bell >= 0)
		close(sv->quota.bell);
	sv->quota.bell = -1;
}
