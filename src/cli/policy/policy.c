/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the policy commands. */
#include <stdio.h>

#include "cli/command.h"
#include "cli/policy/policy.h"

static const struct command commands[] = {
        {"check", policy_check_command, "find faults and likely mistakes in policies"},
        {"explain", policy_explain_command, "what would happen to a request, and why"},
        {"diff", policy_diff_command, "what a new version allows more, and what less"},
        {"new", policy_new_command, "write a first policy, after a few questions"},
        {"import", policy_import_command,
                "write a policy that allows no more than another program's rules"},
        {NULL, NULL, NULL},
};

static void usage(FILE *out)
{
	fputs("Usage: vethguard policy check FILE... [OPTIONS]\n"
	      "       vethguard policy explain FILE METHOD URL [OPTIONS]\n"
	      "       vethguard policy diff OLD NEW [OPTIONS]\n"
	      "       vethguard policy new [OPTIONS]\n"
	      "       vethguard policy import --from FORMAT FILE [OPTIONS]\n\n",
	        out);
	command_list(commands, out);
	fputs("\nExit status: 0 valid, allowed or the same; 1 denied, different, or a host without "
	      "a usable\naddress; 2 wrong usage, or a policy that does not load. 'vethguard policy "
	      "check --help' says\nmore.\n",
	        out);
}

int cli_policy(int argc, char **argv)
{
	return command_choose(commands, "vethguard policy", usage, argc, argv);
}
