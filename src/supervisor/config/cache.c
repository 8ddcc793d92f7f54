/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sandboxes under one policy share its settings. Every file is verified again for each sandbox,
 * with the same rights as the first time; if a byte of any file has changed, or the users who can
 * read or change it, everything is loaded again. A file that has been unchanged for a while is not
 * read for that (fingerprint.h): its bytes may be only on disk by now, and the client that attaches
 * would wait for it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "vethguard/base/buf.h"
#include "vethguard/base/hash.h"
#include "supervisor/os/local_file.h"
#include "supervisor/config/private.h"

#define KEY_MAX (64u << 10)

/* The key: everything but files that the result depends on, so loads with the same key differ by
 * files only. Each text is followed by its NUL, which no text contains. */
static bool make_key(struct buf *out, const struct identity *identity, const char *policy_path,
        const char *config_path, const struct policy_load_options *options)
{
	int rc;

	buf_init(out, KEY_MAX);
	rc = buf_printf(out, "%u %u %d", (unsigned)identity->uid, (unsigned)identity->gid,
	        options->observe);
	rc = rc ? rc : buf_append(out, policy_path, strlen(policy_path) + 1);
	rc = rc ? rc : buf_append(out, config_path, strlen(config_path) + 1);
	for (size_t i = 0; i < options->variable_count && !rc; i++) {
		rc = buf_append_slice(out, options->variables[i].name);
		rc = rc ? rc : buf_append(out, "", 1);
		rc = rc ? rc : buf_append_slice(out, options->variables[i].value);
		rc = rc ? rc : buf_append(out, "", 1);
	}
	for (size_t i = 0; i < options->more_count && !rc; i++) {
		rc = buf_append_slice(out, options->more[i].text);
		rc = rc ? rc : buf_append(out, "", 1);
	}
	if (rc)
		buf_fini(out);
	return !rc;
}

/* The hash keys are secret: no file can be made to have the hash of another. */
static void describe(struct slice text, struct settings_input *out)
{
	static struct hash_key keys[2];

	if (!keys[0].k0 && !keys[0].k1)
		random_bytes(keys, sizeof(keys));
	out->n = text.n;
	for (size_t i = 0; i < 2; i++)
		out->hash[i] = hash_bytes(&keys[i], text.p, text.n);
}

void settings_cache_forget(struct settings *s)
{
	for (size_t i = 0; i < s->input_count; i++)
		free(s->inputs[i].path);
	free(s->inputs);
	s->inputs = NULL;
	s->input_count = 0;
	s->remembers = false;
}

void settings_cache_remember(struct settings *s, enum settings_whose whose, const char *path,
        struct slice text, const struct policy_file_facts *facts,
        const struct fingerprint *fingerprint)
{
	struct settings_input *inputs;
	char *copy;

	if (!s->remembers)
		return;
	copy = strdup(path);
	inputs = realloc(s->inputs, (s->input_count + 1) * sizeof(*inputs));
	if (inputs)
		s->inputs = inputs;
	if (!inputs || !copy) {
		free(copy);
		settings_cache_forget(s);
		return;
	}
	s->inputs[s->input_count] = (struct settings_input){
	        .whose = whose, .path = copy, .facts = *facts, .fingerprint = *fingerprint};
	describe(text, &s->inputs[s->input_count++]);
}

static const struct identity *reader_of(
        const struct settings_input *input, const struct identity *caller)
{
	return input->whose == SETTINGS_FLOOR ? settings_own_identity()
	       : input->whose == SETTINGS_OWN ? settings_config_identity(caller)
	                                      : caller;
}

/* The directories above a file change independently of it. */
static bool same_writers(const struct settings_input *input, int fd, bool is_real,
        const struct stat *st, struct path_looks *looks)
{
	struct policy_writers now = {0};

	policy_writers_add(&now, st, "", geteuid());
	settings_add_path_writers(fd, input->path, is_real, looks, &now);
	return policy_writers_equal(&now, &input->facts.writers);
}

struct check {
	const struct settings_input *input;
	struct path_looks *looks;
};

