/* SPDX-License-Identifier: Apache-2.0 */
/* `vethguard policy check` and `explain`: exit statuses, what is printed, and JSON that parses. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <ctype.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/policy/policy.h"

#define EXPLAINED "tests/unit/policy/explain/wide.yaml"
#define ARGS_MAX 8
#define OUT_MAX 65536

struct ran {
	int status;
	char out[OUT_MAX], err[OUT_MAX];
};

static int redirect(FILE *from, FILE **file)
{
	int saved = dup(fileno(from));

	*file = tmpfile();
	assert_true(saved >= 0 && *file);
	fflush(from);
	assert_true(dup2(fileno(*file), fileno(from)) >= 0);
	return saved;
}

static void restore(FILE *from, FILE *file, int saved, char *out)
{
	size_t n;

	fflush(from);
	assert_true(dup2(saved, fileno(from)) >= 0);
	close(saved);
	rewind(file);
	n = fread(out, 1, OUT_MAX - 1, file);
	out[n] = '\0';
	fclose(file);
}

/* Runs "policy" with the arguments; what it writes is kept. */
static void run(struct ran *r, const char *const args[])
{
	static char words[ARGS_MAX + 1][256];
	char *argv[ARGS_MAX + 2] = {words[0]};
	FILE *out, *err;
	int argc = 1, saved_out, saved_err;

	strcpy(words[0], "policy");
	for (; args[argc - 1] && argc < ARGS_MAX; argc++) {
		snprintf(words[argc], sizeof(words[argc]), "%s", args[argc - 1]);
		argv[argc] = words[argc];
	}
	saved_out = redirect(stdout, &out);
	saved_err = redirect(stderr, &err);
	r->status = cli_policy(argc, argv);
	restore(stdout, out, saved_out, r->out);
	restore(stderr, err, saved_err, r->err);
}

#define RUN(r, ...) run(r, (const char *const[]){__VA_ARGS__, NULL})

static struct ran r;

static void test_check(void **state)
{
	(void)state;
	RUN(&r, "check", "policies/presets/debian.yaml", "policies/presets/crates.yaml");
	assert_int_equal(r.status, 0);
	assert_non_null(strstr(r.out,
	        "debian.yaml: good: policy \"debian\", 1 rule, 0 credentials, mode enforce"));
	assert_non_null(strstr(r.out, "crates.yaml: good"));
	assert_string_equal(r.err, "");
}

static void test_check_bad(void **state)
{
	(void)state;
	RUN(&r, "check", "policies/presets/debian.yaml", "tests/unit/policy/bad/mode.yaml");
	assert_int_equal(r.status, 2);
	assert_non_null(strstr(r.out, "debian.yaml: good"));
	assert_non_null(strstr(r.err, "bad/mode.yaml:2:7: error: mode must be"));
	RUN(&r, "check", "no/such/file");
	assert_int_equal(r.status, 2);
	assert_non_null(strstr(r.err, "no/such/file: error: cannot read"));
}

static void test_check_json(void **state)
{
	json_t *root, *bad, *error;

	(void)state;
	RUN(&r, "check", "--json", "policies/presets/debian.yaml",
	        "tests/unit/policy/bad/mode.yaml");
	assert_int_equal(r.status, 2);
	root = json_loads(r.out, 0, NULL);
	assert_int_equal(json_array_size(root), 2);
	assert_true(json_is_true(json_object_get(json_array_get(root, 0), "good")));
	bad = json_array_get(root, 1);
	assert_true(json_is_false(json_object_get(bad, "good")));
	error = json_array_get(json_object_get(bad, "errors"), 0);
	assert_int_equal(json_integer_value(json_object_get(error, "line")), 2);
	assert_int_equal(json_integer_value(json_object_get(error, "column")), 7);
	json_decref(root);
}

#define NOTED "/tmp/vethguard-check-XXXXXX"

/* A folder of its own with policy.yaml, whose path is kept; the folder ends with forget(). */
static char folder[sizeof(NOTED)], policy_path[sizeof(NOTED) + 16], secret_path[sizeof(NOTED) + 16];

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static void remember(const char *text)
{
	strcpy(folder, NOTED);
	assert_non_null(mkdtemp(folder));
	snprintf(policy_path, sizeof(policy_path), "%s/policy.yaml", folder);
	snprintf(secret_path, sizeof(secret_path), "%s/secret", folder);
	write_file(policy_path, text);
}

