/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The PIN never passes through the supervisor: the token process reads it from a descriptor, which
 * is the file, or the pipe of a program that has ended successfully. Everything that the token
 * process tells is a text for people.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "vethguard/base/log.h"
#include "supervisor/daemon/ca_files.h"
#include "supervisor/supervisor.h"

#define PROGRAM "vethguard-token"

static uint8_t buffer[MESSAGE_BYTES_MAX];

static bool is_of_ca(const struct token_process *t)
{
	return !t->config.label[0];
}

/* The token's state has changed: checks the CA again, or tells the keeper. */
static void tell_change(struct token_process *t)
{
	if (is_of_ca(t))
		ca_check_soon(t->supervisor);
	else
		token_process_meet_keeper(t);
}

static const char *const state_names[] = {
        [TOKEN_NONE] = "NONE",
        [TOKEN_PIN] = "PIN",
        [TOKEN_STARTING] = "STARTING",
        [TOKEN_READY] = "READY",
        [TOKEN_PAUSED] = "PAUSED",
        [TOKEN_REFUSED] = "REFUSED",
};
_Static_assert(
        sizeof(state_names) / sizeof(state_names[0]) == TOKEN_REFUSED + 1, "a name per state");

static void enter(struct token_process *t, enum token_state state)
{
	log_debug("the token's process: %s -> %s", state_names[t->state], state_names[state]);
	t->state = state;
}

static void start(struct token_process *t);

/* Handles a failure in PIN, STARTING or READY. */
static void failed(struct token_process *t, const char *why)
{
	const bool again = !t->gave_pin;

	snprintf(t->problem, sizeof(t->problem), "%.480s", why);
	log_error("%s%s: %s%s",
	        is_of_ca(t) ? "certificates of sandboxes: ca.token"
	                    : "keys of client certificates: token ",
	        t->config.label, t->problem,
	        again ? "" : " (nothing is tried again before 'vethguard reload')");
	if (t->state == TOKEN_READY &&
	        loop_now_ms(t->supervisor->loop) - t->ready_ms > TOKEN_PAUSE_MOST_MS)
		t->pause_ms = TOKEN_PAUSE_FIRST_MS;
	loop_timer_cancel(&t->timer);
	enter(t, again ? TOKEN_PAUSED : TOKEN_REFUSED);
	if (again) {
		loop_timer_set(&t->timer, t->pause_ms);
		t->pause_ms = t->pause_ms * 2 < TOKEN_PAUSE_MOST_MS ? t->pause_ms * 2
		                                                    : TOKEN_PAUSE_MOST_MS;
	}
	tell_change(t);
}

static void on_dead(struct role *role, const char *how)
{
	struct token_process *t = container_of(role, struct token_process, role);
	char why[ROLE_HOW_MAX + 64];

	if (t->state != TOKEN_STARTING && t->state != TOKEN_READY)
		return;
	if (role->last_words[0])
		snprintf(why, sizeof(why), "%s", role->last_words);
	else
		snprintf(why, sizeof(why), PROGRAM " %s", how);
	failed(t, why);
}

/* Tells the keeper about the token before it asks the keeper about the CA. */
static int on_ready(struct token_process *t, struct ipc_message *message)
{
	struct message_text m;
	char text[256];

	if (t->state != TOKEN_STARTING || message_text_decode(&message->body, &m) < 0)
		return -EBADMSG;
	log_info("%s: %s", is_of_ca(t) ? "the CA's key is found" : "logged in to a token",
	        slice_escape(m.text, text, sizeof(text)));
	loop_timer_cancel(&t->timer);
	t->gave_pin = false;
	t->problem[0] = 0;
	enter(t, TOKEN_READY);
	t->ready_ms = loop_now_ms(t->supervisor->loop);
	token_process_meet_keeper(t);
	if (is_of_ca(t))
		ca_check_soon(t->supervisor);
	return 0;
}

static int on_message(struct role *role, struct ipc_message *message)
{
	struct token_process *t = container_of(role, struct token_process, role);

	switch (message->head.type) {
	case MESSAGE_TOKEN_LOGIN:
		if (t->state != TOKEN_STARTING || !reader_done(&message->body))
			return -EBADMSG;
		t->gave_pin = true;
		return 0;
	case MESSAGE_TOKEN_READY:
		return on_ready(t, message);
	default:
		return -EBADMSG;
	}
}

