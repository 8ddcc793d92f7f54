/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call that the daemon cannot take at the moment (503: it takes over sandboxes after a restart,
 * or is about to end the same sandbox, because the container's process has ended) is made again for
 * a few seconds.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "vethguard/adapter/control_client.h"
#include "runtime/guard.h"

#define CALL_PATH_MAX 128
#define TRIES 250
#define BETWEEN_MS 20 /* the longest pause; the first ones are 1, 2, 4, 8 and 16 ms */
#define SHORT_PAUSES 5
#define CONFLICT 409
#define NOT_FOUND 404
#define UNAVAILABLE 503

/* tries: the number of attempts so far. The daemon usually needs a few milliseconds. */
static void wait_a_little(unsigned tries)
{
	long ms = tries < SHORT_PAUSES ? 1L << tries : BETWEEN_MS;
	const struct timespec pause = {.tv_nsec = ms * 1000000L};

	nanosleep(&pause, NULL);
}

/* Returns the answer's JSON (owned) or NULL with a fault. */
static json_t *call_once(const struct settings *s, const char *method, const char *path,
        const json_t *body, unsigned *status, struct fault *fault)
{
	char text[CONTROL_CLIENT_TEXT_MAX];
	struct control_answer answer;
	int rc = control_client_call(s->socket, method, path, body, &answer);
	json_t *json = NULL;

	*status = answer.status;
	if (!rc && control_answer_is_good(&answer)) {
		json = answer.json;
		answer.json = NULL;
	} else {
		fault_set(fault, "%s", control_answer_fault(&answer, rc, s->socket, text));
	}
	control_answer_free(&answer);
	return json;
}

/* The same, made again while the daemon asks for that. status may be NULL. */
static json_t *call(const struct settings *s, const char *method, const char *path,
        const json_t *body, unsigned *status, struct fault *fault)
{
	unsigned ignored = 0, *at = status ? status : &ignored;
	struct fault last = {""};
	json_t *json = call_once(s, method, path, body, at, &last);

	for (unsigned i = 1; i < TRIES && !json && *at == UNAVAILABLE; i++) {
		wait_a_little(i - 1);
		last.text[0] = '\0';
		json = call_once(s, method, path, body, at, &last);
	}
	if (!json)
		fault_set(fault, "%s", last.text);
	return json;
}

bool guard_name_is_plain(const char *name)
{
	size_t n = strlen(name);

	return n > 0 && n <= GUARD_NAME_MAX && name[0] != '.' && name[0] != '-' &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
	               n;
}

/* The names come from entries and the daemon, which has checked them: nothing in them has to be
 * escaped. */
static bool make_path(
        char path[CALL_PATH_MAX], const char *name, const char *rest, struct fault *fault)
{
	return (guard_name_is_plain(name) && snprintf(path, CALL_PATH_MAX, "/sandboxes/%s%s", name,
	                                             rest) < CALL_PATH_MAX) ||
	       fault_set(fault, "the name of the container's sandbox is not valid");
}

json_t *guard_attach(const struct settings *s, json_t *body, bool *taken, struct fault *fault)
{
	unsigned status = 0;
	json_t *answer = body ? call(s, "POST", "/sandboxes", body, &status, fault) : NULL;

	json_decref(body);
	*taken = status == CONFLICT;
	return answer;
}

json_t *guard_env(const struct settings *s, const char *name, struct fault *fault)
{
	char path[CALL_PATH_MAX];

	return make_path(path, name, "/env", fault) ? call(s, "GET", path, NULL, NULL, fault)
	                                            : NULL;
}

static bool is_at(const json_t *sandbox, const struct stat *netns)
{
	const json_t *attachment = json_object_get(sandbox, "attachment");
	const char *path = control_text(attachment, "netns");
	char of_process[64];
	struct stat st;

	if (!*path) {
		snprintf(of_process, sizeof(of_process), "/proc/%lld/ns/net",
		        (long long)json_integer_value(json_object_get(attachment, "pid")));
		path = of_process;
	}
	return stat(path, &st) == 0 && st.st_dev == netns->st_dev && st.st_ino == netns->st_ino;
}

json_t *guard_find_netns(const struct settings *s, const char *netns, struct fault *fault)
{
	json_t *answer, *found = NULL;
	const json_t *list;
	struct stat st;

	if (stat(netns, &st) < 0) {
		fault_set(fault, "the network namespace %s cannot be looked at", netns);
		return NULL;
	}
	answer = call(s, "GET", "/sandboxes", NULL, NULL, fault);
	list = json_object_get(answer, "sandboxes");
	for (size_t i = 0; !found && i < json_array_size(list); i++)
		if (is_at(json_array_get(list, i), &st))
			found = json_incref(json_array_get(list, i));
	json_decref(answer);
	return found;
}

bool guard_follow(const struct settings *s, const char *name, pid_t pid, uint64_t start_time,
        struct fault *fault)
{
	json_t *body = json_pack(
	        "{s:I, s:I}", "pid", (json_int_t)pid, "start_time", (json_int_t)start_time);
	char path[CALL_PATH_MAX];
	json_t *answer = make_path(path, name, "/follow", fault)
	                         ? call(s, "POST", path, body, NULL, fault)
	                         : NULL;
	bool good = answer != NULL;

	json_decref(body);
	json_decref(answer);
	return good;
}

static bool is_starting(const char *state)
{
	return strcmp(state, "starting") == 0 || strcmp(state, "restarting") == 0;
}

bool guard_is_served(const struct settings *s, const char *name, struct fault *fault)
{
	char path[CALL_PATH_MAX], state[32] = "";

	if (!make_path(path, name, "", fault))
		return false;
	for (unsigned i = 0; i < TRIES; i++) {
		json_t *answer = call(s, "GET", path, NULL, NULL, fault);

		if (!answer)
			return fault_set(fault, "its guard %s is gone", name);
		snprintf(state, sizeof(state), "%s", control_text(answer, "state"));
		json_decref(answer);
		if (strcmp(state, "serving") == 0 || strcmp(state, "paused") == 0)
			return true;
		if (!is_starting(state))
			break;
		wait_a_little(i);
	}
	return fault_set(fault, "its guard %s is not served: it is %s", name, state);
}

bool guard_detach(const struct settings *s, const char *name, struct fault *fault)
{
	char path[CALL_PATH_MAX];
	unsigned status = 0;
	json_t *answer;

	if (!make_path(path, name, "", fault))
		return false;
	answer = call(s, "DELETE", path, NULL, &status, fault);
	json_decref(answer);
	return answer || status == NOT_FOUND;
}
