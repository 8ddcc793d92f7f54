/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions on requests of git: paths, refs, what may be done to them, and Git LFS. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "body_test.h"
#include "../../git/git_test.h"
#include "vethguard/policy/refusal.h"

#define SITE(more) ALLOW("git: {repositories: [acme/site, \"tools/*\"]" more "}")
#define PUSHES ", push: [\"refs/heads/agent/*\", refs/heads/one, \"refs/tags/v*\"]"
#define RECEIVE "/acme/site.git/git-receive-pack"
#define UPLOAD "/acme/site.git/git-upload-pack"

/* One request; body: the lines of a push or a fetch, each ended by '\n', or NULL. */
struct git_row {
	const char *method, *path, *query, *command;
};

static const char *const types[] = {"x", "Content-Type: application/x-git-receive-pack-request",
        "Content-Type: application/x-git-upload-pack-request",
        "Content-Type: application/vnd.git-lfs+json; charset=utf-8"};

enum type { TYPE_NONE, TYPE_PUSH, TYPE_FETCH, TYPE_LFS };

static struct policy_decision decide(const char *rules, const struct git_row *row, enum type type,
        struct slice text, char *refusal)
{
	const char *const lines[] = {types[type], NULL};
	const struct policy_fields fields = {lines, git_test_field};
	struct policy_body body = {.state = POLICY_BODY_UNREAD};
	struct policy_request request = {.scheme = POLICY_HTTPS,
	        .host = SLICE("a.example"),
	        .port = 443,
	        .method = slice_from_string(row->method),
	        .path = slice_from_string(row->path),
	        .query = slice_from_string(row->query),
	        .fields = &fields};
	struct policy_refusal words;
	struct policy_decision d;
	struct test_policy t;

	test_load(&t, rules, false);
	if (type != TYPE_NONE) {
		git_body_read(&body, &fields, text);
		request.body = &body;
	}
	policy_decide(&t.policy, &request, &d);
	if (refusal) {
		assert_true(policy_explain_refusal(&t.policy, &request, &words));
		strcpy(refusal, words.text);
	}
	policy_body_fini(&body);
	test_unload(&t);
	return d;
}

static void check(const char *rules, const struct git_row *row, enum type type, struct slice text,
        bool allowed)
{
	if ((decide(rules, row, type, text, NULL).verdict == POLICY_ALLOW) != allowed)
		fail_msg("%s\n%s %s?%s %s", rules, row->method, row->path,
		        row->query ? row->query : "", row->command ? row->command : "");
}

/* A push of one command; each further one stands behind a ';'. */
static void check_push(const char *rules, const char *path, const char *commands, bool allowed)
{
	const struct git_row row = {"POST", path, NULL, commands};
	struct git_test *t = git_test_new();
	char line[512];
	bool first = true, deletes = true;

	while (*commands) {
		size_t n = strcspn(commands, ";");

		snprintf(line, sizeof(line), "%.*s%s", (int)n, commands,
		        first ? "| report-status" : "");
		deletes &= memcmp(line + 41, ZERO, 40) == 0;
		git_test_line(t, line);
		commands += n + (commands[n] == ';');
		first = false;
	}
	git_test_raw(t, "0000");
	if (!deletes)
		git_test_add(t,
		        "PACK\0\0\0\2\0\0\0\0"
		        "01234567890123456789",
		        32);
	check(rules, &row, TYPE_PUSH, slice_of(t->text, t->n), allowed);
	free(t);
}

