/* SPDX-License-Identifier: Apache-2.0 */
/* trust_env: the variables that turn programs with trust stores and proxies of their own to the
 * sandbox's. */
#ifndef VETHGUARD_SRC_CLI_GUEST_TRUST_ENV_H
#define VETHGUARD_SRC_CLI_GUEST_TRUST_ENV_H

#include "cli/run/environment.h"

/* Paths inside of the sandbox; NULL: there is none, and its variables stay as they are. */
struct trust_places {
	const char *bundle, *directory, *ca;
};

void trust_env_set(struct environment *env, const struct trust_places *places);
/* url: "http://10.1.2.1:3128". The host itself is reached without. */
void trust_env_set_proxy(struct environment *env, const char *url);
/* Takes every proxy variable out. */
void trust_env_unset_proxy(struct environment *env);

#endif
