/* SPDX-License-Identifier: Apache-2.0 */
/* `vethguard ca csr`, `install` and `rotate`. A request goes to standard output, everything else
 * that is said beside it to standard error, so that the output is a file for the CA. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/attach/options.h"
#include "cli/ca/ca.h"
#include "cli/commands.h"
#include "cli/option_wrong.h"
#include "vethguard/wire/message.h"

#define NAME_PREFIX "vethguard "

struct change {
	const char *name, *root;
	uint64_t overlap_s;
};

#define SPEC_NAME                                                                         \
	{                                                                                 \
		"name", 'n', "NAME", "the request's common name; default: vethguard HOST" \
	}
#define SPEC_OVERLAP                                                          \
	{                                                                     \
		"overlap", 0, "TIME",                                         \
		        "how long the replaced CA stays trusted: 12h, 30d;\n" \
		        "default: the configuration's ca: overlap, or 30d"    \
	}

static bool take(void *context, const char *option, const char *value)
{
	struct change *c = context;

	if (strcmp(option, "name") == 0)
		c->name = value;
	else if (strcmp(option, "root") == 0)
		c->root = value;
	else if (!attach_ttl_read(value, &c->overlap_s))
		return option_wrong(option, value,
		        "not a duration; write 12h or 30d, for example, at most 366d");
	if (c->name && (!*c->name || strlen(c->name) > MESSAGE_NAME_MAX)) {
		fprintf(stderr, "vethguard: error: --name has 1 to %d bytes\n", MESSAGE_NAME_MAX);
		return false;
	}
	return !c->name || option_is_utf8("name", c->name);
}

static json_t *body_of(const struct change *c)
{
	char host[MESSAGE_NAME_MAX + 1 - sizeof(NAME_PREFIX) + 1] = "";
	char name[MESSAGE_NAME_MAX + 1];
	json_t *body = json_object();

	if (gethostname(host, sizeof(host) - 1) < 0 || !host[0])
		snprintf(host, sizeof(host), "node");
	snprintf(name, sizeof(name), NAME_PREFIX "%s", host);
	json_object_set_new(body, "name", json_string(c->name ? c->name : name));
	if (c->overlap_s)
		json_object_set_new(body, "overlap_s", json_integer((json_int_t)c->overlap_s));
	return body;
}

static void print_request(const json_t *answer)
{
	fputs(control_text(answer, "request_pem"), stdout);
	fputs("Have this signed as a CA (CA:TRUE, pathlen:1 or more), then: vethguard ca install "
	      "CERTIFICATE\n",
	        stderr);
}

/* A CA of our own is replaced at once. So is one that the configuration's key has signed. A request
 * may wait all the same: of an earlier `ca csr`. */
static void print_rotated(const json_t *answer)
{
	const json_t *current = json_array_get(json_object_get(answer, "cas"), 0);

	if (json_is_true(json_object_get(current, "current")) &&
	        strcmp(control_text(current, "origin"), "installed") != 0)
		ca_print(answer);
	else
		print_request(answer);
}

/* Takes the body. Returns the exit status. */
static int make_call(const struct control_line *line, const char *path, json_t *body,
        void (*print)(const json_t *answer))
{
	int rc = control_call_and_print(line, "POST", path, body, print);

	json_decref(body);
	return rc;
}

int ca_csr_command(int argc, char **argv)
{
	static const struct option_spec specs[] = {SPEC_NAME, CONTROL_SPEC_SOCKET,
	        CONTROL_SPEC_JSON, CONTROL_SPEC_HELP, {NULL, 0, NULL, NULL}};
	static const struct control_usage u = {"vethguard ca csr", "[OPTIONS]",
	        "Makes a key for an intermediate of this node and prints a request (PKCS #10) for\n"
	        "its certificate. The key stays in the keeper's file. An earlier request "
	        "becomes void.\n",
	        "  vethguard ca csr > node-7.csr\n", specs};
	struct control_line line;
	struct change c = {0};
	int rc = ca_line_read(&u, argv + 1, 0, &line, take, &c);

	(void)argc;
	if (rc >= 0)
		return rc;
	return make_call(&line, "/ca/csr", body_of(&c), print_request);
}

