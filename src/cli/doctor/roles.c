/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor --roles. It starts a supervisor as `vethguard run` does, with a sandbox that nobody
 * ever enters. The supervisor asks each role; each answer is compared with /proc
 * (doctor/attributes.c) and with the supervisor's own namespaces.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/attach/control_client.h"
#include "cli/doctor/doctor.h"
#include "cli/guest/mounts.h"
#include "cli/run/supervisor.h"
#include "cli/run/namespaces.h"
#include "vethguard/base/log.h"
#include "vethguard/base/version.h"
#include "vethguard/jail/jail.h"
#include "vethguard/wire/control_http.h"
#include "vethguard/wire/json.h"

/* Each line of a role becomes an object with name, value and verdict: several times the size of an
 * answer of the daemon. */
#define ROLES_JSON_MAX (16u * CONTROL_ANSWER_MAX)

static const char *const verdicts[] = {[DOCTOR_AGREED] = "kernel agrees",
        [DOCTOR_CLAIMED] = "its own word",
        [DOCTOR_DIFFERS] = "KERNEL SAYS",
        [DOCTOR_WEAK] = "NOT CONFINED"};
static const char *const verdict_words[] = {[DOCTOR_AGREED] = "agreed",
        [DOCTOR_CLAIMED] = "claimed",
        [DOCTOR_DIFFERS] = "differs",
        [DOCTOR_WEAK] = "weak"};

struct report {
	struct json *j; /* NULL: text */
	bool sound;
	bool live; /* roles of a running daemon: descriptors come and go between the answer and
	              the look */
	unsigned roles;
	char supervisor[JAIL_TEXT_MAX]; /* the supervisor's own answer, for its namespaces */
};

/* True for namespaces that every role must have to itself but shares with the supervisor. */
static bool is_shared(const struct report *r, const struct doctor_fact *fact)
{
	char line[96];

	if (strcmp(fact->name, "ns_mnt") != 0 && strcmp(fact->name, "ns_ipc") != 0 &&
	        strcmp(fact->name, "ns_uts") != 0)
		return false;
	snprintf(line, sizeof(line), "\n%s: %.32s\n", fact->name, fact->value);
	return strstr(r->supervisor, line) != NULL;
}

static bool may_have_moved(const struct report *r, const struct doctor_fact *fact)
{
	return r->live && fact->verdict == DOCTOR_DIFFERS &&
	       (strcmp(fact->name, "descriptors") == 0 || strncmp(fact->name, "fd_", 3) == 0);
}

static void tell_fact(struct report *r, const struct doctor_fact *fact)
{
	r->sound = r->sound && (fact->verdict == DOCTOR_AGREED || fact->verdict == DOCTOR_CLAIMED);
	if (r->j) {
		json_put_object(r->j, NULL);
		json_put_string(r->j, "name", slice_from_string(fact->name), 0);
		json_put_string(r->j, "value", slice_from_string(fact->value), 0);
		json_put_literal(r->j, "verdict", verdict_words[fact->verdict]);
		if (fact->kernel[0])
			json_put_string(r->j, "kernel", slice_from_string(fact->kernel), 0);
		json_put_end_object(r->j);
		return;
	}
	printf("  %-16s %-24s %s%s%s\n", fact->name, fact->value, verdicts[fact->verdict],
	        fact->kernel[0] ? " " : "", fact->kernel);
}

static void tell_facts(struct report *r, const struct message_role *role, bool confined)
{
	static struct doctor_fact fact;
	struct slice left = role->text;

	while (left.n > 0) {
		const char *end = memchr(left.p, '\n', left.n);
		size_t n = end ? (size_t)(end - (const char *)left.p) : left.n;

		if (doctor_fact_read(
		            slice_of(left.p, n), "/proc", (pid_t)role->pid, confined, &fact)) {
			if (may_have_moved(r, &fact))
				fact.verdict = DOCTOR_CLAIMED;
			if (confined && fact.verdict != DOCTOR_DIFFERS && is_shared(r, &fact))
				fact.verdict = DOCTOR_WEAK;
			tell_fact(r, &fact);
		}
		left = slice_of(
		        (const char *)left.p + n + (end != NULL), left.n - n - (end != NULL));
	}
}

static bool is_said(struct slice text, const char *name)
{
	const size_t n = strlen(name);

	while (text.n > 0) {
		const char *line = text.p, *end = memchr(line, '\n', text.n);
		size_t line_n = end ? (size_t)(end - line) : text.n;

		if (line_n > n + 1 && memcmp(line, name, n) == 0 && line[n] == ':')
			return true;
		line_n += end != NULL;
		text = slice_of(line + line_n, text.n - line_n);
	}
	return false;
}

/* A role that leaves an attribute out may not be confined by it. */
static void tell_unsaid(struct report *r, const struct message_role *role)
{
	static struct doctor_fact fact;
	const char *name;

	for (size_t i = 0; role->text.n > 0 && (name = doctor_fact_name(i)) != NULL; i++) {
		if (is_said(role->text, name))
			continue;
		doctor_fact_unsaid(name, "/proc", (pid_t)role->pid, &fact);
		tell_fact(r, &fact);
	}
}

