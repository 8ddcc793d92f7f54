/* SPDX-License-Identifier: Apache-2.0 */
/* `vethguard session list`, `show` and `extend`. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "cli/attach/options.h"
#include "cli/commands.h"
#include "cli/option_wrong.h"
#include "cli/session/session.h"

static const struct option_spec plain_specs[] = {
        CONTROL_SPEC_SOCKET, CONTROL_SPEC_JSON, CONTROL_SPEC_HELP, {NULL, 0, NULL, NULL}};

static bool take_ttl(void *context, const char *option, const char *value)
{
	uint64_t *ttl_s = context;

	return attach_ttl_read(value, ttl_s) ||
	       option_wrong(
	               option, value, "not a duration; write 90s, 30m, 2h or 7d, at most 366d");
}

/* Reads the command line. Returns -1 to go on, or the exit status. */
static int begin(const struct control_usage *u, char **argv, bool named, struct control_line *line,
        uint64_t *ttl_s)
{
	int rc = control_usage_read(u, argv, line, take_ttl, ttl_s);

	if (rc >= 0 || named == (line->name_count > 0))
		return rc;
	return control_usage_wrong(
	        u, named ? "which session? Name it" : "this command takes no name");
}

/* Makes the call for each name. Returns the worst exit status. */
static int each(const struct control_line *line, const char *method, const char *tail,
        const json_t *body, void (*print)(const json_t *answer))
{
	int worst = 0;

	for (size_t i = 0; i < line->name_count; i++) {
		char path[CONTROL_PATH_MAX];
		int rc = session_path(path, line->names[i], tail)
		                 ? control_call_and_print(line, method, path, body, print)
		                 : CLI_USAGE;

		worst = rc > worst ? rc : worst;
	}
	return worst;
}

static const struct control_usage list_usage = {"vethguard session list", "[OPTIONS]",
        "Shows the sessions.\n", "  vethguard session list\n" CONTROL_EXIT_STATUS, plain_specs};

int session_list_command(int argc, char **argv)
{
	struct control_answer answer;
	struct control_line line;
	uint64_t unused;
	int rc = begin(&list_usage, argv + 1, false, &line, &unused);

	(void)argc;
	if (rc >= 0)
		return rc;
	rc = control_call(line.socket, "GET", "/sessions", NULL, &answer);
	if (rc)
		return rc;
	if (line.json)
		control_print_json(answer.json);
	else
		control_print_list(json_object_get(answer.json, "sessions"));
	control_answer_free(&answer);
	return 0;
}

static const struct control_usage show_usage = {"vethguard session show", "NAME... [OPTIONS]",
        "Shows sessions in detail.\n", "  vethguard session show agent-7\n" CONTROL_EXIT_STATUS,
        plain_specs};

int session_show_command(int argc, char **argv)
{
	struct control_line line;
	uint64_t unused;
	int rc = begin(&show_usage, argv + 1, true, &line, &unused);

	(void)argc;
	return rc >= 0 ? rc : each(&line, "GET", "", NULL, control_print_sandbox);
}

static const struct option_spec extend_specs[] = {
        {"ttl", 0, "TIME", "how long it lasts from now on: 90s, 30m, 2h, 7d"}, CONTROL_SPEC_SOCKET,
        CONTROL_SPEC_JSON, CONTROL_SPEC_HELP, {NULL, 0, NULL, NULL}};

static const struct control_usage extend_usage = {"vethguard session extend",
        "NAME... --ttl TIME [OPTIONS]",
        "Sets when sessions end: that time from now on, later or sooner than before.\n",
        "  vethguard session extend agent-7 --ttl 2h\n" CONTROL_EXIT_STATUS, extend_specs};

static void print_extended(const json_t *answer)
{
	const char *expires = control_text(answer, "expires");

	printf("%s: until %.*sZ\n", control_text(answer, "name"), (int)strcspn(expires, "."),
	        expires);
}

int session_extend_command(int argc, char **argv)
{
	struct control_line line;
	uint64_t ttl_s = 0;
	json_t *body;
	int rc = begin(&extend_usage, argv + 1, true, &line, &ttl_s);

	(void)argc;
	if (rc >= 0)
		return rc;
	if (!ttl_s) {
		fputs("vethguard: error: how long? Say so with --ttl\n", stderr);
		return CLI_USAGE;
	}
	body = json_pack("{s:I}", "ttl_s", (json_int_t)ttl_s);
	rc = each(&line, "POST", "/extend", body, print_extended);
	json_decref(body);
	return rc;
}