static void forget(void)
{
	unlink(secret_path);
	rmdir(secret_path);
	unlink(policy_path);
	assert_int_equal(rmdir(folder), 0);
}

static const char with_file[] = "vethguard: 1\n"
                                "credentials:\n"
                                "  key: {source: file:secret, inject: bearer}\n"
                                "allow: [{to: https://a.example, credential: key}]\n";
static const char with_variable[] = "vethguard: 1\n"
                                    "credentials:\n"
                                    "  key: {source: env:VETHGUARD_TEST_KEY, inject: bearer}\n"
                                    "  ran: {source: 'exec:[/no/such]', inject: bearer}\n"
                                    "allow: [{to: https://a.example, credential: key}]\n";

/* No note is made of a source that exists, and other commands do not look for sources. */
static void test_check_sources_there(void **state)
{
	(void)state;
	remember(with_file);
	RUN(&r, "explain", policy_path, "GET", "https://a.example/");
	assert_string_equal(r.err, "");
	RUN(&r, "diff", policy_path, policy_path);
	assert_string_equal(r.err, "");
	write_file(secret_path, "sesame-open\n");
	assert_int_equal(chmod(secret_path, 0640), 0);
	RUN(&r, "check", policy_path);
	assert_int_equal(r.status, 0);
	assert_string_equal(r.err, "");
	assert_null(strstr(r.out, "sesame"));
	forget();
	remember(with_variable);
	setenv("VETHGUARD_TEST_KEY", "sesame-open", 1);
	RUN(&r, "check", policy_path);
	assert_int_equal(r.status, 0);
	assert_string_equal(r.err, "");
	unsetenv("VETHGUARD_TEST_KEY");
	forget();
}

/* A credential's file that others may write is refused; one that others may read gets a note. */
static void test_check_file_rights(void **state)
{
	static const struct {
		mode_t mode;
		const char *told;
	} rows[] = {{0644, "can be read by everybody: 'chmod o-r' fixes that"},
	        {0620, "can be written by its group or by others, and is refused so: 'chmod go-w'"},
	        {0606, "can be written by its group or by others, and is refused so: 'chmod "
	               "go-w'"}};

	(void)state;
	remember(with_file);
	write_file(secret_path, "sesame-open\n");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(chmod(secret_path, rows[i].mode), 0);
		RUN(&r, "check", policy_path);
		assert_int_equal(r.status, 0);
		assert_non_null(strstr(r.err, ":3:17: note: credential \"key\": file \""));
		assert_non_null(strstr(r.err, rows[i].told));
	}
	forget();
}

static void test_check_file_missing(void **state)
{
	(void)state;
	remember(with_file);
	RUN(&r, "check", policy_path);
	assert_int_equal(r.status, 0);
	assert_non_null(strstr(r.out, ": good: "));
	assert_non_null(strstr(r.err, "/policy.yaml:3:17: note: credential \"key\": file \""));
	assert_non_null(strstr(r.err, "/secret\" does not exist on this machine now"));
	assert_int_equal(mkdir(secret_path, 0700), 0);
	RUN(&r, "check", policy_path);
	assert_int_equal(r.status, 0);
	assert_non_null(strstr(r.err, "/secret\" is not a regular file"));
	forget();
}

/* Root, who may read everything, checks as another user. */
static void test_check_file_unreadable(void **state)
{
	bool root = geteuid() == 0;

	(void)state;
	remember(with_file);
	write_file(secret_path, "sesame-open\n");
	assert_int_equal(chmod(secret_path, 0), 0);
	assert_int_equal(chmod(folder, 0755), 0);
	assert_int_equal(chmod(policy_path, 0644), 0);
	if (root)
		assert_int_equal(seteuid(65534), 0);
	RUN(&r, "check", policy_path);
	if (root)
		assert_int_equal(seteuid(0), 0);
	assert_int_equal(r.status, 0);
	assert_non_null(strstr(r.err, ":3:17: note: credential \"key\": file \""));
	assert_non_null(
	        strstr(r.err, "who runs this check: Permission denied; started through sudo"));
	forget();
}

/* A fault that no right would cure is reported without advice about rights. */
static void test_check_file_below_file(void **state)
{
	(void)state;
	remember("vethguard: 1\n"
	         "credentials: {key: {source: file:policy.yaml/x, inject: bearer}}\n"
	         "allow: [{to: https://a.example, credential: key}]\n");
	RUN(&r, "check", policy_path);
	assert_int_equal(r.status, 0);
	assert_non_null(strstr(r.err, "who runs this check: Not a directory"));
	assert_null(strstr(r.err, "sudo"));
	forget();
}

