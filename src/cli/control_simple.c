/* SPDX-License-Identifier: Apache-2.0 */
/* `vethguard detach`, `list`, `show`, `reload`, `pause`, `resume`, `stats`: one call for each name.
 */
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "control_commands.h"

#define PAUSE_HELP "why; sandboxes and log are told"

/* What the command's own options said. */
struct extra {
	const char *policy, *reason;
	bool all;
};

static bool take_extra(void *context, const char *option, const char *value)
{
	struct extra *extra = context;

	if (strcmp(option, "policy") == 0)
		extra->policy = value;
	else if (strcmp(option, "reason") == 0)
		extra->reason = value;
	else
		extra->all = true;
	return true;
}

struct simple {
	const char *name; /* "vethguard show" */
	const char *usage, *text, *examples;
	const struct option_spec *specs;
};

static void help(const struct simple *command)
{
	printf("Usage: %s %s\n\n%s\n\nOptions:\n", command->name, command->usage, command->text);
	options_print(command->specs, stdout);
	printf("\nExamples:\n%s\n"
	       "Exit status: 0 done; 1 the daemon refused; 2 wrong usage; 3 the daemon cannot be\n"
	       "reached.\n",
	        command->examples);
}

/* -1: go on; else the exit status. */
static int begin(
        const struct simple *command, char **argv, struct control_line *line, struct extra *extra)
{
	*extra = (struct extra){0};
	if (!control_line_read(line, command->name, command->specs, argv, take_extra, extra))
		return CLI_USAGE;
	if (!line->help)
		return -1;
	help(command);
	return 0;
}

static int usage(const struct simple *command, const char *what)
{
	fprintf(stderr, "vethguard: error: %s\nUsage: %s %s\n", what, command->name,
	        command->usage);
	return CLI_USAGE;
}

/* One call about one name. */
typedef int (*each)(const struct control_line *line, const struct extra *extra, const char *name);

/* All of them, also where one fails; the first failure is the exit status. */
static int for_each(const struct control_line *line, const struct extra *extra, each one)
{
	int status = 0;

	for (size_t i = 0; i < line->name_count; i++) {
		int rc = one(line, extra, line->names[i]);

		if (rc == CONTROL_UNREACHABLE)
			return rc;
		status = status ? status : rc;
	}
	return status;
}

static int list_all(const struct control_line *line, struct control_answer *answer)
{
	return control_call(line->socket, "GET", "/sandboxes", NULL, answer);
}

static int for_all(const struct control_line *line, const struct extra *extra, each one)
{
	struct control_answer answer;
	const json_t *sandboxes;
	int status = list_all(line, &answer), rc;
	size_t i;

	if (status)
		return status;
	sandboxes = json_object_get(answer.json, "sandboxes");
	for (i = 0; i < json_array_size(sandboxes); i++) {
		rc = one(line, extra, control_text(json_array_get(sandboxes, i), "name"));
		status = status ? status : rc;
	}
	control_answer_free(&answer);
	return status;
}

/* detach */

static int detach_one(const struct control_line *line, const struct extra *extra, const char *name)
{
	char path[CONTROL_PATH_MAX];
	struct control_answer answer;
	const json_t *summary;
	const char *opened;
	int rc;

	(void)extra;
	if (!control_path(path, name, ""))
		return CLI_USAGE;
	rc = control_call(line->socket, "DELETE", path, NULL, &answer);
	if (rc)
		return rc;
	summary = json_object_get(answer.json, "summary");
	if (line->json)
		control_print_json(answer.json);
	else if (json_is_object(summary))
		printf("%s: detached; %lld allowed, %lld denied, %lld packets dropped, %lld "
		       "findings\n",
		        name, (long long)json_integer_value(json_object_get(summary, "allowed")),
		        (long long)json_integer_value(json_object_get(summary, "denied")),
		        (long long)json_integer_value(json_object_get(summary, "dropped")),
		        (long long)json_integer_value(json_object_get(summary, "findings")));
	else
		printf("%s: detached\n", name);
	opened = control_text(answer.json, "opened");
	if (!line->json && opened[0])
		printf("%s: interface %s is open: nothing guards it any more\n", name, opened);
	control_answer_free(&answer);
	return 0;
}

