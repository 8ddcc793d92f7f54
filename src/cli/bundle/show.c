/* SPDX-License-Identifier: Apache-2.0 */
/* `vethguard bundle show` and `verify`: a bundle's file, without the daemon. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <time.h>

#include "cli/bundle/bundle.h"
#include "cli/commands.h"
#include "vethguard/policy/load.h"

#define KEY_MAX 16384
#define SHOWN_MAX 1100
#define TIME_TEXT 32

static const struct option_spec show_specs[] = {
        {"json", 'j', NULL, "print the signed content unchanged (JSON)"}, CONTROL_SPEC_HELP,
        {NULL, 0, NULL, NULL}};
static const struct option_spec verify_specs[] = {
        {"public-key", 'k', "FILE", "a public key (PEM) that may have signed it;\nmay be repeated"},
        CONTROL_SPEC_HELP, {NULL, 0, NULL, NULL}};

static const struct control_usage show_usage = {"vethguard bundle show", "FILE [OPTIONS]",
        "Shows what a bundle's file says. The signature is not looked at.\n",
        "  vethguard bundle show fleet.bundle\n"
        "  vethguard bundle show --json fleet.bundle | jq -r '.files[\"agent.yaml\"]'\n"
        "\nExit status: 0 shown; 1 it is no bundle; 2 wrong usage.\n",
        show_specs};
static const struct control_usage verify_usage = {"vethguard bundle verify",
        "FILE --public-key FILE [OPTIONS]",
        "Checks a bundle's file as a gateway does: its signature, every policy and key set.\n",
        "  vethguard bundle verify fleet.bundle --public-key bundle.pub\n"
        "\nExit status: 0 it is good; 1 it is not; 2 wrong usage.\n",
        verify_specs};

static const char *show_text(struct slice text, char out[SHOWN_MAX])
{
	return slice_escape(text, out, SHOWN_MAX);
}

static void print_expiry(const struct signed_bundle *b)
{
	char text[TIME_TEXT] = "?";
	time_t at = (time_t)b->expires_s;
	struct tm tm;

	if (!b->expires_s) {
		puts("  expires      never");
		return;
	}
	if (gmtime_r(&at, &tm))
		strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	printf("  expires      %s%s\n", text,
	        signed_bundle_has_expired(b, (int64_t)time(NULL)) ? " (it has expired)" : "");
}

static void print(const struct signed_bundle *b)
{
	char text[SHOWN_MAX], other[SHOWN_MAX];

	printf("%.*s: serial %" PRIu64 "\n", SLICE_ARG(b->name), b->serial);
	print_expiry(b);
	for (size_t i = 0; i < b->file_count; i++)
		printf("  %-12s %.*s (%zu bytes)\n",
		        signed_bundle_is_policy(b->files[i].name) ? "policy" : "key set",
		        SLICE_ARG(b->files[i].name), b->files[i].text.n);
	for (size_t i = 0; i < b->session_count; i++)
		printf("  %-12s session %s\n", "revoked", show_text(b->sessions[i], text));
	for (size_t i = 0; i < b->token_count; i++)
		printf("  %-12s token %s of signer %s\n", "revoked",
		        show_text(b->tokens[i].id, text), show_text(b->tokens[i].signer, other));
}

int bundle_show_command(int argc, char **argv)
{
	char why[SIGNED_BUNDLE_WHY_MAX];
	struct signed_bundle *b = NULL;
	struct control_line line;
	struct buf file;
	int rc = control_usage_read(&show_usage, argv + 1, &line, NULL, NULL);

	(void)argc;
	if (rc >= 0)
		return rc;
	if (line.name_count != 1)
		return control_usage_wrong(&show_usage, "which bundle? Name one file");
	rc = BUNDLE_FAILED;
	if (bundle_read(line.names[0], SIGNED_BUNDLE_BYTES_MAX, &file)) {
		if (signed_bundle_open_unverified(buf_slice(&file), &b, why))
			bundle_complain(line.names[0], "%s", why);
		else
			rc = 0;
	}
	if (!rc && line.json)
		fwrite(b->memory + SIGNED_BUNDLE_HEAD_BYTES, 1, b->n - SIGNED_BUNDLE_HEAD_BYTES,
		        stdout);
	else if (!rc)
		print(b);
	signed_bundle_free(b);
	buf_fini(&file);
	return rc;
}

/* --- verify --- */

struct verify {
	const char *keys[SIGNED_BUNDLE_KEYS_MAX];
	size_t count;
};

static bool take(void *context, const char *option, const char *value)
{
	struct verify *v = context;

	(void)option;
	if (v->count == SIGNED_BUNDLE_KEYS_MAX)
		return bundle_complain(NULL, "at most %d keys", SIGNED_BUNDLE_KEYS_MAX);
	v->keys[v->count++] = value;
	return true;
}

static bool read_keys(const struct verify *v, struct sign_key *keys)
{
	bool good = true;

	for (size_t i = 0; good && i < v->count; i++) {
		const char *objection = NULL;
		struct buf pem;

		good = bundle_read(v->keys[i], KEY_MAX, &pem);
		if (good)
			objection = sign_key_public(buf_slice(&pem), &keys[i]);
		if (objection)
			good = bundle_complain(v->keys[i], "%s", objection);
		buf_fini(&pem);
	}
	return good;
}

static bool verify(const char *path, struct slice file, const struct sign_key *keys, size_t count)
{
	char why[SIGNED_BUNDLE_WHY_MAX];
	struct signed_bundle *b;
	bool good = signed_bundle_open(file, keys, count, &b, why) == SIGNED_BUNDLE_GOOD;

	if (good)
		good = signed_bundle_check(b, policy_default_preset_dir(), why);
	if (good)
		printf("%.*s: serial %" PRIu64 ", %zu files, %zu revocations: good\n",
		        SLICE_ARG(b->name), b->serial, b->file_count,
		        b->session_count + b->token_count);
	signed_bundle_free(b);
	return good || bundle_complain(path, "%s", why);
}

int bundle_verify_command(int argc, char **argv)
{
	struct sign_key keys[SIGNED_BUNDLE_KEYS_MAX] = {{NULL}};
	struct verify v = {.count = 0};
	struct control_line line;
	struct buf file;
	bool good;
	int rc = control_usage_read(&verify_usage, argv + 1, &line, take, &v);

	(void)argc;
	if (rc >= 0)
		return rc;
	if (line.name_count != 1 || !v.count)
		return control_usage_wrong(
		        &verify_usage, "name one file, and a key with --public-key");
	good = bundle_read(line.names[0], SIGNED_BUNDLE_BYTES_MAX, &file) && read_keys(&v, keys) &&
	       verify(line.names[0], buf_slice(&file), keys, v.count);
	for (size_t i = 0; i < v.count; i++)
		sign_key_fini(&keys[i]);
	buf_fini(&file);
	return good ? 0 : BUNDLE_FAILED;
}