static void test_check_variable_missing(void **state)
{
	(void)state;
	remember(with_variable);
	unsetenv("VETHGUARD_TEST_KEY");
	RUN(&r, "check", policy_path);
	assert_int_equal(r.status, 0);
	assert_non_null(strstr(r.err, "/policy.yaml:3:17: note: credential \"key\": variable "
	                              "\"VETHGUARD_TEST_KEY\" is not set in this environment now"));
	assert_null(strstr(r.err, "\"ran\""));
	setenv("VETHGUARD_TEST_KEY", "", 1);
	RUN(&r, "check", policy_path);
	assert_non_null(strstr(r.err, "is empty in this environment now"));
	unsetenv("VETHGUARD_TEST_KEY");
	forget();
}

/* An included rule that this policy makes idle is meant for other policies, too. */
static void test_check_unused_included(void **state)
{
	(void)state;
	remember("vethguard: 1\ninclude: [secret]\ndeny: [{to: a.example}]\n");
	write_file(secret_path, "vethguard: 1\nallow: [{to: a.example}, {to: a.example}]\n");
	RUN(&r, "check", policy_path);
	assert_int_equal(r.status, 0);
	assert_string_equal(r.err, "");
	forget();
}

static void test_check_unused(void **state)
{
	json_t *root, *note;

	(void)state;
	remember("vethguard: 1\nallow:\n  - to: a.example\ndeny: [{to: a.example}]\n");
	RUN(&r, "explain", policy_path, "GET", "https://a.example/");
	assert_string_equal(r.err, "");
	RUN(&r, "check", policy_path);
	assert_int_equal(r.status, 0);
	assert_non_null(strstr(r.out, ": good: "));
	assert_non_null(strstr(r.err, "/policy.yaml:3:5: note: rule \"allow[0]\" decides no"));
	RUN(&r, "check", "--json", policy_path);
	assert_int_equal(r.status, 0);
	root = json_loads(r.out, 0, NULL);
	note = json_array_get(json_object_get(json_array_get(root, 0), "notes"), 0);
	assert_int_equal(json_integer_value(json_object_get(note, "line")), 3);
	json_decref(root);
	forget();
}

static void test_check_notes_json(void **state)
{
	json_t *root, *file, *note;

	(void)state;
	remember(with_file);
	RUN(&r, "check", "--json", policy_path);
	assert_int_equal(r.status, 0);
	assert_string_equal(r.err, "");
	root = json_loads(r.out, 0, NULL);
	file = json_array_get(root, 0);
	assert_true(json_is_true(json_object_get(file, "good")));
	assert_int_equal(json_array_size(json_object_get(file, "errors")), 0);
	assert_int_equal(json_array_size(json_object_get(file, "notes")), 1);
	assert_int_equal(json_integer_value(json_object_get(file, "notes_not_shown")), 0);
	note = json_array_get(json_object_get(file, "notes"), 0);
	assert_int_equal(json_integer_value(json_object_get(note, "line")), 3);
	assert_int_equal(json_integer_value(json_object_get(note, "column")), 17);
	json_decref(root);
	forget();
}

