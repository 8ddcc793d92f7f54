/* SPDX-License-Identifier: Apache-2.0 */
/* vethguard-runtime: an OCI runtime that guards a container's network before its first instruction,
 * and leaves the container itself to a real runtime. */
#include <stdio.h>
#include <string.h>

#include "vethguard/base/log.h"
#include "vethguard/base/version.h"
#include "runtime/commands.h"
#include "runtime/process.h"

static void help(void)
{
	fputs("Usage: vethguard-runtime [GLOBAL OPTIONS] COMMAND [OPTIONS] CONTAINER\n"
	      "       vethguard-runtime hook <STATE\n\n"
	      "An OCI runtime that engines call: it guards a container's network before its first\n"
	      "instruction, and leaves the container itself to runc, crun or runsc. All options "
	      "and\n"
	      "commands are those of the real runtime; create, run, start, exec and delete do "
	      "more.\n"
	      "The container names its policy in its environment, VETHGUARD_POLICY=NAME, or in "
	      "the\n"
	      "annotation org.vethguard.policy.\n\nOptions:\n"
	      "      --vethguard-config FILE  the configuration; default: " SETTINGS_PATH "\n\n"
	      "Examples:\n"
	      "  docker run --runtime vethguard -e VETHGUARD_POLICY=agent alpine sh\n"
	      "  podman --runtime /usr/libexec/vethguard/vethguard-runtime run --network none \\\n"
	      "      -e VETHGUARD_POLICY=agent alpine sh\n\n"
	      "Exit status: that of the real runtime; 1 if the container is refused.\n"
	      "vethguard-runtime(8) tells more. This is vethguard " VERSION_TEXT ".\n",
	        stdout);
}

static int act(const struct settings *s, const struct line *line, struct fault *fault)
{
	switch (line->verb) {
	case VERB_CREATE:
	case VERB_RUN:
		return command_create(s, line, fault);
	case VERB_START:
		return command_start(s, line, fault);
	case VERB_DELETE:
		return command_delete(s, line, fault);
	case VERB_EXEC:
		return command_exec(s, line, fault);
	case VERB_RESTORE:
		return command_restore(s, line, fault);
	case VERB_HOOK:
		return command_hook(s, line, fault);
	default:
		return process_become(s, line, fault);
	}
}

int main(int argc, char **argv)
{
	static struct settings settings; /* some 16 KiB */
	static struct line line;
	struct fault fault = {""};
	int rc = PROCESS_EXIT;

	log_open("vethguard-runtime", LOG_LEVEL_WARN);
	if (line_read(&line, argc, argv, &fault) && line.verb == VERB_HELP) {
		help();
		return 0;
	}
	if (!fault.text[0] && runtime_settings_read(&settings, line.config, &fault) &&
	        (line.verb == VERB_HOOK || runtime_settings_find(&settings, argv[0], &fault)))
		rc = act(&settings, &line, &fault);
	if (fault.text[0])
		fault_report(&fault, "error", line.log,
		        line.log_format && strcmp(line.log_format, "json") == 0);
	return rc;
}
