/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "cli/command.h"
#include "cli/commands.h"
#include "vethguard/base/diag.h"

#define ESCAPED_MAX 128

const struct command *command_find(const struct command *table, const char *name)
{
	for (; table->name; table++)
		if (strcmp(name, table->name) == 0)
			return table;
	return NULL;
}

int command_unknown(
        const struct command *table, const char *of, const char *name, const char *meant)
{
	const char *names[COMMANDS_MAX + 1];
	char escaped[ESCAPED_MAX], list[DIAG_WORDS_SHORT + 1];
	size_t n = 0;

	for (; n < COMMANDS_MAX && table[n].name; n++)
		names[n] = table[n].name;
	names[n] = NULL;
	if (!meant)
		meant = diag_nearest(slice_from_string(name), names);
	fprintf(stderr, "vethguard: error: unknown command %s",
	        slice_escape(slice_from_string(name), escaped, sizeof(escaped)));
	if (meant)
		fprintf(stderr, "; did you mean %s?", meant);
	fprintf(stderr, "\nThe commands are %s. See '%s --help'.\n",
	        diag_words(names, "and", list, sizeof(list)), of);
	return CLI_USAGE;
}

void command_list(const struct command *table, FILE *out)
{
	for (; table->name; table++)
		fprintf(out, "  %-10s %s\n", table->name, table->help);
}

int command_choose(const struct command *table, const char *of, void (*usage)(FILE *out), int argc,
        char **argv)
{
	const struct command *command;

	if (argc < 2) {
		usage(stderr);
		return CLI_USAGE;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
		usage(stdout);
		return 0;
	}
	command = command_find(table, argv[1]);
	return command ? command->run(argc - 1, argv + 1)
	               : command_unknown(table, of, argv[1], NULL);
}