/* The explanation of a rule that allows an upgrade. */
static void test_upgrade(void **state)
{
	static const char text[] =
	        "vethguard: 1\n"
	        "credentials:\n"
	        "  k: {source: \"env:K\", inject: bearer}\n"
	        "allow:\n"
	        "  - {name: x, to: a.example, credential: k, upgrade: [SPDY/3.1, "
	        "tcp]}\n"
	        "  - {name: y, to: b.example, upgrade: tcp}\n";
	char path[] = "/tmp/vethguard-upgrade-XXXXXX";
	int fd = mkstemp(path);
	json_t *root;

	(void)state;
	assert_int_equal(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
	close(fd);
	RUN(&r, "check", path);
	assert_int_equal(r.status, 0);
	assert_non_null(strstr(
	        r.err, "rule \"x\": after an upgrade to spdy/3.1, tcp vethguard reads nothing"));
	assert_null(strstr(r.err, "rule \"y\""));
	RUN(&r, "explain", path, "POST", "https://a.example/exec");
	assert_non_null(strstr(r.out, "upgrade: spdy/3.1, tcp (relayed unread)\n"));
	RUN(&r, "explain", "--json", path, "POST", "https://b.example/");
	root = json_loads(r.out, 0, NULL);
	assert_string_equal(json_string_value(json_object_get(root, "upgrade")), "tcp");
	json_decref(root);
	RUN(&r, "explain", path, "POST", "https://c.example/");
	assert_null(strstr(r.out, "upgrade:"));
	unlink(path);
}

static void test_explain(void **state)
{
	(void)state;
	RUN(&r, "explain", "policies/coding-agent.yaml", "GET",
	        "https://api.github.com/repos/acme/x");
	assert_int_equal(r.status, 0);
	assert_non_null(strstr(r.out, "verdict: allow, by rule \"read-acme\""));
	assert_non_null(strstr(r.out, "credential: github, from env:GITHUB_TOKEN\n"));
	assert_non_null(strstr(r.out, "never-delete"));
	RUN(&r, "explain", "policies/coding-agent.yaml", "DELETE",
	        "https://api.github.com/repos/acme/x");
	assert_int_equal(r.status, 1);
	assert_non_null(strstr(r.out, "verdict: deny, by rule \"never-delete\""));
	assert_non_null(strstr(r.out, "reason: Agents never delete on GitHub."));
	RUN(&r, "explain", "policies/ci-runner.yaml", "CONNECT", "udp://time.cloudflare.com:123");
	assert_int_equal(r.status, 0);
	RUN(&r, "explain", "policies/ci-runner.yaml", "CONNECT", "tcp://time.cloudflare.com:123");
	assert_int_equal(r.status, 1);
	RUN(&r, "explain", "policies/coding-agent.yaml", "GET", "https://api.github.com/a%00b");
	assert_int_equal(r.status, 1);
	assert_non_null(strstr(r.out, "the request cannot be judged"));
	assert_non_null(strstr(r.out, "no rule can decide about this path"));
	assert_null(strstr(r.out, "another host"));
	RUN(&r, "explain", "policies/coding-agent.yaml", "GET", "https://paste.example/a");
	assert_null(strstr(r.out, "cannot be judged"));
	assert_non_null(strstr(r.out, "another host"));
	RUN(&r, "explain", "policies/coding-agent.yaml", "GET /", "https://paste.example/");
	assert_non_null(strstr(r.err, "vethguard: error: not a method"));
}

static void test_explain_accept(void **state)
{
	static const struct {
		const char *url;
		int status;
		const char *says;
	} rows[] = {{"tcp://host:8080", 0, "verdict: allow\n"},
	        {"tcp://127.0.0.1:8080", 0, "verdict: allow\n"},
	        {"tcp://10.1.2.3:8080", 0, "verdict: allow\n"},
	        {"tcp://two.sandbox.internal:8080", 0, "matches"},
	        {"tcp://11.1.2.3:8080", 1, "deny: no entry of from: names this source\n"},
	        {"tcp://[::1]:9000", 1, "another source"},
	        {"tcp://three.sandbox.internal:8080", 1, "deny: no entry"},
	        {"tcp://host:80", 1, "verdict: deny: the port is not exposed\n"},
	        {"tcp://two.example:8080", 2, "a source is host, an address or NAME.sandbox"},
	        {"https://10.1.2.3:8080", 2, "ports are exposed over TCP"},
	        {"udp://10.1.2.3:8080", 2, "ports are exposed over TCP"},
	        {"10.1.2.3", 2, "the scheme is missing"}};
	char path[] = "/tmp/vethguard-accept-XXXXXX";
	int fd = mkstemp(path);
	json_t *root;

	(void)state;
	dprintf(fd, "vethguard: 1\nexpose:\n"
	            "  - {port: 8080, from: [host, 10.0.0.0/8, \"sandbox:two\"], at: "
	            "\"0.0.0.0:80\"}\n"
	            "  - {port: 9000, from: [\"label:a=b\"]}\n");
	close(fd);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		RUN(&r, "explain", path, "ACCEPT", rows[i].url);
		assert_int_equal(r.status, rows[i].status);
		assert_non_null(strstr(rows[i].status == 2 ? r.err : r.out, rows[i].says));
	}
	RUN(&r, "explain", "--json", path, "ACCEPT", "tcp://11.0.0.1:8080");
	assert_int_equal(r.status, 1);
	root = json_loads(r.out, 0, NULL);
	assert_string_equal(json_string_value(json_object_get(root, "verdict")), "deny");
	assert_true(json_is_true(json_object_get(root, "exposed")));
	json_decref(root);
	RUN(&r, "check", path);
	assert_non_null(strstr(r.out, "2 exposed ports"));
	unlink(path);
}

