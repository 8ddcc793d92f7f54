/* SPDX-License-Identifier: Apache-2.0 */
/* Every preset and example loads from its file and decides as its comments say. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <glob.h>

#include "../policy_test.h"

struct expectation {
	const char *method, *url;
	bool allowed;
};

/* Of those presets that have variables. */
static const struct policy_variable variables[] = {
        {{"owner", 5}, {"acme", 4}}, {{"repository", 10}, {"site", 4}}};

static void load_file(struct test_policy *t, const char *path)
{
	struct policy_reader reader = policy_reader_files("policies/presets");
	const struct policy_load_options options = {
	        .variables = variables, .variable_count = sizeof(variables) / sizeof(variables[0])};

	memset(t, 0, sizeof(*t));
	if (policy_load(&reader, path, &options, &t->image, &t->size, &t->diags) != 0) {
		diag_print(&t->diags, stderr);
		fail_msg("%s does not load", path);
	}
	assert_int_equal(policy_open(&t->policy, t->image, t->size), 0);
}

static void check(const char *path, const struct expectation *table, size_t count)
{
	struct test_policy t;

	load_file(&t, path);
	for (size_t i = 0; i < count; i++) {
		struct policy_decision d = test_ask(&t.policy, table[i].method, table[i].url);

		if ((d.verdict == POLICY_ALLOW) != table[i].allowed)
			fail_msg("%s: %s %s: %s", path, table[i].method, table[i].url,
			        d.verdict == POLICY_ALLOW ? "allowed"
			                                  : policy_reason_text(d.reason));
	}
	test_unload(&t);
}

#define CHECK(path, ...)                                                 \
	do {                                                             \
		static const struct expectation table[] = {__VA_ARGS__}; \
		check(path, table, sizeof(table) / sizeof(table[0]));    \
	} while (0)

static void test_pypi(void **state)
{
	(void)state;
	CHECK("policies/presets/pypi.yaml", {"GET", "https://pypi.org/simple/requests/", true},
	        {"GET", "https://pypi.org/simple/", true},
	        {"HEAD", "https://pypi.org/simple/a", true},
	        {"GET", "https://pypi.org/pypi/requests/json", true},
	        {"GET", "https://pypi.org/pypi/requests/2.0/json", true},
	        {"GET", "https://files.pythonhosted.org/packages/ab/cd/x-1.0.tar.gz", true},
	        {"GET", "https://files.pythonhosted.org/packages/ab/x.whl.metadata", true},
	        {"GET", "https://pypi.org/", false},
	        {"GET", "https://pypi.org/manage/account/", false},
	        {"POST", "https://pypi.org/simple/requests/", false},
	        {"POST", "https://upload.pypi.org/legacy/", false},
	        {"GET", "http://pypi.org/simple/requests/", false},
	        {"GET", "https://pypi.org:8443/simple/requests/", false},
	        {"GET", "https://evil.pypi.org/simple/x/", false},
	        {"GET", "https://pypi.org.evil.example/simple/x/", false},
	        {"GET", "https://pypi.org/simple/../manage/", false},
	        {"GET", "https://files.pythonhosted.org/other", false});
}

static void test_npm(void **state)
{
	(void)state;
	CHECK("policies/presets/npm.yaml", {"GET", "https://registry.npmjs.org/left-pad", true},
	        {"GET", "https://registry.npmjs.org/left-pad/latest", true},
	        {"GET", "https://registry.npmjs.org/@types%2fnode", true},
	        {"GET", "https://registry.npmjs.org/@types%2Fnode/1.0.0", true},
	        {"GET", "https://registry.npmjs.org/@types/node", true},
	        {"GET", "https://registry.npmjs.org/left-pad/-/left-pad-1.0.0.tgz", true},
	        {"GET", "https://registry.npmjs.org/@types/node/-/node-1.0.0.tgz", true},
	        {"GET", "https://registry.yarnpkg.com/@babel%2fcore", true},
	        {"PUT", "https://registry.npmjs.org/left-pad", false},
	        {"POST", "https://registry.npmjs.org/-/npm/v1/security/advisories/bulk", false},
	        {"GET", "https://registry.npmjs.org/-/whoami", false},
	        {"GET", "https://registry.npmjs.org/-/npm/v1/tokens", false},
	        {"GET", "https://registry.npmjs.org/-%2Fwhoami", false},
	        {"GET", "https://registry.npmjs.org//-/whoami", false},
	        {"GET", "https://registry.npmjs.org/", false},
	        {"GET", "https://registry.npmjs.org/a%2Fb", false},
	        {"GET", "https://www.npmjs.com/left-pad", false});
}

