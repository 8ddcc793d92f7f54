/* SPDX-License-Identifier: Apache-2.0 */
/* placeholder: what the sandbox holds in place of a credential. Not secret: it is worth nothing outside. */
#ifndef VETHGUARD_POLICY_PLACEHOLDER_H
#define VETHGUARD_POLICY_PLACEHOLDER_H

#include "vethguard/policy/policy.h"

#define PLACEHOLDER_MAX 120
#define PLACEHOLDER_DIGITS 32     /* of every placeholder whose length the policy does not say */
#define PLACEHOLDER_DIGITS_MIN 16 /* of one whose length it says */
#define PLACEHOLDER_MARK "vethguard"
#define PLACEHOLDER_MARK_N (sizeof(PLACEHOLDER_MARK) - 1)
#define PLACEHOLDER_GAP "..."
#define PLACEHOLDER_GAP_N (sizeof(PLACEHOLDER_GAP) - 1)
#define PLACEHOLDER_SHAPE_MAX (PLACEHOLDER_MAX - PLACEHOLDER_MARK_N - PLACEHOLDER_DIGITS_MIN + PLACEHOLDER_GAP_N)

/* Placeholders are recognisable and unguessable: "vethguard-NAME-" and 32 hex digits, stable for one sandbox. Some SDKs
 * check the shape of a key, so the placeholder of a variable named OPENAI_API_KEY, ANTHROPIC_API_KEY, GITHUB_TOKEN, ...
 * begins as the real one does ("sk-vethguard-...", "sk-ant-vethguard-...", "ghp_vethguard..."), and the policy may give
 * a shape of its own: in START...END the three dots stand for "vethguard" and hex digits, as many as its length wants.
 * Every form contains "vethguard", so that none is ever a real key. seed: 16 random bytes of the sandbox; the digits are
 * a keyed hash of the credential's name. Returns its length; out is NUL-terminated. */
size_t placeholder_make(const struct policy_credential *credential, const uint8_t seed[16],
	char out[PLACEHOLDER_MAX + 1]);

/* NULL: shape is START...END: a start, one gap, at most PLACEHOLDER_SHAPE_MAX bytes of what may stand in a header field
 * and a URL alike. Else what is wrong with it. */
const char *placeholder_check_shape(struct slice shape);
/* The fewest bytes that a placeholder of the shape can have. */
size_t placeholder_shape_min(struct slice shape);

#endif