static void test_refs_and_fetches(void **state)
{
	static const struct slice fetch = {"0014command=ls-refs\n0000", 24};
	static const struct git_row good[] = {
	        {"GET", "/acme/site.git/info/refs", "service=git-upload-pack", NULL},
	        {"GET", "/acme/site/info/refs", "service=git-upload-pack", NULL},
	        {"GET", "/tools/a-b_c.d/info/refs", "service=git-upload-pack", NULL}};
	static const struct git_row bad[] = {
	        {"GET", "/acme/site.git/info/refs", "service=git-receive-pack", NULL},
	        {"GET", "/acme/site.git/info/refs", NULL, NULL},
	        {"GET", "/acme/site.git/info/refs", "service=git-upload-pack&x", NULL},
	        {"GET", "/acme/site.git/info/refs", "service=git-upload-archive", NULL},
	        {"GET", "/acme/site.git/info/refs", "service=git%2Dupload-pack", NULL},
	        {"HEAD", "/acme/site.git/info/refs", "service=git-upload-pack", NULL},
	        {"POST", "/acme/site.git/info/refs", "service=git-upload-pack", NULL},
	        {"GET", "/acme/site.git/HEAD", NULL, NULL},
	        {"GET", "/acme/site.git/objects/info/packs", NULL, NULL},
	        {"GET", "/acme/site.git", "service=git-upload-pack", NULL},
	        {"GET", "/acme/Site.git/info/refs", "service=git-upload-pack", NULL},
	        {"GET", "/acme/site2/info/refs", "service=git-upload-pack", NULL},
	        {"GET", "/acme/site.git.git/info/refs", "service=git-upload-pack", NULL},
	        {"GET", "/acme/site/x/info/refs", "service=git-upload-pack", NULL},
	        {"GET", "/x/acme/site/info/refs", "service=git-upload-pack", NULL},
	        {"GET", "/tools/a/b/info/refs", "service=git-upload-pack", NULL},
	        {"GET", "/tools//info/refs", "service=git-upload-pack", NULL},
	        {"GET", "/tools/a%2Fb/info/refs", "service=git-upload-pack", NULL},
	        {"GET", "/tools/a;b/info/refs", "service=git-upload-pack", NULL},
	        {"GET", "/info/refs", "service=git-upload-pack", NULL},
	        {"GET", "/acme/site.git//info/refs", "service=git-upload-pack", NULL}};
	static const struct git_row post = {"POST", UPLOAD, NULL, NULL};
	static const struct git_row others[] = {{"GET", UPLOAD, NULL, NULL},
	        {"POST", UPLOAD, "x", NULL}, {"POST", UPLOAD "/", NULL, NULL},
	        {"POST", "/acme/other.git/git-upload-pack", NULL, NULL},
	        {"POST", RECEIVE, NULL, NULL},
	        {"POST", "/acme/site.git/git-upload-archive", NULL, NULL}};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
		check(SITE(""), &good[i], TYPE_NONE, SLICE(""), true);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		check(SITE(""), &bad[i], TYPE_NONE, SLICE(""), false);
	check(SITE(PUSHES), &bad[0], TYPE_NONE, SLICE(""), true);
	check(SITE(""), &post, TYPE_FETCH, fetch, true);
	check(SITE(""), &post, TYPE_PUSH, fetch, false);
	check(SITE(""), &post, TYPE_LFS, SLICE("{}"), false);
	check(SITE(""), &post, TYPE_FETCH, SLICE("x"), false);
	check(SITE(""), &post, TYPE_NONE, SLICE(""), false);
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		check(SITE(""), &others[i], TYPE_FETCH, fetch, false);
}

#define MAKES(ref) ZERO " " ID_A " " ref
#define FORCES(ref) ID_B " " ID_A " " ref
#define DELETES(ref) ID_A " " ZERO " " ref

static void test_pushes(void **state)
{
	static const char *const good[] = {MAKES("refs/heads/agent/x"),
	        MAKES("refs/heads/agent/x/y"),
	        MAKES("refs/heads/one") ";" MAKES("refs/heads/agent/1"), MAKES("refs/tags/v1"),
	        ID_A " " ID_A " refs/heads/one", ""};
	static const char *const bad[] = {MAKES("refs/heads/main"), MAKES("refs/heads/one2"),
	        MAKES("refs/heads/Agent/x"), MAKES("refs/heads/agent"), MAKES("refs/tags/w1"),
	        MAKES("refs/heads/one") ";" MAKES("refs/heads/main"),
	        MAKES("refs/heads/main") ";" MAKES("refs/heads/one"), FORCES("refs/heads/agent/x"),
	        FORCES("refs/tags/v1"), DELETES("refs/heads/agent/x"),
	        DELETES("refs/heads/one") ";" MAKES("refs/heads/agent/y"),
	        MAKES("refs/notes/commits"), MAKES("refs/heads/agent/../main")};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		check_push(SITE(PUSHES), RECEIVE, good[i], true);
		check_push(SITE(""), RECEIVE, good[i], false);
		check_push(SITE(PUSHES), "/acme/other/git-receive-pack", good[i], false);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		check_push(SITE(PUSHES), RECEIVE, bad[i], false);
	check_push(SITE(PUSHES ", force: true"), RECEIVE, FORCES("refs/heads/agent/x"), true);
	check_push(SITE(PUSHES ", force: true"), RECEIVE, FORCES("refs/tags/v1"), true);
	check_push(SITE(PUSHES ", force: true"), RECEIVE, FORCES("refs/heads/main"), false);
	check_push(SITE(PUSHES ", force: true"), RECEIVE, DELETES("refs/heads/one"), false);
	check_push(SITE(PUSHES ", delete: true"), RECEIVE, DELETES("refs/heads/one"), true);
	check_push(SITE(PUSHES ", delete: true"), RECEIVE, DELETES("refs/heads/main"), false);
	check_push(SITE(PUSHES ", force: false, delete: false"), RECEIVE,
	        FORCES("refs/heads/agent/x"), false);
	/* a pattern for everything covers no tags */
	check_push(SITE(", push: \"refs/*\""), RECEIVE, MAKES("refs/heads/x"), true);
	check_push(SITE(", push: \"refs/*\""), RECEIVE, MAKES("refs/tags/x"), false);
	check_push(SITE(", push: \"refs/*\", tags: true"), RECEIVE, MAKES("refs/tags/x"), true);
	check_push(SITE(", push: refs/heads/x, tags: true"), RECEIVE, FORCES("refs/tags/x"), false);
}

