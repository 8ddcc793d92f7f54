/* SPDX-License-Identifier: Apache-2.0 */
/* env: what of `vethguard env` is about sessions: the gateway as a proxy, and the options that the
 * SDKs of providers take. */
#ifndef VETHGUARD_SRC_CLI_ATTACH_ENV_H
#define VETHGUARD_SRC_CLI_ATTACH_ENV_H

#include "cli/attach/commands.h"
#include "vethguard/adapter/environment.h"

#define ENV_TOKEN_MAX 4096
#define ENV_PROVIDERS "e2b, modal, daytona, deno, runloop, langsmith and openai-agents"

/* Reads a token of a file, "-": of standard input, for the session of the daemon's answer. Returns
 * false after a message. */
bool env_token_read(const char *path, const json_t *answer, char out[ENV_TOKEN_MAX + 1]);
/* Sets the proxy variables and VETHGUARD_BASE_URL, with the token, to the gateway of the daemon's
 * answer. */
void env_set_gateway(struct environment *env, const json_t *answer, const char *token);
bool env_provider_is_known(const char *format);
/* True if the provider itself leads the traffic to the gateway: nothing inside needs a proxy. */
bool env_provider_leads(const char *format);
/* Prints the options as JSON. Returns 0, or an exit status after a message. */
int env_provider_print(
        const char *format, const struct environment *env, const json_t *answer, const char *token);

#endif
