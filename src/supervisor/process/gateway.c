/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of the gateway. When it dies, its connections end, and another one is started with the
 * same listeners: clients that connect meanwhile wait in the backlog.
 */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "vethguard/base/log.h"
#include "supervisor/process/gateway.h"
#include "supervisor/supervisor.h"

#define WHY_MAX (PATH_MAX + 256)

static uint8_t buffer[MESSAGE_BYTES_MAX];

static struct supervisor *supervisor_of(struct role *role)
{
	return container_of(role, struct supervisor, gateway.role);
}

static void tell_if_admitted(struct sandbox *s, const void *context)
{
	(void)context;
	if (s->gateway.admitted)
		gateway_tell_session(s->supervisor, s);
}

static int on_message(struct role *role, struct ipc_message *message)
{
	struct supervisor *sv = supervisor_of(role);

	switch (message->head.type) {
	case MESSAGE_GATEWAY_READY:
		if (!reader_done(&message->body) || sv->gateway.ready)
			return -EBADMSG;
		sv->gateway.ready = true;
		log_info("the gateway accepts sessions");
		return 0;
	case MESSAGE_GATEWAY_ENTER:
		return gateway_on_enter(sv, message);
	case MESSAGE_GATEWAY_TOKEN:
		return gateway_on_token(sv, message);
	case MESSAGE_GATEWAY_GUESSES:
		return gateway_on_guesses(sv, message);
	case MESSAGE_GATEWAY_HELD:
		if (!reader_done(&message->body))
			return -EBADMSG;
		sv->gateway.settled |= message->head.id == sv->gateway.hold_id;
		return 0;
	default:
		return -EBADMSG;
	}
}

/* Life. */

static void on_dead(struct role *role, const char *how)
{
	struct supervisor *sv = supervisor_of(role);
	struct gateway_life *life = &sv->gateway;
	char text[ROLE_HOW_MAX + 128];

	life->ready = false;
	if (!role->stopping) {
		snprintf(text, sizeof(text), "The gateway %.900s. Another one is started.", how);
		log_warn("%s", text);
		outbox_finding(sv, NULL, EVENT_FINDING_ROLE_DIED, text);
	}
	if (life->open)
		loop_timer_set(&life->again, role->stopping ? 0 : GATEWAY_AGAIN_MS);
	supervisor_stop_when_alone(sv);
}

static int send_start(struct supervisor *sv, const int files[GATEWAY_FILES], size_t file_count)
{
	struct gateway_life *life = &sv->gateway;
	struct message_gateway_start m = {.log_level = (uint8_t)log_level(),
	        .has_certificate = file_count > 0,
	        .client_certificates = life->config.client_certificates,
	        .unauthenticated = life->config.unauthenticated,
	        .unauthenticated_per_address = life->config.unauthenticated_per_address,
	        .handshake_ms = life->config.handshake_ms,
	        .listener_count = life->listener_count,
	        .base_count = life->config.base_count,
	        .balancer_count = life->config.balancer_count};
	int fds[GATEWAY_FILES + CONFIG_GATEWAY_LISTENERS_MAX];

	for (size_t i = 0; i < m.base_count; i++)
		m.bases[i] =
		        (struct message_gateway_base){slice_from_string(life->config.bases[i].name),
		                slice_from_string(life->config.bases[i].authority),
		                life->config.bases[i].https};
	memcpy(m.balancers, life->config.balancers, sizeof(m.balancers));
	memcpy(fds, files, file_count * sizeof(*fds));
	for (size_t i = 0; i < life->listener_count; i++) {
		m.listener_kind[i] = life->config.listeners[i].kind;
		fds[file_count + i] = life->listeners[i];
	}
	return role_send(&life->role, buffer,
	        message_gateway_start_encode(
	                buffer, sizeof(buffer), MESSAGE_GATEWAY_START, supervisor_next_id(sv), &m),
	        fds, file_count + life->listener_count);
}

static int start_role(struct supervisor *sv, const int files[GATEWAY_FILES], size_t file_count)
{
	struct gateway_life *life = &sv->gateway;
	int rc = role_start(sv->loop, &life->role, "vethguard-gateway", "the gateway", sv->mounts,
	        on_message, on_dead);

	if (rc)
		return rc;
	role_wait_for_room(&life->role, ROLE_ROOM_MS, ROLE_ROOM_ALL_MS);
	role_bound(&life->role, GATEWAY_BURST, GATEWAY_PER_S);
	role_take_descriptors(&life->role, MESSAGE_GATEWAY_ENTER);
	life->starts++;
	rc = send_start(sv, files, file_count);
	if (!rc)
		gateway_signers_send(sv);
	if (!rc)
		supervisor_for_each(sv, tell_if_admitted, NULL);
	/* The gateway is told of all sessions before it accepts, because it refuses a session that
	 * it does not know. */
	if (!rc && !life->held)
		gateway_hold(sv, false);
	if (!rc)
		return 0;
	role_kill(&life->role, "it cannot be told what it needs"); /* another one will be started */
	return 0;
}

