/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines of the commands that talk to the daemon. */
#include <stdio.h>
#include <string.h>

#include "cli/attach/commands.h"
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

bool control_path(char out[CONTROL_PATH_MAX], const char *name, const char *tail)
{
	char shown[128];

	if (message_name_is_plain(slice_from_string(name))) {
		snprintf(out, CONTROL_PATH_MAX, "/sandboxes/%s%s", name, tail);
		return true;
	}
	fprintf(stderr, "vethguard: error: no sandbox can be called '%s': " MESSAGE_NAME_RULE "\n",
	        slice_escape(slice_from_string(name), shown, sizeof(shown)), MESSAGE_NAME_MAX);
	return false;
}
