/* SPDX-License-Identifier: Apache-2.0 */
/* `vethguard reload`, `pause`, `resume`: change a sandbox. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/attach/named.h"
#include "vethguard/wire/message.h"

/* --- reload --- */

/* Prints the sandbox after an operation. */
static void tell(const struct control_line *line, const json_t *json)
{
	const json_t *policy = json_object_get(json, "policy");
	const json_t *diff = json_object_get(json, "diff");

	char prefix[MESSAGE_NAME_MAX + 32];

	snprintf(prefix, sizeof(prefix), "vethguard: warning: %.*s: ", MESSAGE_NAME_MAX,
	        control_text(json, "name"));
	control_print_lines(stderr, prefix, json_object_get(json, "warnings"));
	if (line->json) {
		control_print_json(json);
		return;
	}
	printf("%s: %s", control_text(json, "name"), control_text(json, "state"));
	if (diff)
		printf(", policy generation %lld%s",
		        (long long)json_integer_value(json_object_get(policy, "generation")),
		        json_array_size(diff) ? "" : ", which decides the same as the one before");
	if (strcmp(control_text(json, "state"), "failed") == 0)
		printf(" (no worker serves it)%s",
		        json_is_true(json_object_get(json, "paused"))
		                ? "; it stays paused when a worker serves it again"
		                : "");
	putchar('\n');
	control_print_lines(stdout, "  ", diff);
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

static int reload_one(
        const struct control_line *line, const struct named_options *options, const char *name)
{
	char path[PATH_MAX];
	json_t *body = NULL;

	if (options->policy && !attach_policy_path(options->policy, path)) {
		fprintf(stderr, "vethguard: error: --policy %s: %s\n", options->policy,
		        strerror(errno));
		return CLI_USAGE;
	}
	if (options->policy) {
		body = json_pack("{s:s}", "policy", path);
		if (!body) { /* without a body, the daemon would reload the previous policy */
			fputs("vethguard: error: the path of --policy is not UTF-8\n", stderr);
			return CLI_USAGE;
		}
	}
	return change(line, name, "/reload", body);
}

static int reload_all(const struct control_line *line)
{
	struct control_answer answer;
	int rc = control_call(line->socket, "POST", "/reload", NULL, &answer);

	if (rc)
		return rc;
	control_print_lines(
	        stderr, "vethguard: warning: ", json_object_get(answer.json, "warnings"));
	if (line->json)
		control_print_json(answer.json);
	else
		printf("%lld reloaded\n",
		        (long long)json_integer_value(json_object_get(answer.json, "reloaded")));
	control_answer_free(&answer);
	return 0;
}

static const struct option_spec reload_specs[] = {
        {"all", 'a', NULL, "every sandbox, as without a name"},
        {"policy", 'p', "FILE", "enforce this policy instead of the current file"},
        CONTROL_SPEC_SOCKET, CONTROL_SPEC_JSON, CONTROL_SPEC_HELP, {NULL, 0, NULL, NULL}};

static const struct named_command reload_command = {"vethguard reload", "[NAME...|--all] [OPTIONS]",
        "Reads policies again and enforces them; live connections are checked again.\n"
        "Prints what changed. Without a name: the configuration and all sandboxes. A file\n"
        "with a fault changes nothing.",
        "  vethguard reload agent-7\n"
        "  vethguard reload agent-7 --policy stricter.yaml\n",
        reload_specs, reload_one};

int cli_reload(int argc, char **argv)
{
	struct control_line line;
	struct named_options options;
	int rc = named_begin(&reload_command, argv + 1, &line, &options);

	(void)argc;
	if (rc >= 0)
		return rc;
	if (line.name_count && options.all)
		return named_usage(&reload_command, "give names or --all, not both");
	if (!line.name_count && options.policy)
		return named_usage(&reload_command, "--policy needs the names of the sandboxes");
	return line.name_count ? named_each(&reload_command, &line, &options) : reload_all(&line);
}

/* --- pause, resume --- */

static int some_or_all(const struct named_command *command, char **argv)
{
	struct control_line line;
	struct named_options options;
	int rc = named_begin(command, argv, &line, &options);

	if (rc >= 0)
		return rc;
	if (options.all == (line.name_count > 0))
		return named_usage(command, options.all ? "give names or --all, not both"
		                                        : "which sandbox? Name it, or give --all");
	return options.all ? named_all(command, &line, &options)
	                   : named_each(command, &line, &options);
}

static int pause_one(
        const struct control_line *line, const struct named_options *options, const char *name)
{
	json_t *body = NULL;

	if (options->reason) {
		body = json_pack("{s:s}", "reason", options->reason);
		if (!body) {
			fputs("vethguard: error: --reason is not UTF-8\n", stderr);
			return CLI_USAGE;
		}
	}
	return change(line, name, "/pause", body);
}

static const struct option_spec pause_specs[] = {{"all", 'a', NULL, "every sandbox"},
        {"reason", 'r', "TEXT", "the reason; sandboxes and the log show it"}, CONTROL_SPEC_SOCKET,
        CONTROL_SPEC_JSON, CONTROL_SPEC_HELP, {NULL, 0, NULL, NULL}};

static const struct named_command pause_command = {"vethguard pause",
        "NAME...|--all [--reason TEXT] [OPTIONS]",
        "Refuses at once everything that sandboxes ask for, and closes their live\nconnections, "
        "until 'vethguard resume'. A sandbox that has failed has no worker; it\nstays paused when "
        "a worker serves it again.",
        "  vethguard pause agent-7 --reason 'looks odd'\n"
        "  vethguard pause --all\n",
        pause_specs, pause_one};

int cli_pause(int argc, char **argv)
{
	(void)argc;
	return some_or_all(&pause_command, argv + 1);
}

static int resume_one(
        const struct control_line *line, const struct named_options *options, const char *name)
{
	(void)options;
	return change(line, name, "/resume", NULL);
}

static const struct option_spec resume_specs[] = {{"all", 'a', NULL, "every sandbox"},
        CONTROL_SPEC_SOCKET, CONTROL_SPEC_JSON, CONTROL_SPEC_HELP, {NULL, 0, NULL, NULL}};

static const struct named_command resume_command = {"vethguard resume", "NAME...|--all [OPTIONS]",
        "Lets paused sandboxes go on. A sandbox that has failed needs 'vethguard reload'.",
        "  vethguard resume agent-7\n"
        "  vethguard resume --all\n",
        resume_specs, resume_one};

int cli_resume(int argc, char **argv)
{
	(void)argc;
	return some_or_all(&resume_command, argv + 1);
}