/* Returns 0, or -errno with why. */
static int start(struct supervisor *sv, char *why, size_t why_size)
{
	struct gateway_life *life = &sv->gateway;
	int files[GATEWAY_FILES], rc = gateway_listen(life, why, why_size);
	size_t count = 0;

	if (!rc)
		rc = gateway_files_open(&life->config, files, &count, why, why_size);
	if (rc)
		return rc;
	if (count)
		gateway_files_changed(life, files);
	rc = start_role(sv, files, count);
	while (count)
		close(files[--count]);
	if (rc)
		snprintf(why, why_size, "it cannot be started: %s", strerror(-rc));
	return rc;
}

static void start_or_wait(struct supervisor *sv)
{
	struct gateway_life *life = &sv->gateway;
	char why[WHY_MAX] = "";

	if (!life->open || role_runs(&life->role) || !life->config.listener_count)
		return;
	if (start(sv, why, sizeof(why)) == 0) {
		life->quiet = false;
		loop_timer_set(&life->look, GATEWAY_LOOK_MS);
		return;
	}
	if (!life->quiet)
		log_error("the gateway: %s; this is tried again every %d s", why,
		        GATEWAY_AGAIN_MS / 1000);
	life->quiet = true;
	loop_timer_set(&life->again, GATEWAY_AGAIN_MS);
}

static void on_again(struct loop_timer *timer)
{
	start_or_wait(container_of(timer, struct supervisor, gateway.again));
}

/* Looks whether the certificate's files have changed: operators' tools usually renew them as other
 * files with the same names. */
static void on_look(struct loop_timer *timer)
{
	struct supervisor *sv = container_of(timer, struct supervisor, gateway.look);
	struct gateway_life *life = &sv->gateway;
	char why[WHY_MAX];
	int fds[GATEWAY_FILES];
	size_t count;

	if (!role_runs(&life->role))
		return;
	loop_timer_set(&life->look, GATEWAY_LOOK_MS);
	if (gateway_signers_look(sv, false))
		gateway_signers_send(sv);
	if (gateway_files_open(&life->config, fds, &count, why, sizeof(why)) != 0 || !count)
		return; /* the files are being renewed right now: the earlier certificate stays */
	if (gateway_files_changed(life, fds))
		role_send(&life->role, buffer,
		        message_empty(buffer, sizeof(buffer), MESSAGE_GATEWAY_CERTIFICATE, 0), fds,
		        count);
	while (count)
		close(fds[--count]);
}

void gateway_open(struct supervisor *sv)
{
	struct gateway_life *life = &sv->gateway;

	if (life->open || sv->finishing)
		return;
	if (!life->again.event && (loop_timer_open(sv->loop, &life->again, on_again) != 0 ||
	                                  loop_timer_open(sv->loop, &life->look, on_look) != 0)) {
		log_error("the gateway: no memory");
		return;
	}
	life->open = true;
	rate_init(&life->findings, GATEWAY_FINDINGS_PER_S, GATEWAY_FINDINGS_BURST_S,
	        loop_now_ms(sv->loop));
	if (gateway_signers_configure(sv) != 0)
		log_error("the gateway: no memory for its signers");
	if (!life->config.listener_count)
		gateway_unlisten(life); /* listeners that were inherited */
	start_or_wait(sv);
}

static bool is_same(const struct config_gateway *a, const struct config_gateway *b)
{
	bool same = a->listener_count == b->listener_count &&
	            strcmp(a->certificate, b->certificate) == 0 && strcmp(a->key, b->key) == 0 &&
	            strcmp(a->name, b->name) == 0 && a->unauthenticated == b->unauthenticated &&
	            a->unauthenticated_per_address == b->unauthenticated_per_address &&
	            a->handshake_ms == b->handshake_ms &&
	            a->client_certificates == b->client_certificates &&
	            a->base_count == b->base_count && a->balancer_count == b->balancer_count;

	for (size_t i = 0; same && i < a->listener_count; i++)
		same = ip_equals(&a->listeners[i].address, &b->listeners[i].address) &&
		       a->listeners[i].port == b->listeners[i].port &&
		       a->listeners[i].kind == b->listeners[i].kind;
	for (size_t i = 0; same && i < a->balancer_count; i++)
		same = ip_equals(&a->balancers[i].base, &b->balancers[i].base) &&
		       a->balancers[i].bits == b->balancers[i].bits;
	for (size_t i = 0; same && i < a->base_count; i++)
		same = strcmp(a->bases[i].name, b->bases[i].name) == 0 &&
		       strcmp(a->bases[i].authority, b->bases[i].authority) == 0 &&
		       a->bases[i].https == b->bases[i].https;
	return same;
}