int cli_detach(int argc, char **argv)
{
	static const struct option_spec specs[] = {
	        CONTROL_SPEC_SOCKET, CONTROL_SPEC_JSON, CONTROL_SPEC_HELP, {NULL, 0, NULL, NULL}};
	static const struct simple command = {"vethguard detach", "NAME... [OPTIONS]",
	        "Ends the guard of sandboxes: requests under way may finish for two seconds, then\n"
	        "link, rules and state are removed. What was attached by --netns, --pid or\n"
	        "--container has no network afterwards. An interface is open afterwards: it has "
	        "the\n"
	        "network of the host that it had before. To keep one cut off, 'vethguard pause' "
	        "it.",
	        "  vethguard detach agent-7\n", specs};
	struct control_line line;
	struct extra extra;
	int rc = begin(&command, argv + 1, &line, &extra);

	(void)argc;
	if (rc >= 0)
		return rc;
	return line.name_count ? for_each(&line, &extra, detach_one)
	                       : usage(&command, "which sandbox? 'vethguard list' names them");
}

/* list */

int cli_list(int argc, char **argv)
{
	static const struct option_spec specs[] = {
	        CONTROL_SPEC_SOCKET, CONTROL_SPEC_JSON, CONTROL_SPEC_HELP, {NULL, 0, NULL, NULL}};
	static const struct simple command = {"vethguard list", "[OPTIONS]",
	        "Shows the sandboxes that the daemon guards.",
	        "  vethguard list\n"
	        "  vethguard list --json | jq -r '.sandboxes[] | select(.state != \"serving\") | "
	        ".name'\n",
	        specs};
	struct control_line line;
	struct control_answer answer;
	struct extra extra;
	int rc = begin(&command, argv + 1, &line, &extra);

	(void)argc;
	if (rc >= 0)
		return rc;
	if (line.name_count)
		return usage(&command, "list takes no name; 'vethguard show NAME' does");
	rc = list_all(&line, &answer);
	if (rc)
		return rc;
	if (line.json)
		control_print_json(answer.json);
	else
		control_print_list(json_object_get(answer.json, "sandboxes"));
	control_answer_free(&answer);
	return 0;
}

/* show, stats */

static int look(const struct control_line *line, const char *name, const char *tail,
        void (*print)(const json_t *json))
{
	char path[CONTROL_PATH_MAX];
	struct control_answer answer;
	int rc;

	if (!control_path(path, name, tail))
		return CLI_USAGE;
	rc = control_call(line->socket, "GET", path, NULL, &answer);
	if (rc)
		return rc;
	if (line->json)
		control_print_json(answer.json);
	else
		print(answer.json);
	control_answer_free(&answer);
	return 0;
}

static int show_one(const struct control_line *line, const struct extra *extra, const char *name)
{
	(void)extra;
	return look(line, name, "", control_print_sandbox);
}

int cli_show(int argc, char **argv)
{
	static const struct option_spec specs[] = {
	        CONTROL_SPEC_SOCKET, CONTROL_SPEC_JSON, CONTROL_SPEC_HELP, {NULL, 0, NULL, NULL}};
	static const struct simple command = {"vethguard show", "NAME... [OPTIONS]",
	        "Shows what is known of a sandbox.", "  vethguard show agent-7\n", specs};
	struct control_line line;
	struct extra extra;
	int rc = begin(&command, argv + 1, &line, &extra);

	(void)argc;
	if (rc >= 0)
		return rc;
	return line.name_count ? for_each(&line, &extra, show_one)
	                       : usage(&command, "which sandbox? 'vethguard list' names them");
}

static int stats_one(const struct control_line *line, const struct extra *extra, const char *name)
{
	(void)extra;
	return look(line, name, "/stats", control_print_stats);
}

int cli_stats(int argc, char **argv)
{
	static const struct option_spec specs[] = {
	        CONTROL_SPEC_SOCKET, CONTROL_SPEC_JSON, CONTROL_SPEC_HELP, {NULL, 0, NULL, NULL}};
	static const struct simple command = {"vethguard stats", "[NAME...] [OPTIONS]",
	        "Shows what sandboxes have done and hold: all of them where none is named.",
	        "  vethguard stats agent-7\n"
	        "  vethguard stats agent-7 --json | jq .worker.bytes_out\n",
	        specs};
	struct control_line line;
	struct extra extra;
	int rc = begin(&command, argv + 1, &line, &extra);

	(void)argc;
	if (rc >= 0)
		return rc;
	return line.name_count ? for_each(&line, &extra, stats_one)
	                       : for_all(&line, &extra, stats_one);
}

/* reload */

/* Prints what an operation made of a sandbox. */
static void tell(const struct control_line *line, const json_t *json)
{
	const json_t *policy = json_object_get(json, "policy");

	if (line->json) {
		control_print_json(json);
		return;
	}
	printf("%s: %s", control_text(json, "name"), control_text(json, "state"));
	if (json_object_get(json, "diff"))
		printf(", policy generation %lld",
		        (long long)json_integer_value(json_object_get(policy, "generation")));
	putchar('\n');
	control_print_lines(stdout, "  ", json_object_get(json, "diff"));
}

