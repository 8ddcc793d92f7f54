/* SPDX-License-Identifier: Apache-2.0 */
/* `vethguard ask`: shows the requests that wait for a person, once or as they come. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/ask/ask.h"
#include "cli/ask/commands.h"
#include "cli/commands.h"
#include "vethguard/base/slice.h"

#define PERIOD_MS 1000
#define TEXT_MAX 4096
#define LINE_MAX 1024

struct ask_options {
	bool watch;
};

static const char *shown(const json_t *ask, const char *key, char out[TEXT_MAX])
{
	return slice_escape(slice_from_string(control_text(ask, key)), out, TEXT_MAX);
}

/* Prints what a proposal would change, as `vethguard policy diff` does. */
static void print_difference(const struct control_line *line, const json_t *ask)
{
	char path[CONTROL_PATH_MAX], shown_line[TEXT_MAX];
	struct control_answer answer;
	const json_t *lines;

	snprintf(path, sizeof(path), "/asks/%s/diff", control_text(ask, "id"));
	if (control_call(line->socket, "GET", path, NULL, &answer) != 0)
		return;
	lines = json_object_get(answer.json, "diff");
	if (json_array_size(lines) == 0)
		puts("      it changes nothing: the policy allows this already, or a deny rule "
		     "refuses it");
	for (size_t i = 0; i < json_array_size(lines); i++)
		printf("      %s\n", slice_escape_controls(slice_from_string(json_string_value(
		                                                   json_array_get(lines, i))),
		                             shown_line, sizeof(shown_line)));
	control_answer_free(&answer);
}

static void print_proposal(const struct control_line *line, const json_t *ask)
{
	char method[TEXT_MAX], url[TEXT_MAX], paths[TEXT_MAX], sandbox[TEXT_MAX], reason[TEXT_MAX],
	        by[TEXT_MAX];
	bool granted = strcmp(control_text(ask, "state"), "granted") == 0;
	const json_t *left = json_object_get(ask, "left_s");

	printf("%s  %s: %s %s %s %s", control_text(ask, "id"), shown(ask, "sandbox", sandbox),
	        granted ? "has the proposed rule" : "proposes", shown(ask, "method", method),
	        shown(ask, "url", url), shown(ask, "paths", paths));
	if (granted)
		printf(" by %s", shown(ask, "by", by));
	if (json_is_integer(left))
		printf(", %" JSON_INTEGER_FORMAT " s left", json_integer_value(left));
	printf("\n      its reason: \"%s\"\n", shown(ask, "reason", reason));
	if (!granted)
		print_difference(line, ask);
}

static void print_request(const json_t *ask)
{
	const json_t *left = json_object_get(ask, "left_s");
	char method[TEXT_MAX], url[TEXT_MAX], sandbox[TEXT_MAX], rule[TEXT_MAX], by[TEXT_MAX];
	bool granted = strcmp(control_text(ask, "state"), "granted") == 0;
	json_int_t bytes = json_integer_value(json_object_get(ask, "bytes"));

	printf("%s  %s: %s ", control_text(ask, "id"), shown(ask, "sandbox", sandbox),
	        granted ? "granted" : "asks");
	if (json_is_true(json_object_get(ask, "whole_rule")))
		printf("all that rule %s asks about", shown(ask, "rule", rule));
	else
		printf("%s %s (rule %s)", shown(ask, "method", method), shown(ask, "url", url),
		        shown(ask, "rule", rule));
	if (bytes && !granted)
		printf(", %" JSON_INTEGER_FORMAT " bytes", bytes);
	if (granted)
		printf(" by %s", shown(ask, "by", by));
	if (json_is_integer(left))
		printf(", %" JSON_INTEGER_FORMAT " s left", json_integer_value(left));
	putchar('\n');
}

static void print_one(const struct control_line *line, const json_t *ask)
{
	if (json_is_true(json_object_get(ask, "proposed")))
		print_proposal(line, ask);
	else
		print_request(ask);
}

static void print_all(const struct control_line *line, const json_t *answer)
{
	const json_t *asks = json_object_get(answer, "asks");

	if (json_array_size(asks) == 0)
		puts("nothing waits");
	for (size_t i = 0; i < json_array_size(asks); i++)
		print_one(line, json_array_get(asks, i));
}

