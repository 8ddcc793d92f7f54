/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `vethguard audit verify`: does every line's hash fit its bytes, and does every line name the one
 * before it? The first line may name a predecessor in an older file (a log that was moved away).
 * What a chain cannot tell is whether lines are missing at the end, or whether all was written
 * anew: for that, keep the last hash somewhere else and give it as --anchor.
 */
#include <string.h>

#include "vethguard/base/options.h"
#include "vethguard/tls/digest.h"
#include "vethguard/wire/seal.h"

#include "audit_commands.h"
#include "commands.h"

enum { OPTION_ANCHOR, OPTION_HELP };

static const struct option_spec specs[] = {
        {"anchor", 'a', "HASH", "a fingerprint noted earlier: it must be in the file"},
        {"help", 'h', NULL, "this text"},
        {NULL, 0, NULL, NULL},
};

struct verify {
	char **paths; /* in the order of their lines */
	size_t path_count;
	const char *anchor;
	bool help, anchored;
	struct digest digest;
	struct seal_link last; /* the line before */
	bool any;
	char reason[256]; /* why the current line is broken */
};

static void help(void)
{
	fputs("Usage: vethguard audit verify FILE... [OPTIONS]\n\n"
	      "Checks the hash chain through the audit log and names the first line that breaks "
	      "it.\n"
	      "Several files, the oldest first, are one log that was rotated. FILE '-' is standard "
	      "input. Exit status: 0 whole, 1 broken, 2 not readable.\n\n",
	        stdout);
	options_print(specs, stdout);
	fputs("\nExamples:\n"
	      "  vethguard audit verify vethguard.jsonl\n"
	      "  vethguard audit verify audit.jsonl.1 audit.jsonl\n"
	      "  vethguard audit verify vethguard.jsonl --anchor 45fc27ddf5af...\n",
	        stdout);
}

static bool parse(struct verify *v, char **argv)
{
	struct options o;
	int option;

	v->paths = argv;
	options_init(&o, "vethguard audit verify", specs, argv);
	for (;;) {
		while ((option = options_next(&o)) >= 0) {
			if (option == OPTION_ANCHOR)
				v->anchor = o.value;
			else
				v->help = true;
		}
		if (option == OPTIONS_WRONG)
			return false;
		if (!*o.argv)
			break;
		/* Moved to the front: options may stand between files. */
		v->paths[v->path_count++] = *o.argv++;
	}
	if (v->anchor && (strlen(v->anchor) != SEAL_HASH_DIGITS ||
	                         strspn(v->anchor, "0123456789abcdef") != SEAL_HASH_DIGITS)) {
		fputs("vethguard: error: --anchor takes the 64 hex digits of a fingerprint\n",
		        stderr);
		return false;
	}
	if (v->path_count || v->help)
		return true;
	fputs("vethguard: error: which FILE? See 'vethguard audit verify --help'.\n", stderr);
	return false;
}

static bool broken(struct verify *v, const char *why)
{
	snprintf(v->reason, sizeof(v->reason), "%s", why);
	return false;
}

static bool follows(struct verify *v, const struct seal_link *previous)
{
	if (!previous->has_previous)
		return broken(v,
		        "a new chain begins here: what stood before it does not belong to it, or "
		        "lines in between were removed");
	if (strcmp(previous->chain_uid, v->last.chain_uid) != 0)
		return broken(v, "it belongs to another chain than the line before");
	if (strcmp(previous->hash, v->last.hash) != 0 || strcmp(previous->uid, v->last.uid) != 0 ||
	        previous->type_uid != v->last.type_uid)
		return broken(v,
		        "it follows another line than the one before: a line was removed, added, "
		        "moved or replaced");
	return true;
}

static bool check_line(struct verify *v, const struct audit_reader *reader, struct slice line)
{
	char hash[DIGEST_SHA256_HEX + 1];
	struct seal seal;

	if (reader->torn)
		return broken(v, "it is torn: its writer was interrupted");
	if (reader->too_long || seal_parse(line, &seal) != 0)
		return broken(v, "it is not a sealed line of an audit log");
	if (digest_sha256_hex(&v->digest, (const struct slice[]){seal.covered, SLICE(SEAL_CLOSE)},
	            2, hash) != 0)
		return broken(v, "its hash cannot be computed");
	if (strcmp(hash, seal.own.hash) != 0)
		return broken(v, "its hash does not fit its text: it was changed");
	if (v->any && !follows(v, &seal.previous))
		return false;
	if (!v->any && seal.previous.has_previous)
		printf("The first line continues a chain from an older file: it follows event %s "
		       "with the fingerprint %s.\n",
		        seal.previous.uid, seal.previous.hash);
	v->any = true;
	v->last = seal.own;
	v->anchored |= v->anchor && strcmp(v->anchor, hash) == 0;
	return true;
}

static int report(const struct verify *v, unsigned long lines)
{
	if (v->anchor && !v->anchored) {
		printf("BROKEN: no line has the fingerprint %s: lines are missing, or all were "
		       "written anew.\n",
		        v->anchor);
		return 1;
	}
	if (lines == 0)
		printf("%s has no lines.\n", v->paths[0]);
	else
		printf("OK: %lu lines in one unbroken chain %s; the last has the fingerprint %s.\n",
		        lines, v->last.chain_uid, v->last.hash);
	return 0;
}

/* -1: all is well so far. */
static int run_file(struct verify *v, const char *path, unsigned long *lines)
{
	struct audit_reader reader;
	struct slice line;
	int rc = audit_reader_open(&reader, path), status = -1;

	if (rc == 0) {
		while (status < 0 && (rc = audit_reader_next(&reader, &line)) == 1) {
			++*lines;
			if (check_line(v, &reader, line))
				continue;
			printf("BROKEN: %s line %lu: %s.\n", reader.name, reader.number, v->reason);
			if (reader.number == 1 && path != v->paths[0])
				puts("Of several files the oldest comes first: are these in that "
				     "order?");
			status = 1;
		}
		audit_reader_close(&reader);
	}
	if (rc < 0) {
		fprintf(stderr, "vethguard: error: cannot read %s: %s\n", path, strerror(-rc));
		return CLI_USAGE;
	}
	return status;
}

static int run(struct verify *v)
{
	unsigned long lines = 0;
	int status = -1;

	for (size_t i = 0; i < v->path_count && status < 0; i++)
		status = run_file(v, v->paths[i], &lines);
	return status >= 0 ? status : report(v, lines);
}

int audit_verify(int argc, char **argv)
{
	struct verify v = {0};
	int status;

	(void)argc;
	if (!parse(&v, argv + 1))
		return CLI_USAGE;
	if (v.help) {
		help();
		return 0;
	}
	if (digest_init(&v.digest) != 0) {
		fputs("vethguard: error: this OpenSSL has no SHA-256\n", stderr);
		return CLI_USAGE;
	}
	status = run(&v);
	digest_fini(&v.digest);
	return status;
}