static void test_debian(void **state)
{
	(void)state;
	CHECK("policies/presets/debian.yaml",
	        {"GET", "http://deb.debian.org/debian/dists/bookworm/InRelease", true},
	        {"GET", "https://deb.debian.org/debian/pool/main/g/g%2b%2b/g++_4%3a12_amd64.deb",
	                true},
	        {"GET", "http://security.debian.org/debian-security/dists/x/InRelease", true},
	        {"POST", "http://deb.debian.org/debian/x", false},
	        {"GET", "http://deb.debian.org/other", false},
	        {"GET", "http://deb.debian.org:8080/debian/x", false},
	        {"GET", "http://ftp.debian.org/debian/x", false});
}

static void test_github(void **state)
{
	(void)state;
	CHECK("policies/presets/github.yaml",
	        {"GET", "https://github.com/torvalds/linux.git/info/refs?service=git-upload-pack",
	                true},
	        {"POST", "https://github.com/torvalds/linux.git/git-upload-pack", true},
	        {"GET", "https://github.com/a/b/archive/refs/tags/v1.tar.gz", true},
	        {"GET", "https://github.com/a/b/releases/download/v1/x.tgz", true},
	        {"GET", "https://codeload.github.com/a/b/tar.gz/v1", true},
	        {"GET", "https://raw.githubusercontent.com/a/b/main/README.md", true},
	        {"GET", "https://release-assets.githubusercontent.com/x?y=z", true},
	        {"POST", "https://github.com/a/b/git-receive-pack", false},
	        {"POST", "https://github.com/a/b.git//git-receive-pack", false},
	        {"POST", "https://github.com/a/b/git-upload-pack/x", false},
	        {"GET", "https://github.com/settings/tokens", false},
	        {"POST", "https://github.com/session", false},
	        {"GET", "https://api.github.com/user", false},
	        {"POST", "https://raw.githubusercontent.com/a", false},
	        {"GET", "https://gist.github.com/a", false});
}

static void test_github_push(void **state)
{
	(void)state;
	CHECK("policies/presets/github-push.yaml",
	        {"GET", "https://github.com/acme/site.git/info/refs?service=git-receive-pack",
	                true},
	        {"GET", "https://github.com/acme/site/info/refs?service=git-upload-pack", true},
	        {"POST", "https://github.com/acme/site.git/git-upload-pack", true},
	        {"POST", "https://github.com/acme/site.git/git-receive-pack", true},
	        {"POST", "https://github.com/acme/site/git-receive-pack", true},
	        {"POST", "https://github.com/acme/site2.git/git-receive-pack", false},
	        {"POST", "https://github.com/acme/other.git/git-receive-pack", false},
	        {"POST", "https://github.com/acme/site.git/../other.git/git-receive-pack", false},
	        {"POST", "https://github.com/acme/site.git%2F..%2Fother.git/git-receive-pack",
	                false},
	        {"POST", "https://github.com/acme2/site.git/git-receive-pack", false},
	        {"POST", "https://github.com/x/acme/site.git/git-receive-pack", false},
	        {"POST", "https://github.com/acme/site.git/git-receive-pack/x", false},
	        {"GET", "https://github.com/acme/site.git/git-receive-pack", false},
	        {"PUT", "https://github.com/acme/site.git/git-receive-pack", false},
	        {"DELETE", "https://github.com/acme/site.git/info/refs", false},
	        {"GET", "https://github.com/acme/site/settings", false},
	        {"POST", "https://github.com/acme/site.git/info/lfs/objects/batch", false},
	        {"GET", "https://api.github.com/repos/acme/site", false},
	        {"POST", "http://github.com/acme/site.git/git-receive-pack", false},
	        {"POST", "https://github.com.evil.example/acme/site.git/git-receive-pack", false});
}

