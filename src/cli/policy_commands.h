/* SPDX-License-Identifier: Apache-2.0 */
/* policy_commands: `vethguard policy check` and `vethguard policy explain`. */
#ifndef CLI_POLICY_COMMANDS_H
#define CLI_POLICY_COMMANDS_H

#include <stdio.h>

#include "vethguard/base/buf.h"
#include "vethguard/base/diag.h"
#include "vethguard/policy/policy.h"
#include "vethguard/wire/json.h"

#define POLICY_EXIT_GOOD 0   /* check: every file is right; explain: allowed */
#define POLICY_EXIT_DENIED 1 /* explain: denied */
#define POLICY_EXIT_BAD 2    /* usage, or a policy that does not load */

/* Runs "policy SUBCOMMAND ...": argv[0] is the word "policy". Returns the exit status. */
int cli_policy(int argc, char **argv);

int policy_check_command(int argc, char **argv);
int policy_explain_command(int argc, char **argv);

/* A loaded and opened policy. */
struct policy_loaded {
	struct policy policy;
	uint8_t *image; /* owned */
};

/* 0 or -errno; diags say why. policy_unload() in either case. */
int policy_load_file(const char *path, struct policy_loaded *out, struct diag_list *diags);
void policy_unload(struct policy_loaded *loaded);

/* Sorts argv: "--json" and "--help" anywhere, the rest stays in order. Returns the count of what is
 * left from argv[1] on, or -1 with a message for an unknown option. */
int policy_take_options(int argc, char **argv, bool *json, bool *help);

void policy_diags_json(struct json *j, const char *key, const struct diag_list *diags);
/* Prints what was built, and a line break. The exit status: bad where the text is not whole. */
int policy_print_json(struct json *j, struct buf *buf, int status);

#endif
