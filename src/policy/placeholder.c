/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: the start depends on the variable's name alone, so that SDKs which look at a
 * key's shape are content; the end is a keyed hash of the credential's name, so that two sandboxes
 * never share a placeholder and none can be guessed from another.
 */
#include <stdio.h>

#include "vethguard/base/hash.h"
#include "vethguard/policy/placeholder.h"

#define NAME_SHOWN_MAX 40

/* Keys with a shape of their own. All but the start is "vethguard" and what follows. */
static const struct {
	const char *env, *start;
	bool dashes; /* '-' may stand in such a key */
} shapes[] = {
        {"OPENAI_API_KEY", "sk-", true},
        {"ANTHROPIC_API_KEY", "sk-ant-", true},
        {"GITHUB_TOKEN", "ghp_", false},
        {"GH_TOKEN", "ghp_", false},
        {"COPILOT_GITHUB_TOKEN", "github_pat_", false},
        {"GITLAB_TOKEN", "glpat-", true},
        {"HF_TOKEN", "hf_", false},
        {"HUGGING_FACE_HUB_TOKEN", "hf_", false},
        {"NPM_TOKEN", "npm_", false},
        {"PYPI_TOKEN", "pypi-", true},
        {"TWINE_PASSWORD", "pypi-", true},
        {"SLACK_BOT_TOKEN", "xoxb-", true},
        {"GOOGLE_API_KEY", "AIza", false},
        {"GEMINI_API_KEY", "AIza", false},
        {"GROQ_API_KEY", "gsk_", false},
        {"STRIPE_API_KEY", "sk_test_", false},
};

static void hash_name(struct slice credential, const uint8_t seed[16], char digits[33])
{
	struct hash_key key;
	uint64_t first, second;

	memcpy(&key.k0, seed, 8);
	memcpy(&key.k1, seed + 8, 8);
	first = hash_bytes(&key, credential.p, credential.n);
	key.k1 = ~key.k1;
	second = hash_bytes(&key, credential.p, credential.n);
	snprintf(digits, 33, "%016llx%016llx", (unsigned long long)first,
	        (unsigned long long)second);
}

size_t placeholder_make(struct slice credential, struct slice env, const uint8_t seed[16],
        char out[PLACEHOLDER_MAX + 1])
{
	int shown = credential.n < NAME_SHOWN_MAX ? (int)credential.n : NAME_SHOWN_MAX;
	char digits[33];
	int n;

	hash_name(credential, seed, digits);
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		if (!slice_equals(env, slice_from_string(shapes[i].env)))
			continue;
		n = snprintf(out, PLACEHOLDER_MAX + 1, "%svethguard%s%s", shapes[i].start,
		        shapes[i].dashes ? "-" : "", digits);
		return (size_t)n;
	}
	n = snprintf(out, PLACEHOLDER_MAX + 1, "vethguard-%.*s-%s", shown, credential.p, digits);
	return (size_t)n;
}