static void test_crates_and_go(void **state)
{
	(void)state;
	CHECK("policies/presets/crates.yaml", {"GET", "https://index.crates.io/se/rd/serde", true},
	        {"GET", "https://index.crates.io/config.json", true},
	        {"GET", "https://static.crates.io/crates/serde/1.0.0/download", true},
	        {"GET", "https://crates.io/api/v1/crates/serde/1.0.0/download", true},
	        {"PUT", "https://crates.io/api/v1/crates/new", false},
	        {"GET", "https://crates.io/api/v1/me", false},
	        {"POST", "https://index.crates.io/x", false});
	CHECK("policies/presets/golang.yaml",
	        {"GET", "https://proxy.golang.org/github.com/!burnt!sushi/toml/@v/list", true},
	        {"GET", "https://sum.golang.org/lookup/golang.org/x/net@v0.1.0", true},
	        {"GET", "https://storage.googleapis.com/proxy-golang-org-prod/abc", true},
	        {"GET", "https://storage.googleapis.com/other-bucket/abc", false},
	        {"PUT", "https://storage.googleapis.com/proxy-golang-org-prod/abc", false},
	        {"POST", "https://proxy.golang.org/x", false},
	        {"GET", "https://sum.golang.org/other", false});
}

static void test_images_and_models(void **state)
{
	(void)state;
	CHECK("policies/presets/docker-hub.yaml", {"GET", "https://registry-1.docker.io/v2/", true},
	        {"GET", "https://registry-1.docker.io/v2/library/debian/manifests/12", true},
	        {"HEAD", "https://registry-1.docker.io/v2/library/debian/blobs/sha256:ab", true},
	        {"GET", "https://auth.docker.io/token?service=registry.docker.io", true},
	        {"GET", "https://production.cloudflare.docker.com/registry-v2/x", true},
	        {"POST", "https://registry-1.docker.io/v2/me/x/blobs/uploads/", false},
	        {"PUT", "https://registry-1.docker.io/v2/me/x/manifests/1", false},
	        {"POST", "https://auth.docker.io/token", false},
	        {"GET", "https://evil.r2.cloudflarestorage.com/x", false},
	        {"GET", "https://hub.docker.com/v2/users/login", false});
	CHECK("policies/presets/huggingface.yaml",
	        {"GET", "https://huggingface.co/gpt2/resolve/main/config.json", true},
	        {"HEAD", "https://huggingface.co/a/b/resolve/main/x/y.bin", true},
	        {"GET", "https://huggingface.co/datasets/a/b/resolve/main/x", true},
	        {"GET", "https://huggingface.co/api/models/a/b/revision/main", true},
	        {"GET", "https://cdn-lfs.hf.co/x", true},
	        {"POST", "https://huggingface.co/api/repos/create", false},
	        {"GET", "https://huggingface.co/settings/tokens", false},
	        {"POST", "https://huggingface.co/api/models/a/b/commit/main", false},
	        {"GET", "https://huggingface.co/api/whoami-v2", false},
	        {"GET", "https://evil.hf.co/x", false});
}

static void test_models_of_apis(void **state)
{
	struct policy_credential c;
	struct test_policy t;

	(void)state;
	CHECK("policies/presets/openai.yaml",
	        {"POST", "https://api.openai.com/v1/chat/completions", true},
	        {"POST", "https://api.openai.com/v1/responses", true},
	        {"GET", "https://api.openai.com/v1/models", true},
	        {"GET", "https://api.openai.com/v1/responses", true},
	        {"DELETE", "https://api.openai.com/v1/responses/resp_1", false},
	        {"POST", "https://api.openai.com/v1/files", false},
	        {"DELETE", "https://api.openai.com/v1/models/x", false},
	        {"GET", "https://api.openai.com/v1/organization/users", false},
	        {"POST", "http://api.openai.com/v1/responses", false},
	        {"POST", "https://api.openai.com.evil.example/v1/responses", false});
	CHECK("policies/presets/anthropic.yaml",
	        {"POST", "https://api.anthropic.com/v1/messages", true},
	        {"POST", "https://api.anthropic.com/v1/messages/count_tokens", true},
	        {"GET", "https://api.anthropic.com/v1/models", true},
	        {"GET", "https://api.anthropic.com/api/hello", true},
	        {"HEAD", "https://api.anthropic.com/api/hello", true},
	        {"GET", "https://platform.claude.com/v1/oauth/hello", true},
	        {"POST", "https://platform.claude.com/v1/oauth/token", false},
	        {"POST", "https://api.anthropic.com/api/hello", false},
	        {"POST", "https://api.anthropic.com/v1/files", false},
	        {"GET", "https://api.anthropic.com/v1/organizations/users", false},
	        {"POST", "https://console.anthropic.com/v1/messages", false});
	load_file(&t, "policies/presets/anthropic.yaml");
	policy_credential(&t.policy,
	        test_ask(&t.policy, "POST", "https://api.anthropic.com/v1/messages").credential,
	        &c);
	assert_true(slice_equals(c.field, SLICE("x-api-key")));
	assert_true(slice_equals(c.env, SLICE("ANTHROPIC_API_KEY")));
	test_unload(&t);
}