static char *refuse_file(FILE *in, char *text, const char *path, const char *why)
{
	char shown[256];

	fprintf(stderr, "vethguard: error: %s: %s\n",
	        slice_escape(slice_from_string(path), shown, sizeof(shown)), why);
	if (in && in != stdin)
		fclose(in);
	free(text);
	return NULL;
}

/* Reads a file, "-": standard input. NULL after a message. */
static char *read_file(const char *path)
{
	FILE *in = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
	char *text = calloc(1, MESSAGE_PAPERS_MAX + 2);
	size_t n;

	if (!in || !text)
		return refuse_file(in, text, path, strerror(errno));
	n = fread(text, 1, MESSAGE_PAPERS_MAX + 1, in);
	if (ferror(in))
		return refuse_file(in, text, path, strerror(errno));
	if (n == 0)
		return refuse_file(in, text, path, "it is empty");
	if (n > MESSAGE_PAPERS_MAX)
		return refuse_file(in, text, path, "it is too large for certificates");
	if (strlen(text) != n)
		return refuse_file(
		        in, text, path, "it is not PEM: 'openssl x509 -inform DER' converts DER");
	if (in != stdin)
		fclose(in);
	return text;
}

static bool add_file(json_t *body, const char *key, const char *path)
{
	char *text = read_file(path);
	json_t *value = text ? json_string(text) : NULL;

	if (text && !value)
		fprintf(stderr,
		        "vethguard: error: %s: it is not PEM: 'openssl x509 -inform DER' "
		        "converts DER\n",
		        key);
	free(text);
	return value && json_object_set_new(body, key, value) == 0;
}

int ca_install_command(int argc, char **argv)
{
	static const struct option_spec specs[] = {
	        {"root", 0, "FILE",
	                "the root that its chain ends at; default: the configuration's\n"
	                "ca: root, or the one in CERTIFICATE"},
	        SPEC_OVERLAP, CONTROL_SPEC_SOCKET, CONTROL_SPEC_JSON, CONTROL_SPEC_HELP,
	        {NULL, 0, NULL, NULL}};
	static const struct control_usage u = {"vethguard ca install", "CERTIFICATE [OPTIONS]",
	        "Takes the certificate (PEM) for the key of 'vethguard ca csr', with what is\n"
	        "between it and the root in the same file. New sandboxes get it at once.\n",
	        "  vethguard ca install node-7.pem --root root.pem\n", specs};
	struct control_line line;
	struct change c = {0};
	int rc = ca_line_read(&u, argv + 1, 1, &line, take, &c);
	json_t *body;

	(void)argc;
	if (rc >= 0)
		return rc;
	body = json_object();
	if (!add_file(body, "certificate", line.names[0]) ||
	        (c.root && !add_file(body, "root", c.root))) {
		json_decref(body);
		return CLI_USAGE;
	}
	if (c.overlap_s)
		json_object_set_new(body, "overlap_s", json_integer((json_int_t)c.overlap_s));
	return make_call(&line, "/ca/install", body, ca_print);
}

int ca_rotate_command(int argc, char **argv)
{
	static const struct option_spec specs[] = {SPEC_OVERLAP, SPEC_NAME, CONTROL_SPEC_SOCKET,
	        CONTROL_SPEC_JSON, CONTROL_SPEC_HELP, {NULL, 0, NULL, NULL}};
	static const struct control_usage u = {"vethguard ca rotate", "[OPTIONS]",
	        "Replaces the current CA. If it is the daemon's own root, the daemon makes "
	        "another\n"
	        "root; the earlier one stays trusted, and signs for the sandboxes that know it, "
	        "until\n"
	        "it retires. If it is an installed intermediate, this prints a request for the "
	        "next\n"
	        "one, which 'vethguard ca install' puts in its place. If it is the configuration's "
	        "CA,\n"
	        "every sandbox gets another intermediate.\n",
	        "  vethguard ca rotate --overlap 30d\n"
	        "  vethguard ca rotate > node-7.csr\n",
	        specs};
	struct control_line line;
	struct change c = {0};
	int rc = ca_line_read(&u, argv + 1, 0, &line, take, &c);

	(void)argc;
	if (rc >= 0)
		return rc;
	return make_call(&line, "/ca/rotate", body_of(&c), print_rotated);
}
