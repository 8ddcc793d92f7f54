/* SPDX-License-Identifier: Apache-2.0 */
/* `vethguard audit`: chooses among its commands. */
#include <stdio.h>

#include "cli/audit/audit.h"
#include "cli/command.h"

static const struct command commands[] = {
        {"show", audit_show, "the audit log as a table"},
        {"suggest", audit_suggest, "rules that would allow what was refused"},
        {"verify", audit_verify, "checks its hash chain, and whether its end was cut off"},
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
	fputs("\n"
	      "Without FILE the daemon's own log is read; FILE '-' is standard input. 'vethguard "
	      "audit\n"
	      "show --help' tells more.\n",
	        out);
}

int cli_audit(int argc, char **argv)
{
	return command_choose(commands, "vethguard audit", usage, argc, argv);
}
