/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: the start comes from the variable's name alone or from the policy, so that
 * SDKs which check a key's shape accept it. The digits are a keyed hash of the credential's name,
 * so two sandboxes never share a placeholder, and no placeholder can be guessed from another.
 */
#include <stdio.h>

#include "vethguard/base/hash.h"
#include "vethguard/policy/placeholder.h"

#define NAME_SHOWN_MAX 40

/* Keys with a shape of their own. Behind the start stand "vethguard" and the digits. */
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

#define BLOCK_DIGITS 16

/* Writes n digits from as many hashes as that takes, each under its own key. */
static void put_digits(struct slice credential, const uint8_t seed[16], char *out, size_t n)
{
	for (uint64_t block = 0; n > 0; block++) {
		size_t take = n < BLOCK_DIGITS ? n : BLOCK_DIGITS;
		char digits[BLOCK_DIGITS + 1];
		struct hash_key key;

		memcpy(&key.k0, seed, 8);
		memcpy(&key.k1, seed + 8, 8);
		key.k0 ^= block / 2;
		if (block % 2)
			key.k1 = ~key.k1;
		snprintf(digits, sizeof(digits), "%016llx",
		        (unsigned long long)hash_bytes(&key, credential.p, credential.n));
		memcpy(out, digits, take);
		out += take;
		n -= take;
	}
	*out = '\0';
}

/* Makes START...END with as many bytes as the policy says. */
static size_t make_of_shape(
        const struct policy_credential *c, const uint8_t seed[16], char out[PLACEHOLDER_MAX + 1])
{
	const char *gap =
	        memmem(c->placeholder.p, c->placeholder.n, PLACEHOLDER_GAP, PLACEHOLDER_GAP_N);
	size_t start = (size_t)(gap - c->placeholder.p);
	size_t end = c->placeholder.n - start - PLACEHOLDER_GAP_N;
	size_t digits = c->placeholder_n - start - PLACEHOLDER_MARK_N - end;

	memcpy(out, c->placeholder.p, start);
	memcpy(out + start, PLACEHOLDER_MARK, PLACEHOLDER_MARK_N);
	put_digits(c->name, seed, out + start + PLACEHOLDER_MARK_N, digits);
	memcpy(out + c->placeholder_n - end, gap + PLACEHOLDER_GAP_N, end);
	out[c->placeholder_n] = '\0';
	return c->placeholder_n;
}

size_t placeholder_make(
        const struct policy_credential *c, const uint8_t seed[16], char out[PLACEHOLDER_MAX + 1])
{
	int shown = c->name.n < NAME_SHOWN_MAX ? (int)c->name.n : NAME_SHOWN_MAX;
	char digits[PLACEHOLDER_DIGITS + 1];
	int n;

	if (c->placeholder.n)
		return make_of_shape(c, seed, out);
	put_digits(c->name, seed, digits, PLACEHOLDER_DIGITS);
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		if (!slice_equals(c->env, slice_from_string(shapes[i].env)))
			continue;
		n = snprintf(out, PLACEHOLDER_MAX + 1, "%s" PLACEHOLDER_MARK "%s%s",
		        shapes[i].start, shapes[i].dashes ? "-" : "", digits);
		return (size_t)n;
	}
	n = snprintf(
	        out, PLACEHOLDER_MAX + 1, PLACEHOLDER_MARK "-%.*s-%s", shown, c->name.p, digits);
	return (size_t)n;
}

size_t placeholder_shape_min(struct slice shape)
{
	return shape.n - PLACEHOLDER_GAP_N + PLACEHOLDER_MARK_N + PLACEHOLDER_DIGITS_MIN;
}

/* Letters, digits and the other characters of keys: RFC 6750 section 2.1, and ':'. */
static bool is_of_keys(struct slice text)
{
	for (size_t i = 0; i < text.n; i++) {
		char c = text.p[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		            (c && strchr("-._~+/=:", c))))
			return false;
	}
	return true;
}

const char *placeholder_check_shape(struct slice shape)
{
	const char *gap = memmem(shape.p, shape.n, PLACEHOLDER_GAP, PLACEHOLDER_GAP_N);
	struct slice end;

	if (!is_of_keys(shape))
		return "has a character that does not belong in a key: letters, digits and "
		       "-._~+/=: are possible";
	if (!gap)
		return "has no \"...\" for what vethguard fills in";
	end = slice_of(
	        gap + PLACEHOLDER_GAP_N, shape.n - (size_t)(gap - shape.p) - PLACEHOLDER_GAP_N);
	if (gap == shape.p)
		return "begins with \"...\": write how the key begins before it";
	if ((end.n && end.p[0] == '.') || memmem(end.p, end.n, PLACEHOLDER_GAP, PLACEHOLDER_GAP_N))
		return "has more than three dots, or three of them twice";
	return shape.n > PLACEHOLDER_SHAPE_MAX ? "is too long" : NULL;
}
