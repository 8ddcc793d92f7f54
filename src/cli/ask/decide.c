/* SPDX-License-Identifier: Apache-2.0 */
/* `vethguard approve` and `vethguard refuse`: decide about a request that waits. */
#include <stdio.h>
#include <string.h>

#include "cli/ask/ask.h"
#include "cli/ask/commands.h"
#include "cli/attach/options.h"
#include "cli/commands.h"

#define ID_DIGITS 16

/* Finds the only id that begins with prefix. Returns false after a message: none or several do. */
static bool find_id(const json_t *asks, const char *prefix, char id[ID_DIGITS + 1])
{
	size_t n = strlen(prefix), found = 0;

	for (size_t i = 0; i < json_array_size(asks); i++) {
		const char *text = control_text(json_array_get(asks, i), "id");

		if (strncmp(text, prefix, n) != 0)
			continue;
		snprintf(id, ID_DIGITS + 1, "%s", text);
		found++;
	}
	if (found == 1)
		return true;
	fprintf(stderr, "vethguard: error: %s; 'vethguard ask' names them\n",
	        found ? "several requests have an id that begins so"
	              : "no request that waits, and no grant, has this id");
	return false;
}

static bool is_prefix(const char *id)
{
	size_t n = strlen(id);

	return n >= ASK_PREFIX_MIN && n <= ID_DIGITS && strspn(id, "0123456789abcdef") == n;
}

/* Asks the daemon for the id that begins with prefix. Returns 0, or an exit status after a
 * message. */
static int complete(const struct control_line *line, const char *prefix, char id[ID_DIGITS + 1])
{
	struct control_answer answer;
	int rc;

	if (!is_prefix(prefix)) {
		fprintf(stderr,
		        "vethguard: error: an id has 16 hex digits in small letters, of which the "
		        "first %d or more suffice\n",
		        ASK_PREFIX_MIN);
		return CLI_USAGE;
	}
	rc = control_call(line->socket, "GET", "/asks", NULL, &answer);
	if (rc)
		return rc;
	rc = find_id(json_object_get(answer.json, "asks"), prefix, id) ? 0 : 1;
	control_answer_free(&answer);
	return rc;
}

static json_t *body_of(const struct ask_decision *d)
{
	json_t *body = json_object();
	int rc = 0;

	if (d->for_s)
		rc |= json_object_set_new(body, "for_s", json_integer((json_int_t)d->for_s));
	if (d->always)
		rc |= json_object_set_new(body, "always", json_true());
	if (d->whole_rule)
		rc |= json_object_set_new(body, "whole_rule", json_true());
	if (d->reason)
		rc |= json_object_set_new(body, "reason", json_string(d->reason));
	if (body && rc == 0)
		return body;
	json_decref(body);
	fputs("vethguard: error: the reason is not UTF-8\n", stderr);
	return NULL;
}

int ask_decide(const struct control_line *line, const char *prefix, const struct ask_decision *d)
{
	char id[ID_DIGITS + 1], path[CONTROL_PATH_MAX];
	struct control_answer answer;
	int rc = complete(line, prefix, id);
	json_t *body = rc ? NULL : body_of(d);

	if (!body)
		return rc ? rc : CLI_USAGE;
	snprintf(path, sizeof(path), "/asks/%s/%s", id, d->approves ? "approve" : "refuse");
	rc = control_call(line->socket, "POST", path, body, &answer);
	json_decref(body);
	if (rc)
		return rc;
	if (line->json)
		control_print_json(answer.json);
	else if (!d->approves)
		printf("%s: refused\n", id);
	else if (d->always)
		printf("%s: approved, until it is refused or the daemon starts anew\n", id);
	else if (d->for_s)
		printf("%s: approved for %llu s\n", id, (unsigned long long)d->for_s);
	else
		printf("%s: approved once\n", id);
	control_answer_free(&answer);
	return 0;
}

void ask_decide_line(const struct control_line *line, char *text)
{
	char *rest = text, *word = strsep(&rest, " "), *id = rest ? strsep(&rest, " ") : NULL;
	struct ask_decision d = {.approves = strcmp(word, "approve") == 0};

	if (rest && !*rest)
		rest = NULL;
	if (!d.approves)
		d.reason = rest;
	else if (rest && strcmp(rest, "always") == 0)
		d.always = true;
	if (id && (d.approves || strcmp(word, "refuse") == 0) &&
	        (!d.approves || !rest || d.always || attach_ttl_read(rest, &d.for_s)))
		ask_decide(line, id, &d);
	else
		fputs("write approve ID [TIME|always], or refuse ID [REASON]\n", stderr);
}

/* --- the commands --- */

static bool take_option(void *context, const char *option, const char *value)
{
	struct ask_decision *d = context;

	if (strcmp(option, "reason") == 0)
		d->reason = value;
	else if (strcmp(option, "always") == 0)
		d->always = true;
	else if (strcmp(option, "rule") == 0)
		d->whole_rule = true;
	else if (!attach_ttl_read(value, &d->for_s)) {
		fprintf(stderr,
		        "vethguard: error: --for: this is no time; write 90s, 30m, 2h or 7d\n");
		return false;
	}
	return true;
}

static int decide(const struct control_usage *u, char **argv, bool approves)
{
	struct ask_decision d = {.approves = approves};
	struct control_line line;
	int rc = control_usage_read(u, argv, &line, take_option, &d);

	if (rc >= 0)
		return rc;
	if (line.name_count != 1)
		return control_usage_wrong(u, "which request? 'vethguard ask' names them");
	if (d.always && d.for_s)
		return control_usage_wrong(u, "--for and --always: give one of them");
	if (d.whole_rule && !d.always && !d.for_s)
		return control_usage_wrong(u, "--rule needs --for or --always");
	return ask_decide(&line, line.names[0], &d);
}

static const struct option_spec approve_specs[] = {
        {"for", 'f', "TIME", "also approve requests like it, for this time (90s, 30m, 2h)"},
        {"always", 'a', NULL, "also approve requests like it, without end"},
        {"rule", 0, NULL, "with --for or --always: approve all that the rule asks about"},
        CONTROL_SPEC_SOCKET, CONTROL_SPEC_JSON, CONTROL_SPEC_HELP, {NULL, 0, NULL, NULL}};

int cli_approve(int argc, char **argv)
{
	static const struct control_usage usage = {"vethguard approve", "ID [OPTIONS]",
	        "Lets a request that waits go on. Requests like it are those that the same rule "
	        "asks\nabout, with the same method, host, port and path. When the time is over, "
	        "requests\nthat are under way by the approval end.\n",
	        "  vethguard approve 3f2a9c01\n"
	        "  vethguard approve 3f2a9c01 --for 1h\n" CONTROL_EXIT_STATUS,
	        approve_specs};

	(void)argc;
	return decide(&usage, argv + 1, true);
}

static const struct option_spec refuse_specs[] = {
        {"reason", 'r', "TEXT", "the reason, which the sandbox and the log show"},
        CONTROL_SPEC_SOCKET, CONTROL_SPEC_JSON, CONTROL_SPEC_HELP, {NULL, 0, NULL, NULL}};

int cli_refuse(int argc, char **argv)
{
	static const struct control_usage usage = {"vethguard refuse", "ID [OPTIONS]",
	        "Refuses a request that waits, or ends an approval that lasts, together with "
	        "the\nrequests that are under way by it.\n",
	        "  vethguard refuse 3f2a9c01 --reason 'not on a Friday'\n" CONTROL_EXIT_STATUS,
	        refuse_specs};

	(void)argc;
	return decide(&usage, argv + 1, false);
}
