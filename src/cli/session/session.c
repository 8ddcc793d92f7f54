/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the session commands, and what they share. */
#include <stdio.h>

#include "cli/command.h"
#include "cli/session/session.h"
#include "vethguard/wire/message.h"

static const struct command commands[] = {
        {"create", session_create_command, "make a session, and print its token once"},
        {"list", session_list_command, "the sessions"},
        {"show", session_show_command, "sessions in detail"},
        {"extend", session_extend_command, "let sessions last longer, or end sooner"},
        {"certificate", session_certificate_command, "make a client certificate that proves one"},
        {"revoke", session_revoke_command, "end sessions, and cut their connections"},
        {NULL, NULL, NULL},
};

static void usage(FILE *out)
{
	fputs("Usage: vethguard session create --policy FILE [OPTIONS]\n"
	      "       vethguard session list [OPTIONS]\n"
	      "       vethguard session show NAME... [OPTIONS]\n"
	      "       vethguard session extend NAME... --ttl TIME [OPTIONS]\n"
	      "       vethguard session certificate NAME [OPTIONS]\n"
	      "       vethguard session revoke NAME... [OPTIONS]\n"
	      "       vethguard session revoke --signer NAME --id VALUE [OPTIONS]\n\n"
	      "A session is a sandbox on a machine that is not ours: it comes in by the gateway,\n"
	      "with a token, and has a policy, credentials and a CA of its own.\n\n",
	        out);
	command_list(commands, out);
	fputs("\nExit status: 0 done; 1 the daemon refused; 2 wrong usage; 3 the daemon cannot be\n"
	      "reached. docs/gateway.md is the guide. What works for every sandbox works for\n"
	      "sessions: vethguard pause, resume, reload, stats, env.\n",
	        out);
}

int cli_session(int argc, char **argv)
{
	return command_choose(commands, "vethguard session", usage, argc, argv);
}

bool session_path(char out[CONTROL_PATH_MAX], const char *name, const char *tail)
{
	return control_path_of(out, "/sessions/", "session", name, tail);
}