static size_t put_texts(const struct config_texts *from, struct slice *out)
{
	for (size_t i = 0; i < from->count; i++)
		out[i] = slice_from_string(config_token_text(from, i));
	return from->count;
}

/* pin: a descriptor, which is closed. */
static void launch(struct token_process *t, int pin)
{
	struct message_token_start m = {.uri = slice_from_string(t->config.uri),
	        .module = slice_from_string(t->config.module),
	        .user = slice_from_string(t->config.user)};
	char why[128];
	size_t n;
	int rc;

	m.variable_count = put_texts(&t->config.environment, m.variables);
	m.writable_count = put_texts(&t->config.writable, m.writable);
	enter(t, TOKEN_STARTING);
	rc = role_start(t->supervisor->loop, &t->role, PROGRAM, "the token's process", -1,
	        on_message, on_dead);
	if (!rc) {
		role_bound(&t->role, 16, 4);
		n = message_token_start_encode(buffer, sizeof(buffer), MESSAGE_TOKEN_START,
		        supervisor_next_id(t->supervisor), &m);
		rc = role_send(&t->role, buffer, n, &pin, 1);
	}
	close(pin);
	if (!rc) {
		loop_timer_set(&t->timer, TOKEN_START_MS);
		return;
	}
	role_fini(&t->role);
	snprintf(why, sizeof(why), PROGRAM " cannot be started: %s", strerror(-rc));
	failed(t, why);
}

static void on_pin(struct sources *sources, uint64_t id, const struct source_result *result)
{
	struct token_process *t = container_of(sources, struct token_process, pin);
	char why[SOURCE_ERROR_MAX + 32];

	(void)id;
	if (t->state != TOKEN_PIN) {
		if (result->fd >= 0)
			close(result->fd);
		return;
	}
	if (result->fd >= 0) {
		launch(t, result->fd);
		return;
	}
	snprintf(why, sizeof(why), "pin: %s", result->error);
	failed(t, why);
}

static void run_program(struct token_process *t)
{
	struct policy_credential program = {.timeout_ms = t->config.pin_timeout_ms};
	char error[SOURCE_ERROR_MAX], why[SOURCE_ERROR_MAX + 32];

	program.argc = put_texts(&t->config.pin_program, program.argv);
	t->pin.runs[0] = source_run_start(&t->pin, &program, 1, 0, error);
	if (t->pin.runs[0])
		return;
	snprintf(why, sizeof(why), "pin: %s", error);
	failed(t, why);
}

static void start(struct token_process *t)
{
	char why[CA_FILES_WHY_MAX];
	int fd;

	t->gave_pin = false;
	enter(t, TOKEN_PIN);
	if (!t->config.pin_file[0]) {
		run_program(t);
		return;
	}
	fd = ca_files_open_pin(t->config.pin_file, why);
	if (fd < 0)
		failed(t, why);
	else
		launch(t, fd);
}

static void on_timer(struct loop_timer *timer)
{
	struct token_process *t = container_of(timer, struct token_process, timer);

	if (t->state == TOKEN_STARTING)
		role_kill(&t->role, "the module was not ready within 20 seconds");
	else if (t->state == TOKEN_PAUSED)
		start(t);
}
_Static_assert(TOKEN_START_MS == 20000, "as the text says");

void token_process_stop(struct token_process *t)
{
	enter(t, TOKEN_NONE);
	loop_timer_cancel(&t->timer);
	sources_stop(&t->pin);
	role_fini(&t->role);
}

static bool same_texts(const struct config_texts *a, const struct config_texts *b)
{
	return a->count == b->count && a->bytes == b->bytes &&
	       memcmp(a->text, b->text, a->bytes) == 0;
}

static bool same(const struct config_token *a, const struct config_token *b)
{
	return strcmp(a->uri, b->uri) == 0 && strcmp(a->module, b->module) == 0 &&
	       strcmp(a->user, b->user) == 0 && strcmp(a->pin_file, b->pin_file) == 0 &&
	       a->pin_timeout_ms == b->pin_timeout_ms &&
	       same_texts(&a->pin_program, &b->pin_program) &&
	       same_texts(&a->environment, &b->environment) &&
	       same_texts(&a->writable, &b->writable);
}

static bool works(const struct token_process *t)
{
	return t->state == TOKEN_READY || t->state == TOKEN_STARTING || t->state == TOKEN_PIN;
}