/* A push whose pack proves that it loses nothing. */
static void test_forward(void **state)
{
	const struct git_row row = {"POST", RECEIVE, NULL, "forward"};
	struct git_test *t = git_test_new();
	char id[65], line[256];
	const char *const parents[] = {ID_B, NULL};

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct git_test *pack = git_test_new();

		git_test_begin_pack(pack);
		git_test_commit(pack, id, "x", parents);
		git_test_end_pack(pack);
		t->n = 0;
		snprintf(line, sizeof(line), "%s %s %s|", i == 1 ? ID_A : ID_B, id,
		        i == 2   ? "refs/heads/main"
		        : i == 3 ? "refs/tags/v1"
		                 : "refs/heads/one");
		git_test_line(t, line);
		git_test_raw(t, "0000");
		git_test_add(t, pack->text, pack->n);
		check(SITE(PUSHES), &row, TYPE_PUSH, slice_of(t->text, t->n), i == 0);
		free(pack);
	}
	free(t);
}

static void test_options(void **state)
{
	const struct git_row row = {"POST", RECEIVE, NULL, "options"};
	struct git_test *t = git_test_new();
	struct slice text;

	(void)state;
	git_test_line(t, MAKES("refs/heads/one") "| push-options");
	git_test_raw(t, "0000");
	git_test_line(t, "ci.skip");
	git_test_raw(t, "0000");
	git_test_add(t,
	        "PACK\0\0\0\2\0\0\0\0"
	        "01234567890123456789",
	        32);
	text = slice_of(t->text, t->n);
	check(SITE(PUSHES), &row, TYPE_PUSH, text, false);
	check(SITE(PUSHES ", options: ci.skip"), &row, TYPE_PUSH, text, true);
	check(SITE(PUSHES ", options: [\"ci.*\"]"), &row, TYPE_PUSH, text, true);
	check(SITE(PUSHES ", options: ci.variable"), &row, TYPE_PUSH, text, false);
	free(t);
}

static const char *double_quotes(char *text)
{
	for (char *p = text; *p; p++)
		if (*p == '\'')
			*p = '"';
	return text;
}

static void check_lfs(
        const char *rules, const char *method, const char *end, const char *json, bool allowed)
{
	char path[256], body[512];
	struct git_row row = {method, path, NULL, json};

	snprintf(path, sizeof(path), "/acme/site.git/info/lfs/%s", end);
	snprintf(body, sizeof(body), "%s", json ? json : "");
	double_quotes(body);
	check(rules, &row, json ? TYPE_LFS : TYPE_NONE, slice_from_string(body), allowed);
}

