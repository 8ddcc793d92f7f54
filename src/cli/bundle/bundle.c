/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the bundle commands. */
#include <stdio.h>

#include "cli/bundle/bundle.h"
#include "cli/command.h"

static const struct command commands[] = {
        {"create", bundle_create_command, "sign a new bundle"},
        {"show", bundle_show_command, "what a bundle's file says"},
        {"verify", bundle_verify_command, "check signature and content of a bundle's file"},
        {"list", bundle_list_command, "the daemon's bundles: what is in force, what is wrong"},
        {NULL, NULL, NULL},
};

static void usage(FILE *out)
{
	fputs("Usage: vethguard bundle create --key FILE --name NAME --serial N -o FILE [OPTIONS]\n"
	      "       vethguard bundle show FILE [OPTIONS]\n"
	      "       vethguard bundle verify FILE --public-key FILE [OPTIONS]\n"
	      "       vethguard bundle list [OPTIONS]\n\n"
	      "A bundle is one signed file with policies, key sets of token signers, and\n"
	      "revocations. Any number of gateways take it from a file or a URL.\n\n",
	        out);
	command_list(commands, out);
	fputs("\nExit status: 0 done; 1 the bundle is not good, or the daemon refused; 2 wrong\n"
	      "usage; 3 the daemon cannot be reached. docs/gateway.md is the guide.\n",
	        out);
}

int cli_bundle(int argc, char **argv)
{
	return command_choose(commands, "vethguard bundle", usage, argc, argv);
}
