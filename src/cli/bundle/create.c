/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `vethguard bundle create`. It checks the bundle as a gateway does before it writes anything. If
 * the key is in a hardware token or a service, signing takes two steps: --unsigned writes the bytes
 * to be signed, and --signature takes the signature.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/attach/options.h"
#include "cli/bundle/bundle.h"
#include "cli/commands.h"
#include "cli/option_wrong.h"
#include "vethguard/policy/load.h"

#define KEY_MAX 16384
#define PLACES_MAX 32

static const struct option_spec specs[] = {
        {"key", 'k', "FILE", "the private key (PEM) that signs: Ed25519 or P-256"},
        {"name", 'n', "NAME", "the bundle's name, as the gateways' configuration has it"},
        {"serial", 0, "N", "a number that is higher with every bundle of this name"},
        {"policy", 'p', "PATH", "a policy (.yaml), or a directory of them; may be repeated"},
        {"keys", 0, "PATH",
                "a key set (.jwks) of a token signer, or a directory of\nthem; may be repeated"},
        {"revocations", 0, "FILE", "lines \"session NAME\" and \"token SIGNER ID\""},
        {"expires", 0, "TIME",
                "how long it may be used (90s, 30m, 2h, 7d): afterwards no sandbox\nbegins with "
                "its policies"},
        {"output", 'o', "FILE", "where to write it"},
        {"unsigned", 0, NULL, "do not sign: write the bytes that a signature has to cover"},
        {"signature", 0, "FILE",
                "make the bundle of this signature and those bytes, which the\nargument FILE "
                "holds"},
        {"public-key", 0, "FILE", "with --signature: the public key (PEM) to check it by"},
        CONTROL_SPEC_HELP,
        {NULL, 0, NULL, NULL},
};

struct create {
	struct control_line line;
	const char *key, *name, *output, *revocations, *signature, *public_key;
	const char *policies[PLACES_MAX], *keys[PLACES_MAX];
	size_t policy_count, key_count;
	uint64_t serial, expires_after_s;
	bool only_bytes;
};

static const struct control_usage usage = {"vethguard bundle create",
        "--key FILE --name NAME --serial N --output FILE [OPTIONS]",
        "Signs a bundle: one file with policies, key sets of token signers, and revocations,\n"
        "which gateways take as a whole. Everything in it is checked first.\n",
        "  openssl genpkey -algorithm ED25519 -out bundle.key\n"
        "  openssl pkey -in bundle.key -pubout -out bundle.pub\n"
        "  vethguard bundle create --key bundle.key --name fleet --serial 7 \\\n"
        "      --policy policies/ --keys control.jwks --revocations revoked -o fleet.bundle\n"
        "  vethguard bundle create --unsigned --name fleet --serial 8 -p policies/ -o draft\n"
        "  vethguard bundle create draft --signature draft.sig --public-key bundle.pub \\\n"
        "      -o fleet.bundle\n"
        "\nExit status: 0 done; 1 something in it is not good; 2 wrong usage.\n",
        specs};

static bool add_place(
        const char *places[PLACES_MAX], size_t *count, const char *option, const char *value)
{
	if (*count == PLACES_MAX)
		return option_wrong(option, value, "given too many times");
	places[(*count)++] = value;
	return true;
}

static bool take(void *context, const char *option, const char *value)
{
	struct create *c = context;
	const struct {
		const char *name;
		const char **place;
	} texts[] = {{"key", &c->key}, {"name", &c->name}, {"output", &c->output},
	        {"revocations", &c->revocations}, {"signature", &c->signature},
	        {"public-key", &c->public_key}};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (strcmp(option, texts[i].name) == 0) {
			*texts[i].place = value;
			return true;
		}
	if (strcmp(option, "policy") == 0)
		return add_place(c->policies, &c->policy_count, option, value);
	if (strcmp(option, "keys") == 0)
		return add_place(c->keys, &c->key_count, option, value);
	if (strcmp(option, "serial") == 0)
		return (slice_to_u64(
		                slice_from_string(value), SIGNED_BUNDLE_SERIAL_MAX, &c->serial) &&
		               c->serial) ||
		       option_wrong(
		               option, value, "a whole number from 1 on, of at most 15 digits");
	if (strcmp(option, "expires") == 0)
		return attach_ttl_read(value, &c->expires_after_s) ||
		       option_wrong(option, value, "not a duration; write 90s, 30m, 2h or 7d");
	return c->only_bytes = true;
}