static void test_lfs(void **state)
{
	static const char *const batch = "objects/batch";
	static const char rules[] = SITE(PUSHES);

	(void)state;
	check_lfs(rules, "POST", batch, "{'operation':'download','objects':[]}", true);
	check_lfs(SITE(""), "POST", batch, "{'operation':'download','objects':[]}", true);
	check_lfs(rules, "POST", batch,
	        "{'operation':'upload','ref':{'name':'refs/heads/one'},'objects':[]}", true);
	check_lfs(SITE(""), "POST", batch, "{'operation':'upload','ref':{'name':'refs/heads/one'}}",
	        false);
	check_lfs(rules, "POST", batch, "{'operation':'upload','ref':{'name':'refs/heads/main'}}",
	        false);
	check_lfs(rules, "POST", batch, "{'operation':'upload'}", false);
	check_lfs(rules, "POST", batch, "{'operation':'Download'}", false);
	check_lfs(rules, "POST", batch, "{'operation':'download','Operation':'upload'}", false);
	check_lfs(rules, "POST", batch, "{'operation':['download']}", false);
	check_lfs(rules, "POST", batch, "[]", false);
	check_lfs(rules, "POST", batch, "x", false);
	check_lfs(rules, "GET", batch, NULL, false);
	check_lfs(rules, "PUT", batch, "{'operation':'download'}", false);
	check_lfs(rules, "GET", "locks", NULL, true);
	check_lfs(SITE(""), "GET", "locks", NULL, true);
	check_lfs(rules, "POST", "locks", "{'path':'a','ref':{'name':'refs/heads/one'}}", true);
	check_lfs(rules, "POST", "locks", "{'path':'a','ref':{'name':'refs/heads/main'}}", false);
	check_lfs(rules, "POST", "locks", "{'path':'a'}", false);
	check_lfs(SITE(""), "POST", "locks", "{'path':'a','ref':{'name':'refs/heads/one'}}", false);
	check_lfs(rules, "POST", "locks/verify", "{'ref':{'name':'refs/heads/main'}}", true);
	check_lfs(SITE(""), "POST", "locks/verify", "{}", false);
	check_lfs(rules, "POST", "locks/7/unlock", "{'ref':{'name':'refs/heads/one'}}", true);
	check_lfs(rules, "POST", "locks/7/unlock",
	        "{'force':false,'ref':{'name':'refs/heads/one'}}", true);
	check_lfs(rules, "POST", "locks/7/unlock", "{'force':true,'ref':{'name':'refs/heads/one'}}",
	        false);
	check_lfs(SITE(PUSHES ", force: true"), "POST", "locks/7/unlock",
	        "{'force':true,'ref':{'name':'refs/heads/one'}}", true);
	check_lfs(rules, "POST", "locks/7/unlock", "{'ref':{'name':'refs/heads/main'}}", false);
	check_lfs(rules, "POST", "locks//unlock", "{'ref':{'name':'refs/heads/one'}}", false);
	check_lfs(rules, "POST", "locks/unlock", "{'ref':{'name':'refs/heads/one'}}", false);
	check_lfs(rules, "POST", "locks/7/8/unlock", "{'ref':{'name':'refs/heads/one'}}", false);
	check_lfs(rules, "GET", "objects/abc", NULL, false);
}

/* --- deny rules --- */

static void test_denied_pushes(void **state)
{
	static const char rules[] = DENY("git: {push: [refs/heads/main, \"refs/tags/*\"]}");
	static const char *const denied[] = {MAKES("refs/heads/main"), MAKES("refs/heads/MAIN"),
	        FORCES("refs/heads/x") ";" DELETES("refs/heads/main"), MAKES("refs/tags/v1"),
	        MAKES("refs/heads/x y")};
	static const char *const paths[] = {"/a/b/git-receive-pack", "/a/b/Git-Receive-Pack",
	        "/a/b/git-receive-pack/", "/a/b//git-receive-pack", "/a/b/git%252Dreceive-pack",
	        "/a/b/git-receive-pack;x"};
	static const struct git_row refs = {
	        "GET", "/a/b/info/refs", "service=git-receive-pack", NULL};
	static const struct git_row post = {"POST", "/a/b/git-receive-pack", NULL, NULL};

	(void)state;
	for (size_t i = 0; i < sizeof(denied) / sizeof(*denied); i++)
		check_push(rules, paths[0], denied[i], false);
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		check_push(rules, paths[i], denied[0], false);
		check_push(rules, paths[i], MAKES("refs/heads/x"), true);
	}
	check_push(rules, "/a/b/other", denied[0], true);
	check(rules, &refs, TYPE_NONE, SLICE(""), true);
	check(rules, &post, TYPE_FETCH, SLICE("0000"), false);
	check(rules, &post, TYPE_LFS, SLICE("{}"), false);
	check_lfs(rules, "POST", "objects/batch",
	        "{'operation':'upload','ref':{'name':'refs/heads/main'}}", false);
	check_lfs(rules, "POST", "objects/batch", "{'operation':'upload'}", false);
	check_lfs(rules, "POST", "objects/batch", "{'operation':'download'}", true);
	check_lfs(rules, "POST", "objects/batch",
	        "{'operation':'upload','ref':{'name':'refs/heads/x'}}", true);
}

