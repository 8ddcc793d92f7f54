/* SPDX-License-Identifier: Apache-2.0 */
/* placeholder: the text that the sandbox holds in place of a credential. Not secret: outside it is worth nothing. */
#ifndef VETHGUARD_POLICY_PLACEHOLDER_H
#define VETHGUARD_POLICY_PLACEHOLDER_H

#include "vethguard/policy/policy.h"

#define PLACEHOLDER_MAX 120
#define PLACEHOLDER_DIGITS 32     /* hex digits of a placeholder whose length the policy does not give */
#define PLACEHOLDER_DIGITS_MIN 16 /* fewest hex digits if the policy gives the length */
#define PLACEHOLDER_MARK "vethguard"
#define PLACEHOLDER_MARK_N (sizeof(PLACEHOLDER_MARK) - 1)
#define PLACEHOLDER_GAP "..."
#define PLACEHOLDER_GAP_N (sizeof(PLACEHOLDER_GAP) - 1)
#define PLACEHOLDER_SHAPE_MAX (PLACEHOLDER_MAX - PLACEHOLDER_MARK_N - PLACEHOLDER_DIGITS_MIN + PLACEHOLDER_GAP_N)

/* Makes a placeholder. Returns its length; out is NUL-terminated. seed: 16 random bytes of the sandbox.
 *
 * Placeholders are recognizable and unguessable: "vethguard-NAME-" and 32 hex digits, which are a keyed hash of the
 * credential's name and so stay the same for one sandbox. Some SDKs check the shape of a key. So the placeholder of a
 * variable named OPENAI_API_KEY, ANTHROPIC_API_KEY, GITHUB_TOKEN, ... begins as the real key does
 * ("sk-vethguard-...", "sk-ant-vethguard-...", "ghp_vethguard..."), and the policy may give a shape of its own: in
 * START...END the three dots stand for "vethguard" and as many hex digits as the length needs. Every form contains
 * "vethguard", so none is ever a real key. */
size_t placeholder_make(
        const struct policy_credential *credential, const uint8_t seed[16], char out[PLACEHOLDER_MAX + 1]);

/* Checks that shape is START...END: a non-empty start, one gap, at most PLACEHOLDER_SHAPE_MAX bytes that may all
 * stand in a header field and in a URL. Returns NULL, or a text that says what is wrong. */
const char *placeholder_check_shape(struct slice shape);
/* The fewest bytes that a placeholder of this shape can have. */
size_t placeholder_shape_min(struct slice shape);

#endif