/* A place that only a tcp:// rule opens is relayed unread: the answer is what the proxy does,
 * whatever a deny rule for some requests says. A deny rule without methods and paths counts. */
static void test_explain_relayed(void **state)
{
	static const struct {
		const char *method, *url;
		int status;
		const char *says, *says_not;
	} rows[] = {
	        {"DELETE", "https://db.example:5432/a", 0, "allow, by rule \"db\"", "never"},
	        {"DELETE", "http://db.example:5432/a", 0, "allow, by rule \"db\"", "never"},
	        {"GET", "https://db.example:5432/", 0, "relayed: only a tcp:// rule", "default"},
	        {"GET", "https://db.example:5432/a%00b", 0, "relayed: ", "cannot be judged"},
	        {"CONNECT", "https://db.example:5432", 0, "relayed: ", NULL},
	        {"CONNECT", "tcp://db.example:5432", 0, "allow, by rule \"db\"", "relayed: "},
	        {"GET", "https://shut.example:5432/", 1, "deny, by rule \"shut\"", "relayed: "},
	        {"DELETE", "https://both.example:5432/", 1, "deny, by rule \"never2\"",
	                "relayed: "},
	        {"GET", "https://both.example:5432/", 0, "allow, by rule \"web\"", "relayed: "},
	};
	json_t *root;

	(void)state;
	remember("vethguard: 1\n"
	         "allow:\n"
	         "  - {name: db, to: ['tcp://db.example:5432', 'tcp://shut.example:5432']}\n"
	         "  - {name: both, to: 'tcp://both.example:5432'}\n"
	         "  - {name: web, to: 'https://both.example:5432'}\n"
	         "deny:\n"
	         "  - {name: never, to: ['https://db.example:5432', 'http://db.example:5432'], "
	         "methods: [DELETE], reason: never}\n"
	         "  - {name: shut, to: 'https://shut.example:5432'}\n"
	         "  - {name: never2, to: 'https://both.example:5432', methods: [DELETE]}\n");
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const char *verdict;

		RUN(&r, "explain", policy_path, rows[i].method, rows[i].url);
		verdict = strstr(r.out, "verdict: ");
		if (r.status != rows[i].status || !verdict || !strstr(verdict, rows[i].says) ||
		        (rows[i].says_not && strstr(verdict, rows[i].says_not)))
			fail_msg("%s %s: %d: %s", rows[i].method, rows[i].url, r.status, r.out);
	}
	RUN(&r, "explain", policy_path, "DELETE", "https://db.example:5432/a", "--json");
	assert_int_equal(r.status, 0);
	root = json_loads(r.out, 0, NULL);
	assert_true(json_is_true(json_object_get(root, "relayed")));
	assert_string_equal(json_string_value(json_object_get(root, "rule")), "db");
	assert_true(json_is_true(
	        json_object_get(json_array_get(json_object_get(root, "rules"), 0), "matches")));
	assert_false(json_is_true(
	        json_object_get(json_array_get(json_object_get(root, "rules"), 3), "matches")));
	json_decref(root);
	forget();
}

/* A method in small letters gets a hint if only its case keeps a rule from
 * matching. */
static void test_explain_small_letters(void **state)
{
	static const char *const rows[][3] = {
	        {"get", "https://api.github.com/user", "GET would be allowed"},
	        {"Get", "https://api.github.com/user", "GET would be allowed"},
	        {"GET", "https://api.github.com/user", NULL},
	        {"get", "https://paste.example/", NULL},
	        {"delete", "https://api.github.com/user", NULL},
	        {"CONNECT", "https://paste.example/", NULL},
	};
	json_t *root;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		RUN(&r, "explain", "policies/coding-agent.yaml", rows[i][0], rows[i][1]);
		assert_int_equal(strstr(r.out, "hint:") != NULL, rows[i][2] != NULL);
		if (rows[i][2])
			assert_non_null(strstr(r.out, rows[i][2]));
		assert_int_equal(strstr(r.out, "note: methods are compared") != NULL,
		        !rows[i][2] && islower((unsigned char)rows[i][0][0]));
	}
	/* allowed as it is, by a rule for all methods */
	RUN(&r, "explain", EXPLAINED, "get", "https://open.example/");
	assert_int_equal(r.status, 0);
	assert_non_null(strstr(r.out, "note: methods are compared as they are written"));
	RUN(&r, "explain", EXPLAINED, "GET", "https://open.example/");
	assert_null(strstr(r.out, "note:"));
	RUN(&r, "explain", "policies/coding-agent.yaml", "get", "https://api.github.com/user",
	        "--json");
	assert_int_equal(r.status, 1);
	root = json_loads(r.out, 0, NULL);
	assert_string_equal(json_string_value(json_object_get(root, "allowed_in_capitals")), "GET");
	assert_true(json_is_true(json_object_get(root, "small_letters")));
	json_decref(root);
}

