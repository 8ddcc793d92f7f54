/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines of the commands that talk to the daemon. */
#include <stdio.h>
#include <string.h>

#include "cli/attach/commands.h"
#include "cli/commands.h"
#include "vethguard/wire/message.h"

bool control_line_read(struct control_line *line, const char *command,
        const struct option_spec *specs, char **argv,
        bool (*take)(void *context, const char *option, const char *value), void *context)
{
	struct options o;
	int option;

	*line = (struct control_line){.socket = CONTROL_SOCKET_DEFAULT, .names = argv};
	options_init(&o, command, specs, argv);
	for (;;) {
		while ((option = options_next(&o)) >= 0) {
			const char *name = specs[option].name;

			if (strcmp(name, "socket") == 0)
				line->socket = o.value;
			else if (strcmp(name, "json") == 0)
				line->json = true;
			else if (strcmp(name, "help") == 0)
				line->help = true;
			else if (!take(context, name, o.value))
				return false;
		}
		if (option == OPTIONS_WRONG)
			return false;
		if (!*o.argv)
			return true;
		/* names are collected at the front, where options were read already */
		line->names[line->name_count++] = *o.argv++;
	}
}

int control_usage_read(const struct control_usage *u, char **argv, struct control_line *line,
        bool (*take)(void *context, const char *option, const char *value), void *context)
{
	if (!control_line_read(line, u->command, u->specs, argv, take, context))
		return CLI_USAGE;
	if (!line->help)
		return -1;
	printf("Usage: %s %s\n\n%s\nOptions:\n", u->command, u->words, u->text);
	options_print(u->specs, stdout);
	printf("\nExamples:\n%s", u->examples);
	return 0;
}

int control_usage_wrong(const struct control_usage *u, const char *what)
{
	fprintf(stderr, "vethguard: error: %s\nUsage: %s %s\n", what, u->command, u->words);
	return CLI_USAGE;
}

bool control_path_of(char out[CONTROL_PATH_MAX], const char *folder, const char *what,
        const char *name, const char *tail)
{
	char shown[128];

	if (message_name_is_plain(slice_from_string(name))) {
		snprintf(out, CONTROL_PATH_MAX, "%s%s%s", folder, name, tail);
		return true;
	}
	fprintf(stderr, "vethguard: error: no %s can be called '%s': " MESSAGE_NAME_RULE "\n", what,
	        slice_escape(slice_from_string(name), shown, sizeof(shown)), MESSAGE_NAME_MAX);
	return false;
}

bool control_path(char out[CONTROL_PATH_MAX], const char *name, const char *tail)
{
	return control_path_of(out, "/sandboxes/", "sandbox", name, tail);
}
