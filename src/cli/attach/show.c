/* SPDX-License-Identifier: Apache-2.0 */
/* `vethguard list`, `show`, `stats`: show what the daemon guards. */

#include "cli/commands.h"
#include "cli/attach/named.h"

static const struct named_command list_command = {"vethguard list", "[OPTIONS]",
        "Shows the sandboxes that the daemon guards.",
        "  vethguard list\n"
        "  vethguard list --json | jq -r '.sandboxes[] | select(.state != \"serving\") | .name'\n",
        named_specs, NULL};

int cli_list(int argc, char **argv)
{
	struct control_line line;
	struct control_answer answer;
	struct named_options options;
	int rc = named_begin(&list_command, argv + 1, &line, &options);

	(void)argc;
	if (rc >= 0)
		return rc;
	if (line.name_count)
		return named_usage(&list_command, "list takes no name; 'vethguard show NAME' does");
	rc = control_call(line.socket, "GET", "/sandboxes", NULL, &answer);
	if (rc)
		return rc;
	if (line.json)
		control_print_json(answer.json);
	else
		control_print_list(json_object_get(answer.json, "sandboxes"));
	control_answer_free(&answer);
	return 0;
}

int control_call_and_print(const struct control_line *line, const char *method, const char *path,
        const json_t *body, void (*print)(const json_t *answer))
{
	struct control_answer answer;
	int rc = control_call(line->socket, method, path, body, &answer);

	if (rc)
		return rc;
	if (line->json)
		control_print_json(answer.json);
	else
		print(answer.json);
	control_answer_free(&answer);
	return 0;
}

static int look(const struct control_line *line, const char *name, const char *tail,
        void (*print)(const json_t *json))
{
	char path[CONTROL_PATH_MAX];

	return control_path(path, name, tail)
	               ? control_call_and_print(line, "GET", path, NULL, print)
	               : CLI_USAGE;
}

static int show_one(
        const struct control_line *line, const struct named_options *options, const char *name)
{
	(void)options;
	return look(line, name, "", control_print_sandbox);
}

static const struct named_command show_command = {"vethguard show", "NAME... [OPTIONS]",
        "Shows sandboxes in detail.", "  vethguard show agent-7\n", named_specs, show_one};

int cli_show(int argc, char **argv)
{
	(void)argc;
	return named_run(&show_command, argv + 1);
}

static int stats_one(
        const struct control_line *line, const struct named_options *options, const char *name)
{
	(void)options;
	return look(line, name, "/stats", control_print_stats);
}

static const struct named_command stats_command = {"vethguard stats", "[NAME...] [OPTIONS]",
        "Shows what sandboxes have done and what they hold open; without a name, of all.",
        "  vethguard stats agent-7\n"
        "  vethguard stats agent-7 --json | jq .worker.bytes_out\n",
        named_specs, stats_one};

int cli_stats(int argc, char **argv)
{
	struct control_line line;
	struct named_options options;
	int rc = named_begin(&stats_command, argv + 1, &line, &options);

	(void)argc;
	if (rc >= 0)
		return rc;
	return line.name_count ? named_each(&stats_command, &line, &options)
	                       : named_all(&stats_command, &line, &options);
}
