/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration's signers: every key, defaults, and the messages for what is wrong. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vethguard/policy/config.h"

#define RULES ", rules: [{policy: p.yaml}]"
#define WITHOUT_RULES "name: a, issuer: i, audience: g, keys: k.json"
#define WHOLE WITHOUT_RULES RULES

static struct diag_list diags;

static int read_memory(void *context, const char *path, char **text, size_t *n)
{
	(void)path;
	*text = strdup(context);
	*n = strlen(context);
	return *text ? 0 : -ENOMEM;
}

static int load(const char *signers, struct config *config)
{
	static char text[65536];
	struct policy_reader reader = {text, read_memory, NULL};

	snprintf(text, sizeof(text), "gateway: {listen_plain: '127.0.0.1:8080', signers: %s}\n",
	        signers);
	memset(&diags, 0, sizeof(diags));
	config_init(config);
	return config_load(&reader, "/etc/vethguard/config.yaml", config, &diags);
}

static void test_defaults(void **state)
{
	struct config config;
	const struct config_signer *s;

	(void)state;
	assert_int_equal(load("[{" WHOLE "}]", &config), 0);
	assert_int_equal(config.gateway.signer_count, 1);
	s = &config.gateway.signers[0];
	assert_string_equal(s->keys, "/etc/vethguard/k.json");
	assert_string_equal(s->session, "jti");
	assert_int_equal(s->terms.algorithms, 7);
	assert_int_equal(s->terms.lifetime_s, 86400);
	assert_string_equal(s->rules[0].policy, "/etc/vethguard/p.yaml");
	config_fini(&config);
	assert_int_equal(load("[]", &config), 0);
	assert_int_equal(config.gateway.signer_count, 0);
	config_fini(&config);
}

static void test_every_key(void **state)
{
	struct config config, other;
	struct config_gateway copy;
	const struct config_signer *s;
	const struct config_signer_rule *r;
	static const char text[] =
	        "[{" WHOLE "}, {name: b-2, issuer: 'https://b', audience: [x, y], algorithms: "
	        "[ES256, EdDSA], lifetime: 90m, keys: /k.json, session: /kubernetes.io/pod/uid, "
	        "rules: [{policy: /p.yaml}, {when: {tier: gold, /a/b: 'c*'}, policy: q.yaml, vars: "
	        "{tenant: org, n: /x}, labels: {team: t}, from: [10.0.0.0/8, 'fd00::/8']}]}]";

	(void)state;
	assert_int_equal(load(text, &config), 0);
	assert_int_equal(config.gateway.signer_count, 2);
	s = &config.gateway.signers[1];
	assert_string_equal(s->name, "b-2");
	assert_int_equal(s->terms.audience_count, 2);
	assert_string_equal(s->terms.audiences[1], "y");
	assert_int_equal(s->terms.algorithms, 1 << CONFIG_ES256 | 1 << CONFIG_EDDSA);
	assert_int_equal(s->terms.lifetime_s, 5400);
	assert_string_equal(s->session, "/kubernetes.io/pod/uid");
	assert_int_equal(s->rule_count, 2);
	r = &s->rules[1];
	assert_int_equal(r->when_count, 2);
	assert_string_equal(r->when[1].claim, "/a/b");
	assert_string_equal(r->when[1].text, "c*");
	assert_string_equal(r->vars[0].text, "tenant");
	assert_string_equal(r->vars[0].claim, "org");
	assert_string_equal(r->labels[0].claim, "t");
	assert_int_equal(r->from_count, 2);
	assert_int_equal(config_gateway_copy(&copy, &config.gateway), 0);
	assert_true(config_signers_equal(&copy, &config.gateway));
	assert_int_equal(load(text, &other), 0);
	assert_true(config_signers_equal(&copy, &other.gateway));
	config_fini(&other);
	assert_int_equal(load("[{" WHOLE "}]", &other), 0);
	assert_false(config_signers_equal(&copy, &other.gateway));
	config_fini(&other);
	config_gateway_fini(&copy);
	config_fini(&config);
}

static void test_url(void **state)
{
	struct config config;

	(void)state;
	assert_int_equal(
	        load("[{name: a, issuer: i, audience: g, keys: 'https://i.example:8443/x?y', "
	             "refresh: 10s" RULES "}]",
	                &config),
	        0);
	assert_string_equal(config.gateway.signers[0].keys, "https://i.example:8443/x?y");
	assert_int_equal(config.gateway.signers[0].refresh_s, 10);
	config_fini(&config);
	assert_int_equal(
	        load("[{name: a, issuer: i, audience: g, keys: 'https://i.example'" RULES "}]",
	                &config),
	        0);
	assert_int_equal(config.gateway.signers[0].refresh_s, 300);
	config_fini(&config);
}

static void refused(const char *signers, const char *words)
{
	struct config config;
	bool told = false;

	if (load(signers, &config) != -EINVAL)
		fail_msg("taken: %s", signers);
	for (size_t i = 0; i < diags.count; i++)
		told = told || strstr(diags.items[i].message, words);
	if (!told)
		fail_msg("%s: %s, not: %s", signers, diags.items[0].message, words);
	config_fini(&config);
}

