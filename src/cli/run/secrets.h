/* SPDX-License-Identifier: Apache-2.0 */
/* run_secrets: variables that look like keys and are passed inside unchanged. */
#ifndef VETHGUARD_SRC_CLI_RUN_SECRETS_H
#define VETHGUARD_SRC_CLI_RUN_SECRETS_H

#include "vethguard/adapter/environment.h"
#include "cli/run/options.h"
#include "vethguard/wire/message.h"

#define RUN_SECRETS_TOLD_MAX 12   /* names in the line; more are only counted */
#define RUN_SECRETS_VALUE_MIN 6   /* bytes; a shorter value is a switch or a number */
#define RUN_SECRETS_NAME_SHOWN 64 /* bytes of a name in the line */

/* True for a name that is known to hold a key, or ends like one of those, with a value that can be
 * a key; and for a URL with a password in it, whatever the name. */
bool run_secrets_is_one(struct slice name, struct slice value);
/* Prints one warning that names such variables of env (never their values) if the user has not
 * asked for them with --env or --keep-env and the policy has not replaced them by placeholders.
 * Prints nothing if there are none. */
void run_secrets_tell(const struct environment *env, const struct run_options *options,
        const struct message_run_ready *ready);

#endif
