/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that make one call to the daemon for each sandbox named. */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/attach/named.h"

const struct option_spec named_specs[] = {
        CONTROL_SPEC_SOCKET, CONTROL_SPEC_JSON, CONTROL_SPEC_HELP, {NULL, 0, NULL, NULL}};

static bool take_option(void *context, const char *option, const char *value)
{
	struct named_options *options = context;

	if (strcmp(option, "policy") == 0)
		options->policy = value;
	else if (strcmp(option, "reason") == 0)
		options->reason = value;
	else if (strcmp(option, "yes") == 0)
		options->yes = true;
	else
		options->all = true;
	return true;
}

static void help(const struct named_command *command)
{
	printf("Usage: %s %s\n\n%s\n\nOptions:\n", command->name, command->usage, command->text);
	options_print(command->specs, stdout);
	printf("\nExamples:\n%s\n"
	       "Exit status: 0 done; 1 the daemon refused; 2 wrong usage; 3 the daemon cannot be\n"
	       "reached.\n",
	        command->examples);
}

int named_begin(const struct named_command *command, char **argv, struct control_line *line,
        struct named_options *options)
{
	*options = (struct named_options){0};
	if (!control_line_read(line, command->name, command->specs, argv, take_option, options))
		return CLI_USAGE;
	if (!line->help)
		return -1;
	help(command);
	return 0;
}

int named_usage(const struct named_command *command, const char *what)
{
	fprintf(stderr, "vethguard: error: %s\nUsage: %s %s\n", what, command->name,
	        command->usage);
	return CLI_USAGE;
}

int named_each(const struct named_command *command, const struct control_line *line,
        const struct named_options *options)
{
	int status = 0;

	for (size_t i = 0; i < line->name_count; i++) {
		int rc = command->one(line, options, line->names[i]);

		if (rc == CONTROL_UNREACHABLE)
			return rc;
		status = status ? status : rc;
	}
	return status;
}

int named_all(const struct named_command *command, const struct control_line *line,
        const struct named_options *options)
{
	struct control_answer answer;
	const json_t *sandboxes;
	int status = control_call(line->socket, "GET", "/sandboxes", NULL, &answer), rc;
	size_t i;

	if (status)
		return status;
	sandboxes = json_object_get(answer.json, "sandboxes");
	for (i = 0; i < json_array_size(sandboxes); i++) {
		rc = command->one(
		        line, options, control_text(json_array_get(sandboxes, i), "name"));
		status = status ? status : rc;
	}
	control_answer_free(&answer);
	return status;
}

int named_run(const struct named_command *command, char **argv)
{
	struct control_line line;
	struct named_options options;
	int rc = named_begin(command, argv, &line, &options);

	if (rc >= 0)
		return rc;
	return line.name_count ? named_each(command, &line, &options)
	                       : named_usage(command, "which sandbox? 'vethguard list' names them");
}
