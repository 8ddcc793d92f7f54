/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control socket, which the service manager has passed, an earlier daemon hands over, or this
 * one opens; what the control API asks of the daemon itself; and the audit event of each call.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>

#include "vethguard/base/log.h"
#include "vethguard/ipc/service.h"
#include "supervisor/daemon/daemon_state.h"

#define STATUS_CREATED 201 /* RFC 9110 section 15.3.2 */
#define ATTACHED_TEXT_MAX 512

static void on_called(struct control_owner *owner, const struct control_record *record)
{
	struct daemon *d = container_of(owner, struct daemon, control_owner);
	struct attachment *a = attachments_find(&d->attachments, record->sandbox);
	char done[ATTACHED_TEXT_MAX] = "";
	const struct outbox_call call = {.operation = record->operation,
	        .method = record->method[0] ? record->method : NULL,
	        .target = record->target[0] ? record->target : NULL,
	        .user_id = record->peer.uid,
	        .process_id = (uint32_t)record->peer.pid,
	        .sandbox = record->sandbox,
	        .looks = record->looks,
	        .status = (uint16_t)record->status,
	        .error = record->detail[0] ? record->detail : NULL,
	        .done = done};

	if (a && record->status == STATUS_CREATED)
		attach_record_describe(&a->record, done, sizeof(done));
	outbox_api(&d->supervisor, a && !a->detaching ? a->sandbox : NULL, &call);
}

static void on_upgrade_asked(struct control_owner *owner, upgrade_done done, void *context)
{
	upgrade_begin(container_of(owner, struct daemon, control_owner), done, context);
}

static int on_roles_asked(struct control_owner *owner, roles_told told, void *context)
{
	struct daemon *d = container_of(owner, struct daemon, control_owner);

	return confinement_ask(&d->supervisor, 0, told, context);
}

static int on_head_asked(struct control_owner *owner, head_told told, void *context)
{
	struct daemon *d = container_of(owner, struct daemon, control_owner);

	return head_ask(&d->supervisor, told, context);
}

static const struct message_keeper_ca *on_ca_asked(struct control_owner *owner)
{
	return ca_view(&container_of(owner, struct daemon, control_owner)->supervisor);
}

/* Without a time of its own, an overlap is the configuration's. */
static int on_ca_change(struct control_owner *owner, const struct message_keeper_ca_ask *ask,
        ca_told told, void *context)
{
	struct supervisor *sv = &container_of(owner, struct daemon, control_owner)->supervisor;
	struct message_keeper_ca_ask copy = *ask;

	if (!copy.overlap_s)
		copy.overlap_s = sv->ca_life.config.overlap_s;
	return ca_ask(sv, &copy, told, context);
}

static const char *socket_path(const struct daemon *d, char out[PATH_MAX])
{
	if (d->options->socket)
		return d->options->socket;
	snprintf(out, PATH_MAX, "%s/%s", d->state, DAEMON_SOCKET);
	return out;
}

void daemon_take_passed_socket(struct daemon *d)
{
	char buffer[PATH_MAX];
	const char *path = socket_path(d, buffer), *why = NULL;

	if (unix_listener_inherit(&d->listener, path, control_group(), &why) == -EINVAL)
		die(STATUS_FAILED,
		        "the service manager has passed something else than the control socket, "
		        "%s: %s",
		        path, why);
}

static int listen_for_calls(struct daemon *d)
{
	char path[PATH_MAX];

	if (d->takeover.listener >= 0)
		return unix_listener_adopt(
		        &d->listener, d->takeover.listener, d->takeover.listener_ours);
	if (d->listener.fd >= 0)
		return 0;
	return unix_listener_open(&d->listener, socket_path(d, path), control_group());
}

static int open_control(struct daemon *d)
{
	int rc = listen_for_calls(d);

	d->takeover.listener = -1;
	if (rc)
		return rc;
	d->control_owner = (struct control_owner){.called = on_called,
	        .upgrade = on_upgrade_asked,
	        .head = on_head_asked,
	        .roles = on_roles_asked,
	        .ca = on_ca_asked,
	        .change_ca = on_ca_change};
	d->control = control_new(
	        d->loop, d->listener.fd, &d->attachments, &d->control_owner, control_group());
	return d->control ? 0 : -ENOMEM;
}

void daemon_tell_ready(struct daemon *d)
{
	service_ready("%zu sandboxes", attachments_count(&d->attachments));
}

void daemon_answer(struct daemon *d)
{
	int rc = d->control ? 0 : open_control(d);
	char path[PATH_MAX];

	if (rc) {
		log_error("the control socket %s cannot be opened: %s", socket_path(d, path),
		        strerror(-rc));
		daemon_stop(d, STATUS_FAILED);
		return;
	}
	if (d->attachments.recovering)
		return;
	d->ready = true;
	log_info("ready");
	if (service_watchdog_ms())
		loop_timer_set(&d->watchdog, service_watchdog_ms());
	daemon_tell_ready(d);
}
