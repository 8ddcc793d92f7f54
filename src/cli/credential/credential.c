/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the credential commands, and functions that they share. */
#include <stdio.h>

#include "cli/command.h"
#include "cli/commands.h"
#include "cli/credential/credential.h"

static const struct command commands[] = {
        {"list", credential_list_command, "the credentials of sandboxes and their states"},
        {"show", credential_show_command, "one credential in detail"},
        {"check", credential_check_command, "ask its source once, and say what is sent where"},
        {"rotate", credential_rotate_command, "get a fresh value and use it at once"},
        {"revoke", credential_revoke_command, "stop its use at once, live streams included"},
        {NULL, NULL, NULL},
};

static void usage(FILE *out)
{
	fputs("Usage: vethguard credential list [SANDBOX...] [OPTIONS]\n"
	      "       vethguard credential show SANDBOX CREDENTIAL [OPTIONS]\n"
	      "       vethguard credential check SANDBOX CREDENTIAL [OPTIONS]\n"
	      "       vethguard credential rotate SANDBOX CREDENTIAL [OPTIONS]\n"
	      "       vethguard credential revoke SANDBOX CREDENTIAL [OPTIONS]\n\n",
	        out);
	command_list(commands, out);
	fputs("\n"
	      "No command shows a value. A fingerprint tells whether two values are the same. "
	      "Only\n"
	      "the keeper has its key, which changes when the keeper restarts.\n"
	      "\n"
	      "Exit status: 0 done; 1 the daemon or the source refused; 2 wrong usage; 3 the "
	      "daemon\n"
	      "cannot be reached.\n",
	        out);
}

int cli_credential(int argc, char **argv)
{
	return command_choose(commands, "vethguard credential", usage, argc, argv);
}

const struct option_spec credential_specs[] = {
        CONTROL_SPEC_SOCKET, CONTROL_SPEC_JSON, CONTROL_SPEC_HELP, {NULL, 0, NULL, NULL}};

int credential_line_read(const struct control_usage *u, char **argv, size_t least, size_t most,
        struct control_line *line)
{
	int rc = control_usage_read(u, argv, line, NULL, NULL);

	if (rc >= 0)
		return rc;
	if (line->name_count < least)
		return control_usage_wrong(
		        u, line->name_count ? "which credential? 'vethguard credential "
		                              "list' names them"
		                            : "which sandbox? 'vethguard list' names them");
	return line->name_count > most ? control_usage_wrong(u, "too many arguments") : -1;
}