/* --- writing --- */

/* Writes a new file beside the old one, and renames it. */
static bool write_output(const char *path, struct slice bytes)
{
	char fresh[PATH_MAX];
	int fd, rc = 0;
	ssize_t n;

	if (snprintf(fresh, sizeof(fresh), "%s.new", path) >= (int)sizeof(fresh))
		return bundle_complain(path, "the path is too long");
	unlink(fresh);
	fd = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0)
		return bundle_complain(fresh, "%s", strerror(errno));
	while (!rc && bytes.n) {
		n = write(fd, bytes.p, bytes.n);
		rc = n < 0 ? -errno : 0;
		bytes = n < 0 ? bytes : slice_of(bytes.p + n, bytes.n - (size_t)n);
	}
	if (close(fd) < 0 && !rc)
		rc = -errno;
	if (!rc && rename(fresh, path) < 0)
		rc = -errno;
	if (!rc)
		return true;
	unlink(fresh);
	return bundle_complain(path, "%s", strerror(-rc));
}

/* --- content --- */

static bool collect(const struct create *c, struct bundle_parts *parts)
{
	parts->draft.name = slice_from_string(c->name);
	parts->draft.serial = c->serial;
	if (c->expires_after_s)
		parts->draft.expires_s = (int64_t)time(NULL) + (int64_t)c->expires_after_s;
	for (size_t i = 0; i < c->policy_count; i++)
		if (!bundle_add(parts, c->policies[i], ".yaml"))
			return false;
	for (size_t i = 0; i < c->key_count; i++)
		if (!bundle_add(parts, c->keys[i], ".jwks"))
			return false;
	return !c->revocations || bundle_add_revocations(parts, c->revocations);
}

static bool make_content(const struct create *c, struct buf *content)
{
	struct bundle_parts *parts = calloc(1, sizeof(*parts));
	bool good = parts && collect(c, parts);

	if (!parts)
		bundle_complain(NULL, "no memory");
	if (good && signed_bundle_write(&parts->draft, content) != 0)
		good = bundle_complain(NULL, "the bundle has more than 1 MiB");
	if (parts)
		bundle_parts_fini(parts);
	free(parts);
	return good;
}

/* Reads the finished file as a gateway does, apart from its signature. */
static bool check(struct slice file)
{
	struct signed_bundle *b;
	char why[SIGNED_BUNDLE_WHY_MAX];
	bool good = signed_bundle_open_unverified(file, &b, why) == SIGNED_BUNDLE_GOOD;

	if (good)
		good = signed_bundle_check(b, policy_default_preset_dir(), why);
	signed_bundle_free(b);
	return good || bundle_complain(NULL, "%s", why);
}

/* --- the ways to sign --- */

static bool sign_with_key(const struct create *c, struct slice content, struct buf *out)
{
	struct sign_key key = {NULL};
	struct buf pem;
	const char *objection;
	bool good = bundle_read(c->key, KEY_MAX, &pem);
	int rc;

	if (good) {
		objection = sign_key_private(buf_slice(&pem), &key);
		good = !objection || bundle_complain(c->key, "%s", objection);
	}
	rc = good ? signed_bundle_sign(&key, content, out) : 0;
	if (rc)
		good = rc == -EKEYREJECTED
		               ? bundle_complain(c->key, "the key cannot sign")
		               : bundle_complain(NULL, "the bundle has more than 1 MiB");
	sign_key_fini(&key);
	buf_fini(&pem);
	return good;
}