static void test_wrong(void **state)
{
	(void)state;
	refused("7", "list");
	refused("[7]", "a signer");
	refused("[{}]", "name is missing");
	refused("[{name: a, audience: g, keys: k" RULES "}]", "issuer is missing");
	refused("[{name: a, issuer: i, keys: k" RULES "}]", "audience is missing");
	refused("[{name: a, issuer: i, audience: g" RULES "}]", "keys is missing");
	refused("[{" WITHOUT_RULES "}]", "rules is missing");
	refused("[{" WHOLE ", kid: x}]", "kid");
	refused("[{" WHOLE "}, {" WHOLE "}]", "already");
	refused("[{" WHOLE "}, {name: b, issuer: i, audience: g, keys: k" RULES "}]", "already");
	refused("[{name: A, issuer: i, audience: g, keys: k" RULES "}]", "small letters");
	refused("[{name: -a, issuer: i, audience: g, keys: k" RULES "}]", "small letters");
	refused("[{name: a.b, issuer: i, audience: g, keys: k" RULES "}]", "small letters");
	refused("[{name: aaaaaaaaaaaaaaaaaaaaaaaaa, issuer: i, audience: g, keys: k" RULES "}]",
	        "24");
	refused("[{" WHOLE ", algorithms: HS256}]", "algorithms");
	refused("[{" WHOLE ", algorithms: none}]", "algorithms");
	refused("[{" WHOLE ", algorithms: []}]", "algorithms");
	refused("[{" WHOLE ", lifetime: 59s}]", "lifetime");
	refused("[{" WHOLE ", lifetime: 9000h}]", "lifetime");
	refused("[{name: a, issuer: i, audience: g, keys: 'http://i.example/'" RULES "}]", "URL");
	refused("[{name: a, issuer: i, audience: g, keys: 'ftp://i.example/'" RULES "}]", "URL");
	refused("[{name: a, issuer: i, audience: g, keys: 'https://'" RULES "}]", "URL");
	refused("[{name: a, issuer: i, audience: g, keys: 'https://u:p@i.example/#x'" RULES "}]",
	        "URL");
	refused("[{" WHOLE ", refresh: 1m}]", "for keys of a URL");
	refused("[{name: a, issuer: i, audience: g, refresh: 4s, keys: 'https://i.example'" RULES
	        "}]",
	        "refresh");
	refused("[{" WHOLE ", session: /}]", "pointer");
	refused("[{" WHOLE ", session: /a~2}]", "pointer");
	refused("[{name: a, issuer: i, audience: [], keys: k" RULES "}]", "audience");
	refused("[{name: a, issuer: i, audience: [a, b, c, d, e], keys: k" RULES "}]",
	        "more than 4");
	refused("[{" WITHOUT_RULES ", rules: [{}]}]", "policy is missing");
	refused("[{" WITHOUT_RULES ", rules: [{policy: p, when: [a]}]}]", "when");
	refused("[{" WITHOUT_RULES ", rules: [{policy: p, when: {a: [b]}}]}]", "when");
	refused("[{" WITHOUT_RULES ", rules: [{policy: p, vars: {a: [b]}}]}]", "a claim");
	refused("[{" WITHOUT_RULES ", rules: [{policy: p, vars: {a: /}}]}]", "pointer");
	refused("[{" WITHOUT_RULES ", rules: [{policy: p, from: 10.0.0.1/8}]}]", "network");
	refused("[{" WITHOUT_RULES ", rules: [{policy: p, policies: q}]}]", "policies");
}

/* Within the bound it loads; beyond it is refused, and says why. */
static void bounded(const char *text, bool beyond, const char *why)
{
	struct config config;

	if (beyond) {
		refused(text, why);
		return;
	}
	assert_int_equal(load(text, &config), 0);
	config_fini(&config);
}

/* What is beyond each bound. */
static void test_many(void **state)
{
	static char text[32768];

	(void)state;
	for (int more = 0; more < 2; more++) {
		size_t n = (size_t)sprintf(text, "[{" WITHOUT_RULES ", rules: [");

		for (int i = 0; i < CONFIG_SIGNER_RULES_MAX + more; i++)
			n += (size_t)sprintf(text + n, "{policy: p},");
		strcpy(text + n, "]}]");
		bounded(text, more, "more than 16 rules");
		n = (size_t)sprintf(text, "[{" WITHOUT_RULES ", rules: [{policy: p, vars: {");
		for (int i = 0; i < CONFIG_SIGNER_CLAIMS_MAX + more; i++)
			n += (size_t)sprintf(text + n, "a%d: b,", i);
		strcpy(text + n, "}}]}]");
		bounded(text, more, "more than 16 in vars");
		n = (size_t)sprintf(text, "[");
		for (int i = 0; i < CONFIG_SIGNERS_MAX + more; i++)
			n += (size_t)sprintf(text + n,
			        "{name: a%d, issuer: i%d, audience: g, keys: k" RULES "},", i, i);
		strcpy(text + n, "]");
		bounded(text, more, "more than 8 signers");
	}
}

/* A signer of callbacks makes no sessions. */
static void test_callbacks(void **state)
{
	struct config config;

	(void)state;
	assert_int_equal(load("[{" WITHOUT_RULES ", callbacks: true}]", &config), 0);
	assert_true(config.gateway.signers[0].terms.callbacks);
	assert_int_equal(config.gateway.signers[0].terms.lifetime_s, 600);
	assert_int_equal(config.gateway.signers[0].rule_count, 0);
	config_fini(&config);
	assert_int_equal(load("[{" WHOLE ", callbacks: false, lifetime: 5m}]", &config), 0);
	assert_false(config.gateway.signers[0].terms.callbacks);
	config_fini(&config);
	refused("[{" WHOLE ", callbacks: true}]", "does not sign");
	refused("[{" WITHOUT_RULES ", session: jti, callbacks: true}]", "does not sign");
	refused("[{" WITHOUT_RULES ", callbacks: false}]", "rules is missing");
	refused("[{" WITHOUT_RULES ", callbacks: yes}]", "callbacks");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_defaults),
	        cmocka_unit_test(test_every_key),
	        cmocka_unit_test(test_url),
	        cmocka_unit_test(test_callbacks),
	        cmocka_unit_test(test_wrong),
	        cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
