/* SPDX-License-Identifier: Apache-2.0 */
/* `vethguard audit`: which of its commands. */
#include <string.h>

#include "audit_commands.h"
#include "commands.h"

static void usage(FILE *out)
{
	fputs("Usage: vethguard audit show FILE [--denied] [--sandbox NAME] [--since WHEN] "
	      "[--event ID] "
	      "[--json]\n"
	      "       vethguard audit suggest FILE [--sandbox NAME] [--since WHEN] [--event ID] "
	      "[--policy FILE] [--json]\n"
	      "       vethguard audit verify FILE... [--anchor HASH]\n\n"
	      "  show     the audit log as a table\n"
	      "  suggest  rules that would allow what was refused\n"
	      "  verify   checks that no line was changed, removed or added\n\n"
	      "FILE '-' is standard input. 'vethguard audit show --help' tells more.\n",
	        out);
}

int cli_audit(int argc, char **argv)
{
	if (argc >= 2 && strcmp(argv[1], "show") == 0)
		return audit_show(argv + 2);
	if (argc >= 2 && strcmp(argv[1], "suggest") == 0)
		return audit_suggest(argv + 2);
	if (argc >= 2 && strcmp(argv[1], "verify") == 0)
		return audit_verify(argv + 2);
	if (argc >= 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
		usage(stdout);
		return 0;
	}
	usage(stderr);
	return CLI_USAGE;
}
