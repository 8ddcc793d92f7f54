/* SPDX-License-Identifier: Apache-2.0 */
/* run_secrets: variables that look like keys and go inside as they are. */
#ifndef VETHGUARD_SRC_CLI_RUN_SECRETS_H
#define VETHGUARD_SRC_CLI_RUN_SECRETS_H

#include "cli/run/environment.h"
#include "cli/run/options.h"
#include "vethguard/wire/message.h"

#define RUN_SECRETS_TOLD_MAX 12   /* names in the line; of more it says how many */
#define RUN_SECRETS_VALUE_MIN 6   /* bytes: what is shorter is a switch or a number */
#define RUN_SECRETS_NAME_SHOWN 64 /* bytes of a name in the line */

/* A name that is known to hold a key, or ends like one of those, with a value that can be one; or a
 * URL with a password in it, whatever the name. */
bool run_secrets_is_one(struct slice name, struct slice value);
/* One warning that names those of env (never their values) which the user has not asked for by
 * --env or --keep-env, and which the policy has not replaced by placeholders; no line where there
 * is none. */
void run_secrets_tell(const struct environment *env, const struct run_options *options,
        const struct message_session_ready *ready);

#endif
