/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `vethguard session certificate`. This process makes key and certificate, and tells the daemon
 * only the certificate's hash. The files are written before the daemon is told, because from then
 * on nothing else proves the session.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/attach/options.h"
#include "cli/commands.h"
#include "cli/option_wrong.h"
#include "cli/session/session.h"
#include "vethguard/base/fd.h"
#include "vethguard/tls/client_certificate.h"

static const struct option_spec specs[] = {
        {"out", 'o', "PATH",
                "write PATH.pem and PATH.key, which must not exist; default: both to\n"
                "standard output"},
        {"ttl", 0, "TIME",
                "how long it is valid: 90s, 30m, 2h, 7d; default, and at most: as long as\n"
                "the session lasts"},
        CONTROL_SPEC_SOCKET,
        CONTROL_SPEC_JSON,
        CONTROL_SPEC_HELP,
        {NULL, 0, NULL, NULL},
};

struct certify {
	const char *out;
	uint64_t ttl_s;
};

static bool take(void *context, const char *option, const char *value)
{
	struct certify *c = context;

	if (strcmp(option, "out") == 0) {
		c->out = value;
		return *value || option_wrong(option, value, "an empty path");
	}
	return attach_ttl_read(value, &c->ttl_s) ||
	       option_wrong(
	               option, value, "not a duration; write 90s, 30m, 2h or 7d, at most 366d");
}

static const struct control_usage usage = {"vethguard session certificate", "NAME [OPTIONS]",
        "Makes a client certificate and its key, by which a TLS client of the gateway proves the\n"
        "session from now on. The token or certificate from before proves it no longer, and\n"
        "connections that it has opened are cut. The daemon gets the certificate's hash only;\n"
        "the key is kept nowhere else.\n",
        "  vethguard session certificate agent-7 --out a\n"
        "  curl --proxy https://gateway:8443 --proxy-cert a.pem --proxy-key a.key "
        "...\n" CONTROL_EXIT_STATUS,
        specs};

/* Tells that a file cannot be written. Returns the exit status. */
static int fail(const char *path, int error)
{
	char shown[256];

	fprintf(stderr, "vethguard: error: '%s' cannot be written: %s\n",
	        slice_escape(slice_from_string(path), shown, sizeof(shown)), strerror(error));
	return CLI_USAGE;
}

/* --- files --- */

/* Writes a new file. Returns 0, or the exit status after a message. */
static int write_new(const char *path, mode_t mode, struct slice text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode), rc;

	if (fd < 0)
		return fail(path, errno);
	rc = fd_write_all(fd, text);
	if (!rc && fsync(fd) < 0)
		rc = -errno;
	close(fd);
	if (!rc)
		return 0;
	unlink(path);
	return fail(path, -rc);
}

struct paths {
	char pem[PATH_MAX], key[PATH_MAX];
};

static int write_files(const struct client_certificate *made, const char *out, struct paths *paths)
{
	int rc;

	if (snprintf(paths->pem, sizeof(paths->pem), "%s.pem", out) >= (int)sizeof(paths->pem) ||
	        snprintf(paths->key, sizeof(paths->key), "%s.key", out) >= (int)sizeof(paths->key))
		return fail(out, ENAMETOOLONG);
	rc = write_new(paths->key, 0600, secret_slice(&made->key));
	if (rc)
		return rc;
	rc = write_new(paths->pem, 0644, buf_slice(&made->pem));
	if (rc)
		unlink(paths->key);
	return rc;
}

/* --- the session --- */

/* Reads when the session ends, in Unix time. Returns 0, or the exit status after a message. */
static int read_end(const struct control_line *line, int64_t *end_s)
{
	char path[CONTROL_PATH_MAX];
	struct control_answer answer;
	struct tm tm = {0};
	const char *rest;
	int rc;

	if (!session_path(path, line->names[0], ""))
		return CLI_USAGE;
	rc = control_call(line->socket, "GET", path, NULL, &answer);
	if (rc)
		return rc;
	rest = strptime(control_text(answer.json, "expires"), "%Y-%m-%dT%H:%M:%S", &tm);
	*end_s = timegm(&tm);
	control_answer_free(&answer);
	if (rest)
		return 0;
	fputs("vethguard: error: the daemon does not tell when the session ends\n", stderr);
	return CONTROL_REFUSED;
}