/* The supervisor comes first. */
static void tell_role(void *context, const struct message_role *role)
{
	struct report *r = context;
	bool confined = r->roles++ > 0;
	char name[MESSAGE_ROLE_NAME_MAX * 4 + 1];

	slice_escape(role->name, name, sizeof(name));
	if (!confined)
		snprintf(r->supervisor, sizeof(r->supervisor), "%.*s", SLICE_ARG(role->text));
	if (role->text.n == 0)
		r->sound = false;
	if (r->j) {
		json_put_object(r->j, NULL);
		json_put_string(r->j, "role", slice_from_string(name), 0);
		json_put_uint(r->j, "pid", role->pid);
		json_put_array(r->j, "facts");
		tell_facts(r, role, confined);
		tell_unsaid(r, role);
		json_put_end_array(r->j);
		json_put_end_object(r->j);
		return;
	}
	printf("%s%s (process %u)%s\n", r->roles > 1 ? "\n" : "", name, role->pid,
	        role->text.n == 0 ? ": no answer" : "");
	tell_facts(r, role, confined);
	tell_unsaid(r, role);
}

/* Writes the policy of a run without a command. Its one port lets Landlock show that it
 * works. */
static int write_policy(char *path, struct failure *failure)
{
	int fd = mkstemp(path);
	static const char text[] = "vethguard: 1\nallow:\n  - {to: 'https://doctor.invalid'}\n";

	if (fd < 0 || write(fd, text, sizeof(text) - 1) != (ssize_t)(sizeof(text) - 1)) {
		if (fd >= 0)
			close(fd);
		return failure_set(failure, -errno, "a policy in /tmp");
	}
	fchmod(fd, 0644);
	close(fd);
	return 0;
}

static int ask(const char *policy, struct report *r, struct failure *failure)
{
	struct run_options options = {.policy = policy, .name = "doctor"};
	struct run_supervisor supervisor = {.pid = -1, .pidfd = -1, .control = -1};
	struct namespaces ns = {-1, -1, -1};
	struct message_run_ready ready;
	struct message_summary summary;
	struct privilege privilege;
	struct run_user user;
	int rc = privilege_enter(&privilege, failure);

	if (rc == 0)
		rc = run_user_find(NULL, &privilege, &user, failure);
	if (rc == 0)
		rc = namespaces_make(&privilege, &user, &ns, failure);
	if (rc == 0)
		rc = run_supervisor_open(&supervisor, &privilege, failure);
	if (rc == 0)
		rc = run_supervisor_start(
		        &supervisor, &options, &privilege, ns.net, &ready, failure);
	if (rc == 0)
		rc = run_supervisor_roles(&supervisor, tell_role, r, failure);
	if (rc == 0)
		run_supervisor_end(&supervisor, 0, &summary, failure);
	if (rc != 0 && run_supervisor_print_refusal(&supervisor))
		failure->text[0] = '\0';
	run_supervisor_close(&supervisor);
	namespaces_close(&ns);
	return rc;
}

/* The daemon's answer contains the same reports. */
static int ask_daemon(const char *socket, struct report *r)
{
	struct control_answer answer;
	const json_t *roles;
	int rc = control_call(socket, "GET", "/roles", NULL, &answer);

	if (rc != 0)
		return rc;
	roles = json_object_get(answer.json, "roles");
	for (size_t i = 0; i < json_array_size(roles); i++) {
		const json_t *role = json_array_get(roles, i);
		struct message_role m = {
		        .pid = (uint32_t)json_integer_value(json_object_get(role, "pid")),
		        .name = slice_from_string(json_string_value(json_object_get(role, "role"))),
		        .text = slice_from_string(
		                json_string_value(json_object_get(role, "text")))};

		tell_role(r, &m);
	}
	control_answer_free(&answer);
	return 0;
}

static void begin_json(struct json *j, struct buf *text)
{
	buf_init(text, ROLES_JSON_MAX);
	json_begin(j, text);
	json_put_object(j, NULL);
	json_put_literal(j, "version", VERSION_TEXT);
	json_put_array(j, "roles");
}

/* Returns false if the report is incomplete; then nothing is printed. */
static bool end_json(struct json *j, struct buf *text, bool sound)
{
	json_put_end_array(j);
	json_put_bool(j, "sound", sound);
	json_put_end_object(j);
	if (j->failed)
		log_error("there is no memory for the report");
	else
		printf("%.*s\n", (int)text->len, (const char *)buf_bytes(text));
	buf_fini(text);
	return !j->failed;
}

int doctor_roles(const char *policy, const char *socket, bool as_json)
{
	char path[] = "/tmp/vethguard-doctor-XXXXXX";
	static struct report report;
	struct failure failure = {""};
	struct buf text;
	struct json j;
	int rc = 0;

	report = (struct report){.j = as_json ? &j : NULL, .sound = true};
	if (as_json)
		begin_json(&j, &text);
	if (!socket && !policy && access(CONTROL_SOCKET_DEFAULT, R_OK | W_OK) == 0)
		socket = CONTROL_SOCKET_DEFAULT;
	report.live = socket != NULL;
	if (socket)
		rc = ask_daemon(socket, &report);
	else if (!policy)
		rc = write_policy(path, &failure);
	if (rc == 0 && !socket)
		rc = ask(policy ? policy : path, &report, &failure);
	if (!socket && !policy)
		unlink(path);
	report.sound = report.sound && rc == 0;
	if (rc != 0 && failure.text[0])
		log_error("%s", failure.text);
	if (as_json)
		report.sound &= end_json(&j, &text, report.sound);
	else if (rc == 0)
		puts(report.sound ? "\nEach role is confined as it should be."
		                  : "\nNOT every role is confined as it should be.");
	return report.sound ? 0 : 1;
}
