/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call is made as a credential is fetched: a process of its own gets the key that signs and what
 * is to be sent, and reads the endpoint's answer. The supervisor gets that answer as a letter, a
 * number and a short text. A decider that is a program runs as exec: programs do, as another user;
 * its output is read once it has ended well.
 */
#include "supervisor/config/hook_call.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "supervisor/config/private.h"
#include "supervisor/config/sources.h"
#include "vethguard/policy/decision.h"

#define KEY_ARGUMENT "key=file:"
#define BODY_ARGUMENT ".body="

struct hook_call {
	struct sources sources;
	struct settings *settings;
	struct memory_bundle *trusted;
	struct loop_timer timer; /* for what fails at once */
	struct config_hook hook;
	bool decides;
	char key[sizeof(KEY_ARGUMENT) + PATH_MAX];
	char body[sizeof(BODY_ARGUMENT) + HOOK_CALL_BODY_MAX];
	char error[SOURCE_ERROR_MAX];
	int input; /* memory with the body, for a program; -1: none */
	void (*done)(void *context, const struct hook_answer *answer, const char *error);
	void *context;
};

/* Reads what the process has written: a program writes its answer, and vethguard-fetch what it has
 * read from the endpoint's answer. Returns NULL, or what is wrong (static). */
static const char *read_answer(const struct hook_call *call, int fd, struct hook_answer *out)
{
	char text[POLICY_DECISION_BYTES_MAX + 1];
	ssize_t n = read(fd, text, sizeof(text));
	struct slice answer = slice_of(text, n > 0 ? (size_t)n : 0);

	if (call->hook.program.count)
		return policy_decision_read(answer, out);
	return hook_answer_read(answer, out) ? NULL : "its answer was not passed on";
}

static void on_source(struct sources *sources, uint64_t id, const struct source_result *result)
{
	struct hook_call *call = container_of(sources, struct hook_call, sources);
	struct hook_answer answer;
	const char *why = result->error;

	(void)id;
	if (!why)
		why = read_answer(call, result->fd, &answer);
	call->done(call->context, why ? NULL : &answer, why);
	if (result->fd >= 0)
		close(result->fd);
}

static void on_failed(struct loop_timer *timer)
{
	struct hook_call *call = container_of(timer, struct hook_call, timer);

	call->done(call->context, NULL, call->error);
}

static bool fail(struct hook_call *call, const char *why)
{
	snprintf(call->error, sizeof(call->error), "%s", why);
	return false;
}

static struct policy_credential credential_of(const struct hook_call *call)
{
	struct policy_credential what = {.source = POLICY_SOURCE_FETCH,
	        .location = slice_from_string(call->hook.url),
	        .timeout_ms = call->hook.timeout_ms,
	        .argc = 2,
	        .argv = {call->decides ? SLICE("decider") : SLICE("webhook"),
	                slice_from_string(call->body)}};

	if (call->hook.key_file[0])
		what.argv[what.argc++] = slice_from_string(call->key);
	return what;
}

/* Runs the decider's program, which reads the body from its standard input. */
static bool run(struct hook_call *call)
{
	struct policy_credential what = {.source = POLICY_SOURCE_EXEC,
	        .timeout_ms = call->hook.timeout_ms,
	        .argc = call->hook.program.count};
	struct slice body = slice_from_string(call->body + sizeof(BODY_ARGUMENT) - 1);
	const struct passwd *user = getpwnam(call->hook.user);

	if (!user || user->pw_uid == 0)
		return fail(
		        call, user ? "a decider does not run as root" : "there is no such user");
	for (size_t i = 0; i < what.argc; i++)
		what.argv[i] = slice_from_string(config_token_text(&call->hook.program, i));
	call->sources.identity = (struct identity){.uid = user->pw_uid, .gid = user->pw_gid};
	call->input = memfd_of("vethguard-ask", body.p, body.n);
	if (call->input < 0 || lseek(call->input, 0, SEEK_SET) < 0) /* it was just written */
		return fail(call, "there is no memory for what it is to read");
	call->sources.input = call->input;
	call->sources.runs[0] = source_run_start(&call->sources, &what, 0, 0, call->error);
	return call->sources.runs[0];
}

static bool begin(struct hook_call *call, const struct source_leases *services)
{
	const struct policy_credential what = credential_of(call);
	struct source_secrets secrets;
	const char *culprit;
	uint32_t retry_s;
	int rc;

	sources_init(&call->sources, services->loop, NULL, on_source);
	call->sources.identity = (struct identity){.uid = geteuid(), .gid = getegid()};
	call->sources.mounts = services->mounts;
	call->sources.trusted = &call->trusted;
	if (!call->hook.program.count)
		call->settings = settings_of_services(services->config_path);
	call->sources.settings = call->settings;
	if (call->hook.program.count)
		return run(call);
	if (!call->settings)
		return fail(call, "the configuration cannot be used");
	rc = memfd_trusted(&call->settings->config, services->trusted, &call->trusted, &culprit);
	if (rc)
		return fail(call, strerror(-rc));
	if (!source_secrets_open(&call->sources.identity, &what, &secrets, call->error))
		return false;
	call->sources.fetches[0] = source_fetch_start(
	        &call->sources, &what, &secrets, 0, 0, false, call->error, &retry_s);
	source_secrets_close(&secrets);
	return call->sources.fetches[0];
}

struct hook_call *hook_call_start(const struct source_leases *services,
        const struct config_hook *hook, bool decides, struct slice body,
        void (*done)(void *context, const struct hook_answer *answer, const char *error),
        void *context)
{
	struct hook_call *call = body.n <= HOOK_CALL_BODY_MAX ? calloc(1, sizeof(*call)) : NULL;

	if (!call || loop_timer_open(services->loop, &call->timer, on_failed) != 0) {
		free(call);
		return NULL;
	}
	call->input = -1;
	call->done = done;
	call->context = context;
	call->hook = *hook;
	call->decides = decides;
	snprintf(call->key, sizeof(call->key), KEY_ARGUMENT "%s", hook->key_file);
	snprintf(call->body, sizeof(call->body), BODY_ARGUMENT "%.*s", SLICE_ARG(body));
	if (!begin(call, services))
		loop_timer_set(&call->timer, 0);
	return call;
}

void hook_call_free(struct hook_call *call)
{
	if (!call)
		return;
	loop_timer_close(&call->timer);
	sources_fini(&call->sources);
	if (call->input >= 0)
		close(call->input);
	settings_put(call->settings);
	memory_bundle_put(call->trusted);
	free(call);
}
