/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the policy commands. */
#include <string.h>

#include "cli/command.h"
#include "cli/policy/policy.h"

static const struct command commands[] = {
        {"check", policy_check_command, "find faults and likely mistakes in policies"},
        {"explain", policy_explain_command, "what would happen to a request, and why"},
        {"diff", policy_diff_command, "what a new version allows more, and what less"},
        {"new", policy_new_command, "write a first policy, after a few questions"},
        {NULL, NULL, NULL},
};

static void usage(FILE *out)
{
	fputs("Usage: vethguard policy check FILE... [OPTIONS]\n"
	      "       vethguard policy explain FILE METHOD URL [OPTIONS]\n"
	      "       vethguard policy diff OLD NEW [OPTIONS]\n"
	      "       vethguard policy new [OPTIONS]\n\n",
	        out);
	command_list(commands, out);
	fputs("\nExit status: 0 valid, allowed or the same; 1 denied, different, or a host without "
	      "a usable\naddress; 2 wrong usage, or a policy that does not load. 'vethguard policy "
	      "check --help' says\nmore.\n",
	        out);
}

int cli_policy(int argc, char **argv)
{
	const struct command *command;

	if (argc < 2) {
		usage(stderr);
		return POLICY_EXIT_BAD;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
		usage(stdout);
		return POLICY_EXIT_GOOD;
	}
	command = command_find(commands, argv[1]);
	return command ? command->run(argc - 1, argv + 1)
	               : command_unknown(commands, "vethguard policy", argv[1], NULL);
}