#define GEMINI "https://generativelanguage.googleapis.com"

static void test_agents_with_keys(void **state)
{
	(void)state;
	CHECK("policies/presets/gemini-cli.yaml",
	        {"POST", GEMINI "/v1beta/models/gemini-3:streamGenerateContent?alt=sse", true},
	        {"GET", GEMINI "/v1beta/models", true}, {"POST", GEMINI "/v1beta/files", false},
	        {"POST", GEMINI "/v1beta/tunedModels", false},
	        {"POST", GEMINI "/v1beta/models/a/b:generateContent", false},
	        {"POST", "https://play.googleapis.com/log?format=json", false},
	        {"POST", "https://storage.googleapis.com/upload", false});
	CHECK("policies/presets/qwen-code.yaml",
	        {"POST", "https://dashscope.aliyuncs.com/compatible-mode/v1/chat/completions",
	                true},
	        {"POST", "https://dashscope-intl.aliyuncs.com/compatible-mode/v1/files", false},
	        {"POST", "https://x.rum.aliyuncs.com/", false},
	        {"POST", "https://evil.aliyuncs.com/compatible-mode/v1/chat/completions", false});
	CHECK("policies/presets/copilot.yaml",
	        {"POST", "https://api.individual.githubcopilot.com/chat/completions", true},
	        {"GET", "https://api.github.com/copilot_internal/user", true},
	        {"GET", "https://api.github.com/user", false},
	        {"POST", "https://api.github.com/copilot_internal/user", false},
	        {"POST", "https://api.individual.githubcopilot.com/mcp", false},
	        {"POST", "https://telemetry.individual.githubcopilot.com/telemetry", false},
	        {"POST", "https://evil.githubcopilot.com/chat/completions", false});
}

static void test_agents(void **state)
{
	(void)state;
	CHECK("policies/presets/claude-code.yaml",
	        {"POST", "https://api.anthropic.com/v1/messages?beta=true", true},
	        {"GET", "https://api.anthropic.com/api/claude_code/settings", true},
	        {"GET", "https://api.anthropic.com/api/hello", true},
	        {"POST", "https://api.anthropic.com/api/claude_code/settings", false},
	        {"POST", "https://api.anthropic.com/api/event_logging/v2/batch", false},
	        {"POST", "https://api.anthropic.com/api/eval/sdk-1", false},
	        {"POST", "https://api.anthropic.com/v1/files", false},
	        {"GET", "https://downloads.claude.ai/claude-code-releases/latest", false});
	CHECK("policies/presets/claude-code-token.yaml",
	        {"POST", "https://api.anthropic.com/v1/messages?beta=true", true},
	        {"HEAD", "https://api.anthropic.com/api/hello", true},
	        {"POST", "https://api.anthropic.com/api/oauth/claude_cli/create_api_key", false},
	        {"POST", "https://platform.claude.com/v1/oauth/token", false},
	        {"POST", "https://api.anthropic.com/api/event_logging/v2/batch", false});
	CHECK("policies/presets/codex.yaml", {"POST", "https://api.openai.com/v1/responses", true},
	        {"GET", "https://api.openai.com/v1/responses", true},
	        {"GET", "https://chatgpt.com/backend-api/codex/models", true},
	        {"GET", "https://chatgpt.com/backend-api/conversations", false},
	        {"POST", "https://chatgpt.com/backend-api/codex/models", false},
	        {"POST", "https://ab.chatgpt.com/otlp/v1/metrics", false},
	        {"POST", "https://api.openai.com/v1/files", false});
	CHECK("policies/presets/opencode.yaml",
	        {"GET", "https://models.opencode.ai/api.json", true},
	        {"POST", "https://models.opencode.ai/api.json", false},
	        {"GET", "https://api.opencode.ai/share", false});
	CHECK("policies/presets/cline.yaml", {"POST", "https://otel.cline.bot/v1/logs", false},
	        {"POST", "https://data.cline.bot/flags/", false});
	CHECK("policies/presets/pi.yaml", {"GET", "https://pi.dev/api/report-install", false});
	CHECK("policies/presets/agent-updates.yaml",
	        {"GET", "https://pi.dev/api/latest-version", true},
	        {"GET", "https://pi.dev/api/report-install", false},
	        {"GET", "https://api.continue.dev/cn/info?id=1", true},
	        {"POST", "https://api.continue.dev/cn/info", false},
	        {"GET", "https://downloads.claude.ai/claude-code-releases/latest", true},
	        {"GET", "https://github.com/openai/plugins.git/info/refs", true},
	        {"POST", "https://github.com/openai/plugins.git/git-upload-pack", true},
	        {"POST", "https://github.com/openai/plugins.git/git-receive-pack", false},
	        {"GET", "https://github.com/evil/plugins.git/info/refs", false},
	        {"PUT", "https://downloads.claude.ai/claude-code-releases/latest", false},
	        {"POST", "https://api.github.com/repos/openai/plugins/issues", false});
}

