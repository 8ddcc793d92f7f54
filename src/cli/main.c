/* SPDX-License-Identifier: Apache-2.0 */
/* vethguard: the command-line tool. It has one table of commands; everything else is in the
 * commands' own files. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/audit/audit.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/attach/commands.h"
#include "cli/bundle/bundle.h"
#include "cli/ca/ca.h"
#include "cli/credential/credential.h"
#include "cli/policy/policy.h"
#include "cli/ask/commands.h"
#include "cli/prepare/commands.h"
#include "cli/session/session.h"
#include "vethguard/base/log.h"
#include "vethguard/base/version.h"

static int cli_help(int argc, char **argv);
static int cli_version(int argc, char **argv);

static const struct command commands[] = {
        {"run", cli_run, "run a command behind the guard"},
        {"attach", cli_attach, "guard a container, namespace, process or interface"},
        {"detach", cli_detach, "stop guarding sandboxes"},
        {"list", cli_list, "what the daemon guards"},
        {"show", cli_show, "one sandbox in detail"},
        {"env", cli_env, "what to set inside of a sandbox"},
        {"reload", cli_reload, "put changed policies in force"},
        {"pause", cli_pause, "refuse everything at once"},
        {"resume", cli_resume, "go on after a pause"},
        {"ask", cli_ask, "requests that wait for a person's approval"},
        {"approve", cli_approve, "let one of them go on"},
        {"refuse", cli_refuse, "refuse it, or end an approval"},
        {"stats", cli_stats, "what sandboxes have done and hold open"},
        {"prepare", cli_prepare, "prepare namespaces, for sandboxes that start at once"},
        {"claim", cli_claim, "guard a prepared namespace under a policy"},
        {"release", cli_release, "end a claimed sandbox, and prepare its namespace again"},
        {"session", cli_session, "sandboxes on other machines, which use the gateway"},
        {"probe", cli_probe, "a script that tries every way out of the sandbox it runs in"},
        {"sidecar", cli_sidecar, "guard a pod or group from inside of it"},
        {"policy", cli_policy, "write policies, check and compare them, explain their decisions"},
        {"bundle", cli_bundle, "sign policies, key sets and revocations for many gateways"},
        {"ca", cli_ca, "show, export and replace the CAs that sandboxes trust"},
        {"credential", cli_credential, "show, check, rotate and revoke credentials"},
        {"audit", cli_audit, "show and verify the audit log, suggest rules from it"},
        {"doctor", cli_doctor, "check this machine, and say how to fix what is missing"},
        {"help", cli_help, "this text, or that of a command"},
        {"version", cli_version, "the version"},
        {NULL, NULL, NULL},
};

static void usage(FILE *out)
{
	fputs("vethguard: run any program behind a network policy.\n"
	      "\n"
	      "Usage: vethguard COMMAND [OPTIONS]\n"
	      "\n"
	      "Commands:\n",
	        out);
	command_list(commands, out);
	fputs("\nExamples:\n"
	      "  vethguard doctor\n"
	      "  vethguard policy check coding-agent.yaml\n"
	      "  vethguard run --policy coding-agent.yaml -- pip download requests\n"
	      "  vethguard attach --container agent --policy agent.yaml\n"
	      "  vethguard audit show vethguard.jsonl --denied\n\n"
	      "'vethguard COMMAND --help' tells more; so do the manual pages vethguard(1) and\n"
	      "vethguard-run(1).\n",
	        out);
}

/* Returns the command meant by a word of another program, or by a command of policy or audit
 * without that word. NULL: none. */
static const char *meant_by(const char *word)
{
	static const char *const words[][2] = {{"check", "policy check"},
	        {"explain", "policy explain"}, {"diff", "policy diff"}, {"new", "policy new"},
	        {"init", "policy new"}, {"verify", "audit verify"}, {"suggest", "audit suggest"},
	        {"log", "audit show"}, {"logs", "audit show"}, {"ls", "list"}, {"ps", "list"},
	        {"status", "list"}, {"rm", "detach"}, {"stop", "detach"}, {"kill", "detach"},
	        {"exec", "run"}, {"start", "run or attach"}, {"inspect", "show"},
	        {"unpause", "resume"}};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(word, words[i][0]) == 0)
			return words[i][1];
	return NULL;
}

static int cli_help(int argc, char **argv)
{
	const struct command *command;
	char help[] = "--help";
	char *words[3];

	if (argc < 2) {
		usage(stdout);
		return 0;
	}
	command = command_find(commands, argv[1]);
	if (!command)
		return command_unknown(commands, "vethguard", argv[1], meant_by(argv[1]));
	if (command->run == cli_help || command->run == cli_version) {
		printf("vethguard %s: %s\n", command->name, command->help);
		return 0;
	}
	words[0] = argv[1];
	words[1] = help;
	words[2] = NULL;
	return command->run(2, words);
}

static int cli_version(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	puts("vethguard " VERSION_TEXT);
	return 0;
}

/* Reports a write error: for example, an --env-file that a full disk cut short must not pass for
 * success. */
static int written(int status)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	fprintf(stderr, "vethguard: error: the output cannot be written: %s\n", strerror(errno));
	return status ? status : CLI_USAGE;
}

int main(int argc, char **argv)
{
	const struct command *command;

	log_open("vethguard", LOG_LEVEL_WARN);
	if (argc < 2) {
		usage(stderr);
		return CLI_USAGE;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
		usage(stdout);
		return 0;
	}
	if (strcmp(argv[1], "--version") == 0)
		return cli_version(0, NULL);
	command = command_find(commands, argv[1]);
	if (!command)
		return command_unknown(commands, "vethguard", argv[1], meant_by(argv[1]));
	if (command->run == cli_run) /* its status is the command's own */
		return cli_run(argc - 1, argv + 1);
	return written(command->run(argc - 1, argv + 1));
}
