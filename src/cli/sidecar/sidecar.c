/* SPDX-License-Identifier: Apache-2.0 */
/* vethguard sidecar: its commands, and `init`. */
#include <stdio.h>

#include "cli/command.h"
#include "cli/commands.h"
#include "cli/sidecar/sidecar.h"
#include "vethguard/base/log.h"

static int sidecar_init(int argc, char **argv)
{
	static struct sidecar_options options;
	struct failure failure = {""};
	int status, rc;

	(void)argc;
	if (sidecar_init_options(argv + 1, &options, &status) != 0)
		return status;
	log_open("vethguard", options.run.verbose > 1    ? LOG_LEVEL_DEBUG
	                      : options.run.verbose == 1 ? LOG_LEVEL_INFO
	                                                 : LOG_LEVEL_WARN);
	rc = sidecar_place(true, &failure);
	if (rc == 0)
		rc = sidecar_fence(&options, options.check, &failure);
	if (rc != 0) {
		log_error("%s", failure.text);
		return SIDECAR_NOT_FENCED;
	}
	log_info("the fence is in force: only user %u gets out", (unsigned)options.fence.uid);
	return 0;
}

static const struct command commands[] = {
        {"init", sidecar_init, "set the fence of a pod or group, with CAP_NET_ADMIN"},
        {"run", sidecar_run, "be its guard, without any right"},
        {NULL, NULL, NULL},
};

static void usage(FILE *out)
{
	fputs("Usage: vethguard sidecar init --uid UID [OPTIONS]\n"
	      "       vethguard sidecar run --policy FILE [OPTIONS]\n\n"
	      "Guards a pod or compose group from inside of its network namespace, where the node\n"
	      "cannot help. Its threat model is weaker than that of 'vethguard attach'.\n\n",
	        out);
	command_list(commands, out);
	fputs("\n'vethguard sidecar COMMAND --help' tells more.\n", out);
}

int cli_sidecar(int argc, char **argv)
{
	return command_choose(commands, "vethguard sidecar", usage, argc, argv);
}
