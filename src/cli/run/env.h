/* SPDX-License-Identifier: Apache-2.0 */
/* run_env: the guarded command's environment, and which source wins for a variable. */
#ifndef VETHGUARD_SRC_CLI_RUN_ENV_H
#define VETHGUARD_SRC_CLI_RUN_ENV_H

#include "cli/guest/guest.h"
#include "cli/run/supervisor.h"

/* Adds in this order, later ones win: the invoking environment (or the part that --clean-env and
 * --keep-env leave) without variables that credentials are read from; the user's HOME, USER,
 * LOGNAME, SHELL; the places of the CA; the proxy; placeholders; --env. Returns 0 or -ENOMEM. */
int run_env_build(struct environment *env, const struct run_options *options,
        const struct privilege *privilege, const struct run_user *user,
        const struct run_supervisor *supervisor, const struct message_run_ready *ready);

#endif
