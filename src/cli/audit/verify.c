/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `vethguard audit verify`: checks that every line's hash fits its bytes and that every line names
 * the line before it. The first line may name a predecessor in an older file (a log that was moved
 * away).
 *
 * A chain cannot tell whether lines are missing at the end, or whether all of it was written anew.
 * That needs the hash of a line from elsewhere: one that was noted (--anchor), or the daemon's last
 * one; the daemon is asked if no file is named. The command says what stays unknown.
 */
#include <string.h>

#include "vethguard/base/options.h"
#include "vethguard/tls/digest.h"
#include "vethguard/wire/seal.h"

#include "cli/audit/audit.h"
#include "cli/commands.h"

enum { OPTION_ANCHOR, OPTION_SOCKET, OPTION_HELP };

static const struct option_spec specs[] = {
        {"anchor", 'a', "HASH", "a fingerprint noted earlier: it must be in the file"},
        AUDIT_SPEC_SOCKET,
        {"help", 'h', NULL, "this text"},
        {NULL, 0, NULL, NULL},
};

struct verify {
	char **paths; /* in the order of their lines */
	size_t path_count;
	const char *anchor; /* NULL: none */
	const char *socket;
	struct audit_source source; /* if no file was named */
	bool help, asked;
	unsigned long
	        anchored; /* the line that has the anchor, counted over all files; 0: none yet */
	bool anchor_is_before; /* the first line follows the anchor */
	struct digest digest;
	struct seal_link last; /* the previous line */
	unsigned long lines;
	char reason[256]; /* why the current line is broken */
};

static void help(void)
{
	fputs("Usage: vethguard audit verify [FILE...] [OPTIONS]\n"
	      "\n"
	      "Checks the hash chain through the audit log and names the first line that breaks "
	      "it.\n"
	      "Several files, the oldest first, are one log that was rotated. FILE '-' is standard "
	      "input.\n"
	      "Without FILE it checks the log that the daemon writes now, up to the line that the "
	      "daemon\n"
	      "wrote last, and so notices lines that were cut off at the end. A file alone cannot "
	      "show\n"
	      "that.\n"
	      "Exit status: 0 whole, 1 broken, 2 not readable, 3 the daemon cannot be asked.\n"
	      "\n",
	        stdout);
	options_print(specs, stdout);
	fputs("\nExamples:\n"
	      "  sudo vethguard audit verify\n"
	      "  vethguard audit verify vethguard.jsonl\n"
	      "  vethguard audit verify audit.jsonl.1 audit.jsonl\n"
	      "  vethguard audit verify vethguard.jsonl --anchor 45fc27ddf5af...\n",
	        stdout);
}

/* Asks for the daemon's own log and the last line it remembers. Returns an exit status. */
static int ask(struct verify *v)
{
	int rc = audit_source_ask(&v->source, v->socket, "vethguard audit verify");

	v->asked = true;
	v->paths[0] = v->source.path;
	v->path_count = 1;
	if (!v->anchor && v->source.fingerprint[0])
		v->anchor = v->source.fingerprint;
	return rc;
}

static int check_usage(struct verify *v)
{
	if (v->anchor && !audit_is_fingerprint(v->anchor)) {
		fputs("vethguard: error: --anchor takes the 64 hex digits of a fingerprint\n",
		        stderr);
		return CLI_USAGE;
	}
	if (v->path_count && v->socket) {
		fputs("vethguard: error: FILE or --socket, not both\n", stderr);
		return CLI_USAGE;
	}
	return 0;
}

/* Returns 0, or an exit status after a message. */
static int parse(struct verify *v, char **argv)
{
	struct options o;
	int option;

	v->paths = argv;
	options_init(&o, "vethguard audit verify", specs, argv);
	for (;;) {
		while ((option = options_next(&o)) >= 0) {
			if (option == OPTION_ANCHOR)
				v->anchor = o.value;
			else if (option == OPTION_SOCKET)
				v->socket = o.value;
			else
				v->help = true;
		}
		if (option == OPTIONS_WRONG)
			return CLI_USAGE;
		if (!*o.argv)
			return check_usage(v);
		/* Moved to the front: options may stand between files. */
		v->paths[v->path_count++] = *o.argv++;
	}
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
	if (v->lines && !follows(v, &seal.previous))
		return false;
	if (!v->lines && seal.previous.has_previous) {
		printf("The first line continues a chain from an older file: it follows event %s "
		       "with the fingerprint %s.\n",
		        seal.previous.uid, seal.previous.hash);
		v->anchor_is_before = v->anchor && strcmp(v->anchor, seal.previous.hash) == 0;
	}
	v->lines++;
	v->last = seal.own;
	if (v->anchor && strcmp(v->anchor, hash) == 0)
		v->anchored = v->lines;
	return true;
}