static void test_examples(void **state)
{
	struct test_policy t;

	(void)state;
	CHECK("policies/coding-agent.yaml",
	        {"GET", "https://api.github.com/repos/acme/x/issues", true},
	        {"POST", "https://api.github.com/repos/acme/x/pulls", true},
	        {"GET", "https://pypi.org/simple/x/", true},
	        {"GET", "https://index.crates.io/x", true},
	        {"POST", "https://github.com/a/b/git-upload-pack", true},
	        {"DELETE", "https://api.github.com/repos/acme/x", false},
	        {"PUT", "https://api.github.com/repos/acme/x/pulls/1/merge", false},
	        {"GET", "https://api.github.com/repos/other/x", false},
	        {"POST", "https://api.github.com/gists", false},
	        {"POST", "https://paste.example/", false},
	        {"CONNECT", "tcp://github.com:22", false});
	CHECK("policies/ci-runner.yaml", {"GET", "http://deb.debian.org/debian/x", true},
	        {"PUT", "https://artefacts.example.com/repository/builds/a/b", true},
	        {"CONNECT", "tcp://db.example.com:5432", true},
	        {"CONNECT", "udp://time.cloudflare.com:123", true},
	        {"GET", "https://10.20.1.2:8085/x", true},
	        {"PUT", "https://artefacts.example.com/repository/builds/release/a", false},
	        {"PUT", "https://artefacts.example.com/repository/builds/%72elease/a", false},
	        {"POST", "https://nodejs.org/x", false}, {"GET", "https://10.21.1.2:8085/x", false},
	        {"GET", "https://10.20.1.2:9000/x", false});
	CHECK("policies/observe.yaml", {"GET", "https://anything.example/", true},
	        {"CONNECT", "tcp://anything.example:1", true},
	        {"POST", "https://pastebin.com/", true}, {"CONNECT", "https://x.ngrok.io", true},
	        {"GET", "https://anything.example/..", false});
	CHECK("policies/research-agent.yaml", {"GET", "https://arxiv.org/abs/1", true},
	        {"GET", "https://en.m.wikipedia.org/wiki/X", true},
	        {"POST", "https://api.anthropic.com/v1/messages", true},
	        {"POST", "https://arxiv.org/x", false},
	        {"GET", "https://en.wikipedia.org/w/api.php?action=x", false},
	        {"GET", "https://en.wikipedia.org/w//api.php", false},
	        {"GET", "https://example.com/", false});
	load_file(&t, "policies/coding-agent.yaml");
	assert_int_not_equal(
	        test_ask(&t.policy, "GET", "https://api.github.com/repos/acme/x").credential,
	        POLICY_NONE);
	assert_int_equal(
	        test_ask(&t.policy, "GET", "https://pypi.org/simple/x/").credential, POLICY_NONE);
	test_unload(&t);
}

/* No file is left out of the tables above without at least being loaded. */
static void test_all_load(void **state)
{
	glob_t files;

	(void)state;
	assert_int_equal(glob("policies/*.yaml", 0, NULL, &files), 0);
	assert_int_equal(glob("policies/presets/*.yaml", GLOB_APPEND, NULL, &files), 0);
	assert_true(files.gl_pathc >= 14);
	for (size_t i = 0; i < files.gl_pathc; i++) {
		struct test_policy t;

		load_file(&t, files.gl_pathv[i]);
		assert_true(policy_rule_count(&t.policy) > 0);
		test_unload(&t);
	}
	globfree(&files);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_pypi),
	        cmocka_unit_test(test_npm),
	        cmocka_unit_test(test_debian),
	        cmocka_unit_test(test_github),
	        cmocka_unit_test(test_github_push),
	        cmocka_unit_test(test_crates_and_go),
	        cmocka_unit_test(test_images_and_models),
	        cmocka_unit_test(test_models_of_apis),
	        cmocka_unit_test(test_agents),
	        cmocka_unit_test(test_agents_with_keys),
	        cmocka_unit_test(test_examples),
	        cmocka_unit_test(test_all_load),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
