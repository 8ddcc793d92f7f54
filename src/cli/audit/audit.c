/* SPDX-License-Identifier: Apache-2.0 */
/* `vethguard audit`: chooses among its commands. */
#include <string.h>

#include "cli/audit/audit.h"
#include "cli/command.h"
#include "cli/commands.h"

static const struct command commands[] = {
        {"show", audit_show, "the audit log as a table"},
        {"suggest", audit_suggest, "rules that would allow what was refused"},
        {"verify", audit_verify, "checks its lines, and says what of its end is known"},
        {NULL, NULL, NULL},
};

static void usage(FILE *out)
{
	fputs("Usage: vethguard audit show [FILE] [--denied] [--sandbox NAME] [--since WHEN]\n"
	      "                            [--event ID] [--json]\n"
	      "       vethguard audit suggest [FILE] [--sandbox NAME] [--since WHEN] [--event ID]\n"
	      "                               [--policy FILE] [--json]\n"
	      "       vethguard audit verify [FILE...] [--anchor HASH]\n\n",
	        out);
	command_list(commands, out);
	fputs("\nWithout FILE the daemon is asked for its own; '-' is standard input. 'vethguard "
	      "audit\nshow --help' tells more.\n",
	        out);
}

int cli_audit(int argc, char **argv)
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
	command = command_find(commands, argv[1]);
	return command ? command->run(argc - 1, argv + 1)
	               : command_unknown(commands, "vethguard audit", argv[1], NULL);
}