/* Joins a signature that was made elsewhere with the draft, and verifies it. */
static bool join_signature(const struct create *c, struct slice draft, struct buf *out)
{
	struct sign_key key = {NULL};
	char why[SIGNED_BUNDLE_WHY_MAX];
	struct signed_bundle *b = NULL;
	struct buf signature, pem;
	const char *objection;
	bool good = bundle_read(c->signature, SIGNED_BUNDLE_SIGNATURE_BYTES, &signature);

	buf_init(&pem, KEY_MAX);
	if (good && signature.len != SIGNED_BUNDLE_SIGNATURE_BYTES)
		good = bundle_complain(c->signature,
		        "a signature has %d bytes: of P-256, r and s with 32 bytes each",
		        SIGNED_BUNDLE_SIGNATURE_BYTES);
	good = good && bundle_read(c->public_key, KEY_MAX, &pem);
	objection = good ? sign_key_public(buf_slice(&pem), &key) : NULL;
	if (objection)
		good = bundle_complain(c->public_key, "%s", objection);
	if (good)
		good = signed_bundle_join(buf_bytes(&signature),
		               slice_of(draft.p + SIGNED_BUNDLE_MAGIC_BYTES,
		                       draft.n - SIGNED_BUNDLE_MAGIC_BYTES),
		               out) == 0 &&
		       (signed_bundle_open(buf_slice(out), &key, 1, &b, why) ==
		                       SIGNED_BUNDLE_GOOD ||
		               bundle_complain(c->signature, "%s", why));
	signed_bundle_free(b);
	sign_key_fini(&key);
	buf_fini(&signature);
	buf_fini(&pem);
	return good;
}

/* --- the command --- */

/* Makes a bundle of the bytes that --unsigned has written and a signature. Returns the exit
 * status. */
static int finish_draft(const struct create *c)
{
	struct buf draft, out;
	bool good = bundle_read(c->line.names[0], SIGNED_BUNDLE_BYTES_MAX, &draft);

	buf_init(&out, SIGNED_BUNDLE_BYTES_MAX);
	if (good && !slice_starts_with(buf_slice(&draft), SLICE(SIGNED_BUNDLE_MAGIC)))
		good = bundle_complain(c->line.names[0], "--unsigned has not written this file");
	good = good && join_signature(c, buf_slice(&draft), &out) && check(buf_slice(&out)) &&
	       write_output(c->output, buf_slice(&out));
	buf_fini(&draft);
	buf_fini(&out);
	return good ? 0 : BUNDLE_FAILED;
}

static int create(const struct create *c)
{
	static const uint8_t none[SIGNED_BUNDLE_SIGNATURE_BYTES];
	struct buf content, out;
	bool good;

	buf_init(&content, SIGNED_BUNDLE_BYTES_MAX);
	buf_init(&out, SIGNED_BUNDLE_BYTES_MAX);
	good = make_content(c, &content);
	if (good && signed_bundle_join(none, buf_slice(&content), &out) != 0)
		good = bundle_complain(NULL, "the bundle has more than 1 MiB");
	good = good && check(buf_slice(&out));
	buf_fini(&out);
	if (good && c->only_bytes)
		good = buf_append(&out, SIGNED_BUNDLE_MAGIC, SIGNED_BUNDLE_MAGIC_BYTES) == 0 &&
		       buf_append_slice(&out, buf_slice(&content)) == 0;
	else
		good = good && sign_with_key(c, buf_slice(&content), &out);
	good = good && write_output(c->output, buf_slice(&out));
	buf_fini(&content);
	buf_fini(&out);
	return good ? 0 : BUNDLE_FAILED;
}

static const char *objection_to(const struct create *c)
{
	if (!c->output || !*c->output)
		return "where to? Name a file with --output";
	if (c->signature)
		return c->line.name_count == 1 && c->public_key && !c->key && !c->only_bytes
		               ? NULL
		               : "--signature takes the file that --unsigned has written, and "
		                 "--public-key";
	if (c->line.name_count)
		return "this command takes only options: no other argument";
	if (!c->name || !config_bundle_is_name(slice_from_string(c->name)))
		return "which bundle? --name takes 1 to 24 small letters, digits and '-'";
	if (!c->serial)
		return "which serial? --serial takes a number that is higher every time";
	if (!c->key == !c->only_bytes)
		return "who signs? Name a private key with --key, or write --unsigned";
	return NULL;
}

int bundle_create_command(int argc, char **argv)
{
	struct create c = {.key = NULL};
	const char *objection;
	int rc = control_usage_read(&usage, argv + 1, &c.line, take, &c);

	(void)argc;
	if (rc >= 0)
		return rc;
	objection = objection_to(&c);
	if (objection)
		return control_usage_wrong(&usage, objection);
	return c.signature ? finish_draft(&c) : create(&c);
}
