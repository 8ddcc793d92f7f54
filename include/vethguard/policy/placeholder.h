/* SPDX-License-Identifier: Apache-2.0 */
/* placeholder: what the sandbox holds in place of a credential. Not secret: it is worth nothing outside. */
#ifndef VETHGUARD_POLICY_PLACEHOLDER_H
#define VETHGUARD_POLICY_PLACEHOLDER_H

#include "vethguard/policy/policy.h"

#define PLACEHOLDER_MAX 120

/* Placeholders are recognisable and unguessable: "vethguard-NAME-" and 32 hex digits, stable for one sandbox. Some SDKs
 * check the shape of a key, so the placeholder of a variable named OPENAI_API_KEY, ANTHROPIC_API_KEY, GITHUB_TOKEN, ...
 * begins as the real one does ("sk-vethguard-...", "sk-ant-vethguard-...", "ghp_vethguard..."): every form contains
 * "vethguard". seed: 16 random bytes of the sandbox; the digits are a keyed hash of the credential's name. Returns its
 * length; out is NUL-terminated. */
size_t placeholder_make(struct slice credential, struct slice env, const uint8_t seed[16],
	char out[PLACEHOLDER_MAX + 1]);

#endif