static int change(const struct control_line *line, const char *name, const char *tail, json_t *body)
{
	char path[CONTROL_PATH_MAX];
	struct control_answer answer;
	int rc = control_path(path, name, tail) ? 0 : CLI_USAGE;

	if (rc == 0)
		rc = control_call(line->socket, "POST", path, body, &answer);
	json_decref(body);
	if (rc)
		return rc;
	tell(line, answer.json);
	control_answer_free(&answer);
	return 0;
}

static int reload_one(const struct control_line *line, const struct extra *extra, const char *name)
{
	char path[PATH_MAX];

	if (extra->policy && !realpath(extra->policy, path)) {
		perror("vethguard: error: --policy");
		return CLI_USAGE;
	}
	return change(
	        line, name, "/reload", extra->policy ? json_pack("{s:s}", "policy", path) : NULL);
}

static int reload_all(const struct control_line *line)
{
	struct control_answer answer;
	int rc = control_call(line->socket, "POST", "/reload", NULL, &answer);

	if (rc)
		return rc;
	if (line->json)
		control_print_json(answer.json);
	else
		printf("%lld reloaded\n",
		        (long long)json_integer_value(json_object_get(answer.json, "reloaded")));
	control_answer_free(&answer);
	return 0;
}

int cli_reload(int argc, char **argv)
{
	static const struct option_spec specs[] = {
	        {"policy", 'p', "FILE", "put this policy in force instead of the present file"},
	        CONTROL_SPEC_SOCKET, CONTROL_SPEC_JSON, CONTROL_SPEC_HELP, {NULL, 0, NULL, NULL}};
	static const struct simple command = {"vethguard reload", "[NAME...] [OPTIONS]",
	        "Reads policies anew and puts them in force; live connections are judged again.\n"
	        "Prints what changed. Without a name: the configuration and all sandboxes. A file\n"
	        "with a fault changes nothing.",
	        "  vethguard reload agent-7\n"
	        "  vethguard reload agent-7 --policy stricter.yaml\n",
	        specs};
	struct control_line line;
	struct extra extra;
	int rc = begin(&command, argv + 1, &line, &extra);

	(void)argc;
	if (rc >= 0)
		return rc;
	if (!line.name_count && extra.policy)
		return usage(&command, "--policy is for sandboxes that are named");
	return line.name_count ? for_each(&line, &extra, reload_one) : reload_all(&line);
}

/* pause, resume */

static int pause_one(const struct control_line *line, const struct extra *extra, const char *name)
{
	json_t *body = NULL;

	if (extra->reason) {
		body = json_pack("{s:s}", "reason", extra->reason);
		if (!body) {
			fputs("vethguard: error: --reason is not UTF-8\n", stderr);
			return CLI_USAGE;
		}
	}
	return change(line, name, "/pause", body);
}

static int resume_one(const struct control_line *line, const struct extra *extra, const char *name)
{
	(void)extra;
	return change(line, name, "/resume", NULL);
}

static int some_or_all(const struct simple *command, char **argv, each one)
{
	struct control_line line;
	struct extra extra;
	int rc = begin(command, argv, &line, &extra);

	if (rc >= 0)
		return rc;
	if (extra.all == (line.name_count > 0))
		return usage(command, extra.all ? "--all or names, not both"
		                                : "which sandbox? Name it, or say --all");
	return extra.all ? for_all(&line, &extra, one) : for_each(&line, &extra, one);
}

int cli_pause(int argc, char **argv)
{
	static const struct option_spec specs[] = {{"all", 'a', NULL, "every sandbox"},
	        {"reason", 'r', "TEXT", PAUSE_HELP}, CONTROL_SPEC_SOCKET, CONTROL_SPEC_JSON,
	        CONTROL_SPEC_HELP, {NULL, 0, NULL, NULL}};
	static const struct simple command = {"vethguard pause",
	        "NAME...|--all [--reason TEXT] [OPTIONS]",
	        "Refuses everything that sandboxes ask for, at once, and closes their live\n"
	        "connections, until 'vethguard resume'.",
	        "  vethguard pause agent-7 --reason 'looks odd'\n  vethguard pause --all\n", specs};

	(void)argc;
	return some_or_all(&command, argv + 1, pause_one);
}

int cli_resume(int argc, char **argv)
{
	static const struct option_spec specs[] = {{"all", 'a', NULL, "every sandbox"},
	        CONTROL_SPEC_SOCKET, CONTROL_SPEC_JSON, CONTROL_SPEC_HELP, {NULL, 0, NULL, NULL}};
	static const struct simple command = {"vethguard resume", "NAME...|--all [OPTIONS]",
	        "Lets paused sandboxes go on.",
	        "  vethguard resume agent-7\n  vethguard resume --all\n", specs};

	(void)argc;
	return some_or_all(&command, argv + 1, resume_one);
}