static int tell_daemon(const struct control_line *line, const struct client_certificate *made,
        struct control_answer *answer)
{
	char path[CONTROL_PATH_MAX];
	json_t *body = json_pack("{s:s}", "certificate_sha256", made->sha256);
	int rc = body && session_path(path, line->names[0], "/certificate") ? 0 : CLI_USAGE;

	if (!rc)
		rc = control_call(line->socket, "POST", path, body, answer);
	json_decref(body);
	return rc;
}

static void put_time(int64_t end_s)
{
	const time_t t = (time_t)end_s;
	char text[32] = "";
	struct tm tm;

	if (gmtime_r(&t, &tm))
		strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	fputs(text, stderr);
}

/* Writes both to standard output. Returns 0, or the exit status after a message. */
static int print(const struct client_certificate *made)
{
	int rc = fd_write_all(STDOUT_FILENO, buf_slice(&made->pem));

	rc = rc ? rc : fd_write_all(STDOUT_FILENO, secret_slice(&made->key));
	return rc ? fail("standard output", -rc) : 0;
}

/* Keeps the certificate: if the daemon has taken it, nothing else proves the session. */
static int tell_doubt(const struct certify *c, const struct client_certificate *made)
{
	fputs("The daemon's answer is lost, so either this certificate proves the session from "
	      "now\non or what did before. Try it, or make another one.\n",
	        stderr);
	if (!c->out)
		(void)print(made);
	return CONTROL_UNREACHABLE;
}

static int give(const struct control_line *line, const struct certify *c,
        const struct client_certificate *made, int64_t end_s)
{
	struct control_answer answer = {0};
	struct paths paths = {"", ""};
	int rc = c->out ? write_files(made, c->out, &paths) : 0;

	if (rc)
		return rc;
	rc = tell_daemon(line, made, &answer);
	if (rc && answer.asked && !answer.status)
		return tell_doubt(c, made);
	if (rc) {
		if (c->out) {
			unlink(paths.pem);
			unlink(paths.key);
		}
		return rc;
	}
	fprintf(stderr, "%s: proved by the certificate %s, valid until ", line->names[0],
	        made->sha256);
	put_time(end_s);
	fputs(c->out ? ".\n" : ". The key is not told again:\n", stderr);
	if (line->json)
		control_print_json(answer.json);
	control_answer_free(&answer);
	return c->out ? 0 : print(made);
}

int session_certificate_command(int argc, char **argv)
{
	struct certify c = {NULL, 0};
	struct client_certificate made;
	struct control_line line;
	int64_t end_s = 0, now_s = (int64_t)time(NULL);
	int rc = control_usage_read(&usage, argv + 1, &line, take, &c);

	(void)argc;
	if (rc >= 0)
		return rc;
	if (line.name_count != 1)
		return control_usage_wrong(&usage, "which session? Name one");
	if (line.json && !c.out)
		return control_usage_wrong(
		        &usage, "--json needs --out: both would go to standard output");
	rc = read_end(&line, &end_s);
	if (rc)
		return rc;
	if (c.ttl_s && now_s + (int64_t)c.ttl_s < end_s)
		end_s = now_s + (int64_t)c.ttl_s;
	rc = client_certificate_make(slice_from_string(line.names[0]), end_s, &made);
	if (rc) {
		fprintf(stderr, "vethguard: error: no certificate can be made: %s\n",
		        rc == -EINVAL ? "the session is about to end" : strerror(-rc));
		return CONTROL_REFUSED;
	}
	rc = give(&line, &c, &made, end_s);
	client_certificate_fini(&made);
	return rc;
}