static void test_denied_repositories(void **state)
{
	static const char rules[] = DENY("git: {repositories: [acme/secret, \"evil/*\"]}");
	static const char *const denied[] = {"/acme/secret/info/refs", "/acme/secret.git/info/refs",
	        "/ACME/Secret.GIT/info/refs", "/acme//secret/info/refs", "/evil/x/info/refs",
	        "/evil/x/y/info/refs", "/acme/secret.git/info/lfs/locks"};
	static const char *const others[] = {"/acme/secret2/info/refs", "/acme/site/info/refs",
	        "/acme/secret/issues", "/acme/secret"};

	(void)state;
	for (size_t i = 0; i < sizeof(denied) / sizeof(*denied); i++) {
		const struct git_row row = {"GET", denied[i], "service=git-upload-pack", NULL};

		check(rules, &row, TYPE_NONE, SLICE(""), false);
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		const struct git_row row = {"GET", others[i], "service=git-upload-pack", NULL};

		check(rules, &row, TYPE_NONE, SLICE(""), true);
	}
	check_push(rules, "/acme/secret/git-receive-pack", MAKES("refs/heads/x"), false);
	check_push(rules, "/acme/site/git-receive-pack", MAKES("refs/heads/x"), true);
}

/* --- ask rules --- */

#define ASK(more)                                                                   \
	"vethguard: 1\nallow: [{name: all, to: a.example}]\nask: [{to: a.example, " \
	"git: {repositories: [acme/site]" more "}}]\n"
#define REFS_OF(repository) "GET", repository "/info/refs"
#define LFS(method, repository, end) method, repository "/info/lfs/" end, NULL
#define UPLOADS(ref) "{'operation':'upload','ref':{'name':'" ref "'}}"

enum outcome { ASKED, ALLOWED, REFUSED };

/* A request of git, and its outcome under an ask rule and a rule that allows everything. The
 * request's command is the body, or NULL. */
struct ask_row {
	struct git_row request;
	enum type type;
	enum outcome reads, pushes; /* the ask rule is without refs, with PUSHES */
};

static enum outcome outcome_of(const char *rules, const struct ask_row *row)
{
	char body[512];
	struct policy_decision d;

	snprintf(body, sizeof(body), "%s", row->request.command ? row->request.command : "");
	double_quotes(body);
	d = decide(rules, &row->request, row->type, slice_from_string(body), NULL);
	return d.verdict != POLICY_ALLOW ? REFUSED : d.asks ? ASKED : ALLOWED;
}

/* A request that a server could read as one that the ask rule covers is refused; the ask rule does
 * not change the rest. */