/* A chain can tell only that nothing is missing up to its last line. */
static void tell_unknown(const struct verify *v)
{
	static const char unknown[] = "Not known: whether lines behind the last one were cut off";

	if (v->asked && v->anchored == v->lines && v->anchor == v->source.fingerprint)
		printf("The last line is the one that the daemon wrote last: none was cut off.\n");
	else if (v->asked && v->anchored && v->anchor == v->source.fingerprint)
		printf("Line %lu is the last one that the daemon had written when it was asked: "
		       "none was cut off up to there.\n",
		        v->anchored);
	else if (v->asked && v->anchor_is_before)
		printf("The daemon has begun this file while it was asked: none was cut off before "
		       "its first line.\n");
	else if (v->asked && !v->anchor)
		printf("%s: the daemon does not say which one it wrote last. Ask again.\n",
		        unknown);
	else if (v->anchored)
		printf("Line %lu has the fingerprint that was given: none is missing up to there.\n"
		       "%s. For its own log the daemon knows: 'vethguard audit verify' without "
		       "FILE.\n",
		        v->anchored, unknown);
	else
		printf("%s, or all were written anew.\nCompare the last fingerprint with one "
		       "that was noted elsewhere (--anchor); for its own log the daemon knows: "
		       "'vethguard audit verify' without FILE.\n",
		        unknown);
}

static bool is_anchored(const struct verify *v)
{
	return v->anchored || (v->asked && v->anchor_is_before);
}

static int report(const struct verify *v)
{
	if (v->anchor && !is_anchored(v)) {
		printf("BROKEN: no line has the fingerprint %s%s: lines are missing, or all were "
		       "written anew.\n",
		        v->anchor,
		        v->anchor == v->source.fingerprint
		                ? ", which the daemon says is that of the line it wrote last"
		                : "");
		return 1;
	}
	if (v->lines == 0) {
		printf("%s has no lines. Not known: whether all were removed.\n", v->paths[0]);
		return 0;
	}
	printf("OK: %lu lines in one unbroken chain %s; the last has the fingerprint %s.\n",
	        v->lines, v->last.chain_uid, v->last.hash);
	tell_unknown(v);
	return 0;
}

/* The daemon continues to write while its log is read: after the line that it named, a line without
 * an end is not a fault. */
static bool is_being_written(const struct verify *v, const struct audit_reader *reader)
{
	return reader->torn && v->asked && is_anchored(v);
}

/* Returns an exit status, or -1: no fault so far. */
static int run_file(struct verify *v, const char *path)
{
	struct audit_reader reader;
	struct slice line;
	int rc = audit_reader_open(&reader, path), status = -1;

	if (rc == 0) {
		while (status < 0 && (rc = audit_reader_next(&reader, &line)) == 1) {
			if (is_being_written(v, &reader) || check_line(v, &reader, line))
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
		audit_source_unreadable(path, -rc, v->asked);
		return CLI_USAGE;
	}
	return status;
}

static int run(struct verify *v)
{
	int status = -1;

	for (size_t i = 0; i < v->path_count && status < 0; i++)
		status = run_file(v, v->paths[i]);
	return status >= 0 ? status : report(v);
}

int audit_verify(int argc, char **argv)
{
	struct verify v = {0};
	char *own[2] = {NULL, NULL}; /* for the path that the daemon tells */
	int status;

	(void)argc;
	status = parse(&v, argv + 1);
	if (status != 0)
		return status;
	if (v.help) {
		help();
		return 0;
	}
	if (v.path_count == 0) {
		v.paths = own;
		status = ask(&v);
	}
	if (status != 0)
		return status;
	if (digest_init(&v.digest) != 0) {
		fputs("vethguard: error: this OpenSSL has no SHA-256\n", stderr);
		return CLI_USAGE;
	}
	status = run(&v);
	digest_fini(&v.digest);
	return status;
}