/* Takes the signers of the configuration. The gateway goes on. */
static void change_signers(struct supervisor *sv, const struct config_gateway *config)
{
	struct gateway_life *life = &sv->gateway;
	struct config_gateway copy;

	if (config_signers_equal(config, &life->config))
		return;
	if (config_gateway_copy(&copy, config) != 0) {
		log_error("the gateway: no memory for its signers");
		return;
	}
	config_gateway_fini(&life->config);
	life->config.signers = copy.signers;
	life->config.signer_count = copy.signer_count;
	if (!life->open)
		return; /* gateway_open() reads the keys */
	gateway_signers_configure(sv);
	gateway_signers_send(sv);
}

void gateway_configure(struct supervisor *sv, const struct config_gateway *config)
{
	struct gateway_life *life = &sv->gateway;
	struct config_gateway own = *config;

	change_signers(sv, config);
	if (life->open && gateway_signers_look(sv, true))
		gateway_signers_send(sv);
	life->config.keep_worker_ms = config->keep_worker_ms; /* from the next look on */
	life->config.udp_first = config->udp_first;           /* from the next association on */
	life->config.udp_last = config->udp_last;
	life->config.udp_address4 = config->udp_address4;
	life->config.udp_address6 = config->udp_address6;
	if (is_same(config, &life->config))
		return;
	/* Listeners that the next configuration also has stay open. */
	memcpy(life->inherited, life->listeners, sizeof(life->inherited));
	life->inherited_count = life->listener_count;
	life->listener_count = 0;
	own.signers = life->config.signers;
	own.signer_count = life->config.signer_count;
	life->config = own;
	life->quiet = false;
	if (!config->listener_count)
		gateway_unlisten(life);
	if (role_runs(&life->role))
		role_stop(&life->role, supervisor_next_id(sv), SUPERVISOR_STOP_MS);
	else
		start_or_wait(sv);
}

static void say(struct supervisor *sv, enum message_type type, uint64_t id)
{
	if (role_runs(&sv->gateway.role))
		role_send(&sv->gateway.role, buffer,
		        message_empty(buffer, sizeof(buffer), type, id), NULL, 0);
}

void gateway_hold(struct supervisor *sv, bool held)
{
	struct gateway_life *life = &sv->gateway;

	life->held = held;
	if (!held) {
		say(sv, MESSAGE_GATEWAY_RESUME, 0);
		return;
	}
	life->hold_id = supervisor_next_id(sv);
	life->settled = false;
	life->settled_by_ms = loop_now_ms(sv->loop) + GATEWAY_SETTLE_MS;
	say(sv, MESSAGE_GATEWAY_HOLD, life->hold_id);
}

bool gateway_is_settled(const struct supervisor *sv)
{
	const struct gateway_life *life = &sv->gateway;

	return life->held && (life->settled || !role_runs(&life->role) ||
	                             loop_now_ms(sv->loop) >= life->settled_by_ms);
}

size_t gateway_listeners(const struct supervisor *sv, int fds[CONFIG_GATEWAY_LISTENERS_MAX])
{
	memcpy(fds, sv->gateway.listeners, sv->gateway.listener_count * sizeof(*fds));
	return sv->gateway.listener_count;
}

void gateway_inherit(struct supervisor *sv, const int *fds, size_t count)
{
	memcpy(sv->gateway.inherited, fds, count * sizeof(*fds));
	sv->gateway.inherited_count = count;
}

void gateway_give_up(struct supervisor *sv)
{
	sv->gateway.open = false;
	gateway_unlisten(&sv->gateway);
}

void gateway_stop(struct supervisor *sv)
{
	sv->gateway.open = false;
	role_stop(&sv->gateway.role, supervisor_next_id(sv), SUPERVISOR_STOP_MS);
}

void gateway_close(struct supervisor *sv)
{
	sv->gateway.open = false;
	loop_timer_close(&sv->gateway.again);
	loop_timer_close(&sv->gateway.look);
	gateway_unlisten(&sv->gateway);
	gateway_signers_free(sv);
	config_gateway_fini(&sv->gateway.config);
	role_fini(&sv->gateway.role);
}
