/* SPDX-License-Identifier: Apache-2.0 */
/* env: the parts of `vethguard env` for sessions: the gateway as a proxy, and the options that
 * providers' SDKs take. */
#ifndef VETHGUARD_SRC_CLI_ATTACH_ENV_H
#define VETHGUARD_SRC_CLI_ATTACH_ENV_H

#include "cli/attach/commands.h"
#include "vethguard/adapter/environment.h"

#define ENV_TOKEN_MAX 4096
#define ENV_PROVIDERS "e2b, modal, daytona, deno, runloop, langsmith and openai-agents"

/* Reads a token from the file, or from standard input for "-", for the session that the daemon's
 * answer describes. Returns false after a message. */
bool env_token_read(const char *path, const json_t *answer, char out[ENV_TOKEN_MAX + 1]);
/* Sets the proxy variables and VETHGUARD_BASE_URL to the gateway that the daemon's answer names,
 * with the token. */
void env_set_gateway(struct environment *env, const json_t *answer, const char *token);
bool env_provider_is_known(const char *format);
/* True if the provider itself sends all traffic to the gateway, so that programs inside need no
 * proxy. */
bool env_provider_leads(const char *format);
/* Prints the options as JSON. Returns 0, or an exit status after a message. */
int env_provider_print(
        const char *format, const struct environment *env, const json_t *answer, const char *token);

#endif