/* --- as they come --- */

static bool has(const json_t *asks, const char *id)
{
	for (size_t i = 0; i < json_array_size(asks); i++) {
		if (strcmp(control_text(json_array_get(asks, i), "id"), id) == 0)
			return true;
	}
	return false;
}

static void tell_changes(const struct control_line *line, const json_t *before, const json_t *now)
{
	for (size_t i = 0; i < json_array_size(now); i++) {
		const json_t *ask = json_array_get(now, i);

		if (!has(before, control_text(ask, "id")))
			print_one(line, ask);
	}
	for (size_t i = 0; i < json_array_size(before); i++) {
		const json_t *ask = json_array_get(before, i);

		if (!has(now, control_text(ask, "id")))
			printf("%s  is over\n", control_text(ask, "id"));
	}
	fflush(stdout);
}

/* Waits up to PERIOD_MS for a line that a person types, and carries it out. Returns false at the
 * end of the input. */
static bool take_line(const struct control_line *line)
{
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
	char text[LINE_MAX];

	if (poll(&input, 1, PERIOD_MS) <= 0)
		return true;
	if (!fgets(text, sizeof(text), stdin))
		return false;
	text[strcspn(text, "\n")] = 0;
	if (*text)
		ask_decide_line(line, text);
	return true;
}

/* Prints changes until the input ends (returns 0) or a call to the daemon fails (returns its exit
 * status). */
static int watch(const struct control_line *line)
{
	json_t *before = json_array();
	struct control_answer answer;
	bool listens = true;
	int rc = 0;

	while (listens && (rc = control_call(line->socket, "GET", "/asks", NULL, &answer)) == 0) {
		json_t *now = json_incref(json_object_get(answer.json, "asks"));

		tell_changes(line, before, now);
		json_decref(before);
		before = now;
		control_answer_free(&answer);
		listens = take_line(line);
	}
	json_decref(before);
	return rc;
}

/* Prints all of them once. Returns the exit status. */
static int list(const struct control_line *line)
{
	struct control_answer answer;
	int rc = control_call(line->socket, "GET", "/asks", NULL, &answer);

	if (rc)
		return rc;
	if (line->json)
		control_print_json(answer.json);
	else
		print_all(line, answer.json);
	control_answer_free(&answer);
	return 0;
}

static bool take_option(void *context, const char *option, const char *value)
{
	struct ask_options *options = context;

	(void)option;
	(void)value;
	options->watch = true;
	return true;
}

static const struct option_spec specs[] = {
        {"watch", 'w', NULL, "show them as they come, and take answers from the standard input"},
        CONTROL_SPEC_SOCKET, CONTROL_SPEC_JSON, CONTROL_SPEC_HELP, {NULL, 0, NULL, NULL}};

int cli_ask(int argc, char **argv)
{
	struct ask_options options = {false};
	struct control_line line;

	(void)argc;
	if (!control_line_read(&line, "vethguard ask", specs, argv + 1, take_option, &options))
		return CLI_USAGE;
	if (line.help) {
		printf("Usage: vethguard ask [OPTIONS]\n\n"
		       "Shows the requests that wait for a person's approval (rules under ask:), "
		       "rules that\nsandboxes propose, with what each would change, and what was "
		       "approved for a while.\nWith --watch, answer by typing a line:\n"
		       "approve ID [TIME|always], or refuse ID [REASON].\n\nOptions:\n");
		options_print(specs, stdout);
		printf("\nExamples:\n  vethguard ask\n  vethguard ask --watch\n\n"
		       "Exit status: 0 done; 1 the daemon refused; 2 wrong usage; 3 the daemon "
		       "cannot be\nreached.\n");
		return 0;
	}
	if (line.name_count || (line.json && options.watch)) {
		fputs(line.name_count ? "vethguard: error: ask takes no name\n"
		                      : "vethguard: error: --json and --watch: give one of them\n",
		        stderr);
		return CLI_USAGE;
	}
	return options.watch ? watch(&line) : list(&line);
}