static void test_asked(void **state)
{
	static const char fetch[] = "0014command=ls-refs\n0000";
	static const struct ask_row rows[] = {
	        {{REFS_OF("/acme/site"), "service=git-upload-pack", NULL}, TYPE_NONE, ASKED, ASKED},
	        {{REFS_OF("/acme/site"), "service=git-receive-pack", NULL}, TYPE_NONE, ALLOWED,
	                ASKED},
	        {{REFS_OF("/Acme/site"), "service=git-upload-pack", NULL}, TYPE_NONE, REFUSED,
	                REFUSED},
	        {{REFS_OF("/Acme/site"), "service=git-receive-pack", NULL}, TYPE_NONE, ALLOWED,
	                REFUSED},
	        {{REFS_OF("/acme/site"), "service=git%2Dreceive-pack", NULL}, TYPE_NONE, REFUSED,
	                REFUSED},
	        {{REFS_OF("/acme/site"), NULL, NULL}, TYPE_NONE, REFUSED, REFUSED},
	        {{REFS_OF("/acme/other"), "service=git-upload-pack", NULL}, TYPE_NONE, ALLOWED,
	                ALLOWED},
	        {{"POST", UPLOAD, NULL, fetch}, TYPE_FETCH, ASKED, ASKED},
	        {{"POST", "/acme/SITE.git/git-upload-pack", NULL, fetch}, TYPE_FETCH, REFUSED,
	                REFUSED},
	        {{"POST", "/acme/other/git-upload-pack", NULL, fetch}, TYPE_FETCH, ALLOWED,
	                ALLOWED},
	        {{LFS("POST", "/acme/site", "objects/batch"), "{'operation':'download'}"}, TYPE_LFS,
	                ASKED, ASKED},
	        {{LFS("POST", "/acme//site", "objects/batch"), "{'operation':'download'}"},
	                TYPE_LFS, REFUSED, REFUSED},
	        {{LFS("POST", "/acme/site", "Objects/batch"), "{'operation':'download'}"}, TYPE_LFS,
	                REFUSED, REFUSED},
	        {{LFS("POST", "/acme/site", "objects/batch"), "{'operation':'Download'}"}, TYPE_LFS,
	                REFUSED, REFUSED},
	        {{LFS("POST", "/acme/site", "objects/batch"), "x"}, TYPE_LFS, REFUSED, REFUSED},
	        {{LFS("POST", "/acme/site", "objects/batch"), UPLOADS("refs/heads/one")}, TYPE_LFS,
	                ALLOWED, ASKED},
	        {{LFS("POST", "/Acme/site", "objects/batch"), UPLOADS("refs/heads/one")}, TYPE_LFS,
	                ALLOWED, REFUSED},
	        {{LFS("POST", "/acme/site", "objects/batch"), UPLOADS("refs/heads/main")}, TYPE_LFS,
	                ALLOWED, ALLOWED},
	        {{LFS("POST", "/acme/site", "objects/batch"), "{'operation':'upload'}"}, TYPE_LFS,
	                ALLOWED, REFUSED},
	        {{LFS("GET", "/acme/site", "locks"), NULL}, TYPE_NONE, ASKED, ASKED},
	        {{LFS("GET", "/acme/site;x", "locks"), NULL}, TYPE_NONE, REFUSED, REFUSED},
	        {{LFS("POST", "/acme/site", "locks"), "{'path':'a'}"}, TYPE_LFS, ALLOWED, REFUSED},
	        {{LFS("POST", "/acme/site", "locks/verify"), "{}"}, TYPE_LFS, ALLOWED, ASKED},
	        {{LFS("POST", "/acme/Site", "locks/verify"), "{}"}, TYPE_LFS, ALLOWED, REFUSED},
	};
	struct ask_row row;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		row = rows[i];
		if (outcome_of(ASK(""), &row) != row.reads ||
		        outcome_of(ASK(PUSHES), &row) != row.pushes)
			fail_msg("row %zu: %s %s?%s: %d, %d", i, row.request.method,
			        row.request.path, row.request.query ? row.request.query : "",
			        outcome_of(ASK(""), &row), outcome_of(ASK(PUSHES), &row));
	}
	check_push(ASK(""), RECEIVE, MAKES("refs/heads/one"), true);
	check_push(ASK(PUSHES), RECEIVE, MAKES("refs/heads/main"), true);
	check_push(ASK(PUSHES), "/Acme/site/git-receive-pack", MAKES("refs/heads/one"), false);
	check_push(
	        ASK(PUSHES), RECEIVE, MAKES("refs/heads/one") ";" MAKES("refs/heads/main"), false);
}

static void test_words(void **state)
{
	static const char rules[] =
	        "vethguard: 1\nallow:\n"
	        "  - {name: other, to: a.example, git: {repositories: [acme/other]}}\n"
	        "  - {name: site, to: a.example, git: {repositories: [acme/site], "
	        "push: \"refs/heads/agent/*\"}}\n";
	const struct git_row row = {"POST", RECEIVE, NULL, "words"};
	const struct git_row none = {"POST", "/acme/x/git-receive-pack", NULL, "words"};
	char refusal[POLICY_REFUSAL_MAX];
	struct git_test *t = git_test_new();

	(void)state;
	git_test_line(t, DELETES("refs/heads/agent/\xc3\xa9"));
	git_test_raw(t, "0000");
	decide(rules, &row, TYPE_PUSH, slice_of(t->text, t->n), refusal);
	assert_string_equal(refusal, "the ref \"refs/heads/agent/\\xc3\\xa9\" may not be deleted; "
	                             "rule \"site\" allows git "
	                             "repository \"acme/site\"; push \"refs/heads/agent/*\"");
	decide(rules, &none, TYPE_PUSH, slice_of(t->text, t->n), refusal);
	assert_string_equal(refusal,
	        "the repository \"acme/x\" is not allowed; rule \"other\" allows git repository "
	        "\"acme/other\"");
	free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_refs_and_fetches),
	        cmocka_unit_test(test_pushes),
	        cmocka_unit_test(test_forward),
	        cmocka_unit_test(test_options),
	        cmocka_unit_test(test_lfs),
	        cmocka_unit_test(test_denied_pushes),
	        cmocka_unit_test(test_denied_repositories),
	        cmocka_unit_test(test_asked),
	        cmocka_unit_test(test_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
