/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the ca commands, and what they share. */
#include <stdio.h>

#include "cli/ca/ca.h"
#include "cli/command.h"
#include "cli/commands.h"

static const struct command commands[] = {
        {"show", ca_show_command, "the CAs, when they expire, and how many sandboxes use them"},
        {"export", ca_export_command, "print the certificates that sandboxes should trust"},
        {"csr", ca_csr_command, "make a key here, and print a request for a certificate"},
        {"install", ca_install_command, "take the certificate for that key"},
        {"rotate", ca_rotate_command, "replace the CA; the earlier one stays trusted for a time"},
        {NULL, NULL, NULL},
};

static void usage(FILE *out)
{
	fputs("Usage: vethguard ca show [OPTIONS]\n"
	      "       vethguard ca export [OPTIONS]\n"
	      "       vethguard ca csr [OPTIONS]\n"
	      "       vethguard ca install CERTIFICATE [OPTIONS]\n"
	      "       vethguard ca rotate [OPTIONS]\n\n",
	        out);
	command_list(commands, out);
	fputs("\n"
	      "Exit status: 0 done; 1 the daemon refused; 2 wrong usage; 3 the daemon cannot be\n"
	      "reached. docs/ca.md tells which way suits whom.\n",
	        out);
}

int cli_ca(int argc, char **argv)
{
	return command_choose(commands, "vethguard ca", usage, argc, argv);
}

int ca_line_read(const struct control_usage *u, char **argv, size_t words,
        struct control_line *line,
        bool (*take)(void *context, const char *option, const char *value), void *context)
{
	int rc = control_usage_read(u, argv, line, take, context);

	if (rc >= 0)
		return rc;
	if (line->name_count < words)
		return control_usage_wrong(u, "which file? Name the certificate's file (PEM)");
	return line->name_count > words ? control_usage_wrong(u, "too many arguments") : -1;
}