/* Methods that the proxy refuses whatever the policy says; all other tokens are left to the policy.
 */
static void test_explain_methods(void **state)
{
	static const struct {
		const char *method, *told;
		int status;
	} rows[] = {
	        {"LIST", "allow", 0},
	        {"get", "allow", 0},
	        {"!#$%&'*+-.^_`|~", "allow", 0},
	        {"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "allow", 0},
	        {"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "the method is too long", 1},
	        {"TRACE", "TRACE is never forwarded", 1},
	        {"trace", "TRACE is never forwarded", 1},
	        {"PRI", "the method is reserved", 1},
	        {"head", "the method is reserved", 1},
	        {"connect", "the method is reserved", 1},
	        {"G(T", "vethguard: error: not a method", 2},
	        {"GET\x80", "vethguard: error: not a method", 2},
	        {"", "vethguard: error: not a method", 2},
	};

	(void)state;
	remember("vethguard: 1\nname: t\nmode: observe\nallow: [{to: a.example}]\n");
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		RUN(&r, "explain", policy_path, rows[i].method, "https://a.example/");
		if (r.status != rows[i].status ||
		        !strstr(r.status == 2 ? r.err : r.out, rows[i].told))
			fail_msg("%s: %d\n%s%s", rows[i].method, r.status, r.out, r.err);
	}
	RUN(&r, "explain", policy_path, "TRACE", "https://a.example/", "--json");
	assert_non_null(strstr(r.out, "\"fault\":\"TRACE is never forwarded\""));
	assert_non_null(strstr(r.out, "\"verdict\":\"deny\""));
	assert_non_null(strstr(r.out, "\"rules\":[]"));
	forget();
}

/* Text that may be a user and a password is not shown, wherever it stands. */
static void test_explain_hides_passwords(void **state)
{
	static const char *const rows[][3] = {
	        {"GET", "https://me:hunter2@a.example/", "https://...@a.example/"},
	        {"GET", "https://me:hun/ter2@a.example/", "https://...@a.example/"},
	        {"GET", "https://me:hun@ter2@a.example/", "https://...@a.example/"},
	        {"GET", "https://me:hun#ter2@a.example/", "https://...@a.example/"},
	        {"GET", "ftp://me:hunter2@a.example/", "ftp://...@a.example/"},
	        {"GET", "https:/me:hunter2@a.example/", "\"...@a.example/\""},
	        {"GET", "me:hunter2@a.example", "\"...@a.example\""},
	        {"CONNECT", "tcp://me:hunter2@a.example:22", "tcp://...@a.example:22"},
	        {"https://me:hunter2@a.example/", "https://b.example/", "not a method"},
	        {"me:hunter2@a.example", "https://b.example/", "not a method"},
	        {"https://me:hunter2@a.example/", "GET", "this is not a URL"},
	        {"https://me:hunter2@a.example/", "tcp://b.example:1", "not a method"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		for (int json = 0; json < 2; json++) {
			RUN(&r, "explain", EXPLAINED, rows[i][0], rows[i][1],
			        json ? "--json" : NULL);
			if (r.status != 2 || !strstr(r.err, rows[i][2]) || strstr(r.err, "hun") ||
			        strstr(r.err, "ter2") || strstr(r.out, "hun") ||
			        strstr(r.out, "ter2"))
				fail_msg("row %zu says \"%s\"", i, r.err);
		}
}

/* The verdict is what the proxy does when it dials. */
static void test_explain_wide_networks(void **state)
{
	static const struct {
		const char *method, *url;
		bool allowed;
	} rows[] = {
	        {"GET", "http://8.8.8.8/", true},
	        {"GET", "http://10.0.0.1/", false},
	        {"GET", "http://127.0.0.1/", false},
	        {"GET", "http://169.254.169.254/", false},
	        {"GET", "http://[::ffff:127.0.0.1]/", false},
	        {"GET", "http://[2002:7f00:1::]/", false},
	        {"CONNECT", "tcp://8.8.8.8:22", true},
	        {"CONNECT", "tcp://10.0.0.1:22", false},
	        {"CONNECT", "udp://[::1]:99", false},
	        {"CONNECT", "udp://[2606:4700::1]:99", true},
	};
	json_t *root;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		RUN(&r, "explain", EXPLAINED, rows[i].method, rows[i].url);
		if (r.status != (rows[i].allowed ? 0 : 1) ||
		        (strstr(r.out, "only a rule with a wide network") != NULL) ==
		                rows[i].allowed)
			fail_msg("row %zu says \"%s\"", i, r.out);
		RUN(&r, "explain", EXPLAINED, rows[i].method, rows[i].url, "--json");
		root = json_loads(r.out, 0, NULL);
		assert_non_null(root);
		assert_string_equal(json_string_value(json_object_get(root, "verdict")),
		        rows[i].allowed ? "allow" : "deny");
		json_decref(root);
	}
}

static void test_explain_json(void **state)
{
	json_t *root, *rules;

	(void)state;
	RUN(&r, "explain", "policies/coding-agent.yaml", "GET", "https://api.github.com/user",
	        "--json");
	assert_int_equal(r.status, 0);
	root = json_loads(r.out, 0, NULL);
	assert_non_null(root);
	assert_string_equal(json_string_value(json_object_get(root, "verdict")), "allow");
	assert_string_equal(json_string_value(json_object_get(root, "why")),
	        "an allow rule of the policy names it");
	assert_string_equal(json_string_value(json_object_get(root, "rule")), "read-acme");
	assert_string_equal(json_string_value(json_object_get(root, "credential")), "github");
	assert_string_equal(
	        json_string_value(json_object_get(root, "credential_source")), "env:GITHUB_TOKEN");
	rules = json_object_get(root, "rules");
	assert_true(json_array_size(rules) > 10);
	assert_true(json_is_true(json_object_get(json_array_get(rules, 0), "matches")));
	assert_string_equal(
	        json_string_value(json_object_get(json_array_get(rules, 1), "differs_in")),
	        "method");
	json_decref(root);
	RUN(&r, "explain", "policies/coding-agent.yaml", "GET", "https://paste.example/", "--json");
	assert_int_equal(r.status, 1);
	root = json_loads(r.out, 0, NULL);
	assert_true(json_is_null(json_object_get(root, "rule")));
	assert_true(json_is_null(json_object_get(root, "credential")));
	json_decref(root);
}

static void test_usage(void **state)
{
	static const struct {
		const char *args[5], *says;
	} bad[] = {
	        {{NULL}, "Usage: vethguard policy check"},
	        {{"chek"}, "unknown command chek; did you mean check?\nThe commands are check, "
	                   "explain, diff, new and import. See 'vethguard policy --help'."},
	        {{"nonsense"}, "unknown command nonsense\nThe commands are check"},
	        {{"check"}, "which FILE? See 'vethguard policy check --help'."},
	        {{"check", "--jsn", "policies/observe.yaml"},
	                "unknown option --jsn; did you mean --json?\nThe options are --var, "
	                "--floor, "
	                "--resolve, --config, --json and --help. See 'vethguard policy check "
	                "--help'."},
	        {{"check", "policies/observe.yaml", "--var"},
	                "--var needs a value: --var NAME=VALUE"},
	        {{"check", "policies/observe.yaml", "--", "--json"}, "--json: error: cannot read"},
	        {{"explain"}, "which FILE?"},
	        {{"explain", "policies/observe.yaml"}, "which METHOD?"},
	        {{"explain", "policies/observe.yaml", "GET"}, "which URL?"},
	        {{"explain", "policies/observe.yaml", "GET", "https://a.example/", "x\x1b"},
	                "x\\x1b is an unexpected word."},
	        {{"explain", "policies/observe.yaml", "GET", "a.example"},
	                "the scheme is missing (https://host/path), not a URL: \"a.example\""},
	        {{"explain", "policies/observe.yaml", "https://a.example/", "GET"},
	                "this is not a URL; METHOD stands before the URL: \"GET\""},
	        {{"explain", "policies/observe.yaml", "GET", "https://u:p@a.example/"},
	                "without a user"},
	        {{"explain", "policies/observe.yaml", "GET", "wss://a.example/"},
	                "a WebSocket is judged as the GET that asks for it"},
	        {{"explain", "policies/observe.yaml", "CONNECT", "tcp://a.example"},
	                "need a port, as in tcp://host:5432: \"tcp://a.example\""},
	        {{"explain", "policies/observe.yaml", "GET", "https://a.example:x/"}, "not a URL"},
	        {{"explain", "policies/observe.yaml", "GET", "tcp://a.example:1"}, "CONNECT"},
	        {{"explain", "policies/observe.yaml", "", "https://a.example"}, "not a method"},
	        {{"explain", "policies/observe.yaml", "GET", "https://a.example/#x"},
	                "what follows \"#\" is never sent"},
	        {{"explain", "tests/unit/policy/bad/mode.yaml", "GET", "https://a.example/"},
	                "mode must be"},
	        {{"diff", "policies/observe.yaml"}, "which NEW?"},
	        {{"diff", "a", "b", "c"}, "c is an unexpected word."},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		run(&r, bad[i].args);
		assert_int_equal(r.status, 2);
		if (!strstr(r.err, bad[i].says))
			fail_msg("row %zu says \"%s\"", i, r.err);
	}
}

static void test_help(void **state)
{
	static const char *const commands[] = {"check", "explain", "diff"};

	(void)state;
	RUN(&r, "--help");
	assert_int_equal(r.status, 0);
	for (size_t i = 0; i < 3; i++) {
		assert_non_null(strstr(r.out, commands[i]));
		RUN(&r, commands[i], "--help");
		assert_int_equal(r.status, 0);
		assert_string_equal(r.err, "");
		assert_non_null(strstr(r.out, "Usage: vethguard policy "));
		assert_non_null(strstr(r.out, commands[i]));
		RUN(&r, "-h");
	}
}

/* Bytes that a terminal would obey are never printed unchanged. */
static void test_escapes(void **state)
{
	(void)state;
	RUN(&r, "explain", "policies/observe.yaml", "GET\x1b[31m", "https://a.example/");
	assert_null(strchr(r.out, '\x1b'));
	assert_null(strchr(r.err, '\x1b'));
	RUN(&r, "explain", "policies/observe.yaml", "GET", "https://a.example/\x1b[31m");
	assert_null(strchr(r.out, '\x1b'));
	assert_null(strchr(r.err, '\x1b'));
}

/* One fault, one line, with the reason. */
static void test_import_unreadable(void **state)
{
	static char large[(1u << 20) + 65536 + 2];

	(void)state;
	RUN(&r, "import", "--from", "squid", "no/such/file");
	assert_int_equal(r.status, 2);
	assert_string_equal(r.out, "");
	assert_string_equal(
	        r.err, "vethguard: error: cannot read no/such/file: No such file or directory\n");
	RUN(&r, "import", "--from", "squid", "tests");
	assert_int_equal(r.status, 2);
	assert_string_equal(r.err, "vethguard: error: cannot read tests: Is a directory\n");
	memset(large, '\n', sizeof(large) - 1);
	remember(large);
	RUN(&r, "import", "--from", "squid", policy_path);
	forget();
	assert_int_equal(r.status, 2);
	assert_non_null(strstr(r.err, "policy.yaml: more than 1 MiB\n"));
	assert_ptr_equal(strchr(r.err, '\n'), r.err + strlen(r.err) - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_check),
	        cmocka_unit_test(test_check_bad),
	        cmocka_unit_test(test_check_json),
	        cmocka_unit_test(test_check_sources_there),
	        cmocka_unit_test(test_check_file_rights),
	        cmocka_unit_test(test_check_file_missing),
	        cmocka_unit_test(test_check_file_unreadable),
	        cmocka_unit_test(test_check_file_below_file),
	        cmocka_unit_test(test_check_variable_missing),
	        cmocka_unit_test(test_check_unused_included),
	        cmocka_unit_test(test_check_unused),
	        cmocka_unit_test(test_check_notes_json),
	        cmocka_unit_test(test_upgrade),
	        cmocka_unit_test(test_explain),
	        cmocka_unit_test(test_explain_accept),
	        cmocka_unit_test(test_explain_relayed),
	        cmocka_unit_test(test_explain_small_letters),
	        cmocka_unit_test(test_explain_methods),
	        cmocka_unit_test(test_explain_hides_passwords),
	        cmocka_unit_test(test_explain_wide_networks),
	        cmocka_unit_test(test_explain_json),
	        cmocka_unit_test(test_usage),
	        cmocka_unit_test(test_help),
	        cmocka_unit_test(test_escapes),
	        cmocka_unit_test(test_import_unreadable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