/* With the rights in force: returns 0 if the file matches its fingerprint and is readable. */
static int look(void *context)
{
	const struct check *check = context;
	const struct settings_input *input = check->input;
	bool is_real, same;
	int fd = local_file_find_real(input->path, &is_real);
	struct stat st;

	if (fd < 0)
		return fd;
	same = fstat(fd, &st) == 0 && fingerprint_holds(&input->fingerprint, &st) &&
	       faccessat(fd, "", R_OK, AT_EACCESS | AT_EMPTY_PATH) == 0 &&
	       same_writers(input, fd, is_real, &st, check->looks);
	close(fd);
	return same ? 0 : -ESTALE;
}

static bool is_untouched(
        struct settings_input *input, const struct identity *caller, struct path_looks *looks)
{
	struct check check = {input, looks};
	struct stat st;

	if (!input->fingerprint.counts)
		return false;
	if (input->whose == SETTINGS_HOSTS)
		return stat(input->path, &st) == 0 && fingerprint_holds(&input->fingerprint, &st);
	return identity_run(reader_of(input, caller), look, &check) == 0;
}

static bool same_bytes(struct settings_input *input, const struct identity *caller,
        const struct settings_files *files, struct path_looks *looks)
{
	struct settings_opening opening = {.identity = reader_of(input, caller),
	        .files = policy_reader_files(policy_default_preset_dir()),
	        .whose = input->whose,
	        .given = files,
	        .looks = looks};
	struct settings_input now = {0};
	char *text = NULL;
	size_t n = 0;
	int fd;

	if (input->whose == SETTINGS_NO_FLOOR) {
		fd = local_file_find(input->path);
		if (fd >= 0)
			close(fd);
		return fd == -ENOENT;
	}
	opening.files.context = &opening.facts;
	if (input->whose == SETTINGS_HOSTS)
		n = settings_host_file(input->path, &text, &opening.fingerprint).n;
	else if (settings_read(&opening, input->path, &text, &n) != 0)
		return false;
	describe(slice_of(text, n), &now);
	free(text);
	if (now.n != input->n || memcmp(now.hash, input->hash, sizeof(now.hash)) != 0 ||
	        opening.facts.owner != input->facts.owner ||
	        opening.facts.closed != input->facts.closed ||
	        !policy_writers_equal(&opening.facts.writers, &input->facts.writers))
		return false;
	input->fingerprint = opening.fingerprint;
	return true;
}

struct settings *settings_cache_find(struct settings *registry, const struct identity *identity,
        const char *policy_path, const char *config_path, const struct policy_load_options *options,
        const struct settings_files *files)
{
	struct path_looks looks;
	struct settings *s;
	struct buf key;

	if (!make_key(&key, identity, policy_path, config_path, options))
		return NULL;
	looks.count = 0;
	looks.uid = looks.gid = 0;
	HASH_FIND(hh, registry, buf_bytes(&key), key.len, s);
	buf_fini(&key);
	for (size_t i = 0; s && i < s->input_count; i++)
		if (!is_untouched(&s->inputs[i], identity, &looks) &&
		        !same_bytes(&s->inputs[i], identity, files, &looks))
			return NULL;
	if (s)
		s->refs++;
	return s;
}

/* Settings with secrets are not shared; nor those with source addresses: whether the host has these
 * can change without any file changing. */
static bool may_be_shared(const struct settings *s)
{
	return s->remembers && !s->egress_pair.n && !s->config.egress.address4.family &&
	       !s->config.egress.address6.family;
}

void settings_cache_offer(struct settings **registry, struct settings *s,
        const struct identity *identity, const char *policy_path, const char *config_path,
        const struct policy_load_options *options)
{
	struct settings *before;
	struct buf key;

	if (!may_be_shared(s) || !make_key(&key, identity, policy_path, config_path, options)) {
		settings_cache_forget(s);
		return;
	}
	HASH_FIND(hh, *registry, buf_bytes(&key), key.len, before);
	if (before) {
		HASH_DEL(*registry, before);
		before->registry = NULL;
	}
	s->key = malloc(key.len);
	if (s->key) {
		memcpy(s->key, buf_bytes(&key), key.len);
		HASH_ADD_KEYPTR(hh, *registry, s->key, key.len, s);
		s->registry = s->hh.tbl ? registry : NULL;
	}
	buf_fini(&key);
}
