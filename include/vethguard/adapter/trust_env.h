/* SPDX-License-Identifier: Apache-2.0 */
/* trust_env: the variables that make programs with their own trust stores and proxies use the
 * sandbox's. */
#ifndef VETHGUARD_ADAPTER_TRUST_ENV_H
#define VETHGUARD_ADAPTER_TRUST_ENV_H

#include "vethguard/adapter/environment.h"

/* Paths inside the sandbox; NULL: there is none, and its variables are left alone. */
struct trust_places {
	const char *bundle, *directory, *ca;
};

void trust_env_set(struct environment *env, const struct trust_places *places);
/* url: "http://10.1.2.1:3128". The host itself is reached without the proxy. */
void trust_env_set_proxy(struct environment *env, const char *url);
/* Removes every proxy variable. */
void trust_env_unset_proxy(struct environment *env);

#endif