void token_process_configure(
        struct supervisor *sv, struct token_process *t, const struct config_token *config)
{
	if (!t->timer.event) {
		if (!config->uri[0])
			return;
		t->supervisor = sv;
		sources_init(&t->pin, sv->loop, NULL, on_pin);
		t->role.pidfd = -1;
		if (loop_timer_open(sv->loop, &t->timer, on_timer) < 0)
			return;
	}
	if (works(t) && same(&t->config, config))
		return;
	token_process_stop(t);
	if (config != &t->config)
		t->config = *config;
	t->problem[0] = 0;
	t->pause_ms = TOKEN_PAUSE_FIRST_MS;
	if (config->uri[0])
		start(t);
}

/* Sends the keeper this end of a pair to the process; -1: there is none, and the keeper is told
 * why. */
static int tell_keeper(struct token_process *t, int end)
{
	struct supervisor *sv = t->supervisor;
	const uint64_t id = supervisor_next_id(sv);
	const struct message_key_token m = {.label = slice_from_string(t->config.label),
	        .why = end >= 0 ? SLICE("")
	                        : slice_from_string(t->problem[0] ? t->problem
	                                                          : "the token is not ready yet")};
	uint8_t message[MESSAGE_WHAT_MAX + 128];
	size_t n = is_of_ca(t) ? message_empty(message, sizeof(message), MESSAGE_KEEPER_TOKEN, id)
	                       : message_key_token_encode(message, sizeof(message),
	                                 MESSAGE_KEEPER_KEY_TOKEN, id, &m);

	return role_send(&sv->keeper, message, n, &end, end >= 0);
}

/* A new pair replaces the one to a keeper that has died. */
static void connect_keeper(struct token_process *t)
{
	uint8_t message[64];
	int ends[2], rc = ipc_pair(ends);

	if (rc) {
		role_kill(&t->role, "there is no pair of sockets for it");
		return;
	}
	rc = role_send(&t->role, message,
	        message_empty(message, sizeof(message), MESSAGE_TOKEN_KEEPER,
	                supervisor_next_id(t->supervisor)),
	        &ends[0], 1);
	if (!rc)
		rc = tell_keeper(t, ends[1]);
	close(ends[0]);
	close(ends[1]);
	if (rc && rc != -EPIPE) /* the end of the process is handled in its own callback */
		role_kill(&t->role, "it cannot be told of the keeper");
}

void token_process_meet_keeper(struct token_process *t)
{
	if (!t->timer.event || !role_runs(&t->supervisor->keeper))
		return;
	if (t->state == TOKEN_READY)
		connect_keeper(t);
	else if (!is_of_ca(t))
		tell_keeper(t, -1);
}

void token_process_end(struct token_process *t)
{
	if (!t->timer.event)
		return;
	token_process_stop(t);
	sources_fini(&t->pin);
	loop_timer_close(&t->timer);
}

void token_configure(struct supervisor *sv, const struct config_token *config)
{
	token_process_configure(sv, &sv->token, config);
}

void token_meet_keeper(struct supervisor *sv)
{
	token_process_meet_keeper(&sv->token);
}

int token_told(struct supervisor *sv, struct ipc_message *message)
{
	struct token_process *t = &sv->token;
	char why[MESSAGE_WHAT_MAX];
	struct message_text m;

	if (message_text_decode(&message->body, &m) < 0)
		return -EBADMSG;
	if (m.text.n == 0) {
		t->pause_ms = TOKEN_PAUSE_FIRST_MS;
		ca_check_soon(sv);
	} else if (role_runs(&t->role)) {
		role_kill(&t->role, slice_escape(m.text, why, sizeof(why)));
	}
	return 0;
}

const char *token_problem(const struct supervisor *sv)
{
	const struct token_process *t = &sv->token;

	if (!sv->ca_life.config.token.uri[0] || t->state == TOKEN_READY)
		return NULL;
	return t->problem[0] ? t->problem : "the token is not ready yet";
}

bool token_is_pending(const struct supervisor *sv)
{
	const struct token_process *t = &sv->token;

	return t->state == TOKEN_PIN || t->state == TOKEN_STARTING ||
	       (t->state == TOKEN_READY && sv->ca_life.trying);
}

void token_end(struct supervisor *sv)
{
	token_process_end(&sv->token);
}
